//! Objects that are not as any schema would have them: what can be understood is judged, the rest says nothing.

use readiness::{StuckLimits, assess};

use crate::object::kind_of;

#[test]
fn messy_objects_are_judged() {
    let cases = [
        (
            "status is JSON true",
            r#"{"kind": "Db", "status": {"conditions": [{"type": "Ready", "status": true}]}}"#,
            "Ready",
        ),
        (
            "status is JSON false",
            r#"{"kind": "Db", "status": {"conditions": [{"type": "Ready", "status": false}]}}"#,
            "Progressing",
        ),
        ("status is null", r#"{"kind": "Db", "status": null}"#, "Unknown"),
        (
            "conditions are no list",
            r#"{"kind": "Db", "status": {"conditions": 7, "phase": "Running"}}"#,
            "Ready",
        ),
        (
            "conditions are null",
            r#"{"kind": "Db", "status": {"conditions": null, "phase": "Running"}}"#,
            "Ready",
        ),
        ("no metadata", r#"{"apiVersion": "v1", "kind": "ConfigMap"}"#, "Ready"),
        ("metadata is null", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": null}"#, "Ready"),
        ("metadata is a list", r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}"#, "Ready"),
        ("status is a list", r#"{"kind": "Db", "status": []}"#, "Unknown"),
        (
            "a condition is null",
            r#"{"kind": "Db", "status": {"conditions": [null, 3, {"type": "Ready", "status": "True"}]}}"#,
            "Ready",
        ),
        (
            "a condition has no type",
            r#"{"kind": "Db", "status": {"conditions": [{"status": "True"}]}}"#,
            "Unknown",
        ),
        (
            "a type is a number",
            r#"{"kind": "Db", "status": {"conditions": [{"type": 3, "status": "True"}]}}"#,
            "Unknown",
        ),
    ];
    for (what, text, level) in cases {
        let child = serde_json::from_str(text).unwrap();
        let said = assess(kind_of(&child), &child.facts, &StuckLimits::default()).verdict.level;
        assert_eq!(said.as_str(), level, "{what}");
    }
}
