//! More seeds than a test has time for, without a build of its own: `cargo run -p fuzz --example mutate SECONDS [TARGET]`.
//! What breaks is written to a file, whose name is printed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool, bounded by the clock"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use fuzz::{FUZZ_TARGETS, FuzzTarget, InputMutator};
use timer::Seed;

/// Mutations of one seed.
const MUTATIONS: usize = 200;

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let name = args.next();
    let is_wanted = |target: &&FuzzTarget| name.as_ref().is_none_or(|name| *name == target.name);
    for target in FUZZ_TARGETS.iter().filter(is_wanted) {
        run_target(target, Duration::from_secs(seconds));
    }
}

fn run_target(target: &FuzzTarget, time: Duration) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let end = Instant::now() + time;
    let (mut inputs, mut broken) = (0, 0);
    for seed in 0.. {
        if Instant::now() > end || broken >= 5 {
            break;
        }
        let mut mutator = InputMutator::new(Seed(seed), &corpus, target.words);
        for _ in 0..MUTATIONS {
            let input = mutator.next_input();
            inputs += 1;
            if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
                let file = std::env::temp_dir().join(format!("rollcall-fuzz-{}-{broken}", target.name));
                std::fs::write(&file, input).unwrap();
                println!("{}: seed {seed}: {}", target.name, file.display());
                broken += 1;
            }
        }
    }
    println!("{}: {inputs} inputs, {broken} broken", target.name);
}
