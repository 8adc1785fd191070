//! The names that an expression may use without declaring them.

use super::value::Ty;

/// The object itself, where no id names it.
pub(super) const WHOLE: [&str; 2] = ["self", "object"];

/// Top-level fields of the kinds of Kubernetes, and those that custom resources commonly have beside them. Any other is
/// reached by way of `self`.
pub(super) const FIELDS: &[&str] = &[
    "action",
    "addressType",
    "aggregationRule",
    "allocatedResources",
    "allowVolumeExpansion",
    "allowedTopologies",
    "apiVersion",
    "automountServiceAccountToken",
    "binaryData",
    "caBundle",
    "capacity",
    "clusterRole",
    "conditions",
    "config",
    "configuration",
    "count",
    "data",
    "description",
    "driver",
    "endpoints",
    "eventTime",
    "globalDefault",
    "handler",
    "health",
    "imagePullSecrets",
    "immutable",
    "info",
    "involvedObject",
    "kind",
    "maximumVolumeSize",
    "message",
    "metadata",
    "mountOptions",
    "nodeTopology",
    "overhead",
    "parameters",
    "phase",
    "ports",
    "preemptionPolicy",
    "provisioner",
    "ready",
    "reason",
    "reclaimPolicy",
    "regarding",
    "report",
    "resources",
    "results",
    "revision",
    "roleRef",
    "rules",
    "scheduling",
    "scope",
    "secrets",
    "spec",
    "state",
    "status",
    "storageClassName",
    "stringData",
    "subjects",
    "subsets",
    "summary",
    "template",
    "type",
    "value",
    "version",
    "volumeBindingMode",
    "webhooks",
];

const TYPES: [(&str, Ty); 14] = [
    ("bool", Ty::Bool),
    ("bytes", Ty::Bytes),
    ("double", Ty::Double),
    ("google.protobuf.Duration", Ty::Span),
    ("google.protobuf.Timestamp", Ty::Moment),
    ("int", Ty::Int),
    ("list", Ty::List),
    ("map", Ty::Map),
    ("null_type", Ty::Null),
    ("optional_type", Ty::Optional),
    ("string", Ty::Text),
    ("type", Ty::Type),
    ("uint", Ty::Uint),
    ("net.IP", Ty::Ip),
];

/// The type that a name stands for. A field of the object hides it.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty.name())
}

/// What is known of a top-level field.
pub(super) fn field(name: &str) -> Ty {
    match name {
        "apiVersion" | "kind" => Ty::Text,
        "metadata" => Ty::Map,
        _ => Ty::Dyn,
    }
}

/// What is known of a field of a top-level field.
pub(super) fn field_of(root: &str, name: &str) -> Ty {
    match (root, name) {
        (
            "metadata",
            "name" | "namespace" | "uid" | "generateName" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp",
        ) => Ty::Text,
        ("metadata", "generation") => Ty::Int,
        ("metadata", "labels" | "annotations") => Ty::Map,
        ("metadata", "finalizers" | "ownerReferences") => Ty::List,
        _ => Ty::Dyn,
    }
}
