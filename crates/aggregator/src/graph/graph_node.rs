//! One object of the graph, with its edges.

use readiness::rollup::ChildWeight;
use readiness::{Level, Time};

use super::inline_vec::InlineVec;
use crate::delivery::ParentDelivery;
use crate::ids::{EvaluationId, KindId, PolicyId, SelectorId};
use crate::thin_list::ThinList;
use crate::types::{ChangeOrigin, ChildLink, ObjectView, SpecMark};

/// Edge from a child to one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChildEdge {
    pub(crate) evaluation: EvaluationId,
    pub(crate) group: u8,
    pub(crate) rule_index: u16,
    /// The edge lies on a cycle and is not counted.
    pub(crate) cyclic: bool,
    /// Weight with which the child is counted.
    pub(crate) weight: ChildWeight,
}

// A wider link or edge would make every node wider.
const _: () = assert!(size_of::<InlineVec<ChildLink>>() == 16 && size_of::<InlineVec<ChildEdge>>() == 16);

/// One object. Data that only parents or unusual children need is boxed.
#[derive(Clone, Debug)]
pub(crate) struct GraphNode {
    pub(crate) edges: InlineVec<ChildEdge>,
    pub(crate) links: InlineVec<ChildLink>,
    pub(crate) name: u64,
    pub(crate) spec_mark: SpecMark,
    pub(crate) kind: KindId,
    /// When it was created, in seconds.
    created: u32,
    /// Its weight by the built-in rules or, with several rules, by the first.
    pub(super) weight: ChildWeight,
    pub(crate) present: bool,
    /// The verdict changes with time alone.
    pub(crate) has_recheck: bool,
    /// Its weights by further rules.
    pub(super) further_weights: ThinList<ChildWeight>,
    pub(crate) parent: Option<Box<ParentNode>>,
}

/// Weight of an object that was not observed: unknown.
pub(crate) const UNSEEN_WEIGHT: ChildWeight = ChildWeight::of(Level::Unknown);

impl Default for GraphNode {
    fn default() -> Self {
        GraphNode {
            edges: InlineVec::default(),
            links: InlineVec::default(),
            name: 0,
            spec_mark: SpecMark::default(),
            kind: KindId::default(),
            created: 0,
            weight: UNSEEN_WEIGHT,
            present: false,
            has_recheck: false,
            further_weights: ThinList::default(),
            parent: None,
        }
    }
}

impl GraphNode {
    /// Records when the object was created.
    pub(crate) fn set_created(&mut self, created: Time) {
        self.created = u32::try_from(created.0 / 1_000).unwrap_or(0);
    }

    /// When the object was created, to the second.
    pub(crate) fn created(&self) -> Time {
        Time(i64::from(self.created) * 1_000)
    }

    /// Sets the weights of its verdicts, by rule index; an object that is not observed has none.
    #[inline]
    pub(crate) fn set_weights(&mut self, weights: &[ChildWeight]) {
        let (first, further) = split_weights(weights);
        self.weight = first;
        if !(further.is_empty() && self.further_weights.is_empty()) {
            self.further_weights = further.to_vec().into();
        }
    }

    /// Returns the weight of its verdict by a rule; that by the first where there is none.
    pub(crate) fn weight_by(&self, rule_index: u16) -> ChildWeight {
        weight_by(self.weight, &self.further_weights, rule_index)
    }

    /// Returns `true` if the object was observed as the reflector shows it now.
    pub(crate) fn is_shown_as(&self, view: &ObjectView<'_>) -> bool {
        let (first, further) = split_weights(view.weights);
        (self.kind, self.name, self.spec_mark, self.weight) == (view.kind, view.name, view.spec_mark, first)
            && self.links.as_slice() == view.links
            && *self.further_weights == *further
    }
}

/// Returns the first weight of an object, and the further ones.
fn split_weights(weights: &[ChildWeight]) -> (ChildWeight, &[ChildWeight]) {
    weights.split_first().map_or((UNSEEN_WEIGHT, &[]), |(first, further)| (*first, further))
}

/// Returns one of the weights of an object: the first, or one of the further ones.
#[inline]
pub(super) fn weight_by(first: ChildWeight, further: &ThinList<ChildWeight>, rule_index: u16) -> ChildWeight {
    if further.is_empty() {
        return first;
    }
    usize::from(rule_index).checked_sub(1).and_then(|at| further.get(at)).copied().unwrap_or(first)
}

/// Part of a parent in the resync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResyncStage {
    /// It takes no part: it was ready when it was last asked for.
    #[default]
    Outside,
    /// It is enrolled; it leaves when its resync is due and it is ready.
    Enrolled,
    /// It is enrolled, and was resynced since its last change.
    Resynced,
}

/// State of a node that is a parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParentNode {
    pub(crate) evaluations: InlineVec<EvaluationId>,
    pub(crate) selectors: ThinList<(PolicyId, SelectorId)>,
    pub(crate) delivery: ParentDelivery,
    /// A digest of the words in which those above quote it; zero for none.
    pub(crate) quoted: u64,
    /// Origin of what has changed since the last offer.
    pub(crate) origin: ChangeOrigin,
    pub(crate) resync: ResyncStage,
    /// [`crate::ParentView::status_shape`] as last read.
    pub(crate) status_shape: u32,
    /// The parent is being deleted and its conditions say so: it is not written any more.
    pub(crate) termination_written: bool,
    /// The end of a write conflict is scheduled.
    pub(crate) in_conflict: bool,
}

// Every object has a node, and every parent both, for as long as it exists.
const _: () = assert!(size_of::<GraphNode>() <= 72 && size_of::<ParentNode>() <= 112);
