//! Recognizes objects whose status another aggregator keeps, by what it leaves in the object.

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
