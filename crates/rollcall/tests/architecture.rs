//! The borders between the crates, as the code map in `crates/README.md` draws them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which crate may name which others of the workspace.
const ARROWS: [(&str, &[&str]); 10] = [
    ("readiness", &[]),
    ("timer", &[]),
    ("aggregator", &["readiness", "timer"]),
    ("rules", &["readiness"]),
    ("watcher", &["aggregator", "readiness", "rules", "timer"]),
    ("api", &[]),
    ("controller", &["aggregator", "api", "readiness", "rules", "timer", "watcher"]),
    ("sandbox", &[]),
    ("sim", &["aggregator", "controller", "readiness", "sandbox", "timer", "watcher"]),
    ("rollcall", &["api", "controller", "readiness", "rules", "sandbox", "watcher"]),
];

const PURE: [&str; 3] = ["readiness", "timer", "aggregator"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The normal dependencies of every crate of the workspace.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let normal = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        all.map(|d| d["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|p| (p["name"].as_str().unwrap().to_owned(), normal(p))).collect()
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let (dirs, files): (Vec<_>, Vec<_>) = entries.partition(|p| p.is_dir());
    let rust = files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"));
    dirs.iter().flat_map(|d| sources(d)).chain(rust).collect()
}

#[test]
fn arrows_between_crates_point_one_way() {
    let all = dependencies();
    for (package, allowed) in ARROWS {
        let named: Vec<_> =
            all[package].iter().filter(|d| ARROWS.iter().any(|(name, _)| name == d)).collect();
        let strange: Vec<_> = named.iter().filter(|d| !allowed.contains(&d.as_str())).collect();
        assert!(strange.is_empty(), "{package} must not depend on {strange:?}");
    }
}

#[test]
fn the_pure_crates_depend_on_nothing_outside_the_workspace() {
    let all = dependencies();
    for package in PURE {
        let outside: Vec<_> = all[package].iter().filter(|d| !PURE.contains(&d.as_str())).collect();
        assert!(outside.is_empty(), "{package} depends on {outside:?}");
    }
}

#[test]
fn the_pure_crates_name_no_clock_no_environment_and_no_randomness() {
    const BANNED: [&str; 9] = [
        "SystemTime::now",
        "Instant::now",
        "std::env",
        "std::fs",
        "std::net",
        "std::thread",
        "RandomState",
        "tokio",
        "async fn",
    ];
    for package in PURE {
        for file in sources(&root().join("crates").join(package).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            // What a test does to have a moment is its own affair.
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code: String = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            let found: Vec<_> = BANNED.iter().filter(|word| code.contains(**word)).collect();
            assert!(found.is_empty(), "{} names {found:?}", file.display());
        }
    }
}

#[test]
fn the_top_level_holds_nothing_but_its_rooms() {
    const ROOMS: [&str; 8] =
        ["Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "crates", "dashboards", "deploy", "tests"];
    let output =
        Command::new("git").args(["ls-tree", "--name-only", "HEAD"]).current_dir(root()).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let strange: Vec<_> = names.lines().filter(|n| !n.starts_with('.') && !ROOMS.contains(n)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
