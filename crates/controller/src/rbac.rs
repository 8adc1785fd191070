//! The rights that policies need, and no more.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use readiness::Kind;
use serde_json::Value;

use crate::policies::{Compiled, ConfigMapName, GroupRule};

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

/// What CRDs say of their kinds and a policy does not: how they are called in a role, and where their status is written.
#[derive(Debug, Default)]
pub struct Crds(BTreeMap<(String, String), Names>);

#[derive(Debug)]
struct Names {
    plural: String,
    /// Some served version has no status subresource: its status is patched on the main resource.
    flat: bool,
}

impl Crds {
    /// Reads these `CustomResourceDefinition`s; what is missing in one is as if it were not given.
    pub fn read<'a>(crds: impl IntoIterator<Item = &'a Value>) -> Self {
        let known = crds.into_iter().filter_map(|crd| {
            let spec = &crd["spec"];
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let versions = spec["versions"].as_array().into_iter().flatten();
            let flat =
                versions.filter(|v| v["served"] != false).any(|v| v["subresources"]["status"].is_null());
            let names = Names { plural: text(&spec["names"]["plural"])?, flat };
            Some(((text(&spec["group"])?, text(&spec["names"]["kind"])?), names))
        });
        Crds(known.collect())
    }

    fn plural(&self, group: &str, kind: &str) -> String {
        self.0.get(&(group.to_owned(), kind.to_owned())).map_or_else(|| plural(kind), |n| n.plural.clone())
    }

    fn is_flat(&self, group: &str, kind: &str) -> bool {
        self.0.get(&(group.to_owned(), kind.to_owned())).is_some_and(|n| n.flat)
    }
}

/// Roles and bindings for these policies; in these namespaces only, or (none given) in the whole cluster.
pub fn yaml(policies: &[Compiled], crds: &Crds, namespaces: &[String], subject: &Subject) -> String {
    let rules = rules(policies, crds);
    let mut out = String::new();
    if namespaces.is_empty() {
        let own = [
            rule("rollcall.dev", &["readinesspolicies"], &["get", "list", "watch"]),
            rule("rollcall.dev", &["readinesspolicies/status"], &["get", "patch"]),
            // Who looks at the page, and what may they see?
            rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
            rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
        ];
        let all: Vec<_> = own.into_iter().chain(rules.iter().cloned()).collect();
        role(&mut out, NAME, "ClusterRole", None, &all);
        binding(&mut out, NAME, "ClusterRole", None, subject);
    }
    for namespace in namespaces {
        role(&mut out, NAME, "Role", Some(namespace), &rules);
        binding(&mut out, NAME, "Role", Some(namespace), subject);
    }
    // Which of several replicas writes. The right to create cannot be bound to a name.
    let lease = [
        "  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    resourceNames: [rollcall]\n    verbs: [get, update]\n",
        "  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    verbs: [create]\n",
    ];
    let lease_role = format!("{NAME}-lease");
    role(&mut out, &lease_role, "Role", Some(&subject.namespace), &lease.map(str::to_owned));
    binding(&mut out, &lease_role, "Role", Some(&subject.namespace), subject);
    if let Some(Need { group, resources, verbs }) = records(policies) {
        let rule = rule_text(&group, &resources.join(", "), &verbs.join(", "));
        let role_name = format!("{NAME}-records");
        role(&mut out, &role_name, "Role", Some(&subject.namespace), &[rule]);
        binding(&mut out, &role_name, "Role", Some(&subject.namespace), subject);
    }
    for library in libraries(policies) {
        // This one object, and no other ConfigMap.
        let ConfigMapName { namespace, name } = library;
        let rule = format!(
            "  - apiGroups: [\"\"]\n    resources: [configmaps]\n    resourceNames: [{name}]\n    verbs: [get, list, watch]\n"
        );
        let role_name = format!("{NAME}-{name}");
        role(&mut out, &role_name, "Role", Some(namespace), &[rule]);
        binding(&mut out, &role_name, "Role", Some(namespace), subject);
    }
    out
}

/// The ConfigMaps with scripts that policies name.
pub fn libraries(policies: &[Compiled]) -> BTreeSet<&ConfigMapName> {
    let groups = policies.iter().flat_map(|p| &p.groups);
    let named = groups.filter_map(|g| match &g.rule {
        Some(GroupRule::Library(name)) => Some(name),
        _ => None,
    });
    named.collect()
}

