//! Runs a peer's real code as a process: objects in, its answers out.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Returns the oracle binary that this variable names; without it the test prints so and compares nothing.
pub(crate) fn named(variable: &str) -> Option<String> {
    let path = std::env::var(variable).ok();
    if path.is_none() {
        println!("skipped: {variable} does not name a built oracle");
    }
    path
}

/// Sends all lines and returns one answer for each.
pub(crate) fn ask(path: &str, lines: Vec<Value>) -> Vec<Value> {
    let count = lines.len();
    let mut child =
        Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start the oracle");
    let mut input = BufWriter::new(child.stdin.take().expect("piped"));
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").expect("write to the oracle");
        }
    });
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let answers: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect();
    writer.join().expect("all written");
    assert!(child.wait().expect("the oracle ends").success());
    assert_eq!(answers.len(), count);
    answers
}

/// Returns each object in the oracles' input format.
pub(crate) fn objects(objects: &[Value]) -> Vec<Value> {
    objects.iter().map(|object| json!({"object": object})).collect()
}
