//! What the judges remember of one parent between two steps, and the limits by which they judge.

use std::time::Duration;

use readiness::rollup::ParentReason;

use crate::world::ModelSteadiness;

/// Largest lag of an answer behind the observed state, in milliseconds: the debounce's cap plus the loop's own delay.
pub(crate) const MAX_ANSWER_LAG_MS: i64 = 1_000 + 400;

/// Time without contact after which a kind counts as blind. 2 min.
pub(crate) const BLIND_LIMIT: Duration = Duration::from_mins(2);

/// State of the invariants for one generation of one parent under one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedGeneration {
    pub(crate) generation: i64,
    pub(crate) since: i64,
    /// Time of the last creation, deletion or spec change of a child.
    pub(crate) children_changed_at: i64,
    /// Time at which the last child appeared.
    pub(crate) child_appeared_at: i64,
    /// The operator has handled this generation, or was silent for long enough.
    pub(crate) handled: bool,
    /// Time since which the operator has said that it handled this generation; `None` if it does not.
    pub(crate) said_handled_since: Option<i64>,
    /// The last answer was True.
    pub(crate) was_ready: bool,
    /// Last time at which the answer was True, as this process judged.
    pub(crate) last_ready_at: Option<i64>,
    /// Earliest time since which the last answer has not been True.
    pub(crate) unready_at_earliest: i64,
    /// Latest time since which the last answer has not been True.
    pub(crate) unready_at_latest: i64,
    /// Time since which all children have been ready; `None` if they are not.
    pub(crate) well_since: Option<i64>,
    /// Time since which the answer has been True though children are not ready: the policy keeps it for a while.
    pub(crate) kept_since: Option<i64>,
    /// Since when it has been so while some could not be counted on as available.
    pub(crate) kept_loosely_since: Option<i64>,
    /// Last time at which all children were ready, as far as was checked; `None` if this process has not seen that.
    pub(crate) whole_at: Option<i64>,
    /// Last time at which another release may have spoken for the parent, so that the answer was not checked.
    pub(crate) shared_at: i64,
    /// Time since which the answer has differed from the naive judge's; `None` if it agrees.
    pub(crate) differs_since: Option<i64>,
    /// What it was to say when it was last checked: where that changes, it has time again.
    pub(crate) to_say: Option<ParentReason>,
    /// A plan put the policy in force, and its first answer was not checked yet: until then nothing is known of when
    /// the engine saw it.
    pub(crate) awaits_first_check: bool,
}

impl CheckedGeneration {
    /// Notes whether the answer is kept True though children are not ready, which can be counted on this far.
    pub(super) fn note_kept(&mut self, is_kept: bool, steadiness: ModelSteadiness, now: i64) {
        self.kept_since = is_kept.then(|| self.kept_since.unwrap_or(now));
        let is_kept_loosely = is_kept && steadiness != ModelSteadiness::Available;
        self.kept_loosely_since = is_kept_loosely.then(|| self.kept_loosely_since.unwrap_or(now));
    }

    /// Notes whether the answer is True; returns whether it was before.
    pub(super) fn note_answer(&mut self, well: bool, now: i64) -> bool {
        if self.was_ready && !well {
            self.unready_at_latest = now;
        }
        if well {
            (self.unready_at_earliest, self.last_ready_at) = (now, Some(now));
        }
        std::mem::replace(&mut self.was_ready, well)
    }
}
