//! How things ended: what is remembered of each.

use aggregator::KindId;
use readiness::{Level, Reason, Text, Time, Verdict};

use crate::wire::OwnerRef;

/// So many outcomes are remembered for one parent.
pub const MOST_OUTCOMES: usize = 16;

/// How something that runs to an end has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not yet; or, of one that is gone, nobody saw.
    #[default]
    Open,
    /// Well.
    Complete,
    /// For good, for this reason.
    Failed(Box<str>),
}

impl End {
    /// The end that a verdict speaks of.
    pub fn of(outcome: Option<&Verdict>) -> End {
        match outcome {
            Some(verdict) if verdict.level == Level::Ready => End::Complete,
            Some(verdict) => End::Failed(verdict.reason.to_string().into()),
            None => End::Open,
        }
    }

    /// What it means once the object is gone.
    pub fn verdict(&self) -> Verdict {
        let (level, reason) = match self {
            End::Open => (Level::Unknown, Reason::OutcomeUnseen),
            End::Complete => (Level::Ready, Reason::Complete),
            End::Failed(why) => (Level::Failed, Reason::JobFailed(Text::new(why))),
        };
        Verdict { level, reason }
    }
}

/// One object whose outcome is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What it is a run of: its name, or the prefix of one that was generated.
    pub slot: Box<str>,
    /// Its labels, for policies that pass over some.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// When it was created.
    pub created: Option<Time>,
    /// The generation of the parent that it was first seen under.
    pub generation: Option<u64>,
    /// How it ended.
    pub end: End,
    /// It does not exist any more.
    pub gone: bool,
    /// Its version when it was last seen; 0 where it is known from a record alone.
    pub version: u64,
    /// Its version when it was first seen or told of; 0 where that is not known.
    pub first: u64,
    /// It is known by its name in Events alone: whose it was nobody saw, nor, therefore, how what is remembered here ended.
    pub heard: bool,
    /// What one that was heard of took the place of, in case that it turns out to be somebody else's.
    pub before: Option<Box<Outcome>>,
}

impl Outcome {
    pub(super) fn is_run_of(&self, other: &Outcome) -> bool {
        (self.kind, &self.namespace, &self.slot) == (other.kind, &other.namespace, &other.slot)
    }

    /// What it means once the object is gone.
    pub fn verdict(&self) -> Verdict {
        match &self.end {
            End::Open if self.heard => Verdict { level: Level::Unknown, reason: Reason::OutcomeHeardOf },
            end => end.verdict(),
        }
    }

    /// Of two runs of the same thing; of the same name there is only ever one at a time, so that any version of the later is
    /// beyond any of the earlier.
    pub(super) fn is_newer(&self, than: &Outcome) -> bool {
        let [own, others] = [self, than].map(|o| o.first.max(o.version));
        if self.name == than.name && own.min(others) > 0 {
            return own > others;
        }
        let tie = |o: &Outcome, other: &Outcome| {
            if o.name == other.name { (o.version, "".into()) } else { (0, o.uid.clone()) }
        };
        (self.created, tie(self, than)) > (than.created, tie(than, self))
    }

    /// It is gone, and there may be evidence of how it ended.
    pub(super) fn is_unseen(&self) -> bool {
        self.gone && self.end == End::Open && !self.heard
    }

    pub(super) fn unseen(&self) -> Unseen {
        Unseen { uid: self.uid.clone(), namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// What must not be forgotten comes first: what failed, what nobody saw, what still runs.
    pub(super) fn rank(&self) -> (u8, std::cmp::Reverse<Option<Time>>, Box<str>) {
        let rank = match (&self.end, self.gone) {
            (End::Failed(_), _) => 0,
            (End::Open, true) => 1,
            (End::Open, false) => 2,
            (End::Complete, _) => 3,
        };
        (rank, std::cmp::Reverse(self.created), self.uid.clone())
    }
}

/// Whose outcomes they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Its API group.
    pub group: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its namespace; empty where it has none.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
}

impl Whose {
    pub(super) fn reference(&self) -> OwnerRef {
        OwnerRef {
            api_version: format!("{}/-", self.group).into(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: true,
        }
    }
}

/// What is remembered for one parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memories {
    /// The parent.
    pub whose: Whose,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

/// An object that is gone, and nobody saw how it ended: there may be evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// Outcomes that are not remembered, because there are too many of one parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// How many.
    pub count: u64,
    /// Some of them, and for whom they were.
    pub some: Vec<(Whose, Unseen)>,
}

impl Beyond {
    pub(super) fn add(&mut self, whose: &Whose, outcome: &Outcome) {
        self.count += 1;
        if self.some.len() < MOST_OUTCOMES {
            self.some.push((whose.clone(), outcome.unseen()));
        }
    }
}
