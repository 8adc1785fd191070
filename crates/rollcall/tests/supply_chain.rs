//! What the program is made of: its SBOM, and the advisories that are known of its crates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The versions of each crate of `Cargo.lock`.
fn locked_versions() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let quoted = |line: Option<&str>| line.and_then(|line| line.split('"').nth(1)).map(str::to_owned);
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in text.split("[[package]]").skip(1) {
        let field = |name: &str| quoted(package.lines().find(|line| line.starts_with(name)));
        versions.entry(field("name").unwrap()).or_default().insert(field("version").unwrap());
    }
    versions
}

/// `1.2.3` as numbers; what follows a `+` or a `-` is left out.
fn version_numbers(version: &str) -> Vec<u64> {
    version.split(['+', '-']).next().unwrap().split('.').map(|number| number.parse().unwrap()).collect()
}

#[test]
fn no_crate_has_a_version_that_a_known_advisory_touches() {
    let locked = locked_versions();
    let text = std::fs::read_to_string(root().join(".ci/advisories.txt")).unwrap();
    let rows =
        || text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(' ').collect::<Vec<_>>());
    let read: BTreeSet<&str> =
        rows().filter(|row| row[0] == "read").flat_map(|row| row[1..].to_vec()).collect();
    let advisories: Vec<_> = rows().filter(|row| row[0].starts_with("RUSTSEC-")).collect();
    assert!(advisories.len() > 10 && rows().any(|row| row[0] == "date"));
    for advisory in advisories {
        let [id, name, mended] = advisory[..] else { panic!("{advisory:?}") };
        assert!(read.contains(name), "{id}: {name} is not among those that were read");
        for version in &locked[name] {
            assert!(version_numbers(version) >= version_numbers(mended), "{id}: {name} {version} < {mended}");
        }
    }
    for name in read {
        assert!(locked.contains_key(name), "{name} is not in Cargo.lock any more");
    }
}

/// The SBOM as `deploy/sbom` prints it.
fn print_sbom() -> String {
    let printed = Command::new(root().join("deploy/sbom")).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).unwrap()
}

#[test]
fn the_sbom_names_every_crate_of_the_program_by_the_hash_of_its_source_and_is_the_same_each_time() {
    let text = print_sbom();
    assert_eq!(text, print_sbom());
    let sbom: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&sbom["bomFormat"], &sbom["specVersion"]), (&Value::from("CycloneDX"), &Value::from("1.5")));
    assert_eq!(sbom["metadata"]["component"]["name"], "rollcall");
    let locked = locked_versions();
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let components = sbom["components"].as_array().unwrap();
    let mut known = BTreeSet::from([sbom["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in components {
        let [name, version, reference] =
            ["name", "version", "bom-ref"].map(|key| component[key].as_str().unwrap());
        assert!(locked[name].contains(version), "{name} {version}");
        assert!(known.insert(reference), "{reference} stands twice");
        // What has no source in the lock file is of this workspace.
        let is_own = !lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\nsource = "));
        assert_eq!(
            component["hashes"][0]["content"].as_str().map(str::len),
            (!is_own).then_some(64),
            "{name}"
        );
    }
    for name in ["tokio", "kube-client", "object_store", "mlua", "rustls", "readiness"] {
        assert!(components.iter().any(|component| component["name"] == name), "{name} is missing");
    }
    for name in ["proptest", "sim", "fuzz", "acceptance"] {
        assert!(components.iter().all(|component| component["name"] != name), "{name} is not shipped");
    }
    for dependency in sbom["dependencies"].as_array().unwrap() {
        let named = dependency["dependsOn"].as_array().unwrap().iter().chain([&dependency["ref"]]);
        assert!(named.clone().all(|reference| known.contains(reference.as_str().unwrap())), "{dependency}");
    }
    assert_eq!(sbom["dependencies"].as_array().unwrap().len(), known.len(), "each crate says what it needs");
}
