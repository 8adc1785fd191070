//! The words the engine speaks: small integers for what others own, and what it is told.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::{ParentReason, Weight};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl From<$name> for u64 {
            fn from(id: $name) -> u64 {
                u64::from(id.0)
            }
        }
    };
}

id!(
    /// One object, by its place in the reflector.
    ObjectId(u32)
);
id!(
    /// One kind that is watched.
    KindId(u16)
);
id!(
    /// One policy.
    PolicyId(u16)
);
id!(
    /// What a label rule selects by: policy, group, namespace and the rendered values, interned.
    SelectorId(u32)
);
id!(
    /// One policy's answer about one parent.
    RollId(u32)
);

/// How a child came to count for a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// By ownerReference.
    Owner,
    /// By labels rendered from the parent.
    Label,
    /// By a reference path in the parent.
    Reference,
    /// It is gone; its outcome is remembered.
    Remembered,
}

/// Whose child an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// This parent.
    Object(ObjectId),
    /// Every parent that selects by this.
    Selector(SelectorId),
}

/// An object counts under a policy's group for a target, as judged through a lens. Every child has one, so it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// Under this policy.
    pub policy: PolicyId,
    /// In this one of its `children`.
    pub group: u8,
    /// Which of the object's verdicts counts: a verdict belongs to (object, rule).
    pub lens: u8,
    target: u32,
}

/// In [`Link`]: the rest is a selector's number, not an object's.
const SELECTOR: u32 = 1 << 31;
/// In [`Link`]: not by labels but by a reference; not by ownerReference but remembered.
const OTHERWISE: u32 = 1 << 30;

impl Link {
    /// For `target`, of which there are fewer than 2³⁰ of either sort: by ownerReference where that is an object, by labels
    /// where it is a selector.
    pub fn new(policy: PolicyId, group: u8, lens: u8, target: Target) -> Link {
        let target = match target {
            Target::Object(id) => id.0,
            Target::Selector(id) => id.0 | SELECTOR,
        };
        Link { policy, group, lens, target }
    }

    /// For whom.
    pub fn target(&self) -> Target {
        let id = self.target & !(SELECTOR | OTHERWISE);
        if self.target & SELECTOR == 0 {
            Target::Object(ObjectId(id))
        } else {
            Target::Selector(SelectorId(id))
        }
    }

    /// The same, by a reference of the parent's (a selector) or from memory (an object).
    #[must_use]
    pub fn otherwise(self) -> Link {
        Link { target: self.target | OTHERWISE, ..self }
    }

    /// How the child came to count.
    pub fn source(&self) -> Source {
        match (self.target & SELECTOR != 0, self.target & OTHERWISE != 0) {
            (false, false) => Source::Owner,
            (true, false) => Source::Label,
            (true, true) => Source::Reference,
            (false, true) => Source::Remembered,
        }
    }
}

/// May a child turn its parent's Ready away from True?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Yes.
    Critical,
    /// No: shown and metered only.
    Optional,
}

/// How many of a group must be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// Every one.
    All,
    /// At least so many.
    Count(u32),
    /// At least so many of a hundred, rounded up.
    Percent(u32),
}

impl Quorum {
    /// How many of `total` are needed.
    pub fn of(self, total: u32) -> u32 {
        match self {
            Quorum::All => total,
            Quorum::Count(n) => n,
            Quorum::Percent(p) => (u64::from(total) * u64::from(p)).div_ceil(100) as u32,
        }
    }
}

/// One of a policy's `children`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The kind.
    pub kind: KindId,
    /// Its role.
    pub role: Role,
    /// At least so many.
    pub min: u32,
    /// At most so many.
    pub max: Option<u32>,
    /// How many of them must be ready.
    pub quorum: Quorum,
}

