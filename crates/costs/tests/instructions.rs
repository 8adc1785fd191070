//! What the paths that every event or scrape takes cost, in instructions: the same on every machine, whatever else it does. None may
//! cost more than its budget in `budgets.txt`; raise one only with a reason in the commit, and lower it with what made it cheaper.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what fails here is a failed test"
)]

use std::path::Path;
use std::process::Command;
use std::thread;

/// Case, number of turns that are measured, and the budget of one turn.
const BUDGETS: &str = include_str!("budgets.txt");
/// What a turn may cost beyond its budget: compilers and allocators differ a little.
const TOLERANCE_PERCENT: u64 = 10;
/// What a turn may cost less, before its budget guards nothing any more.
const SLACK_PERCENT: u64 = 30;

struct CostBudget {
    case: &'static str,
    turns: u64,
    budget: u64,
}

impl CostBudget {
    fn from_line(line: &'static str) -> CostBudget {
        let mut words = line.split_whitespace();
        let case = words.next().unwrap();
        let mut number = || words.next().and_then(|word| word.replace('_', "").parse().ok());
        let (turns, budget) = number().zip(number()).unwrap_or_else(|| panic!("not a budget: {line}"));
        CostBudget { case, turns, budget }
    }

    /// Instructions of one turn: what twice as many turns cost more.
    fn measure(&self) -> u64 {
        let once = instructions(self.case, self.turns);
        instructions(self.case, 2 * self.turns).saturating_sub(once) / self.turns
    }
}

/// Instructions of the whole process that runs a case so many times.
fn instructions(case: &str, turns: u64) -> u64 {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind");
    command.arg(format!("--callgrind-out-file={}", folder.join(format!("{case}-{turns}.out")).display()));
    command.args([env!("CARGO_BIN_EXE_costs"), case, &turns.to_string()]);
    let output = command.output().unwrap_or_else(|error| panic!("valgrind, which counts them: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {text}");
    let counted = text.lines().find_map(|line| line.split("Collected :").nth(1));
    counted.and_then(|word| word.trim().parse().ok()).unwrap_or_else(|| panic!("{case}: {text}"))
}

#[test]
fn no_path_that_every_event_or_scrape_takes_costs_more_than_its_budget() {
    let lines = BUDGETS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let budgets: Vec<_> = lines.map(CostBudget::from_line).collect();
    let measured: Vec<u64> = thread::scope(|scope| {
        // Two at a time: counting is slow, and a case waits for nothing.
        let halves: Vec<_> = budgets
            .chunks(budgets.len().div_ceil(2))
            .map(|half| scope.spawn(|| half.iter().map(CostBudget::measure).collect::<Vec<_>>()))
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    let mut wrong = Vec::new();
    for (CostBudget { case, budget, .. }, cost) in budgets.iter().zip(measured) {
        let percent = cost * 100 / budget;
        println!("{case:<22} {cost:>10} instructions, {percent:>3} % of its budget");
        if !(100 - SLACK_PERCENT..=100 + TOLERANCE_PERCENT).contains(&percent) {
            wrong.push(format!("{case} costs {cost} instructions, its budget is {budget}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
