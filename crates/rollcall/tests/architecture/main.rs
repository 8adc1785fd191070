//! Dependencies between the crates, as the code map in `crates/README.md` draws them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod module_circles;
mod source_modules;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use source_modules::SourceModule;
use targets::PackageTarget;

/// Allowed workspace dependencies of each crate.
const ARROWS: [(&str, &[&str]); 20] = [
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
    ("sim", &["aggregator", "policy", "readiness", "rollcall-core", "rules", "sandbox", "timer", "watcher"]),
    (
        "fuzz",
        &[
            "aggregator",
            "api",
            "controller",
            "policy",
            "readiness",
            "rollcall-cel",
            "rollcall-core",
            "rollcall-record",
            "rollcall-yaml",
            "rules",
            "timer",
            "watcher",
        ],
    ),
    ("bench", &["api", "sandbox"]),
    ("costs", &["aggregator", "controller", "policy", "readiness", "rollcall-core", "timer", "watcher"]),
    (
        "rollcall",
        &[
            "aggregator",
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

/// What decides and computes, without clock, environment, randomness and wire.
const PURE: [&str; 5] = ["rollcall-rfc3339", "readiness", "timer", "aggregator", "rollcall-core"];
/// Those of them that need nothing but each other.
const SELF_CONTAINED: [&str; 4] = ["rollcall-rfc3339", "readiness", "timer", "aggregator"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What cargo says of the packages of the workspace.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

static TARGETS: LazyLock<Vec<PackageTarget>> = LazyLock::new(|| targets::read_targets(&metadata()));

/// Returns the normal dependencies of every workspace crate.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let normal = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        all.map(|d| d["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|p| (p["name"].as_str().unwrap().to_owned(), normal(p))).collect()
}

/// The source files below a folder, without those of packages in it.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let (mut dirs, files): (Vec<_>, Vec<_>) = entries.partition(|p| p.is_dir());
    dirs.retain(|dir| !dir.join("Cargo.toml").exists());
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
    for package in SELF_CONTAINED {
        let outside: Vec<_> = all[package].iter().filter(|d| !SELF_CONTAINED.contains(&d.as_str())).collect();
        assert!(outside.is_empty(), "{package} depends on {outside:?}");
    }
}

#[test]
fn nothing_below_a_pure_crate_speaks_to_a_server_or_waits() {
    // Names begin with these: clients, their types, runtimes, sockets and what encrypts them.
    const BANNED: [&str; 12] = [
        "kube",
        "k8s-openapi",
        "tokio",
        "futures",
        "async",
        "hyper",
        "http",
        "reqwest",
        "mio",
        "socket2",
        "rustls",
        "tower",
    ];
    for package in PURE {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--package", package])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.starts_with(package), "{tree}");
        let found: BTreeSet<_> = tree.lines().filter(|l| BANNED.iter().any(|b| l.starts_with(b))).collect();
        assert!(found.is_empty(), "{package} needs {found:?}");
    }
}

#[test]
fn the_pure_crates_name_no_clock_no_environment_and_no_randomness() {
    const BANNED: [&str; 10] = [
        "SystemTime::now",
        "Instant::now",
        "std::env",
        "std::fs",
        "std::net",
        "std::thread",
        "RandomState",
        "tokio",
        "async fn",
        "kube::",
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

/// Every source file of the workspace, tests included, with its modules: the file's own, and blocks of tests in it.
fn modules_by_file() -> BTreeMap<&'static Path, Vec<&'static SourceModule>> {
    let mut files = BTreeMap::new();
    for target in TARGETS.iter() {
        let mut of_target: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for module in target.modules.values() {
            of_target.entry(module.file.as_path()).or_default().push(module);
        }
        // A file that several targets take is one file all the same.
        files.extend(of_target);
    }
    files
}

#[test]
fn no_two_files_of_a_crate_need_each_other() {
    let circles: Vec<_> =
        TARGETS.iter().flat_map(|t| module_circles::find_circles(&t.name, &t.modules)).collect();
    assert!(circles.is_empty(), "{} circles:\n{circles:#?}", circles.len());
}

#[test]
fn every_source_file_belongs_to_a_target_of_its_own_package() {
    for target in TARGETS.iter() {
        for file in target.modules.values().map(|module| &module.file) {
            assert!(file.starts_with(&target.package_folder), "{} takes {}", target.name, file.display());
        }
    }
    let files = modules_by_file();
    let folders: BTreeSet<_> = TARGETS.iter().map(|target| &target.package_folder).collect();
    let all = folders.into_iter().flat_map(|folder| sources(folder));
    let unread: Vec<_> = all.filter(|file| !files.contains_key(file.as_path())).collect();
    assert!(unread.is_empty(), "{unread:?}");
}

#[test]
fn the_methods_of_a_type_stand_in_its_own_file() {
    let mut strange = Vec::new();
    for (file, modules) in modules_by_file() {
        let types: BTreeSet<_> = modules.iter().flat_map(|module| &module.types).collect();
        let extended: BTreeSet<_> = modules.iter().flat_map(|module| &module.extended_types).collect();
        strange.extend(extended.difference(&types).map(|name| format!("{} extends {name}", file.display())));
    }
    assert!(strange.is_empty(), "{strange:#?}");
}

#[test]
fn a_type_name_that_others_can_see_stands_once_in_the_workspace() {
    let mut places: BTreeMap<&String, Vec<&Path>> = BTreeMap::new();
    for (file, modules) in modules_by_file() {
        for name in modules.iter().flat_map(|module| &module.visible_types) {
            places.entry(name).or_default().push(file);
        }
    }
    let recurring: Vec<_> = places.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(recurring.is_empty(), "{} names:\n{recurring:#?}", recurring.len());
}
