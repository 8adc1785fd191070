//! Kinds that the policies' task watches.

use watcher::ApiKind;

/// ReadinessPolicy, as it is served.
pub(super) fn policy_kind() -> ApiKind {
    ApiKind {
        group: "rollcall.dev".into(),
        version: "v1alpha1".into(),
        kind: "ReadinessPolicy".into(),
        plural: "readinesspolicies".into(),
        namespaced: false,
        has_status: true,
    }
}

/// ReadinessGroup, as it is served.
pub(super) fn group_kind() -> ApiKind {
    ApiKind {
        group: "rollcall.dev".into(),
        version: "v1alpha1".into(),
        kind: "ReadinessGroup".into(),
        plural: "readinessgroups".into(),
        namespaced: true,
        has_status: true,
    }
}

/// Namespace, as it is served.
pub(crate) fn namespace_kind() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Namespace".into(),
        plural: "namespaces".into(),
        namespaced: false,
        has_status: true,
    }
}

/// Event of the core group, as Kopf posts it.
pub(super) fn event_kind() -> ApiKind {
    ApiKind {
        group: String::new(),
        version: "v1".into(),
        kind: "Event".into(),
        plural: "events".into(),
        namespaced: true,
        has_status: false,
    }
}

/// PodDisruptionBudget, as it is served.
pub(super) fn budget_kind() -> ApiKind {
    ApiKind {
        group: "policy".into(),
        version: "v1".into(),
        kind: "PodDisruptionBudget".into(),
        plural: "poddisruptionbudgets".into(),
        namespaced: true,
        has_status: true,
    }
}
