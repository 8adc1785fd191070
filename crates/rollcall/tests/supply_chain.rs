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
    for name in &read {
        assert!(locked.contains_key(*name), "{name} is not in Cargo.lock any more");
    }
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    // What has no source is of this workspace.
    let foreign = lock.split("[[package]]").filter(|package| package.contains("\nsource = "));
    let names = foreign.filter_map(|package| package.lines().find_map(|line| line.strip_prefix("name = ")));
    let unread: BTreeSet<_> =
        names.map(|name| name.trim_matches('"')).filter(|name| !read.contains(name)).collect();
    assert!(unread.is_empty(), "look up the advisories of {unread:?}, and name them in .ci/advisories.txt");
}

fn is_crate(component: &Value) -> bool {
    component["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/"))
}

/// The SBOM as `deploy/sbom` prints it.
fn print_sbom() -> String {
    print_sbom_with(&[])
}

fn print_sbom_with(args: &[&str]) -> String {
    let printed = Command::new(root().join("deploy/sbom")).args(args).output().unwrap();
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
    let (components, others): (Vec<&Value>, Vec<&Value>) =
        sbom["components"].as_array().unwrap().iter().partition(|component| is_crate(component));
    let mut known = BTreeSet::from([sbom["metadata"]["component"]["bom-ref"].as_str().unwrap()]);
    for component in &components {
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
    known.extend(others.iter().map(|component| component["bom-ref"].as_str().unwrap()));
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

/// The folder of a crate's sources, as cargo keeps them.
fn source_folder(metadata: &Value, name: &str) -> PathBuf {
    let package = metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == name);
    Path::new(package.unwrap()["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

fn has_cpp_source(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        let path = entry.path();
        let is_cpp = || path.extension().is_some_and(|extension| extension == "cpp" || extension == "cc");
        if entry.file_type().unwrap().is_dir() { has_cpp_source(&path) } else { is_cpp() }
    })
}

#[test]
fn the_sbom_names_the_sources_that_a_crate_only_carries() {
    let sbom: Value = serde_json::from_str(&print_sbom()).unwrap();
    let components = sbom["components"].as_array().unwrap();
    let luau = components.iter().find(|component| component["name"] == "Luau").unwrap();
    let carrier = components.iter().find(|component| component["name"] == "luau0-src").unwrap();
    let (_, release) = carrier["version"].as_str().unwrap().split_once("+luau").unwrap();
    assert_eq!(luau["version"], format!("0.{release}"));
    assert_eq!(luau["licenses"][0]["expression"], "MIT");
    assert_eq!(luau["hashes"], carrier["hashes"], "the archive that is fetched has both");
    assert_eq!(luau["properties"][0]["value"], carrier["bom-ref"]);
    let needs = sbom["dependencies"].as_array().unwrap().iter().find(|of| of["ref"] == carrier["bom-ref"]);
    assert!(needs.unwrap()["dependsOn"].as_array().unwrap().contains(&luau["bom-ref"]));

    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    // `cc` has a file by which it tells compilers apart, and ships nothing of it.
    for component in components.iter().filter(|component| is_crate(component) && component["name"] != "cc") {
        let (name, is_fetched) = (component["name"].as_str().unwrap(), component.get("hashes").is_some());
        if is_fetched && has_cpp_source(&source_folder(&metadata, name)) {
            let is_carrier = |other: &&Value| other["properties"][0]["value"] == component["bom-ref"];
            assert!(components.iter().any(|other| is_carrier(&other)), "{name} brings C++ along");
        }
    }
}

#[test]
fn the_sbom_names_what_the_image_is_built_from_and_what_of_that_is_in_it() {
    let sbom: Value = serde_json::from_str(&print_sbom()).unwrap();
    let components = sbom["components"].as_array().unwrap();
    let dockerfile = std::fs::read_to_string(root().join("deploy/Dockerfile")).unwrap();
    let mut bases = 0;
    for line in dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")) {
        let image = line.split(' ').next().unwrap();
        let found = components.iter().find(|component| component["bom-ref"] == format!("image:{image}"));
        assert_eq!(found.unwrap()["type"], "container", "{image}");
        assert!(image == "scratch" || image.contains("@sha256:"), "{image}: name it by its digest");
        bases += 1;
    }
    assert_eq!(bases, 2);
    for copied in dockerfile.lines().filter_map(|line| line.strip_prefix("COPY --from=build ")) {
        let known = ["/rollcall ", "/etc/ssl/certs/ca-certificates.crt "];
        assert!(known.iter().any(|path| copied.starts_with(path)), "{copied}: name it in deploy/sbom");
    }
    for name in ["ca-certificates", "musl", "libstdc++", "libgcc", "rust-std"] {
        let found = components.iter().find(|component| component["name"] == name).unwrap();
        assert_eq!(found["properties"][0]["name"], "rollcall:taken-from", "{name}");
        assert!(found["licenses"][0]["expression"].is_string(), "{name}");
    }
}

#[test]
fn the_sbom_of_a_release_names_its_version_and_the_tools_that_build_it_by_their_checksums() {
    let sbom: Value = serde_json::from_str(&print_sbom_with(&["--release", "9.8.7"])).unwrap();
    assert_eq!(sbom["metadata"]["component"]["version"], "9.8.7");
    let components = sbom["components"].as_array().unwrap();
    let tools = std::fs::read_to_string(root().join("deploy/release/requirements.txt")).unwrap();
    let mut named = 0;
    for line in tools.lines().filter(|line| !line.starts_with('#')) {
        let (tool, checksum) = line.split_once(" --hash=sha256:").unwrap();
        let reference = format!("pkg:pypi/{}", tool.replace("==", "@"));
        let found = components.iter().find(|component| component["bom-ref"] == reference).unwrap();
        assert_eq!(found["hashes"][0]["content"], checksum, "{tool}");
        named += 1;
    }
    assert_eq!(named, 3);
    let taken = |name: &str| {
        let component = components.iter().find(|component| component["name"] == name).unwrap();
        component["properties"][0]["value"].as_str().unwrap().to_owned()
    };
    assert!(taken("libc++").starts_with("pkg:pypi/ziglang@"));
    assert!(taken("ca-certificates").starts_with("pkg:pypi/certifi@"));
    assert!(components.iter().all(|component| component["type"] != "container"), "a release has no base");
}
