//! The bugs that can be put back: tests/bugs has a patch for each, and a script that shows which test notices it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn patches() -> Vec<PathBuf> {
    let files = read_dir(root().join("tests/bugs")).unwrap().map(|entry| entry.unwrap().path());
    let mut patches: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "patch")).collect();
    patches.sort();
    patches
}

#[test]
fn every_bug_can_be_put_back_into_the_code_as_it_is() {
    let patches = patches();
    assert!(patches.len() >= 30, "{patches:?}");
    for patch in &patches {
        let applies = Command::new("git").args(["apply", "--check"]).arg(patch).current_dir(root()).output();
        let applies = applies.unwrap();
        assert!(applies.status.success(), "{}", String::from_utf8_lossy(&applies.stderr));
    }
}

#[test]
fn the_page_of_bugs_has_each_of_them_and_no_other() {
    let page = read_to_string(root().join("tests/bugs/README.md")).unwrap();
    let mut listed: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    listed.sort_unstable();
    let patches = patches();
    let names: Vec<_> = patches.iter().map(|path| path.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(listed, names);
}
