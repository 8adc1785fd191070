//! What a policy claims for itself: two may not claim the same.

use watcher::plan::{LabelMatcher, ShapeMatcher};

use super::compile::CompiledPolicy;
use super::policy_in_use::KindKey;

/// The parents that a policy chooses, and the condition that it writes on them. Two that choose differently may choose some
/// parents both: those are left to the older one, parent by parent.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyClaim {
    /// Parent kind and condition type.
    pub(super) of: (KindKey, String),
    pub(super) selectors: (LabelMatcher, Option<LabelMatcher>, Option<ShapeMatcher>),
}

impl PolicyClaim {
    /// The claim of a policy.
    pub fn new(compiled: &CompiledPolicy) -> PolicyClaim {
        let kind = (compiled.parent.group.clone(), compiled.parent.kind.clone());
        PolicyClaim {
            of: (kind, compiled.condition.clone()),
            selectors: (
                compiled.selector.clone(),
                compiled.namespace_selector.clone(),
                compiled.shape.clone(),
            ),
        }
    }
}
