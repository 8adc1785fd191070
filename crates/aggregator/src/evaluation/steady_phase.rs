//! What keeps an answer True while children that were ready are not.

use std::time::Duration;

use readiness::{Steadiness, Time};

/// Longest time for which a workload whose new spec its controller has not observed counts as scaled where more than the number of
/// replicas may differ: controllers observe within milliseconds, and whoever changes a template must read False within two
/// seconds.
const MAX_UNOBSERVED: Duration = Duration::from_secs(1);

/// Phase of an answer that says True: since when it has stood on less than ready children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SteadyPhase {
    /// Time at which the answer last said True with every child ready.
    whole_at: Time,
    /// `None` where every child is ready, which they nearly always are.
    unready: Option<Box<UnreadySpan>>,
}

/// Span for which children have not been ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UnreadySpan {
    since: Time,
    /// How far they can be counted on, and since when just so far.
    steadiness: Steadiness,
    steady_since: Time,
    /// All children have come to be observed since: what is not observed now is something else than what was not observed
    /// before, though nobody looked in between.
    all_observed: bool,
    /// Since when some have been in no state that can be counted on, now or before.
    unsteady_since: Option<Time>,
}

/// Limits to how long an answer that says True stands on children that are not ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyLimits {
    /// Limit for children that are available.
    pub(crate) available: Duration,
    /// Limit for children that cannot be counted on.
    pub(crate) unsteady: Duration,
}

impl SteadyPhase {
    /// Phase of a parent whose condition has said True since this time.
    pub(crate) fn restored(since: Time) -> SteadyPhase {
        SteadyPhase { whole_at: since, unready: None }
    }

    /// Every child is ready, and the answer says True.
    pub(crate) fn record_whole(&mut self, now: Time) {
        *self = SteadyPhase::restored(now);
    }

    /// The answer no longer says True.
    pub(crate) fn end(&mut self) {
        self.unready = None;
    }

    /// Returns `true` if the answer stands on less than ready children.
    pub(crate) fn is_tolerating(&self) -> bool {
        self.unready.is_some()
    }

    /// Returns `true` if a child that appeared at this time was ready with all the others. One that was not has never been
    /// rolled out whole.
    pub(crate) fn was_whole_after(&self, appeared_at: Time) -> bool {
        appeared_at <= self.whole_at
    }

    /// All children have come to be observed by their controllers.
    pub(crate) fn note_observed(&mut self) {
        if let Some(span) = &mut self.unready {
            span.all_observed = true;
        }
    }

    /// Returns the time until which the answer stands on children that can be counted on so far; `None` if it does not.
    pub(crate) fn keep_until(
        &mut self,
        steadiness: Steadiness,
        limits: SteadyLimits,
        now: Time,
    ) -> Option<Time> {
        let first = UnreadySpan {
            since: now,
            steadiness,
            steady_since: now,
            all_observed: false,
            unsteady_since: None,
        };
        let span = self.unready.get_or_insert_with(|| Box::new(first));
        if std::mem::take(&mut span.all_observed) || span.steadiness != steadiness {
            (span.steadiness, span.steady_since) = (steadiness, now);
        }
        let until = match steadiness {
            Steadiness::Available => span.since + limits.available,
            Steadiness::Unobserved => span.steady_since + MAX_UNOBSERVED.max(limits.unsteady),
            Steadiness::Unsteady => *span.unsteady_since.get_or_insert(now) + limits.unsteady,
        };
        let until = until.min(span.since + limits.available.max(limits.unsteady));
        Some(until).filter(|until| *until > now)
    }
}