/// One right: these verbs on these resources of this group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// API group; empty for the core group.
    pub group: String,
    /// Resources, a subresource after a slash.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: &'static [&'static str],
}

/// What policies need in Rollcall's own namespace that remember how Jobs ended.
pub fn records(policies: &[Compiled]) -> Option<Need> {
    policies.iter().any(Compiled::remembers).then(|| Need {
        group: "rollcall.dev".to_owned(),
        resources: vec!["readinessrecords".to_owned()],
        verbs: &["get", "list", "watch", "create", "patch", "delete"],
    })
}

const WATCH: &[&str] = &["get", "list", "watch"];

fn rules(policies: &[Compiled], crds: &Crds) -> Vec<String> {
    let text = |need: Need| rule_text(&need.group, &need.resources.join(", "), &need.verbs.join(", "));
    needs(policies, crds).into_iter().map(text).collect()
}

/// What policies need of the kinds that they name; libraries of scripts are beside it.
pub fn needs(policies: &[Compiled], crds: &Crds) -> Vec<Need> {
    let mut read: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut patched: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for policy in policies {
        let (group, kind) = (&policy.parent.group, &policy.parent.kind);
        let parent = crds.plural(group, kind);
        read.entry(group).or_default().insert(parent.clone());
        if !policy.shadow {
            // The right to patch the main resource is the right to change a spec: only where there is no other way.
            let status = if crds.is_flat(group, kind) { parent } else { format!("{parent}/status") };
            patched.entry(group).or_default().insert(status);
        }
        for group in &policy.groups {
            let kind = crds.plural(&group.kind.group, &group.kind.kind);
            read.entry(&group.kind.group).or_default().insert(kind);
        }
        if policy.namespace_selector.is_some() {
            read.entry("").or_default().insert("namespaces".to_owned());
        }
    }
    let kinds = || policies.iter().flat_map(|p| &p.groups).map(|g| Kind::of(&g.kind.group, &g.kind.kind));
    let watches_pods = read.get("").is_some_and(|core| core.contains("pods"));
    // Live, now and then: they tell why a workload is not ready.
    let pods = kinds().any(Kind::owns_pods) && !watches_pods;
    let pods =
        pods.then(|| Need { group: String::new(), resources: vec!["pods".to_owned()], verbs: &["list"] });
    // Now and then, of one object: they tell how a Job ended that nobody saw end, and why pods could not be created where no
    // condition does.
    let ends = || Need { group: String::new(), resources: vec!["events".to_owned()], verbs: &["list"] };
    let told_by_events = |kind: Kind| matches!(kind, Kind::StatefulSet | Kind::DaemonSet | Kind::Job);
    let ends = (policies.iter().any(Compiled::remembers) || kinds().any(told_by_events)).then(ends);
    let need = |verbs| {
        move |(group, kinds): (&str, BTreeSet<String>)| Need {
            group: group.to_owned(),
            resources: kinds.into_iter().collect(),
            verbs,
        }
    };
    let writes = policies.iter().any(|policy| !policy.shadow);
    let events = writes.then(|| Need {
        group: "events.k8s.io".to_owned(),
        resources: vec!["events".to_owned()],
        verbs: &["create", "patch"],
    });
    read.into_iter()
        .map(need(WATCH))
        .chain(pods)
        .chain(ends)
        .chain(events)
        .chain(patched.into_iter().map(need(&["patch"])))
        .collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> String {
    rule_text(group, &resources.join(", "), &verbs.join(", "))
}

fn rule_text(group: &str, resources: &str, verbs: &str) -> String {
    format!("  - apiGroups: [\"{group}\"]\n    resources: [{resources}]\n    verbs: [{verbs}]\n")
}

fn meta(name: &str, namespace: Option<&String>) -> String {
    let namespace = namespace.map_or(String::new(), |n| format!("  namespace: {n}\n"));
    format!("metadata:\n  name: {name}\n{namespace}  labels:\n    app.kubernetes.io/name: rollcall\n")
}

fn role(out: &mut String, name: &str, kind: &str, namespace: Option<&String>, rules: &[String]) {
    _ = write!(out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\n{}", meta(name, namespace));
    if rules.is_empty() {
        out.push_str("rules: []\n");
    } else {
        _ = write!(out, "rules:\n{}", rules.concat());
    }
}

fn binding(out: &mut String, role: &str, kind: &str, namespace: Option<&String>, subject: &Subject) {
    let Subject { name, namespace: home } = subject;
    _ = write!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\n{}roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {role}\nsubjects:\n  - kind: ServiceAccount\n    name: {name}\n    namespace: {home}\n",
        meta(role, namespace)
    );
}

/// The plural of a kind as the API machinery's own default forms it. A CRD may call it otherwise: offline that is not
/// known unless the CRD is given.
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
    fn a_kind_without_status_subresource_is_patched_itself_and_is_called_as_its_crd_calls_it() {
        let crd = |versions: Value| {
            let names = serde_json::json!({ "kind": "Database", "plural": "dbs" });
            serde_json::json!({ "spec": { "group": "example.com", "names": names, "versions": versions } })
        };
        let with = crd(serde_json::json!([{ "name": "v1", "subresources": { "status": {} } }]));
        let without = crd(serde_json::json!([{ "name": "v1" }]));
        for (crd, flat) in [(with, false), (without, true)] {
            let crds = Crds::read([&crd]);
            assert_eq!(crds.plural("example.com", "Database"), "dbs");
            assert_eq!(crds.is_flat("example.com", "Database"), flat);
        }
        assert_eq!(Crds::default().plural("example.com", "Database"), "databases");
    }

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

    fn policy(children: &Value) -> Result<Compiled, Vec<crate::policies::Problem>> {
        let parent = serde_json::json!({ "group": "example.com", "kind": "Database" });
        let spec = serde_json::json!({ "parent": parent, "children": children });
        let spec = serde_json::from_value(spec).expect("a policy");
        crate::policies::compile(&spec, std::time::Duration::from_mins(10))
    }

    #[test]
    fn only_who_remembers_may_keep_records_and_only_at_home() {
        let jobs = |after: &str| {
            let job = serde_json::json!({ "group": "batch", "kind": "Job" });
            serde_json::json!([{ "kind": job, "afterDeletion": after }])
        };
        let subject = Subject { name: "rollcall".to_owned(), namespace: "home".to_owned() };
        for (after, remembers) in [("forget", false), ("remember", true), ("rememberGeneration", true)] {
            let policies = [policy(&jobs(after)).expect(after)];
            let printed = yaml(&policies, &Crds::default(), &[], &subject);
            let roles: Vec<&str> = printed.split("---\n").collect();
            let records: Vec<_> = roles.iter().filter(|role| role.contains("readinessrecords")).collect();
            assert_eq!(records.len(), usize::from(remembers), "{printed}");
            let home = |role: &&&str| role.contains("kind: Role\n") && role.contains("namespace: home\n");
            assert!(records.iter().all(home), "{printed}");
            let ends = "apiGroups: [\"\"]\n    resources: [events]\n    verbs: [list]\n";
            assert!(printed.contains(ends), "how it ended, and why it has no pod: {printed}");
            let web = serde_json::json!([{ "kind": { "group": "apps", "kind": "Deployment" } }]);
            let printed = yaml(&[policy(&web).expect("a policy")], &Crds::default(), &[], &subject);
            assert!(!printed.contains(ends), "a Deployment says so itself: {printed}");
        }
    }

    #[test]
    fn what_cannot_be_remembered_is_refused_by_name() {
        let child = |group: &str, kind: &str| serde_json::json!({ "kind": { "group": group, "kind": kind }, "afterDeletion": "remember" });
        let mut labelled = child("batch", "Job");
        labelled["find"] = serde_json::json!({ "labels": { "app": "db" } });
        let mut judged = child("batch", "Job");
        judged["ready"] = serde_json::json!({ "cel": { "current": "true" } });
        let cases = [(child("", "Pod"), "Job"), (labelled, "ownerReference"), (judged, "ready")];
        for (child, word) in cases {
            let problems = policy(&serde_json::json!([child])).expect_err(word);
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].field, "spec.children[0].afterDeletion");
            assert!(problems[0].what.contains(word), "{problems:?}");
        }
    }
}
