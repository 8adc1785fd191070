//! The program that plays as many histories as are asked for.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

use std::process::{Command, Output};

fn play(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_sim")).args(args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn as_many_histories_are_played_as_are_asked_for() {
    let (code, out, err) = play(&["--seeds", "2", "--from", "7", "--only", "still,shared"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.starts_with("seeds 7 to 8: [########################] 4/4 histories, "), "{out}");
    assert!(out.contains(" 0 failed, ") && out.contains(" simulated hours a minute of a core"), "{out}");
}

#[test]
fn a_mistyped_command_plays_nothing() {
    let huge = u64::MAX.to_string();
    for args in [&["--seeds", "0"][..], &["--seeds", &huge], &["--only", "stil"], &["--sead", "1"]] {
        let (code, out, err) = play(args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.starts_with("error: "), "{err}");
    }
}
