//! Types of the engine's interface: the policies and the views that it observes.

use std::ops::Range;
use std::time::Duration;

use readiness::Time;
use readiness::rollup::{ChildWeight, ParentReason};

use crate::answer_view::AnswerView;
use crate::evidence::HandledEvidence;
use crate::ids::{KindId, ObjectId, PolicyId, SelectorId};

/// Relation by which a child counts for a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildSource {
    /// Owner reference.
    Owner,
    /// Labels rendered from the parent.
    Label,
    /// Reference path in the parent.
    Reference,
    /// The child is gone and its outcome is remembered.
    Remembered,
}

/// Target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkTarget {
    /// This parent.
    Object(ObjectId),
    /// Every parent that selects by this selector.
    Selector(SelectorId),
}

/// Link of an object to a target under a policy's group, with the index of the verdict that counts. Every child has
/// one, so it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildLink {
    /// Policy of the link.
    pub policy: PolicyId,
    /// Index of the group in the policy's `children`.
    pub group: u8,
    /// Index of the verdict that counts: a verdict belongs to an object and a rule.
    pub rule_index: u16,
    target: u32,
}

// One link lies in the row itself, and takes the room that a pointer to many would take.
const _: () = assert!(size_of::<ChildLink>() == 12);

/// Bit in [`ChildLink`]: the rest is a selector's number, not an object's.
const SELECTOR_BIT: u32 = 1 << 31;
/// Bit in [`ChildLink`]: by reference instead of labels, or remembered instead of by owner reference.
const OTHER_SOURCE_BIT: u32 = 1 << 30;
/// Bit in [`ChildLink`]: an owner without a namespace does not count.
const OWN_NAMESPACE_BIT: u32 = 1 << 29;

/// Number of objects, and of selectors, that links can tell apart. Whoever numbers them gives no greater ones.
pub const MAX_LINK_TARGETS: u32 = OWN_NAMESPACE_BIT;

impl ChildLink {
    /// Creates a link to `target`: by owner reference for an object, by labels for a selector. Numbers are less than
    /// [`MAX_LINK_TARGETS`].
    pub fn new(policy: PolicyId, group: u8, rule_index: u16, target: LinkTarget) -> ChildLink {
        let target = match target {
            LinkTarget::Object(id) => id.0,
            LinkTarget::Selector(id) => id.0 | SELECTOR_BIT,
        };
        ChildLink { policy, group, rule_index, target }
    }

    /// Returns the target.
    pub fn target(&self) -> LinkTarget {
        let id = self.target & !(SELECTOR_BIT | OTHER_SOURCE_BIT | OWN_NAMESPACE_BIT);
        if self.target & SELECTOR_BIT == 0 {
            LinkTarget::Object(ObjectId(id))
        } else {
            LinkTarget::Selector(SelectorId(id))
        }
    }

    /// Returns the link with the other source: a reference of the parent (for a selector), or a remembered outcome (for
    /// an object).
    #[must_use]
    pub fn with_other_source(self) -> ChildLink {
        ChildLink { target: self.target | OTHER_SOURCE_BIT, ..self }
    }

    /// Returns the link for an owner in the child's own namespace alone, and not for one without a namespace.
    #[must_use]
    pub fn within_own_namespace(self) -> ChildLink {
        ChildLink { target: self.target | OWN_NAMESPACE_BIT, ..self }
    }

    /// Returns `true` if an owner without a namespace does not count.
    pub fn is_within_own_namespace(&self) -> bool {
        self.target & OWN_NAMESPACE_BIT != 0
    }

    /// Returns the relation by which the child counts.
    pub fn source(&self) -> ChildSource {
        match (self.target & SELECTOR_BIT != 0, self.target & OTHER_SOURCE_BIT != 0) {
            (false, false) => ChildSource::Owner,
            (true, false) => ChildSource::Label,
            (true, true) => ChildSource::Reference,
            (false, true) => ChildSource::Remembered,
        }
    }
}

/// Role of a group: may its children change the parent's condition?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRole {
    /// The children decide the parent's condition.
    Critical,
    /// The children do not affect the condition; they are only shown and measured.
    Optional,
}

/// Number of children of a group that must be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// Every child.
    All,
    /// At least this many children.
    Count(u32),
    /// At least this percentage of the children, rounded up.
    Percent(u32),
}

