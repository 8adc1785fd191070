//! `rollcall version` and `rollcall man-pages`, as a release uses them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn rollcall(args: &[&str]) -> String {
    let said = Command::new(env!("CARGO_BIN_EXE_rollcall")).args(args).output().unwrap();
    assert!(said.status.success(), "{args:?}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

#[test]
fn every_way_to_ask_for_the_version_says_the_same() {
    let record: Value = serde_json::from_str(&rollcall(&["version", "--output", "json"])).unwrap();
    let keys: Vec<_> = record.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 5, "{keys:?}");
    for key in ["version", "commit", "date", "os", "arch"] {
        assert!(keys.contains(&key), "{key} is not in {record}");
    }
    let version = record["version"].as_str().unwrap();
    assert!(rollcall(&["version"]).starts_with(&format!("rollcall {version}\ncommit ")));
    assert_eq!(rollcall(&["--version"]), format!("rollcall {version}\n"));
}

/// The commands that the help names.
fn commands() -> BTreeSet<String> {
    let help = rollcall(&["--help"]);
    let list = help.split_once("Commands:").unwrap().1.split_once("Options:").unwrap().0;
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

#[test]
fn each_command_that_the_help_names_has_a_manual_page_with_its_options() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man-pages");
    std::fs::remove_dir_all(&folder).ok();
    rollcall(&["man-pages", "--to", folder.to_str().unwrap()]);
    let written: BTreeSet<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected: BTreeSet<_> = commands().iter().map(|name| format!("rollcall-{name}.1")).collect();
    assert!(expected.len() >= 15, "{expected:?}");
    expected.insert("rollcall.1".to_owned());
    assert_eq!(written, expected);
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("rollcall-tree.1").contains("\\-\\-watch"));
    assert!(page("rollcall.1").contains("rollcall\\-explain(1)"));
    // The same program writes the same pages: an archive of them has one checksum.
    let before: Vec<_> = written.iter().map(|name| page(name)).collect();
    rollcall(&["man-pages", "--to", folder.to_str().unwrap()]);
    assert_eq!(before, written.iter().map(|name| page(name)).collect::<Vec<_>>());
}
