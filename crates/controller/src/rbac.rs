//! The rights that policies need, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::policies::Compiled;

/// The role's name.
const NAME: &str = "rollcall";

/// Who gets the rights.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The service account.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// Roles and bindings for these policies; in these namespaces only, or (none given) in the whole cluster.
pub fn yaml(policies: &[Compiled], namespaces: &[String], subject: &Subject) -> String {
    let rules = rules(policies);
    let mut out = String::new();
    if namespaces.is_empty() {
        let own = [
            rule("rollcall.dev", &["readinesspolicies"], &["get", "list", "watch"]),
            rule("rollcall.dev", &["readinesspolicies/status"], &["get", "patch"]),
        ];
        let all: Vec<_> = own.into_iter().chain(rules.iter().cloned()).collect();
        role(&mut out, "ClusterRole", None, &all);
        binding(&mut out, "ClusterRole", None, subject);
    }
    for namespace in namespaces {
        role(&mut out, "Role", Some(namespace), &rules);
        binding(&mut out, "Role", Some(namespace), subject);
    }
    out
}

fn rules(policies: &[Compiled]) -> Vec<String> {
    let mut read: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut patched: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for policy in policies {
        let parent = plural(&policy.parent.kind);
        read.entry(&policy.parent.group).or_default().insert(parent.clone());
        if !policy.shadow {
            // Where a kind has no status subresource, its status is patched on the main resource.
            patched.entry(&policy.parent.group).or_default().extend([format!("{parent}/status"), parent]);
        }
        for group in &policy.groups {
            read.entry(&group.kind.group).or_default().insert(plural(&group.kind.kind));
        }
        if policy.namespace_selector.is_some() {
            read.entry("").or_default().insert("namespaces".to_owned());
        }
    }
    let list = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let reading = read.iter().map(|(group, kinds)| rule_text(group, &list(kinds), "get, list, watch"));
    reading.chain(patched.iter().map(|(group, kinds)| rule_text(group, &list(kinds), "patch"))).collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> String {
    rule_text(group, &resources.join(", "), &verbs.join(", "))
}

fn rule_text(group: &str, resources: &str, verbs: &str) -> String {
    format!("  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [{verbs}]\n")
}

fn meta(namespace: Option<&String>) -> String {
    let namespace = namespace.map_or(String::new(), |n| format!("  namespace: {n}\n"));
    format!("metadata:\n  name: {NAME}\n{namespace}  labels:\n    app.kubernetes.io/name: rollcall\n")
}

fn role(out: &mut String, kind: &str, namespace: Option<&String>, rules: &[String]) {
    _ = write!(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\n{}", meta(namespace));
    if rules.is_empty() {
        out.push_str("rules: []\n");
    } else {
        _ = write!(out, "rules:\n{}", rules.concat());
    }
}

fn binding(out: &mut String, kind: &str, namespace: Option<&String>, subject: &Subject) {
    let Subject { name, namespace: home } = subject;
    _ = write!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\n{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {NAME}\nsubjects:\n  - kind: ServiceAccount\n    name: {name}\n    namespace: {home}\n",
        meta(namespace)
    );
}

/// The plural of a kind as the API machinery's own default forms it. A CRD may call it otherwise: offline that is not
/// known, so `rbac` says how to give it.
pub fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") || lower.ends_with("sh") {
        return format!("{lower}es");
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{lower}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_the_built_in_kinds() {
        for (kind, expected) in [
            ("Deployment", "deployments"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Job", "jobs"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }
}
