//! Dependencies between the crates, as the code map in `crates/README.md` draws them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod module_circles;
mod source_modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Allowed workspace dependencies of each crate.
const ARROWS: [(&str, &[&str]); 19] = [
    ("rollcall-rfc3339", &[]),
    ("readiness", &["rollcall-rfc3339"]),
    ("timer", &[]),
    ("aggregator", &["readiness", "timer"]),
    ("rollcall-cel", &["rollcall-rfc3339"]),
    ("rollcall-yaml", &[]),
    ("rules", &["readiness", "rollcall-cel", "rollcall-rfc3339", "rollcall-yaml"]),
    ("watcher", &["aggregator", "readiness", "rollcall-cel", "rules", "timer"]),
    ("rollcall-record", &[]),
    ("api", &["rollcall-record"]),
    ("rollcall-core", &["aggregator", "readiness", "rollcall-record", "timer", "watcher"]),
    ("inspect", &["readiness", "rollcall-core", "watcher"]),
    (
        "policy",
        &[
            "aggregator",
            "api",
            "readiness",
            "rollcall-cel",
            "rollcall-core",
            "rollcall-yaml",
            "rules",
            "timer",
            "watcher",
        ],
    ),
    (
        "controller",
        &[
            "aggregator",
            "api",
            "inspect",
            "policy",
            "readiness",
            "rollcall-cel",
            "rollcall-core",
            "rules",
            "timer",
            "watcher",
        ],
    ),
    ("sandbox", &["rollcall-rfc3339"]),
    ("sim", &["aggregator", "readiness", "rollcall-core", "rules", "sandbox", "timer", "watcher"]),
    (
        "fuzz",
        &[
            "api",
            "controller",
            "policy",
            "readiness",
            "rollcall-cel",
            "rollcall-yaml",
            "rules",
            "timer",
            "watcher",
        ],
    ),
    ("bench", &["api", "sandbox"]),
    (
        "rollcall",
        &[
            "api",
            "controller",
            "inspect",
            "policy",
            "readiness",
            "rollcall-cel",
            "rollcall-core",
            "rollcall-yaml",
            "rules",
            "sandbox",
            "watcher",
        ],
    ),
];

const PURE: [&str; 4] = ["rollcall-rfc3339", "readiness", "timer", "aggregator"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the normal dependencies of every workspace crate.
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
        for file in sources(&root().join("crates").join(folder_of(package)).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            // Tests may read the clock.
            let code = text.split("#[cfg(test)]").next().unwrap();
            let code: String = code.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
            let found: Vec<_> = BANNED.iter().filter(|word| code.contains(**word)).collect();
            assert!(found.is_empty(), "{} names {found:?}", file.display());
        }
    }
}

#[test]
fn the_top_level_holds_nothing_but_its_rooms() {
    const FILES: [&str; 6] =
        ["CHANGELOG.md", "Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "SECURITY.md"];
    const ROOMS: [&str; 4] = ["crates", "dashboards", "deploy", "tests"];
    let output =
        Command::new("git").args(["ls-tree", "--name-only", "HEAD"]).current_dir(root()).output().unwrap();
    let names = String::from_utf8(output.stdout).unwrap();
    let strange: Vec<_> =
        names.lines().filter(|n| !n.starts_with('.') && !FILES.contains(n) && !ROOMS.contains(n)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

/// The modules of every crate of the workspace, by the crate's name.
fn all_modules() -> BTreeMap<&'static str, BTreeMap<source_modules::ModulePath, source_modules::SourceModule>>
{
    let root = root();
    ARROWS
        .iter()
        .map(|(name, _)| {
            let folder = root.join("crates").join(folder_of(name)).join("src");
            (*name, source_modules::read_crate_modules(&root, &folder))
        })
        .collect()
}

/// The folder of a crate: its package's name, unless that would shadow another crate.
fn folder_of(package: &str) -> &str {
    package.strip_prefix("rollcall-").unwrap_or(package)
}

/// The picture of the crates: every arrow that no longer way makes needless.
fn draw_arrows() -> Vec<String> {
    let reached = |from: &'static str| -> BTreeSet<&'static str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(package) = next.pop() {
            let named = ARROWS.iter().find(|(name, _)| *name == package).map_or(&[][..], |(_, named)| *named);
            next.extend(named.iter().copied().filter(|name| reached.insert(*name)));
        }
        reached
    };
    let mut lines = vec!["graph TD".to_owned()];
    for (from, named) in ARROWS {
        let is_direct = |to: &&&str| named.iter().all(|other| other == *to || !reached(other).contains(**to));
        let mut direct: Vec<_> = named.iter().filter(is_direct).map(|to| folder_of(to)).collect();
        direct.sort_unstable();
        lines.extend(direct.iter().map(|to| format!("  {} --> {to}", folder_of(from))));
    }
    lines
}

#[test]
fn the_code_map_lists_and_draws_the_arrows_that_are_checked() {
    let map = std::fs::read_to_string(root().join("crates/README.md")).unwrap();
    let folders =
        std::fs::read_dir(root().join("crates")).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir());
    assert_eq!(ARROWS.len(), folders.count(), "one a crate");
    for (from, named) in ARROWS {
        let row = map.lines().find(|line| line.starts_with(&format!("| `{}` |", folder_of(from)))).unwrap();
        let drawn = row.trim_end_matches('|').rsplit('|').next().unwrap().trim();
        let mut folders: Vec<_> = named.iter().map(|name| folder_of(name)).collect();
        folders.sort_unstable();
        assert_eq!(drawn, folders.join(", "), "{from}");
    }
    let picture = map.split("```mermaid\n").nth(1).and_then(|rest| rest.split("\n```").next()).unwrap();
    assert_eq!(picture.lines().collect::<Vec<_>>(), draw_arrows());
}

#[test]
fn no_two_files_of_a_crate_need_each_other() {
    let circles: Vec<_> = all_modules()
        .iter()
        .flat_map(|(name, modules)| module_circles::find_circles(name, modules))
        .collect();
    assert!(circles.is_empty(), "{} circles:\n{circles:#?}", circles.len());
}

#[test]
fn the_methods_of_a_type_stand_in_its_own_file() {
    for (name, modules) in all_modules() {
        for module in modules.values() {
            let strange: Vec<_> = module.extended_types.difference(&module.types).collect();
            assert!(strange.is_empty(), "{name}: {} adds methods to {strange:?}", module.file.display());
        }
    }
}

#[test]
fn a_type_name_that_others_can_see_stands_once_in_the_workspace() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for modules in all_modules().values() {
        for module in modules.values() {
            for name in &module.visible_types {
                places.entry(name.clone()).or_default().push(module.file.display().to_string());
            }
        }
    }
    let recurring: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(recurring.is_empty(), "{} names:\n{recurring:#?}", recurring.len());
}
