//! Evidence of the outcome of a deleted object.

use super::super::{Reflector, lock_mutex, slots};
use super::observe::remembering_parents;
use super::{OutcomeMemory, RememberedOutcome, RunEnd};
use crate::plan::Interest;
use crate::wire::ChildObject;

impl Reflector {
    /// Uses a late event of a deleted object, which may still show its outcome and, for an object known from Events
    /// alone, its owner.
    pub(in crate::reflector) fn observe_late_object(&self, interest: &Interest, child: &ChildObject) {
        if !interest.remembers_outcomes() {
            return;
        }
        let uid = slots::UidKey::from_text(&child.meta.uid);
        let owners: Vec<_> = remembering_parents(interest, &child.meta)
            .iter()
            .map(|w| slots::UidKey::from_text(&w.uid))
            .collect();
        let mut memory = lock_mutex(&self.memory);
        if memory.parents_of.contains_key(&uid) && !memory.is_confirmed(uid) {
            self.retain_parents(&mut memory, uid, &owners);
            memory.for_each_outcome(uid, |outcome| std::mem::take(&mut outcome.known_from_events));
            let touched = memory.reenter_run(uid);
            self.project_row(&memory, uid);
            self.project_rows(&memory, touched);
            self.wake_memory_if_needed(&memory);
        }
        drop(memory);
        let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
        self.record_end(&child.meta.uid, &end, RememberedOutcome::is_unseen);
    }

    /// Applies evidence of the outcome of a deleted object whose owner was observed; returns `true` if it was new.
    pub fn apply_evidence(&self, uid: &str, end: &RunEnd) -> bool {
        self.record_end(uid, end, RememberedOutcome::is_unseen)
    }

    /// Retains these parents of an object and no others. For the others, the run before it counts again.
    pub(super) fn retain_parents(
        &self,
        memory: &mut OutcomeMemory,
        uid: slots::UidKey,
        parents: &[slots::UidKey],
    ) {
        let touched = memory.unlink_other_parents(uid, parents);
        self.project_rows(memory, touched);
    }

    pub(super) fn record_end(
        &self,
        uid: &str,
        end: &RunEnd,
        whether: impl Fn(&RememberedOutcome) -> bool,
    ) -> bool {
        let uid = slots::UidKey::from_text(uid);
        let mut memory = lock_mutex(&self.memory);
        let mut news = false;
        memory.for_each_outcome(uid, |outcome| {
            let open = whether(outcome) && *end != RunEnd::Open;
            if open {
                outcome.end = end.clone();
                outcome.known_from_events = false;
            }
            news |= open;
            open
        });
        if news {
            let touched = memory.reenter_run(uid);
            self.project_row(&memory, uid);
            self.project_rows(&memory, touched);
            self.wake_memory_if_needed(&memory);
        }
        news
    }
}
