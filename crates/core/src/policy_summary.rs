//! Data about a policy that the renderer requires and the engine does not.

use aggregator::{JointCount, KindId};

/// Summary of a policy for rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySummary {
    /// Its name.
    pub name: String,
    /// Its groups.
    pub groups: Vec<GroupSummary>,
    /// Minimum number of critical children in all groups together, but for prerequisites.
    pub min: u32,
    /// Numbers of children that some groups have together, each with what these are, in the singular.
    pub joint: Vec<(String, JointCount)>,
    /// Kinds that its answers depend on.
    pub kinds: Vec<KindId>,
    /// Its parents have an operator, which creates their children. ReadinessGroups have none.
    pub has_operator: bool,
}

/// Summary of one entry of `children`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSummary {
    /// The kind.
    pub kind: String,
    /// Minimum number.
    pub min: u32,
    /// Maximum number.
    pub max: Option<u32>,
}