/// What the engine knows of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its children, by group.
    pub groups: Vec<Group>,
    /// At least so many critical children in all groups together.
    pub min: u32,
    /// Every kind whose list its answers rest on, the parent's among them.
    pub kinds: Vec<KindId>,
    /// Waiting for quiet, and how long at most.
    pub debounce: timer::Debounce,
    /// How long nothing may be created, deleted or re-specified before a silent operator counts as done.
    pub settle: Duration,
    /// How long all must be well before True.
    pub hold: Duration,
    /// After so long without a sign of the operator: OperatorSilent; without an expected child: Stalled.
    pub pending: Duration,
    /// Not ready for so long since its generation, or since it stopped being ready: DeadlineExceeded.
    pub deadline: Option<Duration>,
    /// Compute and export, write nothing.
    pub shadow: bool,
    /// A group expects children by name.
    pub names: bool,
}

/// Where the list and watch of one kind stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindState {
    /// The initial list is not through.
    #[default]
    Listing,
    /// Everything was seen, and the watch lives.
    Synced,
    /// The API is not installed: zero objects.
    Absent,
    /// It may not be listed.
    Forbidden,
    /// It could be neither watched nor listed for too long.
    Stale,
}

/// Has the operator handled the parent's current generation?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Its own mark says so.
    Handled,
    /// It leaves marks, and they say that it has not.
    NotYet,
    /// It leaves marks on its parents, and there is none on this one: it has not handled it for the first time yet. What
    /// was handled before that was known stays so.
    Unmarked,
    /// It leaves no marks at all.
    #[default]
    Silent,
}

/// An object as the reflector shows it to the engine.
#[derive(Clone, Debug, Default)]
pub struct View<'a> {
    /// Its kind.
    pub kind: KindId,
    /// Its verdict through each lens, as it weighs; at least one.
    pub weights: &'a [Weight],
    /// Moves with `metadata.generation`.
    pub generation: u32,
    /// When it was created.
    pub created: Time,
    /// A hash of its name, for groups that expect names.
    pub name: u64,
    /// For whom it counts.
    pub links: &'a [Link],
    /// When its verdict changes by itself.
    pub recheck: Option<Time>,
    /// Whoever it counts for under such a policy also selects by this: as a StatefulSet claims volumes by their names.
    pub lends: &'a [(PolicyId, SelectorId)],
    /// What it is as a parent, if it is one.
    pub parent: Option<&'a ParentView>,
}

/// A parent as the reflector shows it to the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentView {
    /// The generation, or a hash of the object without metadata and status where that is not counted.
    pub generation: u64,
    /// Has its operator handled it?
    pub evidence: Evidence,
    /// It is being deleted.
    pub deleting: bool,
    /// A digest of all our entries on it, those of policies that no longer apply included.
    pub digest: Digest,
    /// What it says for each policy that is answered on it.
    pub answers: Vec<AnswerView>,
}

/// What a parent says for one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerView {
    /// The policy.
    pub policy: PolicyId,
    /// Our entries of that policy as last read; `None` where there is none.
    pub told: Option<Told>,
    /// The generation (as in [`ParentView::generation`]) that our entry is about.
    pub about: Option<u64>,
    /// The condition belongs to somebody else, and there is no fallback: say nothing.
    pub owned: bool,
    /// Its selectors, for the groups that are found by labels.
    pub selects: Vec<SelectorId>,
    /// Names expected, with their group: hashes as in [`View::name`].
    pub expects: Vec<(u8, u64)>,
    /// At least so many expected, by group: what the policy computes from this parent.
    pub counts: Box<[(u8, u32)]>,
    /// A template of the policy could not be rendered for it.
    pub unrendered: bool,
}

/// Our entries, as the parent says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The reason of the condition.
    pub reason: ParentReason,
    /// `lastTransitionTime` of the condition.
    pub since: Time,
    /// `Stalled` stands beside it.
    pub stalled: bool,
}

/// A fingerprint of what is, or would be, written: all of it, and all but messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// Over types, statuses, reasons, generation and messages.
    pub whole: u64,
    /// The same without messages.
    pub gist: u64,
}

/// One policy's answer about one parent, not yet in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reason, and with it the status.
    pub reason: ParentReason,
    /// Critical children in all.
    pub total: u32,
    /// Of those, ready.
    pub ready: u32,
    /// `Reconciling` is true beside it.
    pub reconciling: bool,
    /// `Stalled` is true beside it.
    pub stalled: bool,
}