impl Quorum {
    /// Returns the number of ready children needed out of `total`.
    pub fn needed_of(self, total: u32) -> u32 {
        match self {
            Quorum::All => total,
            Quorum::Count(n) => n,
            Quorum::Percent(p) => {
                u32::try_from((u64::from(total) * u64::from(p)).div_ceil(100)).unwrap_or(u32::MAX)
            }
        }
    }
}

/// One entry of a policy's `children`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildGroup {
    /// Kind of the children.
    pub kind: KindId,
    /// Role of the group.
    pub role: GroupRole,
    /// Minimum number of children.
    pub min: u32,
    /// Maximum number of children.
    pub max: Option<u32>,
    /// Number of children that must be ready.
    pub quorum: Quorum,
    /// Its children are awaited as all others are, and belong to others: where the parent has none of its own, they are none.
    pub is_prerequisite: bool,
}

/// Number of children that several groups of a policy have together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JointCount {
    /// The groups: from this index up to and without that one.
    pub groups: Range<u8>,
    /// Minimum number of critical children.
    pub min: u32,
    /// Maximum number of critical children.
    pub max: Option<u32>,
}

/// A policy as the engine needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePolicy {
    /// Child groups, by index.
    pub groups: Vec<ChildGroup>,
    /// Minimum number of critical children in all groups together, but for prerequisites.
    pub min: u32,
    /// Numbers of children that some groups have together.
    pub joint: Vec<JointCount>,
    /// Every kind whose list the answers rest on, including the parent's.
    pub kinds: Vec<KindId>,
    /// Debounce of evaluations: quiet period and cap.
    pub debounce: timer::DebounceConfig,
    /// Span without creation, deletion or spec change of a child after which an operator that reports nothing counts as
    /// done.
    pub settle: Duration,
    /// Span for which all children must be ready before the condition becomes True.
    pub hold: Duration,
    /// Whether rolled-out workloads may lose readiness for a while and keep the condition True.
    pub availability: Availability,
    /// Span for which the condition stays True when children are no longer ready, but for what failed or is stuck.
    pub grace: Duration,
    /// Limit without a sign of the operator before OperatorSilent, and without an expected child before Stalled.
    pub pending: Duration,
    /// Longest time not ready, from the start of the generation or from the last time ready, before DeadlineExceeded.
    pub deadline: Option<Duration>,
    /// Shadow mode: evaluate and export metrics, write nothing.
    pub shadow: bool,
    /// A group expects children by name.
    pub expects_names: bool,
    /// A generation counts as handled only once [`crate::PendingProofs::record_proof`] has said so.
    pub requires_proof: bool,
    /// Whether it may speak.
    pub acceptance: Acceptance,
}

impl EnginePolicy {
    /// Returns `true` if the children of this group decide the condition.
    pub(crate) fn is_critical(&self, group: u8) -> bool {
        self.groups.get(usize::from(group)).is_some_and(|group| group.role == GroupRole::Critical)
    }

    /// Returns `true` if the children of a parent are known one by one.
    pub(crate) fn tracks_names(&self) -> bool {
        self.expects_names || self.requires_proof
    }

    /// Returns the groups with their indices. A group beyond index 255 could not be named by a link, and has no children.
    pub fn indexed_groups(&self) -> impl Iterator<Item = (u8, &ChildGroup)> + Clone {
        let indices = self.groups.iter().enumerate();
        indices.map_while(|(at, group)| Some((u8::try_from(at).ok()?, group)))
    }
}

/// Whether children that were ready, and are rolled out and available, keep their parent's condition True while the number
/// of their replicas moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// Only ready children do.
    #[default]
    Strict,
    /// They do, for no longer than [`EnginePolicy::pending`].
    Tolerant,
}

/// Whether a policy was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acceptance {
    /// It is in force.
    #[default]
    Accepted,
    /// It is refused, and no version of it that was accepted is known: what stands on its parents stays.
    Refused,
    /// It has been refused for so long that what says True says Unknown.
    RefusedForLong,
}

/// List and watch state of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindState {
    /// The initial list is not complete.
    #[default]
    Listing,
    /// The list is complete and the watch is alive.
    Synced,
    /// The API is not installed: the kind has no objects.
    Absent,
    /// Listing is forbidden (403).
    Forbidden,
    /// The kind could be neither watched nor listed for too long.
    Stale,
}

/// Origin of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChangeOrigin {
    /// Possibly one of Rollcall's own writes.
    #[default]
    PossiblyOwn,
    /// Something outside the parent.
    External,
}

