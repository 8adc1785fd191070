//! Limits by which time alone changes an answer.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use crate::answer_view::AnswerView;
use crate::evaluation::ObservedParent;
use crate::types::{CountedAnswer, EnginePolicy, PolicyAnswer};

/// Limits by which time alone changes an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    pub(crate) pending: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) hold: Duration,
    /// The deadline is not exceeded before.
    pub(crate) seen_at: Time,
    /// Nothing records since when an answer has stood, because nothing is written.
    is_unrecorded: bool,
}

impl TimeLimits {
    /// Returns the limits of a policy for one parent. There are none where another client has the condition: nothing records
    /// since when the answer has stood, so that after a restart each limit would begin anew, and what was said of the parent
    /// to those above it would be taken back.
    pub(crate) fn new(policy: &EnginePolicy, view: &AnswerView) -> TimeLimits {
        let seen_at = Time::default();
        if view.owned_by_other {
            let hold = Duration::ZERO;
            return TimeLimits { pending: None, deadline: None, hold, seen_at, is_unrecorded: true };
        }
        let EnginePolicy { pending, deadline, hold, shadow: is_unrecorded, .. } = *policy;
        TimeLimits { pending: Some(pending), deadline, hold, seen_at, is_unrecorded }
    }

    /// Returns how those above count an answer that would be this one without its limits, which are exceeded: in shadow mode they
    /// begin anew with each process, so that they say nothing about a parent to those above it, who may be written.
    pub(crate) fn counted_as(self, without_limits: PolicyAnswer) -> Option<CountedAnswer> {
        self.is_unrecorded.then(|| CountedAnswer::of(without_limits))
    }

    /// The limits of a parent whose operator says nothing: until its children could be seen to have settled since the last list
    /// was complete, nobody knows that it is late. What was late before is.
    pub(crate) fn of_silent(
        self,
        observed: &ObservedParent,
        policy: &EnginePolicy,
        listed_at: Time,
    ) -> TimeLimits {
        let said = observed.stage.answer().map(|answer| answer.reason);
        if said == Some(ParentReason::DeadlineExceeded) {
            return self;
        }
        TimeLimits { seen_at: listed_at + policy.settle, ..self }
    }
}
