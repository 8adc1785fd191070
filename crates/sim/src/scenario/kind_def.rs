//! The kinds of a scenario, and how their operators report.

use aggregator::KindId;
use watcher::ApiKind;

/// API group of the simulation's custom kinds.
pub(crate) const CUSTOM_GROUP: &str = "example.com";

/// Way in which an operator reports that it has handled a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorStyle {
    /// In `status.observedGeneration`.
    Status,
    /// In the `observedGeneration` of its own condition.
    Condition,
    /// As Kopf does, in an annotation with the last handled configuration.
    Kopf,
    /// Not at all.
    Silent,
}

/// One kind of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct KindDef {
    pub(crate) api: ApiKind,
    /// `status.conditions` is an atomic list, not a map.
    pub(crate) atomic: bool,
    /// Reporting style of its operator, if it has one.
    pub(crate) style: OperatorStyle,
}

impl KindDef {
    /// Returns a kind whose operator is silent.
    pub(super) fn new(group: &str, kind: &str, plural: &str, namespaced: bool) -> KindDef {
        KindDef {
            api: ApiKind {
                group: group.into(),
                version: "v1".into(),
                kind: kind.into(),
                plural: plural.into(),
                namespaced,
                has_status: true,
            },
            atomic: false,
            style: OperatorStyle::Silent,
        }
    }
}

/// Converts a number that the simulation itself keeps small.
pub(crate) fn small_number<T: TryFrom<usize>>(number: usize) -> T {
    T::try_from(number).ok().expect("invariant: the simulation is small")
}

/// Returns the id of a kind.
pub(crate) fn kind_id(kind: usize) -> KindId {
    KindId(small_number(kind))
}

/// Returns the kinds of every scenario: leaves, and the lowest parents.
pub(super) fn base_kinds() -> Vec<KindDef> {
    vec![
        KindDef::new("apps", "Deployment", "deployments", true),
        KindDef::new("apps", "StatefulSet", "statefulsets", true),
        KindDef::new("batch", "Job", "jobs", true),
        KindDef::new(CUSTOM_GROUP, "Widget", "widgets", true),
        KindDef::new(CUSTOM_GROUP, "Database", "databases", true),
    ]
}
