//! The condition type that is written on a parent, and objects whose status another aggregator keeps: they are recognized
//! by what it leaves in the object.

use arcstr::ArcStr;

use crate::plan::ParentRule;
use crate::status::ParentStatus;
use crate::wire::WireMeta;

/// Another aggregator that keeps the status of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusOwner {
    /// Its name, with the evidence.
    pub(super) who: &'static str,
    /// It replaces the whole status, and with it the conditions of others; otherwise it writes `Ready` and keeps them.
    pub(super) replaces_status: bool,
}

/// Finalizers that only the aggregator's own objects carry, and what it does with their status.
const OWN_FINALIZERS: [(&str, StatusOwner); 4] = [
    (
        "kro.run/finalizer",
        StatusOwner {
            who: "kro (finalizer kro.run/finalizer), which replaces the whole status",
            replaces_status: true,
        },
    ),
    (
        "composite.apiextensions.crossplane.io",
        StatusOwner {
            who: "Crossplane (finalizer composite.apiextensions.crossplane.io)",
            replaces_status: false,
        },
    ),
    (
        "finalizer.apiextensions.crossplane.io",
        StatusOwner {
            who: "Crossplane (finalizer finalizer.apiextensions.crossplane.io)",
            replaces_status: false,
        },
    ),
    (
        "finalizer.managedresource.crossplane.io",
        StatusOwner {
            who: "Crossplane (finalizer finalizer.managedresource.crossplane.io)",
            replaces_status: false,
        },
    ),
];

impl StatusOwner {
    /// Returns the aggregator that keeps the status of this object, if it is recognized.
    pub(super) fn find(meta: &WireMeta) -> Option<StatusOwner> {
        let known =
            |(finalizer, _): &&(&str, StatusOwner)| meta.finalizers.iter().any(|f| **f == **finalizer);
        OWN_FINALIZERS.iter().find(known).map(|(_, owner)| *owner)
    }

    /// Is a condition of this type not to be written, unless the policy takes it over?
    pub(super) fn claims(&self, condition: &str) -> bool {
        self.replaces_status || condition == "Ready"
    }
}

/// The condition type that a policy writes on a parent.
pub(super) struct ChosenCondition<'r> {
    /// The type; `None` if nothing may be written.
    pub(super) condition: Option<&'r ArcStr>,
    /// The aggregator because of which it is not the policy's first choice.
    pub(super) keeper: Option<&'static str>,
}

impl<'r> ChosenCondition<'r> {
    /// Chooses the policy's type, or its fallback where that type belongs to another writer or kept being overwritten.
    pub(super) fn choose(
        meta: &WireMeta,
        rule: &'r ParentRule,
        status: &ParentStatus,
        overwritten: &[ArcStr],
    ) -> ChosenCondition<'r> {
        let keeper = StatusOwner::find(meta).filter(|_| !rule.takeover);
        // What Rollcall wrote before its owner was known stays, unless that owner drops it anyway.
        let is_kept = |keeper: StatusOwner, condition: &str| {
            keeper.claims(condition) && (keeper.replaces_status || status.our_entry(condition).is_none())
        };
        let is_foreign = |condition: &str| {
            status.is_foreign(condition) || keeper.is_some_and(|keeper| is_kept(keeper, condition))
        };
        let foreign = is_foreign(&rule.condition);
        let condition = match &rule.fallback {
            Some(fallback) if (foreign || overwritten.contains(&rule.condition)) && !is_foreign(fallback) => {
                Some(fallback)
            }
            _ => Some(&rule.condition).filter(|_| !foreign),
        };
        ChosenCondition { condition, keeper: keeper.filter(|_| foreign).map(|keeper| keeper.who) }
    }
}
