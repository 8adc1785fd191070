//! Names that an expression may use without declaring them.

use cel::common::ast::{Expr, IdedExpr};

use crate::cel_type::CelType;

/// Names of the object itself, unless an id names it.
pub(crate) const OBJECT_NAMES: [&str; 2] = ["self", "object"];

/// Top-level fields of built-in kinds, and those that custom resources commonly have beside them. Any other is reached
/// through `self`.
pub(crate) const TOP_LEVEL_FIELDS: &[&str] = &[
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

const TYPE_NAMES: [(&str, CelType); 14] = [
    ("bool", CelType::Bool),
    ("bytes", CelType::Bytes),
    ("double", CelType::Double),
    ("google.protobuf.Duration", CelType::Duration),
    ("google.protobuf.Timestamp", CelType::Timestamp),
    ("int", CelType::Int),
    ("list", CelType::List),
    ("map", CelType::Map),
    ("null_type", CelType::Null),
    ("optional_type", CelType::Optional),
    ("string", CelType::Text),
    ("type", CelType::Type),
    ("uint", CelType::Uint),
    ("net.IP", CelType::Ip),
];

/// Returns the type that a name denotes. A field of the object with this name hides it.
pub(crate) fn type_named(name: &str) -> Option<&'static str> {
    TYPE_NAMES.iter().find(|(known, _)| *known == name).map(|(_, ty)| ty.name())
}

/// Returns the known type of a top-level field.
pub(crate) fn top_level_type(name: &str) -> CelType {
    match name {
        "apiVersion" | "kind" => CelType::Text,
        "metadata" => CelType::Map,
        _ => CelType::Dyn,
    }
}

/// Returns the known type of a field of a top-level field.
pub(crate) fn subfield_type(root: &str, name: &str) -> CelType {
    match (root, name) {
        (
            "metadata",
            "name" | "namespace" | "uid" | "generateName" | "resourceVersion" | "creationTimestamp"
            | "deletionTimestamp",
        ) => CelType::Text,
        ("metadata", "generation") => CelType::Int,
        ("metadata", "labels" | "annotations") => CelType::Map,
        ("metadata", "finalizers" | "ownerReferences") => CelType::List,
        _ => CelType::Dyn,
    }
}

/// Returns the qualified name that an expression spells, if any.
pub(crate) fn qualified_name(e: &IdedExpr) -> Option<String> {
    match &e.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}
