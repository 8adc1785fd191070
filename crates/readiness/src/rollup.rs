//! Rollup of the verdicts of many children into one answer for their parent.

pub use crate::child_weight::ChildWeight;

use crate::Level;
use crate::steadiness::Steadiness;

/// Number of children at each level, and with each mark: how many failed permanently, and how many are how steady.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTally {
    at: [u32; Level::ALL.len()],
    /// Counted without a look at the level, which costs less.
    marked: [u32; ChildWeight::MARK_COUNT],
    /// Number of children whose newest version awaits its rule.
    unjudged: u32,
}

impl LevelTally {
    /// Adds one child.
    #[inline]
    pub fn add_child(&mut self, weight: ChildWeight) {
        self.at[weight.level_index()] += 1;
        self.marked[weight.mark_index()] += 1;
        self.unjudged += u32::from(weight.is_unjudged());
    }

    /// Removes one child.
    #[inline]
    pub fn remove_child(&mut self, weight: ChildWeight) {
        self.at[weight.level_index()] -= 1;
        self.marked[weight.mark_index()] -= 1;
        self.unjudged -= u32::from(weight.is_unjudged());
    }

    /// Number of children at this level.
    pub fn count_at(&self, level: Level) -> u32 {
        self.at[level as usize]
    }

    /// Number of children that failed permanently.
    pub fn terminal_count(&self) -> u32 {
        self.marked[ChildWeight::TERMINAL_INDEX]
    }

    /// Number of children whose newest version awaits its rule: what stands for them meanwhile makes no parent ready.
    pub fn unjudged_count(&self) -> u32 {
        self.unjudged
    }

    /// Returns the tally with the children that await their rule counted as unknown: which of those that are ready or
    /// suspended they are does not matter to a parent that all of them have to let become ready.
    #[must_use]
    pub fn with_unjudged_unknown(&self) -> LevelTally {
        let mut tally = LevelTally { unjudged: 0, ..*self };
        let mut rest = self.unjudged;
        for level in [Level::Ready, Level::Suspended] {
            let of_level = rest.min(tally.at[level as usize]);
            tally.at[level as usize] -= of_level;
            tally.at[Level::Unknown as usize] += of_level;
            rest -= of_level;
        }
        tally
    }

    /// Total number of children.
    pub fn total_count(&self) -> u32 {
        self.at.iter().sum()
    }

    /// Returns the sum of two tallies.
    pub fn sum_with(&self, other: &LevelTally) -> LevelTally {
        let mut sum = *self;
        sum.at.iter_mut().zip(other.at).for_each(|(a, b)| *a += b);
        sum.marked.iter_mut().zip(other.marked).for_each(|(a, b)| *a += b);
        sum.unjudged += other.unjudged;
        sum
    }

    /// Returns what is left of a sum without one of its parts.
    #[must_use]
    pub fn sum_without(&self, part: &LevelTally) -> LevelTally {
        let mut rest = *self;
        rest.at.iter_mut().zip(part.at).for_each(|(a, b)| *a -= b);
        rest.marked.iter_mut().zip(part.marked).for_each(|(a, b)| *a -= b);
        rest.unjudged -= part.unjudged;
        rest
    }

    /// Number of progressing children that are at least this steady.
    pub fn steady_count(&self, least: Steadiness) -> u32 {
        let marked = |steadiness: Steadiness| self.marked[steadiness as usize];
        match least {
            Steadiness::Unsteady => self.count_at(Level::Progressing),
            Steadiness::Unobserved => marked(Steadiness::Unobserved) + marked(Steadiness::Available),
            Steadiness::Available => marked(Steadiness::Available),
        }
    }

    /// Returns the tally with the progressing children that are at least this steady counted as ready, and nothing known of
    /// how steady the others are.
    #[must_use]
    pub fn with_steady_ready(&self, least: Steadiness) -> LevelTally {
        let (mut tally, steady) = (*self, self.steady_count(least));
        tally.at[Level::Progressing as usize] -= steady;
        tally.at[Level::Ready as usize] += steady;
        for mark in Steadiness::Unobserved as usize..=Steadiness::Available as usize {
            tally.marked[Steadiness::Unsteady as usize] += std::mem::take(&mut tally.marked[mark]);
        }
        tally
    }
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionStatus {
    /// `"True"`
    True,
    /// `"False"`
    False,
    /// `"Unknown"`
    Unknown,
}

impl ConditionStatus {
    /// Returns the spelling of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
    }
}

