//! Which table of rules judges a kind.

/// A kind as far as its judge is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the kinds of Kubernetes itself carry their own names")]
pub enum Kind {
    Deployment,
    StatefulSet,
    DaemonSet,
    /// Also ReplicationController, which speaks the same way.
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
    /// Data and settings of Kubernetes itself, which are ready by existing: ConfigMap, Role, StorageClass, …
    Plain,
    /// A custom resource that by its name runs to an end: `…Run`, `…Job`, `Backup…`, ….
    Run,
    /// Any other custom resource.
    #[default]
    Other,
}

/// Kinds of Kubernetes that have nothing to become ready.
const PLAIN: [&str; 38] = [
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

/// Words at the end of a kind's name that say it runs to an end.
const RUNS: [&str; 22] = [
    "Backup",
    "Build",
    "Capture",
    "Execution",
    "Experiment",
    "Export",
    "Import",
    "Invocation",
    "Job",
    "Migration",
    "Operation",
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

/// Words at the start of a kind's name that say it starts others, again and again.
const REPEATS: [&str; 5] = ["Cron", "Periodic", "Recurring", "Schedule", "Scheduled"];

impl Kind {
    /// Its controller makes pods, by a label selector in its spec: they tell why it is not ready.
    pub const fn owns_pods(self) -> bool {
        use Kind::{DaemonSet, Deployment, Job, ReplicaSet, StatefulSet};
        matches!(self, Deployment | StatefulSet | DaemonSet | ReplicaSet | Job)
    }

    /// The table for a kind of an API group; the group is empty for the core group.
    pub fn of(group: &str, kind: &str) -> Kind {
        match (group, kind) {
            ("apps" | "extensions", "Deployment") => Kind::Deployment,
            ("apps" | "extensions", "StatefulSet") => Kind::StatefulSet,
            ("apps" | "extensions", "DaemonSet") => Kind::DaemonSet,
            ("apps" | "extensions", "ReplicaSet") | ("", "ReplicationController") => Kind::ReplicaSet,
            ("", "Pod") => Kind::Pod,
            ("batch", "Job") => Kind::Job,
            ("batch", "CronJob") => Kind::CronJob,
            ("", "Service") => Kind::Service,
            ("", "PersistentVolumeClaim") => Kind::PersistentVolumeClaim,
            ("", "PersistentVolume") => Kind::PersistentVolume,
            ("networking.k8s.io" | "extensions", "Ingress") => Kind::Ingress,
            ("autoscaling", "HorizontalPodAutoscaler") => Kind::HorizontalPodAutoscaler,
            ("policy", "PodDisruptionBudget") => Kind::PodDisruptionBudget,
            ("discovery.k8s.io", "EndpointSlice") => Kind::EndpointSlice,
            ("", "Namespace") => Kind::Namespace,
            ("", "Node") => Kind::Node,
            ("apiregistration.k8s.io", "APIService") => Kind::ApiService,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Kind::CustomResourceDefinition,
            _ if built_in(group) && PLAIN.contains(&kind) => Kind::Plain,
            _ if runs(kind) => Kind::Run,
            _ => Kind::Other,
        }
    }
}

/// Is this one of the groups that a Kubernetes API server serves itself?
fn built_in(group: &str) -> bool {
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

fn runs(kind: &str) -> bool {
    let last = |name: &str| name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
    // `BackupSession`, `RestoreRequest`: one go of it.
    let go = ["Session", "Request", "Attempt"].iter().find_map(|word| kind.strip_suffix(word));
    let kind = go.filter(|rest| !rest.is_empty()).unwrap_or(kind);
    RUNS.contains(&&kind[last(kind)..]) && !REPEATS.iter().any(|word| kind.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_part_of_a_kind() {
        assert_eq!(Kind::of("apps", "Deployment"), Kind::Deployment);
        assert_eq!(Kind::of("example.com", "Deployment"), Kind::Other);
        assert_eq!(Kind::of("", "Secret"), Kind::Plain);
        assert_eq!(Kind::of("example.com", "Secret"), Kind::Other);
        assert_eq!(Kind::of("rbac.authorization.k8s.io", "Role"), Kind::Plain);
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
            assert_eq!(Kind::of("example.com", kind), Kind::Run, "{kind}");
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
            assert_eq!(Kind::of("example.com", kind), Kind::Other, "{kind}");
        }
    }
}
