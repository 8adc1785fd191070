//! The text of specs without their defaults.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;
use crate::policy_file::{PolicyManifest, parse_manifests};

/// All YAML files of a folder and of those in it.
fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| if path.is_dir() { yaml_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|of| of == "yaml")).collect()
}

/// Specs of all example policies, and of what stands for the example groups.
fn example_specs() -> Vec<ReadinessPolicySpec> {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples");
    let texts =
        yaml_files(Path::new(examples)).into_iter().map(|path| std::fs::read_to_string(path).expect("text"));
    // Beside them lie manifests of other kinds.
    let manifests = texts.filter_map(|text| parse_manifests(&text).ok()).flatten();
    let specs = manifests.filter_map(|manifest| match manifest {
        PolicyManifest::Policy(found) => Some(found.spec.expect("a spec")),
        PolicyManifest::Crd(_) => None,
    });
    specs.collect()
}

/// The whole without the one field of each pointer.
fn without_each_field(whole: &Value, part: &Value, at: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    let below: Vec<(String, &Value)> = match part {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        let mut rest = whole.clone();
        if let Some(fields) = rest.pointer_mut(at).and_then(Value::as_object_mut) {
            fields.remove(&key);
            all.push((format!("{at}/{key}"), rest));
        }
        let key = key.replace('~', "~0").replace('/', "~1");
        all.extend(without_each_field(whole, value, &format!("{at}/{key}")));
    }
    all
}

#[test]
fn the_text_of_every_example_is_read_as_it_was_and_names_no_default() {
    let specs = example_specs();
    assert!(specs.len() >= 6, "{}", specs.len());
    for spec in specs {
        let text = text_without_defaults(&spec).expect("text");
        assert_eq!(serde_json::from_str::<ReadinessPolicySpec>(&text).expect("a spec"), spec, "{text}");
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        for (field, rest) in without_each_field(&whole, &whole, "") {
            let read = serde_json::from_value::<ReadinessPolicySpec>(rest);
            assert!(read.is_err() || read.is_ok_and(|read| read != spec), "{field} says nothing in {text}");
        }
    }
}

#[test]
fn a_field_that_makes_no_difference_is_left_out_at_every_depth() {
    let written = json!({
        "parent": { "group": "example.com", "kind": "Database", "version": null,
            "selector": { "matchLabels": { "a/b~c": "" }, "matchExpressions": [{ "key": "x", "operator": "Exists", "values": [] }] } },
        "children": [
            { "kind": { "group": "", "kind": "Pod" }, "role": "critical", "quorum": 2, "find": { "labels": { "x/y": "z" }, "refs": null } },
            { "kind": { "kind": "Secret" }, "role": "optional", "expect": {} },
        ],
        "condition": { "type": "Ready", "takeover": true }, "debounce": { "quiet": "100ms", "cap": "1s" }, "settle": "5s",
        "evidence": "auto", "hold": "0s", "availability": "tolerant", "grace": "0s", "limits": {}, "observedGeneration": "auto",
        "mode": "write",
    });
    let spec: ReadinessPolicySpec = serde_json::from_value(written).expect("a spec");
    let text = text_without_defaults(&spec).expect("text");
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        json!({
            "parent": { "group": "example.com", "kind": "Database",
                "selector": { "matchLabels": { "a/b~c": "" }, "matchExpressions": [{ "key": "x", "operator": "Exists" }] } },
            "children": [
                { "kind": { "kind": "Pod" }, "quorum": "2", "find": { "labels": { "x/y": "z" } } },
                { "kind": { "kind": "Secret" }, "role": "optional", "expect": {} },
            ],
            "condition": { "takeover": true },
        })
    );
}
