//! Outcomes remembered for one parent: the runs of each slot, in the order in which they ran.
//!
//! A run that was observed supersedes all before it that are gone: with generated names an older one may still exist, and it
//! is the last again if the newer is taken away. One that is known from Events alone may turn out to belong to
//! another owner, so the runs before it are kept below it, and whatever is learnt of them meanwhile is learnt there: they
//! count again as they are by then.

use super::outcome::{MAX_PARENT_OUTCOMES, OutcomeParent, RememberedOutcome};

/// Largest number of runs of one slot that are known from Events alone and kept: all may turn out to be of other owners.
const MAX_HEARD_RUNS: usize = 4;

/// Runs that left the memory of a parent.
#[derive(Debug, Default)]
pub(super) struct DepartedRuns {
    /// A later run of the same slot took their place.
    pub(super) superseded: Vec<RememberedOutcome>,
    /// There was no room.
    pub(super) without_room: Vec<RememberedOutcome>,
}

/// Outcomes remembered for one parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentOutcomes {
    /// The parent.
    pub parent: OutcomeParent,
    /// The outcomes. Of each slot the last run counts; below it are those before it, back to the last that was observed,
    /// and others that still exist, in the order in which they ran.
    pub outcomes: Vec<RememberedOutcome>,
}

impl ParentOutcomes {
    /// Returns the runs that count: of each slot the last one.
    pub fn counting(&self) -> impl Iterator<Item = &RememberedOutcome> {
        self.outcomes
            .iter()
            .enumerate()
            .filter(|(at, run)| self.is_last_of_slot(*at, run))
            .map(|(_, run)| run)
    }

    fn is_last_of_slot(&self, at: usize, run: &RememberedOutcome) -> bool {
        !self.outcomes[at + 1..].iter().any(|later| later.is_run_of(run))
    }

    /// Returns all runs of the slot of this one, in their order.
    pub(super) fn runs_of_slot<'r>(
        &'r self,
        run: &'r RememberedOutcome,
    ) -> impl DoubleEndedIterator<Item = &'r RememberedOutcome> {
        self.outcomes.iter().filter(|other| other.is_run_of(run))
    }

    /// Puts a run in its place among those of its slot, and moves it if it is there already.
    pub(super) fn insert_run(&mut self, new: RememberedOutcome) {
        self.outcomes.retain(|run| run.uid != new.uid);
        let older = |run: &RememberedOutcome| run.is_run_of(&new) && new.is_newer(run);
        let first_of_slot = self.outcomes.iter().position(|run| run.is_run_of(&new));
        let at = match self.outcomes.iter().rposition(older) {
            Some(before) => before + 1,
            None => first_of_slot.unwrap_or(self.outcomes.len()),
        };
        self.outcomes.insert(at, new);
        // Stable: within a slot the order stays.
        self.outcomes.sort_by(|a, b| a.slot_key().cmp(&b.slot_key()));
    }

    /// Returns `true` if this run, of which Events tell, would leave at once: as many later ones are kept.
    pub(super) fn has_no_room_for(&self, outcome: &RememberedOutcome) -> bool {
        let later = self.runs_of_slot(outcome).filter(|run| run.known_from_events && !outcome.is_newer(run));
        later.count() >= MAX_HEARD_RUNS
    }

    /// Drops what is gone and superseded by an observed run of the same slot, and what there is no room for.
    pub(super) fn drop_superseded(&mut self) -> DepartedRuns {
        let mut departed = DepartedRuns::default();
        let mut at = self.outcomes.len();
        let (mut outcome, mut observed) = (0, false);
        while at > 0 {
            at -= 1;
            if self.is_last_of_slot(at, &self.outcomes[at]) {
                (outcome, observed) = (0, false);
            }
            let by_hearsay = self.outcomes[at].known_from_events;
            outcome += usize::from(by_hearsay);
            if (observed && !self.outcomes[at].may_exist()) || (by_hearsay && outcome > MAX_HEARD_RUNS) {
                let run = self.outcomes.remove(at);
                self.discard_for_older(&run);
                departed.superseded.push(run);
            } else {
                observed |= !by_hearsay;
            }
        }
        self.make_room(&mut departed);
        departed
    }

    /// Lets those before this run that still exist know that it counts no more.
    pub(super) fn discard_for_older(&mut self, run: &RememberedOutcome) {
        let older = self.outcomes.iter_mut().filter(|other| other.may_exist() && other.is_run_of(run));
        for other in older.filter(|other| run.is_newer(other)) {
            other.add_discarded(run.uid.clone());
        }
    }

    /// Slots go as a whole: where only the last run went, an older one would count in its place.
    fn make_room(&mut self, departed: &mut DepartedRuns) {
        if self.outcomes.len() <= MAX_PARENT_OUTCOMES {
            return;
        }
        let mut last: Vec<RememberedOutcome> = self.counting().cloned().collect();
        last.sort_by_cached_key(RememberedOutcome::retention_rank);
        for run in last.split_off(last.len().min(MAX_PARENT_OUTCOMES)) {
            let slot = self.outcomes.extract_if(.., |other| other.is_run_of(&run));
            departed.superseded.extend(slot.filter(|other| other.uid != run.uid));
            departed.without_room.push(run);
        }
        while self.outcomes.len() > MAX_PARENT_OUTCOMES {
            let below = (0..self.outcomes.len()).find(|at| !self.is_last_of_slot(*at, &self.outcomes[*at]));
            let Some(below) = below else { return };
            departed.superseded.push(self.outcomes.remove(below));
        }
    }
}
