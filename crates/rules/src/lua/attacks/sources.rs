//! Hostile sources: to be compiled or refused in time, on the stack of a worker.

use super::*;

/// Compiles on the stack of a worker thread; returns the error, if any, and what it cost.
fn compile(source: String) -> (Option<String>, f64) {
    let run = move || {
        let (outcome, took) = measure_cost(|| HealthScript::compile("test", &source, true));
        (outcome.err().map(|error| error.message), took)
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

/// Name and source.
fn sources() -> Vec<(&'static str, String)> {
    let of = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    vec![
        ("parentheses", format!("return {}", of("(", "1", ")", 100_000))),
        ("tables", format!("return {}", of("{", "1", "}", 100_000))),
        ("indices", format!("return obj{}", ".a".repeat(100_000))),
        ("brackets", format!("return obj{}", "[1]".repeat(60_000))),
        ("calls", format!("return f{}", "()".repeat(100_000))),
        ("methods", format!("return s{}", ":a()".repeat(60_000))),
        ("sums", format!("return 1{}", "+1".repeat(100_000))),
        ("joined", format!("return ''{}", "..''".repeat(60_000))),
        ("powers", format!("return 1{}", "^1".repeat(100_000))),
        ("nots", format!("return {}1", "not ".repeat(60_000))),
        ("signs", format!("return {}1", "- ".repeat(100_000))),
        ("ands", format!("return a{}", " and a".repeat(40_000))),
        ("functions", of("local function f() ", "", " end", 10_000)),
        ("lambdas", format!("return {}", of("function() return ", "1", " end", 8_000))),
        ("blocks", of("do ", "", " end", 30_000)),
        ("loops", of("while a do ", "", " end", 15_000)),
        ("repeats", of("repeat ", "", " until a", 15_000)),
        ("ifs", of("if a then ", "", " end", 15_000)),
        ("elseifs", format!("if a then {} end", "elseif a then ".repeat(15_000))),
        ("texts in texts", of("`{", "1", "}`", 40_000)),
        ("types", format!("local x: {} = 1", of("{", "number", "}", 60_000))),
        ("labels in a row", "::a::".repeat(50_000)),
        ("semicolons", format!("for i = 1, 2 do {} end", "goto a ::a:: ;".repeat(15_000))),
        ("only semicolons", ";".repeat(250_000)),
        (
            "gotos out of many loops",
            format!(
                "{}{}{}",
                "while a do ".repeat(7_000),
                "goto x ".repeat(20_000),
                " ::x:: end".repeat(2_000)
            ),
        ),
        (
            "gotos out of some loops",
            format!(
                "while a do {}{}{} ::x:: end",
                "while b do ".repeat(150),
                "do goto x end ".repeat(400),
                "end ".repeat(150)
            ),
        ),
        ("long brackets", "[====[ ".repeat(30_000)),
        (
            "almost long brackets",
            format!("return [{}[{}", "=".repeat(60_000), format!("]{}", "=".repeat(100)).repeat(1_000)),
        ),
        ("comments", "--[[".repeat(50_000)),
        ("locals", "local a ".repeat(30_000)),
        ("constants", (0..30_000).map(|at| format!("a{at}=1 ")).collect::<Vec<_>>().concat()),
        ("no script at all", "\u{1}\u{0}\\[[".repeat(30_000)),
    ]
}

#[test]
fn every_source_is_compiled_or_refused_in_time_and_on_a_small_stack() {
    let mut others = Vec::new();
    for (name, source) in sources() {
        let (error, took) = compile(source);
        let words: String = error.unwrap_or_else(|| "compiles".to_owned()).chars().take(70).collect();
        println!("{name:28} {took:>9.3} ms  {words}");
        // Compiled once, when a policy or a library is loaded.
        if took > 40.0 * MAX_ATTACK_MILLIS {
            others.push(format!("{name} cost {took} ms"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn the_limits_of_a_translation_name_their_line() {
    let deep = format!("\n{}{}", "do ".repeat(201), "end ".repeat(201));
    let error = HealthScript::compile("x", &deep, true).unwrap_err();
    assert_eq!(error.to_string(), "x:2: more than 200 blocks in each other");
    let jumps = format!("\n\n{}", "for a in b do goto c ::c:: end ".repeat(501));
    let error = HealthScript::compile("x", &jumps, true).unwrap_err();
    assert_eq!(error.to_string(), "x:3: more than 500 labels or gotos");
}
