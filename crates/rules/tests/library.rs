//! Tests of script sources and their precedence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use readiness::Time;
use rules::lua::{ArgocdConfigError, ScriptLibrary};
use rules::{PeerProfile, PeerVerdict};
use serde_json::{Value, json};

const NOW: Time = Time(0);

fn config(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn says(word: &str) -> String {
    format!("return {{status = 'Healthy', message = '{word}'}}")
}

fn object(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
}

fn word(library: &ScriptLibrary, api_version: &str, kind: &str) -> Option<String> {
    library.judge_object(&object(api_version, kind), NOW).map(|outcome| outcome.verdict.message)
}

/// A temporary folder, removed when the test ends.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn with(name: &str, scripts: &[(&str, &str)]) -> TemporaryFolder {
        let root = std::env::temp_dir().join(format!("rollcall-rules-{name}-{}", std::process::id()));
        for (folder, source) in scripts {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            fs::write(root.join(folder).join("health.lua"), source).expect("a script");
        }
        TemporaryFolder(root)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_exact_key_goes_before_a_wildcard_and_the_longest_wildcard_first() {
    let block = format!(
        "\"*/*\":\n  health.lua: \"{}\"\n\"*.example.com/*\":\n  health.lua: \"{}\"\n",
        says("any"),
        says("example")
    );
    let data = config(&[
        ("resource.customizations", &block),
        ("resource.customizations.health.db.example.com_Database", &says("exact")),
        ("resource.customizations.health.Pod", &says("core")),
        ("url", "https://argocd.example.com"),
    ]);
    let library = ScriptLibrary::from_config_map(&data).unwrap();
    assert_eq!(word(&library, "db.example.com/v1", "Database").as_deref(), Some("exact"));
    assert_eq!(word(&library, "db.example.com/v1", "Backup").as_deref(), Some("example"));
    assert_eq!(word(&library, "other.io/v1", "Thing").as_deref(), Some("any"));
    assert_eq!(word(&library, "v1", "Pod").as_deref(), Some("core"));
    // A kind of the core group has no slash, so that `*/*` does not match it.
    assert_eq!(word(&library, "v1", "Secret"), None);
}

#[test]
fn a_split_key_goes_over_the_block_and_open_libraries_are_off_unless_asked_for() {
    let upper = "return {status = 'Healthy', message = ('up'):upper()}";
    let block = format!(
        "a.io/A:\n  health.lua: \"{upper}\"\n  health.lua.useOpenLibs: true\na.io/B:\n  health.lua: x\n"
    );
    let data = config(&[
        ("resource.customizations", &block),
        ("resource.customizations.health.a.io_B", upper),
        ("resource.customizations.health.a.io_C", upper),
        ("resource.customizations.useOpenLibs.a.io_C", "true"),
        ("resource.customizations.actions.a.io_D", "whatever"),
    ]);
    let library = ScriptLibrary::from_config_map(&data).unwrap();
    assert_eq!(word(&library, "a.io/v1", "A").as_deref(), Some("UP"));
    assert_eq!(word(&library, "a.io/v1", "C").as_deref(), Some("UP"));
    let closed = library.judge_object(&object("a.io/v1", "B"), NOW).unwrap().verdict;
    assert_eq!(closed.status, Some("Unknown"), "{}", closed.message);
    assert_eq!(word(&library, "a.io/v1", "D"), None);
}

#[test]
fn what_argo_cd_refuses_as_a_whole_is_refused_as_a_whole() {
    for (key, value) in [
        ("resource.customizations.healt.a.io_A", "x"),
        ("resource.customizations.health.a_b_c", "x"),
        ("resource.customizations.useOpenLibs.a.io_A", "maybe"),
        ("resource.customizations", "- a list"),
    ] {
        let refused = ScriptLibrary::from_config_map(&config(&[(key, value)]));
        assert!(refused.is_err(), "{key}");
    }
    let unknown = ScriptLibrary::from_config_map(&config(&[("resource.customizations.healt.a.io_A", "x")]))
        .unwrap_err();
    assert!(matches!(&unknown, ArgocdConfigError::Kind { kind, .. } if kind == "healt"), "{unknown}");
}

#[test]
fn a_folder_named_with_underscores_is_a_wildcard() {
    let folder = TemporaryFolder::with(
        "wildcards",
        &[
            ("db.example.com/Database", &says("exact")),
            ("_.example.com/_", &says("wild")),
            ("db._/Backup", &says("later")),
            ("Pod", &says("core")),
        ],
    );
    let library = ScriptLibrary::from_directory(folder.path()).unwrap();
    assert_eq!(library.len(), 4);
    assert_eq!(word(&library, "db.example.com/v1", "Database").as_deref(), Some("exact"));
    assert_eq!(word(&library, "db.example.com/v1", "Backup").as_deref(), Some("wild"));
    assert_eq!(word(&library, "db.other.org/v1", "Backup").as_deref(), Some("later"));
    assert_eq!(word(&library, "v1", "Pod").as_deref(), Some("core"));
    assert_eq!(word(&library, "example.com/v1", "Database"), None);
}

#[test]
fn the_config_map_goes_over_the_directory() {
    let folder =
        TemporaryFolder::with("layers", &[("a.io/A", &says("directory")), ("a.io/B", &says("directory"))]);
    let map =
        config(&[("resource.customizations", &format!("\"a.io/A*\":\n  health.lua: \"{}\"\n", says("map")))]);
    let library = ScriptLibrary::from_config_map(&map)
        .unwrap()
        .layered_over(ScriptLibrary::from_directory(folder.path()).unwrap());
    assert_eq!(word(&library, "a.io/v1", "A").as_deref(), Some("map"));
    assert_eq!(word(&library, "a.io/v1", "B").as_deref(), Some("directory"));
}

#[test]
fn a_script_that_does_not_compile_spoils_its_own_kind_only() {
    let data = config(&[
        ("resource.customizations.health.a.io_A", "if then"),
        ("resource.customizations.health.a.io_B", &says("fine")),
    ]);
    let library = ScriptLibrary::from_config_map(&data).unwrap();
    let broken: Vec<_> = library.broken_scripts().map(|error| (error.name.as_str(), error.line)).collect();
    assert_eq!(broken, [("argocd-cm a.io/A", 1)]);
    let verdict = library.judge_object(&object("a.io/v1", "A"), NOW).unwrap().verdict;
    assert_eq!(verdict.status, Some("Unknown"));
    assert_eq!(word(&library, "a.io/v1", "B").as_deref(), Some("fine"));
}

#[test]
fn a_matching_script_answers_for_a_deleted_object_too() {
    let mut deleted = object("v1", "Pod");
    deleted["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
    let library =
        ScriptLibrary::from_config_map(&config(&[("resource.customizations.health.Pod", &says("script"))]))
            .unwrap();
    assert_eq!(PeerProfile::Argocd.judge_object(&deleted, Some(&library), NOW).message, "script");
    let live = PeerProfile::Argocd.judge_object(&deleted, None, NOW);
    assert_eq!(live, PeerVerdict { status: Some("Progressing"), message: "Pending deletion".to_owned() });
}

#[test]
fn a_script_that_says_nothing_is_not_asked_again_by_the_built_in_rule() {
    let library =
        ScriptLibrary::from_config_map(&config(&[("resource.customizations.health.Service", "return nil")]))
            .unwrap();
    let verdict = PeerProfile::Argocd.judge_object(&object("v1", "Service"), Some(&library), NOW);
    assert_eq!(verdict, PeerVerdict { status: None, message: String::new() });
}
