//! The rules by which one object is a parent.

use aggregator::PolicyId;
use arcstr::ArcStr;

use crate::plan::ParentRule;

/// A policy that selects a parent which an older one rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutrankedPolicy {
    /// The policy that gives way.
    pub policy: PolicyId,
    /// The policy that rules.
    pub by: RulingPolicy,
}

/// A policy to which another one leaves a parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RulingPolicy {
    /// One of this release.
    Own(PolicyId),
    /// One of another release, with that, in words.
    Other(ArcStr),
}

/// By which rules an object is a parent.
#[derive(Debug, Default)]
pub(super) struct RulesOfParent<'i> {
    /// At most one for each condition.
    pub(super) rules: Vec<&'i ParentRule>,
    /// Policies that select it too, and give way.
    pub(super) outranked: Vec<OutrankedPolicy>,
    /// Types of conditions that another release writes on it, and none of these rules.
    pub(super) elsewhere: Vec<&'i str>,
}

impl RulesOfParent<'_> {
    /// Returns `true` if a policy selects it, whether it rules or gives way.
    pub(super) fn is_selected(&self) -> bool {
        !self.rules.is_empty() || !self.outranked.is_empty()
    }
}
