//! Mapping of a kind to its table of rules.

/// A kind as far as its rules are concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the kinds of Kubernetes itself carry their own names")]
pub enum RuleKind {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// Also ReplicationController, which has the same fields.
    ReplicaSet,
    Pod,
    Job,
    CronJob,
    Service,
    PersistentVolumeClaim,
    PersistentVolume,
    Ingress,
    HorizontalPodAutoscaler,
    PodDisruptionBudget,
    EndpointSlice,
    Namespace,
    Node,
    ApiService,
    CustomResourceDefinition,
    /// Data and configuration of Kubernetes itself, ready as soon as it exists: ConfigMap, Role, StorageClass, …
    Plain,
    /// A custom resource that runs to completion, judging by its name: `…Run`, `…Job`, `Backup…`, ….
    Run,
    /// Any other custom resource.
    #[default]
    Other,
}

/// Kinds of Kubernetes that have no readiness.
const PLAIN_KINDS: [&str; 38] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "DeviceClass",
    "Endpoints",
    "Event",
    "IngressClass",
    "IPAddress",
    "Lease",
    "LeaseCandidate",
    "LimitRange",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "NetworkPolicy",
    "PodTemplate",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "FlowSchema",
    "ResourceQuota",
    "ResourceSlice",
    "Role",
    "RoleBinding",
    "RuntimeClass",
    "Secret",
    "ServiceAccount",
    "ServiceCIDR",
    "StorageClass",
    "StorageVersion",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttributesClass",
    "PodSecurityPolicy",
];

/// Suffixes of kinds that run to completion.
const RUN_KIND_SUFFIXES: [&str; 29] = [
    "Analysis",
    "Backup",
    "Benchmark",
    "Build",
    "Capture",
    "Clone",
    "Copy",
    "Execution",
    "Experiment",
    "Export",
    "Import",
    "Invocation",
    "Job",
    "Maintenance",
    "Migration",
    "Operation",
    "Rebalance",
    "Reboot",
    "Recovery",
    "Replay",
    "Restore",
    "Run",
    "Scan",
    "Snapshot",
    "Task",
    "Test",
    "Transfer",
    "Upgrade",
    "Workflow",
];

/// Kinds of the Multi-Cluster Services API that stand as long as the service does.
const STANDING_KINDS: [&str; 2] = ["ServiceExport", "ServiceImport"];

/// Prefixes of kinds that start other objects repeatedly.
const REPEATING_KIND_PREFIXES: [&str; 5] = ["Cron", "Periodic", "Recurring", "Schedule", "Scheduled"];

impl RuleKind {
    /// Returns `true` if the controller of this kind creates pods by a label selector in its spec; those pods explain
    /// why the object is not ready.
    pub const fn owns_pods(self) -> bool {
        use RuleKind::{DaemonSet, Deployment, Job, ReplicaSet, StatefulSet};
        matches!(self, Deployment | StatefulSet | DaemonSet | ReplicaSet | Job)
    }

    /// Returns `true` if the PodDisruptionBudget of its pods says how many of them may be missing. A Deployment says that itself, by
    /// its condition `Available`.
    pub const fn counts_on_disruption_budget(self) -> bool {
        matches!(self, RuleKind::StatefulSet | RuleKind::DaemonSet)
    }

    /// Returns the rules for a kind of an API group; the group is empty for the core group.
    pub fn from_group_kind(group: &str, kind: &str) -> RuleKind {
        match (group, kind) {
            ("apps" | "extensions", "Deployment") => RuleKind::Deployment,
            ("apps" | "extensions", "StatefulSet") => RuleKind::StatefulSet,
            ("apps" | "extensions", "DaemonSet") => RuleKind::DaemonSet,
            ("apps" | "extensions", "ReplicaSet") | ("", "ReplicationController") => RuleKind::ReplicaSet,
            ("", "Pod") => RuleKind::Pod,
            ("batch", "Job") => RuleKind::Job,
            ("batch", "CronJob") => RuleKind::CronJob,
            ("", "Service") => RuleKind::Service,
            ("", "PersistentVolumeClaim") => RuleKind::PersistentVolumeClaim,
            ("", "PersistentVolume") => RuleKind::PersistentVolume,
            ("networking.k8s.io" | "extensions", "Ingress") => RuleKind::Ingress,
            ("autoscaling", "HorizontalPodAutoscaler") => RuleKind::HorizontalPodAutoscaler,
            ("policy", "PodDisruptionBudget") => RuleKind::PodDisruptionBudget,
            ("discovery.k8s.io", "EndpointSlice") => RuleKind::EndpointSlice,
            ("", "Namespace") => RuleKind::Namespace,
            ("", "Node") => RuleKind::Node,
            ("apiregistration.k8s.io", "APIService") => RuleKind::ApiService,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => RuleKind::CustomResourceDefinition,
            _ if is_built_in_group(group) && PLAIN_KINDS.contains(&kind) => RuleKind::Plain,
            _ if runs_to_completion(kind) => RuleKind::Run,
            _ => RuleKind::Other,
        }
    }
}

/// Returns `true` if a Kubernetes API server serves this group itself.
fn is_built_in_group(group: &str) -> bool {
    let short = matches!(group, "" | "apps" | "autoscaling" | "batch" | "extensions" | "policy");
    let core = [
        "admissionregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
    ];
    short || group.strip_suffix(".k8s.io").is_some_and(|name| core.contains(&name))
}

fn runs_to_completion(kind: &str) -> bool {
    let last = |name: &str| name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    // `BackupSession` and `RestoreRequest` are one run of it.
    let go = ["Session", "Request", "Attempt"].iter().find_map(|word| kind.strip_suffix(word));
    let kind = go.filter(|rest| !rest.is_empty()).unwrap_or(kind);
    RUN_KIND_SUFFIXES.contains(&&kind[last(kind)..])
        && !STANDING_KINDS.contains(&kind)
        && !REPEATING_KIND_PREFIXES.iter().any(|word| kind.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_part_of_a_kind() {
        assert_eq!(RuleKind::from_group_kind("apps", "Deployment"), RuleKind::Deployment);
        assert_eq!(RuleKind::from_group_kind("example.com", "Deployment"), RuleKind::Other);
        assert_eq!(RuleKind::from_group_kind("", "Secret"), RuleKind::Plain);
        assert_eq!(RuleKind::from_group_kind("example.com", "Secret"), RuleKind::Other);
        assert_eq!(RuleKind::from_group_kind("rbac.authorization.k8s.io", "Role"), RuleKind::Plain);
    }

    #[test]
    fn a_name_says_whether_it_runs_to_an_end() {
        for kind in [
            "PipelineRun",
            "Backup",
            "DatabaseBackup",
            "SparkJob",
            "Workflow",
            "BackupSession",
            "RestoreRequest",
        ] {
            assert_eq!(RuleKind::from_group_kind("example.com", kind), RuleKind::Run, "{kind}");
        }
        for kind in [
            "Database",
            "CronWorkflow",
            "ScheduledBackup",
            "Runner",
            "BackupSchedule",
            "TestSuite",
            "Session",
            "UserRequest",
        ] {
            assert_eq!(RuleKind::from_group_kind("example.com", kind), RuleKind::Other, "{kind}");
        }
    }
}