/// What an object is wanted to be, as far as can be compared with what it was wanted to be before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecMark {
    /// Changes with `metadata.generation`.
    pub generation: u16,
    /// The last of these with which more changed than a number of replicas that somebody beside the object's operator sets.
    pub wanted_by_operator: u16,
}

/// An object as the reflector shows it to the engine.
#[derive(Clone, Debug, Default)]
pub struct ObjectView<'a> {
    /// Kind of the object.
    pub kind: KindId,
    /// Weight of the verdict for each rule index; at least one.
    pub weights: &'a [ChildWeight],
    /// What it is wanted to be.
    pub spec_mark: SpecMark,
    /// Creation time.
    pub created: Time,
    /// Hash of the name, for groups that expect names.
    pub name: u64,
    /// Links to the targets for which the object counts.
    pub links: &'a [ChildLink],
    /// Time at which the verdict changes by time alone.
    pub recheck: Option<Time>,
    /// Selectors lent to every parent for which the object counts under the policy: a StatefulSet lends its volume
    /// claims, by their names.
    pub lent_selectors: &'a [(PolicyId, SelectorId)],
    /// View of the object as a parent, if it is one.
    pub parent: Option<&'a ParentView>,
}

/// A parent as the reflector shows it to the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentView {
    /// Generation, or a hash of the object without metadata and status if the server does not count generations.
    pub generation: u64,
    /// Evidence that the operator has handled the generation.
    pub evidence: HandledEvidence,
    /// It is being deleted.
    pub deleting: bool,
    /// Rollcall's conditions on it do not say what holds its deletion now, or that may depend on its children too: it is written
    /// like any other parent.
    pub deletion_unexplained: bool,
    /// Fingerprint of what else its status has, which decides whether conditions can be written there: the names of its fields, and
    /// whether it holds a list of conditions.
    pub status_shape: u32,
    /// Digest of all of Rollcall's conditions on it, including those of policies that no longer apply.
    pub digest: EntriesDigest,
    /// Current answer on the parent for each policy.
    pub answers: Box<[AnswerView]>,
}

/// Fingerprint of conditions, with and without their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntriesDigest {
    /// Covers types, statuses, reasons, generation and messages.
    pub whole: u64,
    /// Covers the same without messages.
    pub without_messages: u64,
}

/// Answer of one policy about one parent, without text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyAnswer {
    /// Reason, which implies the status.
    pub reason: ParentReason,
    /// Number of critical children.
    pub total: u32,
    /// Number of critical children that are ready.
    pub ready: u32,
    /// `Reconciling` is true beside it.
    pub reconciling: bool,
    /// `Stalled` is true beside it.
    pub stalled: bool,
    /// How those above count it, where they count it otherwise.
    pub counted_as: Option<CountedAnswer>,
}

/// An answer as the parents above count it: what it would be without a limit that nothing records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedAnswer {
    /// For this reason.
    Reason(ParentReason),
    /// Children failed for good.
    FailedForGood,
}

// The engine holds one per parent and policy.
const _: () = assert!(size_of::<PolicyAnswer>() == 12);

impl CountedAnswer {
    /// Returns how an answer without limits is counted. What is stuck is always stalled, and nothing else is but what failed.
    pub(crate) fn of(PolicyAnswer { reason, stalled, .. }: PolicyAnswer) -> CountedAnswer {
        match reason {
            ParentReason::ChildrenFailed if stalled => CountedAnswer::FailedForGood,
            reason => CountedAnswer::Reason(reason),
        }
    }

    fn reason(self) -> ParentReason {
        match self {
            CountedAnswer::Reason(reason) => reason,
            CountedAnswer::FailedForGood => ParentReason::ChildrenFailed,
        }
    }
}

impl PolicyAnswer {
    /// Returns the reason by which the parents above count the parent, and quote it.
    pub fn counted_reason(&self) -> ParentReason {
        self.counted_as.map_or(self.reason, CountedAnswer::reason)
    }

    /// Returns the weight of the parent where it is itself a child.
    pub fn weight(&self) -> ChildWeight {
        let is_stalled = match self.counted_as {
            None => self.stalled,
            Some(CountedAnswer::Reason(reason)) => reason == ParentReason::ChildrenStuck,
            Some(CountedAnswer::FailedForGood) => true,
        };
        ChildWeight::of(self.counted_reason().child_level()).with_terminal(is_stalled)
    }
}
