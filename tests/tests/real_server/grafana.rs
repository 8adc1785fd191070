//! The dashboards, held against the types that Grafana publishes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use acceptance::places;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The folder with the check and what it needs from npm, installed once.
fn installed() -> Result<PathBuf> {
    let (source, folder) =
        (places::repository().join("tests/grafana"), places::repository().join(".cache/grafana"));
    fs::create_dir_all(&folder)?;
    let lock = fs::read(source.join("package-lock.json"))?;
    let fresh = fs::read(folder.join("installed.json")).is_ok_and(|installed| installed == lock);
    for file in ["package.json", "package-lock.json", "check.mjs"] {
        fs::copy(source.join(file), folder.join(file))?;
    }
    if !fresh {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder);
        let done = npm.output().context("npm (package npm) is missing")?;
        ensure!(done.status.success(), "npm ci: {}", String::from_utf8_lossy(&done.stderr));
        fs::write(folder.join("installed.json"), lock)?;
    }
    Ok(folder)
}

fn check(folder: &Path, files: &[PathBuf]) -> Result<Output> {
    let mut node = Command::new("node");
    node.arg("check.mjs").args(files).current_dir(folder);
    node.output().context("node (package nodejs) is missing")
}

#[test]
fn dashboards_are_of_the_types_that_grafana_publishes() -> Result<()> {
    let folder = installed()?;
    let dashboards = places::repository().join("dashboards");
    let files = ["fleet", "parent", "rollcall"].map(|name| dashboards.join(format!("{name}.json")));
    let checked = check(&folder, &files)?;
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(said.contains("3 dashboards, 0 faults"), "{said}");

    let mut broken: Value = serde_json::from_slice(&fs::read(&files[0])?)?;
    broken["panels"][1]["options"]["colourMode"] = "value".into();
    let file = folder.join("broken.json");
    fs::write(&file, broken.to_string())?;
    let checked = check(&folder, &[file])?;
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success() && said.contains("colourMode"), "an unknown option passed: {said}");
    Ok(())
}
