//! A violated invariant.

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantFailure {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Observation that violates it, with its time.
    pub detail: String,
}
