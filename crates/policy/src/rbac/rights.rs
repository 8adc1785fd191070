//! Which rights are required, and what each is for.

use std::collections::{BTreeMap, BTreeSet};

use readiness::RuleKind;

use super::crd_names::CrdNames;
use super::grant_binding::grant_binding_name;
use super::role_subject::{RBAC_GROUP, RoleSubject};
use crate::compile::CompiledPolicy;
use crate::ready_rule::{ConfigMapName, GroupRule};

/// On objects that are judged, or confirmed to be gone: each of them is also read live.
const READ_VERBS: &[&str] = &["get", "list", "watch"];
/// On objects that are only followed.
const FOLLOW_VERBS: &[&str] = &["list", "watch"];

/// Rule of a role: these verbs on these resources of this group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbacRule {
    /// API group; empty for the core group.
    pub group: String,
    /// Resources; a subresource follows a slash.
    pub resources: Vec<String>,
    /// Names of the objects that the rule is restricted to; empty for all.
    pub names: Vec<String>,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// What the rule is for, in a few words.
    pub purpose: &'static str,
    /// Without it nothing of the policy can be evaluated or written; otherwise only an explanation is missing, or what bears with a
    /// disruption.
    pub essential: bool,
}

impl RbacRule {
    fn new(
        group: &str,
        resources: &[&str],
        verbs: &'static [&'static str],
        purpose: &'static str,
    ) -> RbacRule {
        let resources = resources.iter().map(|&resource| resource.to_owned()).collect();
        RbacRule { group: group.to_owned(), resources, names: Vec::new(), verbs, purpose, essential: true }
    }

    fn named(self, name: &str) -> RbacRule {
        RbacRule { names: vec![name.to_owned()], ..self }
    }

    fn for_explanations(self) -> RbacRule {
        RbacRule { essential: false, ..self }
    }

    /// Its resources, as `databases/status.example.com`.
    pub fn qualified_resources(&self) -> impl Iterator<Item = String> + '_ {
        self.resources.iter().map(|resource| qualify_resource(&self.group, resource))
    }
}

/// A resource with its group, as `databases/status.example.com`.
pub(super) fn qualify_resource(group: &str, resource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{resource}{dot}{group}")
}

/// Rights of one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyRights {
    /// On the kinds that it names: in the whole cluster, or in each of the namespaces that Rollcall is restricted to.
    pub kinds: Vec<RbacRule>,
    /// In the namespace of ReadinessRecords.
    pub records: Vec<RbacRule>,
    /// On the ConfigMaps of health scripts that it names.
    pub libraries: Vec<(ConfigMapName, RbacRule)>,
}

impl PolicyRights {
    /// All rules.
    pub fn all_rules(&self) -> impl Iterator<Item = &RbacRule> {
        self.kinds.iter().chain(&self.records).chain(self.libraries.iter().map(|(_, rule)| rule))
    }
}

/// Name of the ConfigMap in the namespace of ReadinessRecords that keeps what policies wrote, of those who elect a leader by this
/// lease.
pub fn inventory_name(lease: &str) -> String {
    format!("{lease}-inventory")
}

/// Rights that Rollcall needs whatever its policies say: in the cluster, and in its own namespace, where those who elect a
/// leader by this lease need rights on it.
pub fn own_rights(lease: &str) -> (Vec<RbacRule>, Vec<RbacRule>) {
    let review = "who asks for the page, and what they may see";
    let cluster = vec![
        RbacRule::new("rollcall.dev", &["readinesspolicies"], READ_VERBS, "the policies"),
        RbacRule::new("rollcall.dev", &["readinesspolicies/status"], &["patch"], "their status"),
        RbacRule::new(
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
            &["get"],
            "whether a policy was deleted, or all with their definition",
        )
        .named("readinesspolicies.rollcall.dev")
        .for_explanations(),
        RbacRule::new("rollcall.dev", &["readinessgroups"], READ_VERBS, "the groups"),
        RbacRule::new("rollcall.dev", &["readinessgroups/status"], &["patch"], "their status"),
        RbacRule::new("authentication.k8s.io", &["tokenreviews"], &["create"], review).for_explanations(),
        RbacRule::new("authorization.k8s.io", &["subjectaccessreviews"], &["create"], review)
            .for_explanations(),
    ];
    let leases = |verbs| {
        RbacRule::new("coordination.k8s.io", &["leases"], verbs, "the lease by which replicas elect a leader")
    };
    // The right to create cannot be restricted to a name.
    let home = vec![leases(&["get", "update"]).named(lease), leases(&["create"])];
    (cluster, home)
}

