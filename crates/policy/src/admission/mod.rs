//! What the API server refuses, without a server: a spec is checked by the schema and the rules of the CRD itself, so
//! that both say the same of it.

mod field_schema;

use std::sync::OnceLock;

use api::{ReadinessGroupSpec, ReadinessPolicySpec};
use serde_json::Value;

use crate::problem::PolicyProblem;
use field_schema::{FieldSchema, RuleErrors};

/// Everything for which the API server would refuse this spec.
pub(crate) fn check_spec(spec: &ReadinessPolicySpec) -> Vec<PolicyProblem> {
    match serde_json::to_value(spec) {
        Ok(spec) => spec_schema().check_value(&spec, "spec", RuleErrors::Refused),
        Err(error) => {
            vec![PolicyProblem { field: "spec".to_owned(), what: error.to_string(), at: None }]
        }
    }
}

/// Everything for which the API server would refuse the spec of this group.
pub(crate) fn check_group_spec(spec: &ReadinessGroupSpec) -> Vec<PolicyProblem> {
    match serde_json::to_value(spec) {
        Ok(spec) => group_schema().check_value(&spec, "spec", RuleErrors::Refused),
        Err(error) => vec![PolicyProblem { field: "spec".to_owned(), what: error.to_string(), at: None }],
    }
}

/// Like [`check_written_spec`], for the spec of a ReadinessGroup.
pub fn check_written_group_spec(spec: &Value) -> Vec<PolicyProblem> {
    group_schema().check_value(spec, "spec", RuleErrors::Ignored)
}

fn group_schema() -> &'static FieldSchema {
    static GROUP_SCHEMA: OnceLock<FieldSchema> = OnceLock::new();
    GROUP_SCHEMA.get_or_init(|| {
        let schema = crate::crd::group_spec_schema().and_then(|schema| FieldSchema::compile(&schema));
        schema.expect("invariant: the CRD is part of this program, and a test compiles it")
    })
}

/// Everything for which the API server would refuse this spec as it was written. What is not of the right type at all is
/// left to a decoder.
pub fn check_written_spec(spec: &Value) -> Vec<PolicyProblem> {
    spec_schema().check_value(spec, "spec", RuleErrors::Ignored)
}

fn spec_schema() -> &'static FieldSchema {
    static POLICY_SCHEMA: OnceLock<FieldSchema> = OnceLock::new();
    POLICY_SCHEMA.get_or_init(|| {
        let schema = crate::crd::policy_spec_schema().and_then(|schema| FieldSchema::compile(&schema));
        schema.expect("invariant: the CRD is part of this program, and a test compiles it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "a spec is written where it is passed")]
    fn problems(spec: Value) -> Vec<(String, String)> {
        let found = spec_schema().check_value(&spec, "spec", RuleErrors::Refused);
        found.into_iter().map(|problem| (problem.field, problem.what)).collect()
    }

    #[test]
    fn every_rule_of_the_table_is_one_that_can_be_broken() {
        assert_eq!(problems(json!({ "parent": { "kind": "Database" } })), []);
        let rules = api::admission::ADMISSION_RULES;
        assert!(rules.len() > 30);
        for rule in rules {
            assert!(!rule.message.is_empty() && !rule.message.contains('\n'), "{}", rule.at);
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn a_problem_is_that_of_its_field_and_has_the_words_of_the_rule() {
        let child = |child: Value| json!({ "parent": { "kind": "D" }, "children": [child] });
        let pods = |more: Value| {
            let mut pods = json!({ "kind": { "kind": "Pod" } });
            pods.as_object_mut()
                .into_iter()
                .for_each(|pods| pods.extend(more.as_object().cloned().unwrap_or_default()));
            child(pods)
        };
        for (spec, field, what) in [
            (
                json!({ "parent": { "kind": "D", "group": "*" } }),
                "spec.parent.group",
                "must be empty or a DNS",
            ),
            (
                json!({ "parent": { "kind": "D", "group": "rollcall.dev" } }),
                "spec.parent.group",
                "objects of rollcall.dev",
            ),
            (
                pods(json!({ "kind": { "kind": "x/y" } })),
                "spec.children[0].kind.kind",
                "must be the name of a kind",
            ),
            (pods(json!({ "quorum": "150%" })), "spec.children[0].quorum", "should match '^(all|"),
            (pods(json!({ "quorum": 0 })), "spec.children[0].quorum", "should be greater than or equal to 1"),
            (
                pods(json!({ "expect": { "min": 2, "max": 1 } })),
                "spec.children[0].expect",
                "min must not be above max",
            ),
            (
                pods(json!({ "find": { "namespaces": ["a"] } })),
                "spec.children[0].find.namespaces",
                "goes with labels",
            ),
            (
                pods(json!({ "find": { "labels": { "a": "b" }, "namespaces": ["A"] } })),
                "spec.children[0].find.namespaces[0]",
                "must be the name of a namespace",
            ),
            (
                pods(json!({ "find": { "labels": { "a": "b" }, "namespaces": ["{parent.spec.ns}"] } })),
                "spec.children[0].find.allowedNamespaces",
                "a template in namespaces lets the parent's author choose the namespace",
            ),
            (
                pods(json!({ "find": { "allowedNamespaces": ["*"] } })),
                "spec.children[0].find.allowedNamespaces[0]",
                "must be the name of a namespace, or the beginning of names",
            ),
            (pods(json!({ "ready": {} })), "spec.children[0].ready", "exactly one of"),
            (
                json!({ "parent": { "kind": "D" }, "debounce": { "quiet": "2s", "cap": "1s" } }),
                "spec.debounce.cap",
                "must not be shorter than debounce.quiet",
            ),
            (json!({ "parent": { "kind": "D" }, "settle": "87601h" }), "spec.settle", "must be a duration"),
            (
                json!({ "parent": { "kind": "D" }, "settle": "99999999999999h" }),
                "spec.settle",
                "must be a duration",
            ),
            (
                json!({ "parent": { "kind": "D" }, "condition": { "type": "Stalled" } }),
                "spec.condition.type",
                "Reconciling and Stalled are already written along with Ready; choose another type",
            ),
            (
                json!({ "parent": { "kind": "D", "selector": { "matchLabels": { "a": "x".repeat(64) } } } }),
                "spec.parent.selector.matchLabels[a]",
                "Too long: may not be more than 63 bytes",
            ),
        ] {
            let found = problems(spec.clone());
            let [(at, said)] = found.as_slice() else { panic!("{spec}: {found:?}") };
            assert_eq!(at, field, "{said}");
            assert!(said.starts_with(what), "{said}");
        }
    }

    #[test]
    fn a_value_that_breaks_a_bound_and_a_rule_is_told_both_unless_it_is_too_long_for_rules() {
        let whats = |spec| problems(spec).into_iter().map(|(_, what)| what).collect::<Vec<_>>();
        let empty = whats(json!({ "parent": { "kind": "" } }));
        assert_eq!(
            empty,
            ["should be at least 1 chars long", "must be the name of a kind, such as Database"]
        );
        let long = whats(json!({ "parent": { "kind": "*".repeat(64) } }));
        assert_eq!(long, ["Too long: may not be more than 63 bytes"]);
    }

    #[test]
    fn a_value_that_is_refused_itself_is_not_refused_again_for_what_rests_on_it() {
        let found =
            problems(json!({ "parent": { "kind": "D" }, "debounce": { "quiet": "soon", "cap": "1s" } }));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
