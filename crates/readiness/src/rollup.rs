//! The verdicts of many children in, one answer for their parent out.

use crate::Level;

/// How many children stand at each level, and how many of those that failed did so terminally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    at: [u32; 8],
    terminal: u32,
}

/// A child's level as it weighs on its parent: `terminal` where the API itself says that it will not recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// Its level.
    pub level: Level,
    /// Failed for good, by the API's own word.
    pub terminal: bool,
}

impl Tally {
    /// One more child of this weight.
    pub fn add(&mut self, weight: Weight) {
        self.at[weight.level as usize] += 1;
        self.terminal += u32::from(weight.terminal);
    }

    /// One child of this weight less.
    pub fn remove(&mut self, weight: Weight) {
        self.at[weight.level as usize] -= 1;
        self.terminal -= u32::from(weight.terminal);
    }

    /// Children at this level.
    pub fn at(&self, level: Level) -> u32 {
        self.at[level as usize]
    }

    /// Children that failed for good.
    pub fn terminal(&self) -> u32 {
        self.terminal
    }

    /// Children in all.
    pub fn total(&self) -> u32 {
        self.at.iter().sum()
    }

    /// The sum of two.
    pub fn plus(&self, other: &Tally) -> Tally {
        let mut sum = *self;
        sum.at.iter_mut().zip(other.at).for_each(|(a, b)| *a += b);
        sum.terminal += other.terminal;
        sum
    }
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// `"True"`
    True,
    /// `"False"`
    False,
    /// `"Unknown"`
    Unknown,
}

impl Status {
    /// As the API spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }
}

/// The closed set of reasons that a parent's condition carries. An entry with one of these is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParentReason {
    /// Every expected critical child is ready.
    AllChildrenReady,
    /// Its operator has not handled this generation yet, or children are still being created.
    ChildrenPending,
    /// All are ready, but not yet for as long as the policy asks.
    ChildrenSettling,
    /// Some are on their way.
    ChildrenProgressing,
    /// Some are being deleted under a living parent.
    ChildrenTerminating,
    /// Some failed.
    ChildrenFailed,
    /// Some are stuck beyond their limit.
    ChildrenStuck,
    /// Some that are expected do not exist.
    ChildrenMissing,
    /// There are more than the policy allows.
    TooManyChildren,
    /// Some give no signal, or could not be judged.
    ChildrenUnknown,
    /// Only suspended ones are left.
    ChildrenSuspended,
    /// Its operator gave no sign of having handled this generation within the limit.
    OperatorSilent,
    /// A kind of child may not be listed.
    KindNotVisible,
    /// A kind of child could be neither watched nor listed for too long.
    WatchStale,
    /// The rule that judges its children changed; they are being judged anew.
    RuleChanged,
    /// The policy's templates cannot be rendered for this parent.
    TemplateFailed,
    /// The parent itself is being deleted.
    Terminating,
    /// Not ready for longer than the policy's deadline.
    DeadlineExceeded,
}

impl ParentReason {
    /// All of them.
    pub const ALL: [ParentReason; 18] = [
        ParentReason::AllChildrenReady,
        ParentReason::ChildrenPending,
        ParentReason::ChildrenSettling,
        ParentReason::ChildrenProgressing,
        ParentReason::ChildrenTerminating,
        ParentReason::ChildrenFailed,
        ParentReason::ChildrenStuck,
        ParentReason::ChildrenMissing,
        ParentReason::TooManyChildren,
        ParentReason::ChildrenUnknown,
        ParentReason::ChildrenSuspended,
        ParentReason::OperatorSilent,
        ParentReason::KindNotVisible,
        ParentReason::WatchStale,
        ParentReason::RuleChanged,
        ParentReason::TemplateFailed,
        ParentReason::Terminating,
        ParentReason::DeadlineExceeded,
    ];

    /// As written in `reason`.
    pub const fn word(self) -> &'static str {
        match self {
            ParentReason::AllChildrenReady => "AllChildrenReady",
            ParentReason::ChildrenPending => "ChildrenPending",
            ParentReason::ChildrenSettling => "ChildrenSettling",
            ParentReason::ChildrenProgressing => "ChildrenProgressing",
            ParentReason::ChildrenTerminating => "ChildrenTerminating",
            ParentReason::ChildrenFailed => "ChildrenFailed",
            ParentReason::ChildrenStuck => "ChildrenStuck",
            ParentReason::ChildrenMissing => "ChildrenMissing",
            ParentReason::TooManyChildren => "TooManyChildren",
            ParentReason::ChildrenUnknown => "ChildrenUnknown",
            ParentReason::ChildrenSuspended => "ChildrenSuspended",
            ParentReason::OperatorSilent => "OperatorSilent",
            ParentReason::KindNotVisible => "KindNotVisible",
            ParentReason::WatchStale => "WatchStale",
            ParentReason::RuleChanged => "RuleChanged",
            ParentReason::TemplateFailed => "TemplateFailed",
            ParentReason::Terminating => "Terminating",
            ParentReason::DeadlineExceeded => "DeadlineExceeded",
        }
    }

    /// The reason spelled so, if it is one of ours.
    pub fn parse(word: &str) -> Option<ParentReason> {
        ParentReason::ALL.into_iter().find(|r| r.word() == word)
    }

    /// The status that goes with it.
    pub const fn status(self) -> Status {
        match self {
            ParentReason::AllChildrenReady => Status::True,
            ParentReason::ChildrenPending
            | ParentReason::ChildrenUnknown
            | ParentReason::OperatorSilent
            | ParentReason::KindNotVisible
            | ParentReason::WatchStale
            | ParentReason::RuleChanged
            | ParentReason::TemplateFailed => Status::Unknown,
            _ => Status::False,
        }
    }

    /// How a parent with this answer counts where it is itself a child.
    pub const fn level(self) -> Level {
        match self {
            ParentReason::AllChildrenReady => Level::Ready,
            ParentReason::ChildrenFailed | ParentReason::DeadlineExceeded => Level::Failed,
            ParentReason::ChildrenStuck => Level::Stuck,
            ParentReason::ChildrenSuspended => Level::Suspended,
            ParentReason::Terminating => Level::Terminating,
            ParentReason::ChildrenUnknown
            | ParentReason::OperatorSilent
            | ParentReason::KindNotVisible
            | ParentReason::WatchStale
            | ParentReason::RuleChanged
            | ParentReason::TemplateFailed => Level::Unknown,
            _ => Level::Progressing,
        }
    }
}

/// What holds a set of children back, worst first; `None` where every one is ready or suspended beside a ready one.
pub fn worst(tally: &Tally, missing: u32, surplus: bool) -> Option<ParentReason> {
    let any = |level| tally.at(level) > 0;
    if any(Level::Failed) {
        return Some(ParentReason::ChildrenFailed);
    }
    if any(Level::Stuck) {
        return Some(ParentReason::ChildrenStuck);
    }
    if missing > 0 || any(Level::Missing) {
        return Some(ParentReason::ChildrenMissing);
    }
    if surplus {
        return Some(ParentReason::TooManyChildren);
    }
    if any(Level::Unknown) {
        return Some(ParentReason::ChildrenUnknown);
    }
    if any(Level::Progressing) {
        return Some(ParentReason::ChildrenProgressing);
    }
    if any(Level::Terminating) {
        return Some(ParentReason::ChildrenTerminating);
    }
    if any(Level::Suspended) && !any(Level::Ready) {
        return Some(ParentReason::ChildrenSuspended);
    }
    None
}
