//! Rollouts of earlier generations, as they were read when they ended: what a generation waited for is in no object any more
//! once the next one has replaced its pods.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use readiness::Time;

use super::rollout_report::RolloutReport;

/// Maximum number of rollouts kept of one parent under one policy.
const MAX_PER_PARENT: usize = 8;
/// Maximum number of parts of the rollouts of all parents, with one for each rollout itself. A part takes up some 200 bytes.
const MAX_PARTS: usize = 20_000;

/// Uid of a parent, and its policy.
type RolloutOwner = (String, String);

/// Rollouts that ended, of the parents whose rollouts ended last.
#[derive(Default)]
pub(crate) struct PastRollouts(Mutex<KeptRollouts>);

struct KeptRollouts {
    /// Of each parent, oldest first.
    parents: LruCache<RolloutOwner, VecDeque<Arc<RolloutReport>>>,
    parts: usize,
}

impl Default for KeptRollouts {
    fn default() -> Self {
        KeptRollouts { parents: LruCache::unbounded(), parts: 0 }
    }
}

impl PastRollouts {
    /// Keeps a rollout. One of the same generation that began at the same time is replaced.
    pub(crate) fn keep(&self, report: Arc<RolloutReport>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = (report.uid.clone(), report.policy.clone());
        let mut of_parent = kept.parents.pop(&owner).unwrap_or_default();
        kept.parts -= weight_of(&of_parent);
        of_parent.retain(|known| (known.generation, known.from) != (report.generation, report.from));
        of_parent.push_back(report);
        while of_parent.len() > MAX_PER_PARENT {
            of_parent.pop_front();
        }
        kept.parts += weight_of(&of_parent);
        kept.parents.put(owner, of_parent);
        while kept.parts > MAX_PARTS
            && let Some((_, oldest)) = kept.parents.pop_lru()
        {
            kept.parts -= weight_of(&oldest);
        }
    }

    /// Rollouts of a parent before the one that is shown, newest first: those of earlier generations, or, where none is given, those
    /// that began before this time.
    pub(super) fn before(
        &self,
        (uid, policy): (&str, &str),
        from: Time,
        shown: Option<i64>,
    ) -> Vec<Arc<RolloutReport>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_parent = kept.parents.peek(&(uid.to_owned(), policy.to_owned()));
        // Timestamps have whole seconds: two generations may have begun at the same one.
        let is_earlier = |report: &&Arc<RolloutReport>| {
            shown.map_or(report.from < from, |shown| report.generation < shown)
        };
        of_parent.into_iter().flatten().rev().filter(is_earlier).cloned().collect()
    }
}

fn weight_of(reports: &VecDeque<Arc<RolloutReport>>) -> usize {
    reports.iter().map(|report| report.parts.len() + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::super::rollout_report::tests::report;
    use super::*;

    fn generations(past: &PastRollouts, uid: &str, from: i64) -> Vec<i64> {
        past.before((uid, "databases"), Time(from), None).iter().map(|report| report.generation).collect()
    }

    #[test]
    fn of_each_parent_the_last_generations_are_kept_newest_first_each_once() {
        let past = PastRollouts::default();
        for generation in 1..=20 {
            for uid in ["a", "b"] {
                past.keep(Arc::new(report(uid, generation, 1)));
                past.keep(Arc::new(report(uid, generation, 3)));
            }
        }
        assert_eq!(generations(&past, "a", i64::MAX), (13..=20).rev().collect::<Vec<_>>());
        let before: Vec<_> = (13..=18).rev().collect();
        assert_eq!(
            generations(&past, "b", 19_000),
            before,
            "what began before, and not the one that is shown"
        );
        assert_eq!(
            past.before(("b", "databases"), Time(19_000), None)[0].parts.len(),
            3,
            "as it was read last"
        );
        // By its time a generation may seem to have begun later than it did, or together with the one before.
        for from in [i64::MIN, i64::MAX] {
            assert_eq!(past.before(("b", "databases"), Time(from), Some(20))[0].generation, 19);
        }
        assert_eq!(generations(&past, "c", i64::MAX), [] as [i64; 0]);
    }

    #[test]
    fn rollouts_of_many_parts_make_those_go_that_ended_long_ago() {
        let past = PastRollouts::default();
        for number in 0..1_000 {
            past.keep(Arc::new(report(&format!("{number}"), 1, 99)));
        }
        let kept = (0..1_000).filter(|number| !generations(&past, &format!("{number}"), i64::MAX).is_empty());
        assert_eq!(kept.collect::<Vec<_>>(), (800..1_000).collect::<Vec<_>>());
        past.keep(Arc::new(report("huge", 1, MAX_PARTS)));
        assert!(generations(&past, "huge", i64::MAX).is_empty(), "one that is too large for all is not kept");
        assert_eq!(past.0.lock().unwrap().parts, 0);
    }
}
