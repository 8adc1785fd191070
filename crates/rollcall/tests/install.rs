//! `rollcall install`, run without a cluster: whose namespace it is, and how all of it goes again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::process::{Command, Stdio};

use serde_json::Value;

fn rollcall(args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
    let done = command.args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// Names of the namespaces in the stream.
fn namespaces(args: &[&str]) -> Vec<String> {
    let (code, out, err) = rollcall(&[&["install", "--offline"], args].concat());
    assert_eq!(code, Some(0), "{err}");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&out).unwrap();
    let named = objects.iter().filter(|object| object["kind"] == "Namespace");
    named.map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_namespace_that_is_not_rollcalls_own_is_made_only_when_asked_for() {
    assert_eq!(namespaces(&[]), ["rollcall-system"]);
    assert_eq!(namespaces(&["-n", "monitoring"]), [""; 0]);
    assert_eq!(namespaces(&["-n", "watchers", "--create-namespace"]), ["watchers"]);
}

#[test]
fn the_help_names_what_takes_it_away_while_the_service_runs() {
    let (code, help, _) = rollcall(&["install", "--help"]);
    assert_eq!(code, Some(0));
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "rollcall release --lease rollcall-system/rollcall --records rollcall-system",
        "rollcall install -f policies.yaml | kubectl delete --ignore-not-found -f -",
        "the namespace with everything in it",
    ] {
        assert!(words.contains(part), "no {part:?} in:\n{help}");
    }
}
