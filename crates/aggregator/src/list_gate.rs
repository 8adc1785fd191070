//! What the lists of a policy's kinds allow it to say.

use readiness::Time;

use crate::evaluation::{EvaluationStage, StageEvent};
use crate::types::{Acceptance, KindState, PolicyAnswer};

/// Restriction on a policy's answers by the list and watch states of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListGate {
    /// A kind was not listed yet: no answer is given.
    Closed,
    /// A kind was not listed in time for a changed rule: answers that rest on the old one are withdrawn, and no other
    /// answer is given.
    RuleChanged,
    /// The policy is refused and was never accepted: what says True is taken back, and nothing else is said.
    Refused,
    /// All kinds are synced.
    Open,
    /// A kind is in this state, so the answer is at most Unknown.
    Blind(KindState),
}

/// The gate of one policy, and since when its lists have been complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyGate {
    pub(crate) gate: ListGate,
    /// Time at which everything that the policy rests on had last been listed, or went blind. What changed before it, nobody saw
    /// changing.
    pub(crate) listed_at: Time,
}

impl PolicyGate {
    /// The gate of a policy whose lists are awaited.
    pub(crate) const CLOSED: PolicyGate = PolicyGate { gate: ListGate::Closed, listed_at: Time(0) };
}

impl ListGate {
    /// Not everything that the policy rests on was listed, or it may not speak.
    pub(crate) fn awaits_list(self) -> bool {
        matches!(self, ListGate::Closed | ListGate::RuleChanged | ListGate::Refused)
    }

    /// What is said before is taken back where that is called for, and nothing else is said.
    pub(crate) fn only_takes_back(self) -> bool {
        matches!(self, ListGate::RuleChanged | ListGate::Refused)
    }

    /// The stage after an evaluation under this gate.
    #[inline]
    pub(crate) fn stage_after(self, stage: EvaluationStage, answer: PolicyAnswer) -> EvaluationStage {
        match self {
            ListGate::Open | ListGate::Blind(_) => stage.after(StageEvent::Evaluated(answer)),
            ListGate::Refused | ListGate::RuleChanged => stage.after(StageEvent::Withdrawn(answer)),
            ListGate::Closed => stage.after(StageEvent::KnownEarly(answer)),
        }
    }

    /// The gate of a policy that is refused, for so long or not, over kinds in these states.
    pub(crate) fn of(acceptance: Acceptance, states: impl Iterator<Item = KindState>) -> ListGate {
        match (acceptance, ListGate::from_kind_states(states)) {
            (Acceptance::Accepted, gate) => gate,
            (Acceptance::Refused, _) | (_, ListGate::Closed) => ListGate::Closed,
            (Acceptance::RefusedForLong, _) => ListGate::Refused,
        }
    }

    /// Returns the gate of a policy whose kinds are in these states.
    pub(crate) fn from_kind_states(states: impl Iterator<Item = KindState>) -> ListGate {
        let mut gate = ListGate::Open;
        for state in states {
            match (state, gate) {
                (KindState::Listing, _) => return ListGate::Closed,
                (KindState::Forbidden, _) => gate = ListGate::Blind(KindState::Forbidden),
                (KindState::Stale, ListGate::Open) => gate = ListGate::Blind(KindState::Stale),
                _ => {}
            }
        }
        gate
    }
}
