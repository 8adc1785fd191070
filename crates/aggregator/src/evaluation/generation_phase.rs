//! Phase of a parent's generation.

use std::num::NonZeroU32;
use std::time::Duration;

use readiness::rollup::{ConditionStatus, ParentReason};
use readiness::{OptionalTime, Time};

use super::SteadyPhase;
use crate::answer_view::WrittenAnswer;

/// Progress of a generation under one policy.
///
/// ```text
///                 announced                handled
///  Unannounced ──────────────▶ Announced ───────────▶ Handled
///       ▲                       │     ▲                │   │
///       └───────────────────────┘     └────────────────┘   │ retracted
///               retracted                  failed          ▼
///                                    announced ◀─────── Unreported ◀─── found at rest
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GenerationProgress {
    /// The parent carries no condition about this generation: the first write has not arrived.
    #[default]
    Unannounced,
    /// The parent carries a condition about this generation, and its operator is waited for.
    Announced,
    /// The operator has handled the generation: children may be evaluated.
    Handled,
    /// It was handled, and no condition says so: the owner of the condition type has released it, or a list showed the parent at
    /// rest. The first write has not arrived.
    Unreported,
}

impl GenerationProgress {
    fn of(announced: bool, handled: bool) -> GenerationProgress {
        match (announced, handled) {
            (false, false) => GenerationProgress::Unannounced,
            (true, false) => GenerationProgress::Announced,
            (true, true) => GenerationProgress::Handled,
            (false, true) => GenerationProgress::Unreported,
        }
    }

    /// Returns `true` if the parent carries a condition about this generation.
    pub(crate) fn is_announced(self) -> bool {
        matches!(self, GenerationProgress::Announced | GenerationProgress::Handled)
    }

    /// Returns `true` if the operator has handled the generation.
    pub(crate) fn is_handled(self) -> bool {
        matches!(self, GenerationProgress::Handled | GenerationProgress::Unreported)
    }

    /// The first write has arrived, or none is needed.
    pub(crate) fn announce(&mut self) {
        *self = GenerationProgress::of(true, self.is_handled());
    }

    /// The condition about this generation is another client's, and says nothing.
    pub(crate) fn retract(&mut self) {
        *self = GenerationProgress::of(false, self.is_handled());
    }

    /// The operator has handled the generation; returns `true` if it had not before.
    pub(crate) fn handle(&mut self) -> bool {
        let before = std::mem::replace(self, GenerationProgress::of(self.is_announced(), true));
        before != *self
    }

    /// The operator failed to handle the generation. What was known of its having handled it is void.
    pub(crate) fn fail(&mut self) {
        *self = GenerationProgress::of(self.is_announced(), false);
    }
}

/// Proof that the children of a parent are as its generation calls for, where its policy asks for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GenerationProof {
    /// It was not asked for yet.
    #[default]
    NotAsked,
    /// It was asked for, and is waited for.
    Awaited,
    /// It was given, at this instant.
    Given,
}

/// What a parent's condition said of a generation when that was first observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FoundWord {
    /// There was none, and the generation has not been reported ready since.
    Nothing,
    /// That it is ready.
    Ready,
    /// Something else; or nothing, and it has been reported ready since, or was found at rest.
    #[default]
    Other,
}

/// Phase of a parent's generation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GenerationPhase {
    /// Generation that this phase is about.
    pub(crate) generation: u64,
    pub(crate) progress: GenerationProgress,
    /// Time at which the generation was first observed.
    pub(crate) since: Time,
    /// Time at which this process first observed the generation; `since` may lie before it.
    pub(crate) observed_at: Time,
    /// Milliseconds from then to the first evaluation; `None` before it.
    evaluated_after: Option<NonZeroU32>,
    /// Time since which the parent has been not ready under this generation: its start, or when it was last ready.
    pub(crate) unready_since: Time,
    /// Time at which the operator was first observed to have handled this generation, if it reports that.
    pub(crate) handled_at: Time,
    /// Time since which all children have been ready; `None` while they are not.
    pub(crate) all_ready_since: OptionalTime,
    /// Time since which an expected child has been missing.
    pub(crate) missing_since: OptionalTime,
    /// A mark that a failure leaves too is no proof: a child has to move, because somebody was there to see it for this
    /// generation. The first one is proven by its children, and what nobody saw begin is taken as it is found.
    pub(crate) awaits_movement: bool,
    /// Proof by the expression of the policy.
    pub(crate) proof: GenerationProof,
    /// What keeps an answer True while children that were ready are not.
    pub(crate) steady: SteadyPhase,
    /// What was said of the generation when it was first observed.
    pub(crate) found: FoundWord,
}

