//! Stage of one evaluation: whose answer it has, and whether that answer stands.

use readiness::Level;
use readiness::rollup::{ChildWeight, ParentReason};

use crate::types::PolicyAnswer;

/// Stage of the evaluation of an observed parent under one policy. One that only children refer to has none.
///
/// An evaluation begins in [`EvaluationStage::first_of`], and again where a later answer of a predecessor turns up on the parent
/// before anything decided since stands there ([`super::ObservedParent::is_superseded_by`]). Every cell names the stage after the event of its column:
///
/// | stage              | Outdated           | Doubted            | Confirmed        | Evaluated | Pending   | Withdrawn | KnownEarly  | Overdue            |
/// |--------------------|--------------------|--------------------|------------------|-----------|-----------|-----------|-------------|--------------------|
/// | Unsettled          | Unsettled          | Unsettled          | Unsettled        | Evaluated | Settling  | Withdrawn | Provisional | Unsettled          |
/// | Settling           | Unsettled          | Settling           | Settling         | Evaluated | Settling  | Withdrawn | Evaluated   | Evaluated          |
/// | Provisional        | Provisional        | ProvisionalInDoubt | Provisional      | Evaluated | Evaluated | Withdrawn | Provisional | Provisional        |
/// | ProvisionalInDoubt | ProvisionalInDoubt | ProvisionalInDoubt | Provisional      | Evaluated | Evaluated | Withdrawn | Provisional | ProvisionalInDoubt |
/// | Evaluated          | Provisional        | EvaluatedInDoubt   | Evaluated        | Evaluated | Evaluated | Withdrawn | Evaluated   | Evaluated          |
/// | EvaluatedInDoubt   | ProvisionalInDoubt | EvaluatedInDoubt   | Evaluated        | Evaluated | Evaluated | Withdrawn | Evaluated   | EvaluatedInDoubt   |
/// | Withdrawn          | Provisional        | Withdrawn          | Withdrawn        | Evaluated | Evaluated | Withdrawn | Evaluated   | Withdrawn          |
///
/// `Pending` is an evaluation whose answer is `ChildrenPending` or `ChildrenSettling`: time alone may end it. Only an answer
/// that says True is doubted; any other leaves the stage as it is. `Overdue` follows an evaluation that has been pending for so
/// long that those above do not wait for it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvaluationStage {
    /// Nothing is written for it, so no condition records its state before this process started, and its lists are
    /// awaited: until it is evaluated its state is unknown.
    Unsettled(Option<PolicyAnswer>),
    /// Nothing is written for it, and its first evaluation found its operator pending or its children settling.
    Settling(PolicyAnswer),
    /// The answer is not this process' own about this generation and policy: it was read from the parent, is about what
    /// was before, or is known although lists are awaited.
    Provisional(Option<PolicyAnswer>),
    /// The same, where it is True and nothing has proven it yet.
    ProvisionalInDoubt(PolicyAnswer),
    /// This process has evaluated it.
    Evaluated(PolicyAnswer),
    /// The same, where it is True and later observations, which await evaluation, contradict it.
    EvaluatedInDoubt(PolicyAnswer),
    /// The answer takes an earlier one back: that one rested on a changed rule, or its policy is refused.
    Withdrawn(PolicyAnswer),
}

/// Event that moves an evaluation to another stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageEvent {
    /// A new generation begins, or another policy replaces the policy.
    Outdated,
    /// Later observations contradict the answer, or nothing has proven it yet.
    Doubted,
    /// Nothing contradicts the answer any more.
    Confirmed,
    /// Evaluated over complete lists.
    Evaluated(PolicyAnswer),
    /// Evaluated where only earlier answers are taken back.
    Withdrawn(PolicyAnswer),
    /// Known whatever the lists will say: the parent is being deleted.
    KnownEarly(PolicyAnswer),
    /// It has settled for twice the time that it should take: its children never rest.
    Overdue,
}

impl EvaluationStage {
    /// Returns the stage of a parent that is first observed with this answer on it. `is_recorded` is false where no
    /// condition records what was known before.
    pub(crate) fn first_of(read: Option<PolicyAnswer>, is_recorded: bool) -> EvaluationStage {
        if is_recorded { EvaluationStage::Provisional(read) } else { EvaluationStage::Unsettled(read) }
    }

