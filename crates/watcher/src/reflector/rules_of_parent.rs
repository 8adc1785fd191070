//! The rules by which one object is a parent.

use aggregator::PolicyId;

use crate::plan::ParentRule;

/// A policy that selects a parent which an older one rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutrankedPolicy {
    /// The policy that gives way.
    pub policy: PolicyId,
    /// The policy that rules.
    pub by: PolicyId,
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