/// Rights in the namespace of ReadinessRecords by which those who elect a leader by this lease keep what policies of the cluster wrote.
pub fn inventory_rights(lease: &str) -> Vec<RbacRule> {
    let inventory = |verbs| {
        let purpose = "which policy wrote which conditions, to remove them if it goes while nothing runs";
        RbacRule::new("", &["configmaps"], verbs, purpose).for_explanations()
    };
    // As with the lease.
    vec![inventory(&["get", "patch"]).named(&inventory_name(lease)), inventory(&["create"])]
}

/// Rights by which Rollcall grants itself these ClusterRoles, and no others. That they are bound to itself alone,
/// and under that name, is its own doing: the right to create a binding cannot be restricted to a name or to a subject.
pub fn grant_rights(roles: &[String], subject: &RoleSubject) -> Vec<RbacRule> {
    let on = |resource, verbs, names: Vec<String>, purpose| RbacRule {
        names,
        ..RbacRule::new(RBAC_GROUP, &[resource], verbs, purpose)
    };
    let bindings = roles.iter().map(|role| grant_binding_name(subject, role)).collect();
    let all = "the bindings of these roles, which cannot be restricted to their names";
    vec![
        on(
            "clusterroles",
            &["get", "bind"],
            roles.to_vec(),
            "the roles that accepted policies may be granted",
        ),
        on("clusterrolebindings", &["create"], Vec::new(), all),
        on("clusterrolebindings", &["get", "delete"], bindings, "the bindings of these roles to Rollcall"),
    ]
}

/// Rights that this policy requires.
pub fn policy_rights(policy: &CompiledPolicy, crds: &CrdNames) -> PolicyRights {
    let mut kinds = read_rules(policy, crds);
    kinds.extend(explanation_rules(policy, crds));
    if !policy.shadow {
        kinds.extend(write_rules(policy, crds));
    }
    PolicyRights { kinds, records: record_rules(policy), libraries: library_rules(policy) }
}

/// Lists and watches: the parents, the children by group, the labels of namespaces.
fn read_rules(policy: &CompiledPolicy, crds: &CrdNames) -> Vec<RbacRule> {
    let parent = crds.plural_of(&policy.parent.group, &policy.parent.kind);
    let mut rules =
        vec![RbacRule::new(&policy.parent.group, &[&parent], READ_VERBS, "the parents of the policy")];
    let mut children: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for group in &policy.groups {
        let plural = crds.plural_of(&group.kind.group, &group.kind.kind);
        // A parent may be the child of another of its kind.
        if (group.kind.group.as_str(), plural.as_str()) != (policy.parent.group.as_str(), parent.as_str()) {
            children.entry(&group.kind.group).or_default().insert(plural);
        }
    }
    for (group, plurals) in children {
        let plurals: Vec<&str> = plurals.iter().map(String::as_str).collect();
        rules.push(RbacRule::new(group, &plurals, READ_VERBS, "their children"));
    }
    if policy.namespace_selector.is_some() {
        let purpose = "labels of the parents' namespaces, which the policy selects by";
        rules.push(RbacRule::new("", &["namespaces"], FOLLOW_VERBS, purpose));
    }
    if policy.counts_on_budgets() {
        let purpose = "how many pods of a workload a disruption may take away";
        let budgets = RbacRule::new("policy", &["poddisruptionbudgets"], FOLLOW_VERBS, purpose);
        rules.push(budgets.for_explanations());
    }
    if policy.heeds_kopf_log() {
        let purpose = "handlers of its Kopf operator that failed, where it posts its log as Events";
        rules.push(RbacRule::new("", &["events"], FOLLOW_VERBS, purpose).for_explanations());
    }
    rules
}

