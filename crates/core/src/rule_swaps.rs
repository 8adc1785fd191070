//! Changed rules that are judged beside what stands: an answer turns when the new rule has judged all of its kind, and is
//! withdrawn when that takes too long.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::KindId;
use readiness::Time;

use crate::KindEvent;

/// Longest time for which an answer of an old rule stands while the kind is listed for the new one. 2 min.
const RULE_SWAP_TIMEOUT: Duration = Duration::from_mins(2);

/// Policies whose rule changed over a kind that is not listed again yet.
///
/// While a kind is listed, its policies say nothing, and what stands on their parents stays. The end of the list swaps the
/// new rule in: where no answer moves, nothing is written. Where the list does not end in time, answers rest on a rule that
/// is no longer in force: they are withdrawn.
#[derive(Debug, Default)]
pub struct RuleSwaps {
    /// Deadlines by kind and name of the policy; `None` once the policy was returned as overdue.
    deadlines: BTreeMap<(KindId, String), Option<Time>>,
}

impl RuleSwaps {
    /// Follows the event of a kind. Another change before the list is through does not extend the time of the first.
    pub fn observe_event(&mut self, kind: KindId, event: &KindEvent, now: Time) {
        match event {
            KindEvent::RuleChanged(policies) => {
                for policy in policies {
                    self.deadlines.entry((kind, policy.clone())).or_insert(Some(now + RULE_SWAP_TIMEOUT));
                }
            }
            KindEvent::Synced | KindEvent::Absent | KindEvent::Stopped => {
                self.deadlines.retain(|(of, _), _| *of != kind);
            }
            KindEvent::Starting | KindEvent::Listing | KindEvent::Alive | KindEvent::Failure(..) => {}
        }
    }

    /// Takes a policy, by name, whose answers over this kind are to be withdrawn.
    pub fn take_overdue(&mut self, now: Time) -> Option<(KindId, String)> {
        let mut waiting = self.deadlines.iter_mut();
        let (key, deadline) = waiting.find(|(_, deadline)| deadline.is_some_and(|at| at <= now))?;
        *deadline = None;
        Some(key.clone())
    }

    /// A policy of this name begins anew, by what stands on its parents: what was withdrawn before may stand there still, because its
    /// write has not come through, and is overdue again.
    pub fn on_policy_replaced(&mut self, policy: &str, now: Time) {
        let withdrawn = self.deadlines.iter_mut().filter(|((_, name), at)| name == policy && at.is_none());
        for (_, deadline) in withdrawn {
            *deadline = Some(now);
        }
    }

    /// Earliest time at which a policy is overdue.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.values().flatten().copied().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: KindId = KindId(1);
    const PODS: KindId = KindId(2);

    fn at(seconds: u64) -> Time {
        Time::default() + Duration::from_secs(seconds)
    }

    fn changed(policies: &[&str]) -> KindEvent {
        KindEvent::RuleChanged(policies.iter().map(|name| (*name).to_owned()).collect())
    }

    fn overdue(swaps: &mut RuleSwaps, now: Time) -> Vec<(KindId, String)> {
        std::iter::from_fn(|| swaps.take_overdue(now)).collect()
    }

    #[test]
    fn a_list_that_ends_swaps_the_rule_in_and_nothing_is_withdrawn() {
        let mut swaps = RuleSwaps::default();
        for end in [KindEvent::Synced, KindEvent::Absent, KindEvent::Stopped] {
            swaps.observe_event(SHARDS, &changed(&["db"]), at(0));
            swaps.observe_event(PODS, &end, at(1));
            assert_eq!(swaps.next_deadline(), Some(at(120)), "the list of another kind says nothing");
            swaps.observe_event(SHARDS, &end, at(119));
            assert_eq!((overdue(&mut swaps, at(500)), swaps.next_deadline()), (vec![], None), "{end:?}");
        }
    }

    #[test]
    fn what_cannot_be_judged_anew_within_two_minutes_is_withdrawn_once() {
        let mut swaps = RuleSwaps::default();
        swaps.observe_event(SHARDS, &changed(&["db"]), at(0));
        for event in [KindEvent::Starting, KindEvent::Listing, KindEvent::Alive] {
            swaps.observe_event(SHARDS, &event, at(60));
        }
        assert_eq!(overdue(&mut swaps, at(119)), []);
        assert_eq!(overdue(&mut swaps, at(120)), [(SHARDS, "db".to_owned())]);
        assert_eq!((overdue(&mut swaps, at(900)), swaps.next_deadline()), (vec![], None));
    }

    #[test]
    fn a_policy_that_begins_anew_after_its_time_is_withdrawn_again_at_once_and_no_other() {
        let mut swaps = RuleSwaps::default();
        swaps.observe_event(SHARDS, &changed(&["db", "cache"]), at(0));
        swaps.on_policy_replaced("db", at(60));
        assert_eq!(overdue(&mut swaps, at(119)), [], "it has the time of its first edit");
        assert_eq!(overdue(&mut swaps, at(120)).len(), 2);
        swaps.on_policy_replaced("db", at(125));
        assert_eq!(overdue(&mut swaps, at(125)), [(SHARDS, "db".to_owned())]);
        swaps.observe_event(SHARDS, &KindEvent::Synced, at(126));
        swaps.on_policy_replaced("db", at(127));
        assert_eq!(overdue(&mut swaps, at(500)), [], "the list is through");
    }

    #[test]
    fn a_rule_that_is_edited_again_and_again_has_the_time_of_the_first_edit() {
        let mut swaps = RuleSwaps::default();
        for second in 0..12 {
            swaps.observe_event(SHARDS, &changed(&["db"]), at(second * 10));
        }
        // Another policy over the same kind has a time of its own, also after the first one was withdrawn.
        swaps.observe_event(SHARDS, &changed(&["cache"]), at(100));
        assert_eq!(overdue(&mut swaps, at(120)), [(SHARDS, "db".to_owned())]);
        swaps.observe_event(SHARDS, &changed(&["db", "queue"]), at(150));
        assert_eq!(overdue(&mut swaps, at(220)), [(SHARDS, "cache".to_owned())]);
        assert_eq!(overdue(&mut swaps, at(270)), [(SHARDS, "queue".to_owned())]);
    }
}
