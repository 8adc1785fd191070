//! What the loop and the tasks tell, and which numbers move by it.

use std::time::Duration;

use aggregator::{Counts, KindState};
use readiness::{Level, Time};

use super::{Metrics, seconds};
use crate::kinds::News;
use crate::policies::Plan;
use crate::snapshot::{NotReady, Snapshot, Story};
use crate::writer::Settled;

impl Metrics {
    /// A kind's task said something.
    pub(crate) fn news(&self, kind: &str, news: &News, now: Time) {
        match news {
            News::Alive | News::Synced => self.last_event.with_label_values(&[kind]).set(seconds(now)),
            News::Trouble(cause, _) => self.restarts.with_label_values(&[kind, cause.label()]).inc(),
            News::Starting | News::Listing | News::Absent | News::Stopped | News::RuleChanged(_) => {}
        }
    }

    /// Where a kind stands.
    pub(crate) fn kind_state(&self, kind: &str, state: KindState) {
        let blind = matches!(state, KindState::Stale | KindState::Forbidden);
        self.stale.with_label_values(&[kind]).set(i64::from(blind));
    }

    /// A write ended; `called` is how long ago it was called for, where something did.
    pub(crate) fn settled(&self, settled: &Settled, called: Option<Duration>, plan: &Plan) {
        for (_, words) in settled.policies.iter().filter_map(|id| plan.policies.get(id)) {
            self.writes.with_label_values(&[words.name.as_str(), settled.label]).inc();
            if settled.label == "conflict" {
                self.conflicts.with_label_values(&[&words.name]).inc();
            }
            if let Some(to) = settled.turned_to {
                self.transitions.with_label_values(&[words.name.as_str(), to.word()]).inc();
            }
        }
        if let Some(called) = called.filter(|_| settled.turned_to.is_some()) {
            self.event_to_write.observe(called.as_secs_f64());
        }
    }

    /// A generation was ready for the first time, so long after it was first seen.
    pub(crate) fn first_ready(&self, policy: &str, after: Duration) {
        self.time_to_ready.with_label_values(&[policy]).observe(after.as_secs_f64());
    }

    /// Finalizers were put back so often.
    pub(crate) fn flapped(&self, policy: &str, times: u64) {
        self.flaps.with_label_values(&[policy]).inc_by(times);
    }

    /// The watch had lost something.
    pub(crate) fn drift(&self, kind: &str, found_by: &str) {
        self.drift.with_label_values(&[kind, found_by]).inc();
    }

    /// The loop begins a turn while so many objects wait.
    pub(crate) fn turn(&self, dirty: usize) {
        self.turns.inc();
        self.dirty.set(dirty as i64);
    }

    /// The server's clock is so many seconds ahead.
    pub(crate) fn clock_offset(&self, seconds: f64) {
        self.clock_offset.set(seconds);
    }

    /// This replica writes, or stands by.
    pub(crate) fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Numbers were gathered; `story` tells more of a parent that has series of its own, and is not asked for any other. A
    /// standby shows the same series at 0, so that a sum over all replicas counts once.
    pub(crate) fn gathered(&self, snapshot: &Snapshot, counts: Counts, story: impl Fn(&NotReady) -> Story) {
        self.judged.inc_by(counts.judged);
        self.moved.inc_by(counts.moved);
        self.rows.set(snapshot.rows as i64);
        self.bytes.set(snapshot.bytes as i64);
        let (times, took) = snapshot.asked;
        self.rule_calls.inc_by(times.saturating_sub(self.rule_calls.get()));
        self.rule_time.inc_by((took.as_secs_f64() - self.rule_time.get()).max(0.0));
        self.resync_parents.set(snapshot.passed as i64);
        self.debounced.set(snapshot.debounced as i64);
        let shares = self.leader.get();
        for (policy, numbers) in &snapshot.policies {
            let policy = policy.as_str();
            for level in Level::ALL {
                let at: u64 =
                    numbers.reasons.iter().filter(|(r, _)| r.level() == level).map(|(_, n)| n).sum();
                self.parents.with_label_values(&[policy, level.word()]).set(at as i64 * shares);
                for (kind, tally) in &numbers.children {
                    let at = i64::from(tally.at(level)) * shares;
                    self.children.with_label_values(&[policy, kind, level.word()]).set(at);
                    if level == Level::Stuck {
                        self.stuck.with_label_values(&[policy, kind]).set(at);
                    }
                }
            }
            self.yielding
                .with_label_values(&[policy])
                .set(numbers.yielding.values().sum::<u64>() as i64 * shares);
            self.owned.with_label_values(&[policy]).set(numbers.owned.values().sum::<u64>() as i64 * shares);
            self.pruned.with_label_values(&[policy]).set(numbers.pruned as i64 * shares);
            self.undefaulted.with_label_values(&[policy]).set(numbers.undefaulted as i64 * shares);
            self.disagreements.with_label_values(&[policy]).set(numbers.disagreeing as i64 * shares);
        }
        self.named.gathered((shares > 0).then_some(snapshot), story);
    }
}