    /// Returns the stage after an event.
    #[inline]
    pub(crate) fn after(self, event: StageEvent) -> EvaluationStage {
        use EvaluationStage as S;
        match event {
            StageEvent::Outdated => match self {
                S::Evaluated(answer) | S::Withdrawn(answer) => S::Provisional(Some(answer)),
                S::EvaluatedInDoubt(answer) => S::ProvisionalInDoubt(answer),
                S::Settling(answer) => S::Unsettled(Some(answer)),
                S::Unsettled(_) | S::Provisional(_) | S::ProvisionalInDoubt(_) => self,
            },
            StageEvent::Doubted => match self {
                S::Provisional(Some(answer)) if is_true(answer) => S::ProvisionalInDoubt(answer),
                S::Evaluated(answer) if is_true(answer) => S::EvaluatedInDoubt(answer),
                _ => self,
            },
            StageEvent::Confirmed => match self {
                S::ProvisionalInDoubt(answer) => S::Provisional(Some(answer)),
                S::EvaluatedInDoubt(answer) => S::Evaluated(answer),
                _ => self,
            },
            StageEvent::Evaluated(answer) => match self {
                S::Unsettled(_) | S::Settling(_) if settles(answer) => S::Settling(answer),
                _ => S::Evaluated(answer),
            },
            StageEvent::Withdrawn(answer) => S::Withdrawn(answer),
            StageEvent::KnownEarly(answer) if self.is_own() => S::Evaluated(answer),
            StageEvent::KnownEarly(answer) => S::Provisional(Some(answer)),
            StageEvent::Overdue => match self {
                S::Settling(answer) => S::Evaluated(answer),
                _ => self,
            },
        }
    }

    /// Returns the answer, whosever it is.
    #[inline]
    pub(crate) fn answer(&self) -> Option<PolicyAnswer> {
        use EvaluationStage as S;
        match *self {
            S::Unsettled(answer) | S::Provisional(answer) => answer,
            S::Settling(answer)
            | S::ProvisionalInDoubt(answer)
            | S::Evaluated(answer)
            | S::EvaluatedInDoubt(answer)
            | S::Withdrawn(answer) => Some(answer),
        }
    }

    /// Returns `true` if the last answer says True.
    #[inline]
    pub(crate) fn says_true(&self) -> bool {
        use EvaluationStage as S;
        match *self {
            S::Unsettled(answer) | S::Provisional(answer) => answer.is_some_and(is_true),
            S::ProvisionalInDoubt(_) | S::EvaluatedInDoubt(_) => true,
            S::Settling(answer) | S::Evaluated(answer) | S::Withdrawn(answer) => is_true(answer),
        }
    }

    /// Returns `true` if the answer was read from the parent, or is about what was before, and nothing speaks against it.
    pub(crate) fn is_as_read(&self) -> bool {
        matches!(&self, EvaluationStage::Unsettled(_) | EvaluationStage::Provisional(_))
    }

    /// Returns `true` if this process evaluated the answer, for this generation and this policy.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        use EvaluationStage as S;
        matches!(&self, S::Settling(_) | S::Evaluated(_) | S::EvaluatedInDoubt(_) | S::Withdrawn(_))
    }

    /// Returns `true` if the answer may be said: it is this process' own, and the lists of its policy are complete
    /// (`is_open`). One that takes another back waits for no list.
    #[inline]
    pub(crate) fn may_speak(&self, is_open: bool) -> bool {
        self.is_own() && (is_open || self.is_withdrawn())
    }

    /// Returns `true` if the answer says True, and must not be counted on.
    #[inline]
    pub(crate) fn is_in_doubt(&self) -> bool {
        use EvaluationStage as S;
        match *self {
            S::ProvisionalInDoubt(_) | S::EvaluatedInDoubt(_) => true,
            S::Unsettled(answer) => answer.is_some_and(is_true),
            S::Settling(_) | S::Provisional(_) | S::Evaluated(_) | S::Withdrawn(_) => false,
        }
    }

    /// Returns `true` if the answer is this process' own, and time alone may end it.
    pub(crate) fn settles(&self) -> bool {
        matches!(self, EvaluationStage::Settling(answer) | EvaluationStage::Evaluated(answer) if settles(*answer))
    }

    /// Returns `true` if the answer takes an earlier one back.
    #[inline]
    pub(crate) fn is_withdrawn(&self) -> bool {
        matches!(&self, EvaluationStage::Withdrawn(_))
    }

    /// Returns `true` if no condition records what was known, and it has not become known since.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        matches!(&self, EvaluationStage::Unsettled(_) | EvaluationStage::Settling(_))
    }

    /// Returns the weight of the answer for the parents above.
    #[inline]
    pub(crate) fn weight(&self) -> ChildWeight {
        use EvaluationStage as S;
        let level = |level| ChildWeight::of(level);
        match *self {
            S::Unsettled(None) | S::Provisional(None) => level(Level::Unknown),
            S::ProvisionalInDoubt(_) | S::EvaluatedInDoubt(_) => level(Level::Progressing),
            S::Unsettled(Some(answer)) if is_true(answer) => level(Level::Progressing),
            S::Unsettled(Some(answer))
            | S::Provisional(Some(answer))
            | S::Settling(answer)
            | S::Evaluated(answer)
            | S::Withdrawn(answer) => answer.weight(),
        }
    }
}

fn settles(answer: PolicyAnswer) -> bool {
    matches!(answer.reason, ParentReason::ChildrenPending | ParentReason::ChildrenSettling)
}

fn is_true(answer: PolicyAnswer) -> bool {
    answer.reason == ParentReason::AllChildrenReady
}

#[cfg(test)]
mod tests;
