//! Kinds whose content no rule of a policy may read.
//!
//! What a rule says stands in the condition of a parent, in Events, logs and history: places that far more people read
//! than the object. The metadata of such an object (it is there, it is being deleted) still counts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use api::policy::KindRef;
use watcher::plan::ForeignNamespaces;

/// A kind, written `Kind` or `Kind.group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedKind {
    group: String,
    kind: String,
}

/// Text that names no kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAKind(String);

impl fmt::Display for NotAKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} names no kind: write Kind, or Kind.group as in Vault.example.com", self.0)
    }
}

impl std::error::Error for NotAKind {}

impl FromStr for ProtectedKind {
    type Err = NotAKind;

    fn from_str(text: &str) -> Result<ProtectedKind, NotAKind> {
        let (kind, group) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase())
            && kind.bytes().all(|b| b.is_ascii_alphanumeric());
        let is_group =
            group.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b));
        if is_kind && is_group && !text.trim().ends_with('.') {
            Ok(ProtectedKind { group: group.to_owned(), kind: kind.to_owned() })
        } else {
            Err(NotAKind(text.chars().take(80).collect()))
        }
    }
}

/// What the administrator sets for all policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Default of limits that a policy leaves out.
    pub stuck_after: Duration,
    /// Kinds, besides Secret, whose content no rule may read.
    pub protected: Vec<ProtectedKind>,
    /// Namespaces in which ReadinessGroups of others may have members.
    pub group_namespaces: ForeignNamespaces,
    /// Members of ReadinessGroups may have readiness rules.
    pub group_rules: bool,
}

impl PolicySettings {
    /// Settings for who looks with rights of their own: without further protected kinds, and with all namespaces open to groups, and
    /// all rules.
    pub fn with_stuck_after(stuck_after: Duration) -> PolicySettings {
        PolicySettings {
            stuck_after,
            protected: Vec::new(),
            group_namespaces: ForeignNamespaces::any(),
            group_rules: true,
        }
    }

    /// Returns `true` if no rule may read more of these objects than their metadata.
    pub fn is_protected(&self, kind: &KindRef) -> bool {
        (kind.group.is_empty() && kind.kind == "Secret")
            || self.protected.iter().any(|other| other.group == kind.group && other.kind == kind.kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_written_as_everywhere_else() {
        let kind = |text: &str| text.parse::<ProtectedKind>().map(|k| (k.kind, k.group));
        assert_eq!(kind("ConfigMap"), Ok(("ConfigMap".to_owned(), String::new())));
        assert_eq!(kind(" Vault.example.com"), Ok(("Vault".to_owned(), "example.com".to_owned())));
        for text in ["", "vaults", "Vault.", "Vault.Example", "Va ult", ".example.com", "*", "Vault.*"] {
            assert!(kind(text).is_err(), "{text}");
        }
    }

    /// Fields that are refused, with the message for each.
    fn refused(spec: serde_json::Value, protected: &[&str]) -> Vec<String> {
        let settings = PolicySettings {
            protected: protected.iter().map(|kind| kind.parse().expect("a kind")).collect(),
            ..PolicySettings::with_stuck_after(Duration::from_mins(10))
        };
        let spec = serde_json::from_value(spec).expect("a spec");
        match crate::compile_with(&spec, &settings) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        }
    }

    fn over(kind: &serde_json::Value, ready: &serde_json::Value) -> serde_json::Value {
        json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": kind, "ready": ready }],
        })
    }

    #[test]
    fn a_rule_over_secrets_is_refused_in_every_language() {
        for ready in [
            json!({ "lua": "return { status = 'Degraded', message = obj.data.token }" }),
            json!({ "cel": { "current": "int(string(base64.decode(self.data.token))) > 0" } }),
            json!({ "profile": "argocd" }),
            json!({ "rules": "argocd-cm" }),
        ] {
            let said = refused(over(&json!({ "kind": "Secret" }), &ready), &[]);
            assert_eq!(
                said,
                [
                    "spec.children[0].ready: rules never read a Secret beyond its metadata: remove ready (it then \
                  counts as ready while it exists), or judge the object that uses it"
                ],
                "{ready}"
            );
            let other = json!({ "group": "example.com", "kind": "Secret" });
            assert!(refused(over(&other, &ready), &[]).is_empty(), "a kind of another group");
        }
    }

    #[test]
    fn secrets_without_a_rule_still_count() {
        let plain = json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "kind": "Secret" }, "expect": { "names": ["{parent.spec.secretName}"] } }],
        });
        assert!(refused(plain, &[]).is_empty());
    }

    #[test]
    fn what_the_administrator_names_is_protected_too() {
        let rule = json!({ "cel": { "current": "spec.token != ''" } });
        let vault = over(&json!({ "group": "example.com", "kind": "Vault" }), &rule);
        assert!(refused(vault.clone(), &[]).is_empty());
        assert!(refused(vault.clone(), &["Vault", "Vault.example.org"]).is_empty());
        assert!(refused(vault, &["Vault.example.com"])[0].contains("never read a Vault beyond its metadata"));
    }

    #[test]
    fn of_a_protected_parent_a_policy_reads_its_metadata_alone() {
        let policy = |find: serde_json::Value, expect: serde_json::Value| {
            json!({
                "parent": { "kind": "Secret" },
                "children": [{ "kind": { "kind": "ConfigMap" }, "find": find, "expect": expect }],
            })
        };
        let fields = |spec| -> Vec<String> {
            let said = refused(spec, &[]).into_iter();
            said.map(|words| words.split(": ").next().unwrap_or_default().to_owned()).collect()
        };
        let labels = json!({ "labels": { "of": "{parent.metadata.name}" } });
        assert!(refused(policy(labels.clone(), json!({ "min": 1 })), &[]).is_empty());
        for (find, expect, field) in [
            (labels.clone(), json!({ "cel": "size(parent.data)" }), "spec.children[0].expect.cel"),
            (labels, json!({ "names": ["{parent.data.token}"] }), "spec.children[0].expect.names[0]"),
            (
                json!({ "labels": { "of": "{parent.data.token}" } }),
                json!({}),
                "spec.children[0].find.labels[of]",
            ),
            (
                json!({ "labels": { "of": "x" }, "namespaces": ["{parent.stringData.ns}"], "allowedNamespaces": ["a"] }),
                json!({}),
                "spec.children[0].find.namespaces[0]",
            ),
            (json!({ "refs": "data.refs[*]" }), json!({}), "spec.children[0].find.refs"),
        ] {
            assert_eq!(fields(policy(find, expect)), [field]);
        }
    }
}
