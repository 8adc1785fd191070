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
    /// Who creates the children of its parents.
    pub operator: ParentOperator,
}

/// Who creates the children of a policy's parents, and what its mark says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentOperator {
    /// Nobody: ReadinessGroups have no operator.
    None,
    /// An operator whose word is evidence, or of which there is none.
    #[default]
    Trusted,
    /// An operator of whom Kopf's mark counts as it stands, although it is the same after a failure: nothing else is asked for.
    TakenByMark,
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
    /// Its children are there, and owned by the parent: they are found by ownerReference, and none counts after it is gone.
    pub counts_dependents: bool,
}