/// The closed set of reasons of a parent's condition. A condition with one of these reasons is Rollcall's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParentReason {
    /// Every expected critical child is ready.
    AllChildrenReady,
    /// The operator has not handled this generation yet, or children are still being created.
    ChildrenPending,
    /// All children are ready, but not yet for as long as the policy requires.
    ChildrenSettling,
    /// Some children are progressing.
    ChildrenProgressing,
    /// Some children are being deleted while the parent is not.
    ChildrenTerminating,
    /// Some children failed.
    ChildrenFailed,
    /// Some children are stuck beyond their limit.
    ChildrenStuck,
    /// Some expected children do not exist.
    ChildrenMissing,
    /// There are more children than the policy allows.
    TooManyChildren,
    /// Some children give no signal or could not be evaluated.
    ChildrenUnknown,
    /// Only suspended children are left.
    ChildrenSuspended,
    /// The operator gave no sign of having handled this generation within the limit.
    OperatorSilent,
    /// The operator reports that it failed to handle this generation.
    OperatorFailed,
    /// A kind of child may not be listed (403).
    KindNotVisible,
    /// A kind of child could be neither watched nor listed for too long.
    WatchStale,
    /// The rule of the children changed; they are being evaluated again.
    RuleChanged,
    /// The policy is refused, and no version of it that was accepted is known.
    PolicyRefused,
    /// The policy's templates cannot be rendered for this parent.
    TemplateFailed,
    /// The parent itself is being deleted.
    Terminating,
    /// The parent itself has been in deletion for longer than its limit.
    DeletionStuck,
    /// The parent has been not ready for longer than the policy's deadline.
    DeadlineExceeded,
}

impl ParentReason {
    /// All reasons.
    pub const ALL: [ParentReason; 21] = [
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
        ParentReason::OperatorFailed,
        ParentReason::KindNotVisible,
        ParentReason::WatchStale,
        ParentReason::RuleChanged,
        ParentReason::PolicyRefused,
        ParentReason::TemplateFailed,
        ParentReason::Terminating,
        ParentReason::DeletionStuck,
        ParentReason::DeadlineExceeded,
    ];

    /// Returns the reason as written in `reason`.
    pub const fn as_str(self) -> &'static str {
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
            ParentReason::OperatorFailed => "OperatorFailed",
            ParentReason::KindNotVisible => "KindNotVisible",
            ParentReason::WatchStale => "WatchStale",
            ParentReason::RuleChanged => "RuleChanged",
            ParentReason::PolicyRefused => "PolicyRefused",
            ParentReason::TemplateFailed => "TemplateFailed",
            ParentReason::Terminating => "Terminating",
            ParentReason::DeletionStuck => "DeletionStuck",
            ParentReason::DeadlineExceeded => "DeadlineExceeded",
        }
    }

    /// Parses a reason; `None` if it is not one of Rollcall's.
    pub fn parse_reason(word: &str) -> Option<ParentReason> {
        ParentReason::ALL.into_iter().find(|r| r.as_str() == word)
    }

    /// Returns the condition status that belongs to the reason.
    pub const fn condition_status(self) -> ConditionStatus {
        match self {
            ParentReason::AllChildrenReady => ConditionStatus::True,
            ParentReason::ChildrenPending
            | ParentReason::ChildrenUnknown
            | ParentReason::OperatorSilent
            | ParentReason::KindNotVisible
            | ParentReason::WatchStale
            | ParentReason::RuleChanged
            | ParentReason::PolicyRefused
            | ParentReason::TemplateFailed => ConditionStatus::Unknown,
            _ => ConditionStatus::False,
        }
    }

    /// Returns the level of a parent with this answer if it is itself a child.
    pub const fn child_level(self) -> Level {
        match self {
            ParentReason::AllChildrenReady => Level::Ready,
            ParentReason::ChildrenFailed | ParentReason::OperatorFailed | ParentReason::DeadlineExceeded => {
                Level::Failed
            }
            ParentReason::ChildrenStuck | ParentReason::DeletionStuck => Level::Stuck,
            ParentReason::ChildrenSuspended => Level::Suspended,
            ParentReason::Terminating => Level::Terminating,
            ParentReason::ChildrenUnknown
            | ParentReason::OperatorSilent
            | ParentReason::KindNotVisible
            | ParentReason::WatchStale
            | ParentReason::RuleChanged
            | ParentReason::PolicyRefused
            | ParentReason::TemplateFailed => Level::Unknown,
            _ => Level::Progressing,
        }
    }
}

/// Returns the worst reason why a set of children is not ready; `None` if every child is ready, or suspended next to a
/// ready one.
pub fn worst_reason(tally: &LevelTally, missing: u32, surplus: bool) -> Option<ParentReason> {
    let any = |level| tally.count_at(level) > 0;
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
