//! Remembered outcomes.

use aggregator::KindId;
use readiness::{BoundedText, Level, Reason, Time, Verdict};

use super::super::uid_key::UidKey;
use crate::wire::OwnerRef;

/// Largest number of outcomes remembered for one parent.
pub const MAX_PARENT_OUTCOMES: usize = 16;
/// Largest number of later runs that are known to count no more. One before them counts as unseen if Events still tell of it.
pub const MAX_DISCARDED_RUNS: usize = 8;

/// Outcome of an object that runs to completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunEnd {
    /// Not finished or, if the object is gone, not observed.
    #[default]
    Open,
    /// Completed successfully.
    Complete,
    /// Failed permanently, for this reason.
    Failed(Box<str>),
}

impl RunEnd {
    /// Returns the outcome that a verdict stands for.
    pub fn from_verdict(outcome: Option<&Verdict>) -> RunEnd {
        match outcome {
            Some(verdict) if verdict.level == Level::Ready => RunEnd::Complete,
            Some(verdict) => RunEnd::Failed(verdict.reason.to_string().into()),
            None => RunEnd::Open,
        }
    }

    /// Returns the verdict once the object is gone.
    pub fn to_verdict(&self) -> Verdict {
        let (level, reason) = match self {
            RunEnd::Open => (Level::Unknown, Reason::OutcomeUnseen),
            RunEnd::Complete => (Level::Ready, Reason::Complete),
            RunEnd::Failed(why) => (Level::Failed, Reason::JobFailed(BoundedText::new(why))),
        };
        Verdict::new(level, reason)
    }
}

/// One object with a remembered outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RememberedOutcome {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Identity across runs: the name, or the `generateName` prefix of a generated name.
    pub slot: Box<str>,
    /// Labels, for policies that ignore some objects.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// Creation time.
    pub created: Option<Time>,
    /// Generation of the parent under which the object was first observed.
    pub generation: Option<u64>,
    /// Outcome of the object.
    pub end: RunEnd,
    /// The object no longer exists.
    pub deleted: bool,
    /// resourceVersion at the last observation; 0 if the object is known from a record alone.
    pub version: u64,
    /// resourceVersion at the first observation or in the first Event; 0 if unknown.
    pub first_version: u64,
    /// The object is known by its name from Events alone: its owner was not observed, and so the remembered outcome is
    /// unknown.
    pub known_from_events: bool,
    /// Uids of later runs of its slot that ceased to count while this one still existed: deleted unfinished, or superseded.
    /// Events that tell of them tell of no later outcome.
    pub discarded: Vec<Box<str>>,
    /// It is known from a record, and no list has told yet whether it still exists.
    pub unlisted: bool,
}

impl RememberedOutcome {
    pub(super) fn key(&self) -> UidKey {
        UidKey::from_text(&self.uid)
    }

    pub(super) fn slot_key(&self) -> (KindId, &str, &str) {
        (self.kind, &self.namespace, &self.slot)
    }

    pub(super) fn is_run_of(&self, other: &RememberedOutcome) -> bool {
        self.slot_key() == other.slot_key()
    }

    /// Takes over what is known of the same run from before. The object's own outcome takes precedence over one from
    /// Events.
    pub(super) fn learn_from(&mut self, known: RememberedOutcome) {
        self.generation = known.generation.or(self.generation);
        self.first_version = if known.first_version == 0 { self.first_version } else { known.first_version };
        self.end = if self.end == RunEnd::Open { known.end } else { std::mem::take(&mut self.end) };
        for uid in known.discarded {
            self.add_discarded(uid);
        }
    }

    /// Remembers that this later run of the slot counts no more.
    pub(super) fn add_discarded(&mut self, uid: Box<str>) {
        if self.discarded.contains(&uid) {
            return;
        }
        if self.discarded.len() >= MAX_DISCARDED_RUNS {
            self.discarded.remove(0);
        }
        self.discarded.push(uid);
    }

    /// Returns the verdict once the object is gone.
    pub fn to_verdict(&self) -> Verdict {
        match &self.end {
            RunEnd::Open if self.known_from_events => Verdict::new(Level::Unknown, Reason::OutcomeHeardOf),
            end => end.to_verdict(),
        }
    }

    /// Returns `true` if this run is newer than another of the same identity. Only one object of a name exists at a
    /// time, so any version of the later one exceeds every version of the earlier one.
    pub(super) fn is_newer(&self, than: &RememberedOutcome) -> bool {
        let [own, others] = [self, than].map(|o| o.first_version.max(o.version));
        if self.name == than.name && own.min(others) > 0 {
            return own > others;
        }
        let tie = |o: &RememberedOutcome, other: &RememberedOutcome| {
            if o.name == other.name { (o.version, "".into()) } else { (0, o.uid.clone()) }
        };
        (self.created, tie(self, than)) > (than.created, tie(than, self))
    }

    /// Returns `true` if all that is known of this run was read in a record.
    pub(super) fn is_from_record_alone(&self) -> bool {
        self.deleted && self.version == 0 && !self.known_from_events
    }

    /// Returns `true` if the object exists or, before the first list, may exist.
    pub fn may_exist(&self) -> bool {
        !self.deleted || self.unlisted
    }

    /// Returns `true` if the object is gone and evidence of its outcome may exist.
    pub(super) fn is_unseen(&self) -> bool {
        self.deleted && self.end == RunEnd::Open && !self.known_from_events
    }

    pub(super) fn to_unseen_run(&self) -> UnseenRun {
        UnseenRun { uid: self.uid.clone(), namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Retention order: failed runs, runs without an observed outcome and unfinished runs come first.
    pub(super) fn retention_rank(&self) -> (u8, std::cmp::Reverse<Option<Time>>, Box<str>) {
        let rank = match (&self.end, self.deleted) {
            (RunEnd::Failed(_), _) => 0,
            (RunEnd::Open, true) => 1,
            (RunEnd::Open, false) => 2,
            (RunEnd::Complete, _) => 3,
        };
        (rank, std::cmp::Reverse(self.created), self.uid.clone())
    }
}

/// Parent of the outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeParent {
    /// Its API group.
    pub group: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its namespace; empty for a cluster-scoped parent.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
}

impl OutcomeParent {
    pub(super) fn to_owner_ref(&self) -> OwnerRef {
        OwnerRef {
            api_version: format!("{}/-", self.group).into(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: true,
            blocks_deletion: false,
        }
    }
}

/// An object that is gone without an observed outcome; evidence may exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnseenRun {
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Outcomes that are not remembered because their parent has too many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedOutcomes {
    /// Number of outcomes.
    pub count: u64,
    /// Some of them, with their parents.
    pub some: Vec<(OutcomeParent, UnseenRun)>,
}

impl DroppedOutcomes {
    pub(super) fn add_outcome(&mut self, whose: &OutcomeParent, outcome: &RememberedOutcome) {
        self.count += 1;
        if self.some.len() < MAX_PARENT_OUTCOMES {
            self.some.push((whose.clone(), outcome.to_unseen_run()));
        }
    }
}
