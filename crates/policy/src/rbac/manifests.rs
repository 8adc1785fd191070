//! Roles and bindings as manifests. Every text in them is checked or escaped: names come from policies that were
//! validated, and a serializer writes the YAML.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rights::{PolicyRights, RbacRule, grant_rights, inventory_name, inventory_rights, own_rights};
use super::role_flags::DEFAULT_NAME;
use super::role_name::policy_role_name;
use super::role_subject::{RBAC_GROUP, RoleSubject};

/// Label of ClusterRoles whose rules are aggregated into the role that its value names.
const AGGREGATE_LABEL: &str = "rollcall.dev/aggregate-to";
/// Annotation that tells what each rule of a role is for.
const RULES_ANNOTATION: &str = "rollcall.dev/rules";
/// Annotation that names the policy that a role is for.
pub const POLICY_ANNOTATION: &str = "rollcall.dev/policy";

/// To whom and where rights are granted.
#[derive(Clone, Debug)]
pub struct RoleOptions {
    /// The service account.
    pub subject: RoleSubject,
    /// Namespaces that Rollcall is restricted to; empty for the whole cluster.
    pub namespaces: Vec<String>,
    /// Name of the aggregated ClusterRole, which is bound to the service account.
    pub aggregate_to: String,
    /// Namespace of ReadinessRecords, and of what is kept of the policies' conditions: that of the service account, unless
    /// Rollcall runs with another.
    pub records_namespace: String,
    /// Name of the lease by which the replicas elect a leader.
    pub lease: String,
}

impl RoleOptions {
    /// For the service as the base installs it, in this namespace.
    pub fn in_namespace(namespace: &str) -> RoleOptions {
        RoleOptions {
            subject: RoleSubject { name: DEFAULT_NAME.to_owned(), namespace: namespace.to_owned() },
            namespaces: Vec::new(),
            aggregate_to: DEFAULT_NAME.to_owned(),
            records_namespace: namespace.to_owned(),
            lease: DEFAULT_NAME.to_owned(),
        }
    }
}

/// What Rollcall needs for itself. In the whole cluster: a role that aggregates those of the policies, its binding, and
/// its own part. In its namespace: the lease of the leader election. In that of records: with policies of the cluster what
/// they wrote.
pub fn own_manifests(options: &RoleOptions) -> Vec<Value> {
    let (cluster, mut home) = own_rights(&options.lease);
    let mut manifests = Vec::new();
    let home_namespace = options.subject.namespace.as_str();
    let mut elsewhere = Vec::new();
    if options.namespaces.is_empty() {
        let keeps_at_home = options.records_namespace == home_namespace;
        let keeping = if keeps_at_home { &mut home } else { &mut elsewhere };
        keeping.extend(inventory_rights(&options.lease));
        let name = &options.aggregate_to;
        let labels = json!({ (AGGREGATE_LABEL): name });
        let mut aggregated = object("ClusterRole", name, None);
        aggregated["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": labels }] });
        let own = aggregated_role(&format!("{name}-own"), &cluster, options);
        manifests.extend([aggregated, own, binding("ClusterRole", name, None, options)]);
    }
    manifests.extend(bound_role(&format!("{}-lease", options.lease), home_namespace, &home, options));
    if !elsewhere.is_empty() {
        let name = inventory_name(&options.lease);
        manifests.extend(bound_role(&name, &options.records_namespace, &elsewhere, options));
    }
    manifests
}

/// The right to bind these ClusterRoles to the service account, and to take such a binding away: a ClusterRole that is
/// aggregated.
pub fn grant_manifests(roles: &[String], options: &RoleOptions) -> Vec<Value> {
    let rules = grant_rights(roles, &options.subject);
    vec![aggregated_role(&format!("{}-grant", options.aggregate_to), &rules, options)]
}

/// The rights of one policy: a ClusterRole that is aggregated, or a Role in each namespace that Rollcall is restricted
/// to; and Roles for what the policy needs in one namespace only.
pub fn policy_manifests(policy: &str, rights: &PolicyRights, options: &RoleOptions) -> Vec<Value> {
    let name = policy_role_name(policy);
    let mut manifests = Vec::new();
    let mut by_namespace: BTreeMap<&str, Vec<RbacRule>> = BTreeMap::new();
    if options.namespaces.is_empty() {
        manifests.push(aggregated_role(&name, &rights.kinds, options));
    }
    for namespace in &options.namespaces {
        by_namespace.entry(namespace).or_default().extend(rights.kinds.iter().cloned());
    }
    if !rights.records.is_empty() {
        by_namespace.entry(&options.records_namespace).or_default().extend(rights.records.iter().cloned());
    }
    for (library, rule) in &rights.libraries {
        by_namespace.entry(&library.namespace).or_default().push(rule.clone());
    }
    for (namespace, rules) in by_namespace {
        manifests.extend(bound_role(&name, namespace, &rules, options));
    }
    for manifest in &mut manifests {
        manifest["metadata"]["annotations"][POLICY_ANNOTATION] = json!(policy);
    }
    manifests
}

/// Manifests as one stream of YAML documents.
pub fn manifests_yaml(manifests: &[Value]) -> anyhow::Result<String> {
    let document =
        |manifest: &Value| Ok(format!("---\n{}\n", crate::yaml::to_yaml(manifest)?.trim_end_matches('\n')));
    manifests.iter().map(document).collect()
}

fn object(kind: &str, name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({ "name": name, "labels": { "app.kubernetes.io/name": "rollcall" } });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({ "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": kind, "metadata": metadata })
}

fn aggregated_role(name: &str, rules: &[RbacRule], options: &RoleOptions) -> Value {
    let mut manifest = role("ClusterRole", name, None, rules);
    manifest["metadata"]["labels"][AGGREGATE_LABEL] = json!(options.aggregate_to);
    manifest
}

/// A Role in this namespace, and its binding.
fn bound_role(name: &str, namespace: &str, rules: &[RbacRule], options: &RoleOptions) -> [Value; 2] {
    let namespace = Some(namespace);
    [role("Role", name, namespace, rules), binding("Role", name, namespace, options)]
}

fn role(kind: &str, name: &str, namespace: Option<&str>, rules: &[RbacRule]) -> Value {
    let mut manifest = object(kind, name, namespace);
    manifest["metadata"]["annotations"] = json!({ (RULES_ANNOTATION): rule_purposes(rules) });
    let rule = |rule: &RbacRule| {
        let mut manifest =
            json!({ "apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs });
        if !rule.names.is_empty() {
            manifest["resourceNames"] = json!(rule.names);
        }
        manifest
    };
    manifest["rules"] = rules.iter().map(rule).collect();
    manifest
}

/// One line for each rule: what it allows, and what for.
fn rule_purposes(rules: &[RbacRule]) -> String {
    let line = |rule: &RbacRule| {
        let resources: Vec<_> = rule.qualified_resources().collect();
        let only = if rule.names.is_empty() { String::new() } else { format!(" {}", rule.names.join(", ")) };
        format!("{} {}{only}: {}", rule.verbs.join(","), resources.join(", "), rule.purpose)
    };
    rules.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn binding(kind: &str, name: &str, namespace: Option<&str>, options: &RoleOptions) -> Value {
    let mut manifest = object(&format!("{kind}Binding"), name, namespace);
    manifest["roleRef"] = json!({ "apiGroup": RBAC_GROUP, "kind": kind, "name": name });
    let RoleSubject { name, namespace } = &options.subject;
    manifest["subjects"] = json!([{ "kind": "ServiceAccount", "name": name, "namespace": namespace }]);
    manifest
}
