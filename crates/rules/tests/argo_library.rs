//! Argo CD's own script library against Argo CD's own expectations, status and message.
//!
//! `ROLLCALL_ARGO_LIBRARY` names a `resource_customizations` folder with its test data; nothing of it is kept here.

use std::fs;
use std::path::{Path, PathBuf};

use readiness::Time;
use rollcall_cel::ObjectJson;
use rules::lua::ScriptLibrary;
use serde::Deserialize;
use serde_json::Value;

const NOW: Time = Time(1_800_000_000_000);

#[derive(Deserialize)]
struct ArgoCases {
    #[serde(default)]
    tests: Vec<ArgoCase>,
}

#[derive(Deserialize)]
struct ArgoCase {
    // Go reads field names in any case, and some of the files rely on it.
    #[serde(rename = "inputPath", alias = "inputpath")]
    input: PathBuf,
    #[serde(rename = "healthStatus", default)]
    expected: ExpectedArgoHealth,
}

#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
struct ExpectedArgoHealth {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    message: String,
}

fn folders(root: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            folders(&path, found);
        } else if path.file_name().is_some_and(|name| name == "health.lua") {
            found.push(root.to_owned());
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).expect("a readable file");
    // Of several documents Go reads the first.
    let first = serde_norway::Deserializer::from_str(&text).next().expect("a document");
    T::deserialize(first).expect("a file that Go can read")
}

fn word(verdict: &rules::PeerVerdict) -> ExpectedArgoHealth {
    ExpectedArgoHealth { status: verdict.status.map(str::to_owned), message: verdict.message.clone() }
}

#[test]
fn every_case_of_the_library_gets_its_status_and_message() {
    let Some(root) = std::env::var_os("ROLLCALL_ARGO_LIBRARY").map(PathBuf::from) else {
        println!("skipped: ROLLCALL_ARGO_LIBRARY does not name a folder");
        return;
    };
    let library = ScriptLibrary::from_directory(&root).expect("a readable library");
    let broken: Vec<_> = library.broken_scripts().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let mut all = Vec::new();
    folders(&root, &mut all);
    all.sort();
    let (mut cases, mut wrong) = (0, Vec::new());
    for folder in all {
        for case in read::<ArgoCases>(&folder.join("health_test.yaml")).tests {
            cases += 1;
            let object: Value = read(&folder.join(&case.input));
            // A kind without a script has no health: the library states that as an empty expectation.
            let whole =
                library.judge_object(&object, NOW).map(|outcome| word(&outcome.verdict)).unwrap_or_default();
            let (group, kind) = group_and_kind(&object);
            let text = object.to_string();
            let script = library.find_script(group, kind).map(|script| script.expect("compiled"));
            let lazy = script
                .map(|script| word(&script.judge_object(ObjectJson::Text(&text), NOW).verdict))
                .unwrap_or_default();
            if whole != case.expected || lazy != case.expected {
                let path = folder.join(&case.input);
                wrong.push(format!("{}: {whole:?} / {lazy:?}, not {:?}", path.display(), case.expected));
            }
        }
    }
    println!("{} scripts, {cases} cases, {} wrong", library.len(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn group_and_kind(object: &Value) -> (&str, &str) {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'))
        .map_or("", |(group, _)| group);
    (group, object["kind"].as_str().unwrap_or(""))
}