/// Reads of single objects, to explain why something is not ready.
fn explanation_rules(policy: &CompiledPolicy, crds: &CrdNames) -> Vec<RbacRule> {
    let kinds = || policy.groups.iter().map(|g| RuleKind::from_group_kind(&g.kind.group, &g.kind.kind));
    let mut rules = Vec::new();
    let is_pod = |group: &str, kind: &str| group.is_empty() && crds.plural_of(group, kind) == "pods";
    let watches_pods = policy.groups.iter().any(|g| is_pod(&g.kind.group, &g.kind.kind))
        || is_pod(&policy.parent.group, &policy.parent.kind);
    if kinds().any(RuleKind::owns_pods) && !watches_pods {
        let purpose = "why a workload is not ready: its pods";
        rules.push(RbacRule::new("", &["pods"], &["list"], purpose).for_explanations());
    }
    let is_claim = |kind: RuleKind| kind == RuleKind::PersistentVolumeClaim;
    let parent = RuleKind::from_group_kind(&policy.parent.group, &policy.parent.kind);
    let reads_claims = kinds().any(is_claim) || is_claim(parent);
    if (kinds().any(RuleKind::owns_pods) || watches_pods) && !reads_claims {
        let purpose = "why a pod does not start: the claims that it mounts";
        rules.push(RbacRule::new("", &["persistentvolumeclaims"], &["get"], purpose).for_explanations());
    }
    let told_by_events =
        |kind: RuleKind| matches!(kind, RuleKind::StatefulSet | RuleKind::DaemonSet | RuleKind::Job);
    if policy.remembers_outcomes() {
        let purpose = "how a Job ended whose end was missed";
        rules.push(RbacRule::new("", &["events"], &["list"], purpose));
    } else if kinds().any(told_by_events) {
        let purpose = "why pods could not be created, if no condition says so";
        rules.push(RbacRule::new("", &["events"], &["list"], purpose).for_explanations());
    }
    rules
}

/// Rights by which entries are removed from the parents of this kind, after their policy is gone.
pub fn release_rights(group: &str, kind: &str, crds: &CrdNames) -> PolicyRights {
    let purpose = "the parents of a policy that is gone";
    let read = RbacRule::new(group, &[&crds.plural_of(group, kind)], READ_VERBS, purpose);
    PolicyRights { kinds: vec![read, condition_rule(group, kind, crds)], ..PolicyRights::default() }
}

fn write_rules(policy: &CompiledPolicy, crds: &CrdNames) -> Vec<RbacRule> {
    let conditions = condition_rule(&policy.parent.group, &policy.parent.kind, crds);
    let purpose = "an Event when the answer of a parent changes";
    let events =
        RbacRule::new("events.k8s.io", &["events"], &["create", "patch"], purpose).for_explanations();
    vec![conditions, events]
}

fn condition_rule(group: &str, kind: &str, crds: &CrdNames) -> RbacRule {
    let parent = crds.plural_of(group, kind);
    if crds.lacks_status_subresource(group, kind) {
        // The right to patch the main resource includes its spec, so it is required only where there is no other.
        let purpose = "conditions of the parents: without a status subresource this includes their spec";
        RbacRule::new(group, &[&parent], &["patch"], purpose)
    } else {
        RbacRule::new(group, &[&format!("{parent}/status")], &["patch"], "conditions of the parents")
    }
}

fn record_rules(policy: &CompiledPolicy) -> Vec<RbacRule> {
    let verbs = &["get", "list", "watch", "create", "patch", "delete"];
    let rule =
        || RbacRule::new("rollcall.dev", &["readinessrecords"], verbs, "outcomes of Jobs that were deleted");
    policy.remembers_outcomes().then(rule).into_iter().collect()
}

fn library_rules(policy: &CompiledPolicy) -> Vec<(ConfigMapName, RbacRule)> {
    let named = policy.groups.iter().filter_map(|group| match &group.rule {
        Some(GroupRule::Library(name)) => Some(name),
        _ => None,
    });
    let rule = |library: &ConfigMapName| {
        let rule = RbacRule::new("", &["configmaps"], FOLLOW_VERBS, "health scripts that the policy names");
        (library.clone(), rule.named(&library.name))
    };
    named.collect::<BTreeSet<_>>().into_iter().map(rule).collect()
}
