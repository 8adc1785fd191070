//! A policy that is in force, by its number.

use aggregator::{Acceptance, PolicyId};

use super::compile::CompiledPolicy;

/// Group and kind, which identify a kind in any version.
pub type KindKey = (String, String);

/// Accepted policy.
#[derive(Clone, Debug)]
pub struct PolicyInUse {
    /// Its id.
    pub id: PolicyId,
    /// Its name.
    pub name: String,
    /// Compiled policy.
    pub compiled: CompiledPolicy,
    /// Whether it may speak.
    pub acceptance: Acceptance,
}