impl GenerationPhase {
    /// Creates the phase of a generation that is first observed at `now`, with the condition `told` already on the
    /// parent.
    ///
    /// The condition survives a restart, but its age does not always: `lastTransitionTime` changes with the status
    /// alone, so an Unknown may be older than its generation. True and False cannot be older: the first condition of a
    /// generation is Unknown. A limit that was exceeded stays exceeded, and no other counts as exceeded. Where
    /// somebody turned the status, nobody knows what the moment beside it is of.
    pub(crate) fn new(generation: u64, now: Time, told: Option<WrittenAnswer>) -> GenerationPhase {
        let since = match told {
            Some(WrittenAnswer {
                reason: ParentReason::OperatorSilent | ParentReason::DeadlineExceeded,
                ..
            }) => Time::default(),
            // What somebody has turned shows no limit that was exceeded.
            Some(told)
                if told.is_untampered() && told.stalled && told.reason == ParentReason::OperatorFailed =>
            {
                Time::default()
            }
            Some(told) if dates_generation(&told) => told.since.min(now),
            _ => now,
        };
        let overdue = told.filter(|t| t.reason == ParentReason::ChildrenMissing && t.stalled);
        GenerationPhase {
            generation,
            progress: GenerationProgress::of(told.is_some(), told.is_some_and(|t| implies_handled(t.reason))),
            since,
            observed_at: now,
            evaluated_after: None,
            unready_since: since,
            handled_at: Time::default(),
            all_ready_since: OptionalTime::NONE,
            missing_since: overdue.map(|_| Time::default()).into(),
            awaits_movement: told.is_some_and(|t| awaits_operator(t.reason)) && generation > 1,
            proof: GenerationProof::NotAsked,
            steady: told.map_or_else(SteadyPhase::default, |told| SteadyPhase::restored(told.since.min(now))),
            found: match told {
                None => FoundWord::Nothing,
                Some(told) if told.reason == ParentReason::AllChildrenReady => FoundWord::Ready,
                Some(_) => FoundWord::Other,
            },
        }
    }
}

impl GenerationPhase {
    /// It has been observed, and not been ready, since this time.
    pub(crate) fn date_from(&mut self, since: Time) {
        (self.since, self.unready_since) = (since, since);
    }

    /// Records an evaluation.
    pub(crate) fn record_evaluated(&mut self, now: Time) {
        if self.evaluated_after.is_none() {
            let waited = u32::try_from(now.0.saturating_sub(self.observed_at.0)).unwrap_or(u32::MAX);
            self.evaluated_after = NonZeroU32::new(waited.max(1));
        }
    }

    /// Time of the first evaluation by this process. Until then the parent waited for others; before it, when the generation was
    /// first observed.
    pub(super) fn first_evaluated_at(&self) -> Time {
        let waited = self.evaluated_after.map_or(0, NonZeroU32::get);
        self.observed_at + Duration::from_millis(u64::from(waited))
    }
}

/// Returns `true` if the answer shows that the generation which it is about was handled.
pub(super) fn shows_handled(told: &WrittenAnswer) -> bool {
    told.is_untampered() && implies_handled(told.reason)
}

/// Returns `true` if that generation is also at least as old as the answer.
fn dates_generation(told: &WrittenAnswer) -> bool {
    shows_handled(told) && told.reason.condition_status() != ConditionStatus::Unknown
}

/// Returns `true` if this reason says that the operator is waited for, or failed.
fn awaits_operator(reason: ParentReason) -> bool {
    matches!(
        reason,
        ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::OperatorFailed
    )
}

/// Returns `true` if this reason is reported only for a generation that its operator has handled.
fn implies_handled(reason: ParentReason) -> bool {
    !matches!(
        reason,
        ParentReason::ChildrenPending
            | ParentReason::OperatorSilent
            | ParentReason::OperatorFailed
            | ParentReason::DeadlineExceeded
            | ParentReason::TemplateFailed
            | ParentReason::RuleChanged
            | ParentReason::PolicyRefused
            | ParentReason::KindNotVisible
            | ParentReason::WatchStale
            | ParentReason::Terminating
            | ParentReason::DeletionStuck
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_somebody_has_turned_shows_no_limit_that_was_exceeded() {
        let now = Time(1_000_000);
        for (status, since) in [(ConditionStatus::False, Time::default()), (ConditionStatus::True, now)] {
            let (reason, status) = (ParentReason::OperatorFailed, Some(status));
            let told = WrittenAnswer { reason, status, since: Time(500_000), stalled: true };
            assert_eq!(GenerationPhase::new(1, now, Some(told)).since, since, "{status:?}");
        }
    }

    #[test]
    fn the_progress_of_a_generation_is_the_one_that_is_drawn() {
        use GenerationProgress::{Announced, Handled, Unannounced, Unreported};
        type Step = fn(&mut GenerationProgress);
        let steps: [Step; 4] = [
            GenerationProgress::announce,
            GenerationProgress::retract,
            |progress| _ = progress.handle(),
            GenerationProgress::fail,
        ];
        for (from, to) in [
            (Unannounced, [Announced, Unannounced, Unreported, Unannounced]),
            (Announced, [Announced, Unannounced, Handled, Announced]),
            (Handled, [Handled, Unreported, Handled, Announced]),
            (Unreported, [Handled, Unreported, Unreported, Unannounced]),
        ] {
            let after = steps.map(|step| {
                let mut progress = from;
                step(&mut progress);
                progress
            });
            assert_eq!(after, to, "{from:?}");
        }
    }
}
