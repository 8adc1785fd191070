//! Overruns of a custom rule on the objects that share its limits, and until when it is not evaluated because of them.
//!
//! An object on which a rule exceeded its limits three times in a row is not evaluated by it for a while, and each time
//! after that for a longer one. Where that happens on so many objects that their number makes up for it, the rule is not
//! evaluated on any of them for a while.

use std::time::Duration;

use readiness::Time;
use rustc_hash::FxHashMap;

/// Overruns in a row after which an object is not evaluated for a while.
const MAX_OBJECT_OVERRUNS: u32 = 3;

/// Overruns of all objects together after which the rule is not evaluated at all for a while. About a second of work.
const MAX_RULE_OVERRUNS: u32 = 100;

/// The same of a rule whose objects share no limits but these: those of many namespaces.
pub(super) const MAX_OVERRUNS_IN_ALL: u32 = 4 * MAX_RULE_OVERRUNS;

/// Time in which one overrun is forgotten: so many may go on for ever.
const OVERRUN_DECAY: Duration = Duration::from_secs(1);

/// The first while, and the longest one. Each is twice as long as the one before.
const FIRST_SUSPENSION: Duration = Duration::from_secs(10);
const LONGEST_SUSPENSION: Duration = Duration::from_mins(10);

/// Overruns of a rule on objects that share its limits.
#[derive(Debug, Default)]
pub(super) struct RuleOverruns {
    /// By uid.
    objects: FxHashMap<Box<str>, ObjectOverruns>,
    /// Overruns that are not forgotten yet, as of `counted_at`.
    overruns: u32,
    counted_at: Time,
    /// How often in a row the rule was suspended.
    rounds: u32,
    suspended_until: Option<Time>,
}

#[derive(Debug, Default)]
struct ObjectOverruns {
    in_a_row: u32,
    suspended_until: Option<Time>,
}

fn lies_ahead(until: Option<Time>, now: Time) -> bool {
    until.is_some_and(|until| until > now)
}

/// The end of the `round`-th suspension in a row, from 1.
fn end_of_suspension(round: u32, now: Time) -> Time {
    let doubled = 2_u32.saturating_pow(round.saturating_sub(1));
    now + FIRST_SUSPENSION.saturating_mul(doubled).min(LONGEST_SUSPENSION)
}

impl RuleOverruns {
    /// Returns `true` if the rule may be evaluated on this object now.
    pub(super) fn admits(&self, uid: &str, now: Time) -> bool {
        let held = self.objects.get(uid).and_then(|object| object.suspended_until);
        !self.is_suspended(now) && !lies_ahead(held, now)
    }

    /// Returns `true` if the rule is evaluated on no object now.
    pub(super) fn is_suspended(&self, now: Time) -> bool {
        lies_ahead(self.suspended_until, now)
    }

    /// Number of objects on which the rule is not evaluated now.
    pub(super) fn count_suspended(&self, now: Time) -> u64 {
        let held = |object: &&ObjectOverruns| lies_ahead(object.suspended_until, now);
        u64::try_from(self.objects.values().filter(held).count()).unwrap_or(u64::MAX)
    }

    /// Returns `true` if nothing is suspended, and no overrun counts any more.
    pub(super) fn is_forgotten(&self, now: Time) -> bool {
        let counts = now < self.counted_at + OVERRUN_DECAY.saturating_mul(MAX_RULE_OVERRUNS);
        let is_quiet = self.suspended_until.is_none_or(|until| now - until > self.quiet_span());
        !counts && is_quiet && !self.is_suspended(now) && self.count_suspended(now) == 0
    }

    /// Number of objects of which overruns are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.objects.len()
    }

    /// An evaluation within the limits makes good what was before.
    pub(super) fn forget_object(&mut self, uid: &str) {
        self.objects.remove(uid);
    }

    /// Counts an evaluation that exceeded the limits. Of at most `most` objects it is remembered; those of others count for the
    /// rule alone.
    pub(super) fn count(&mut self, uid: &str, now: Time, most: usize) {
        self.count_object(uid, now, most);
        self.count_overrun(now, MAX_RULE_OVERRUNS);
    }

    /// Time without an overrun after which the suspensions begin anew: as long as the last one was.
    fn quiet_span(&self) -> Duration {
        end_of_suspension(self.rounds, Time::default()) - Time::default()
    }

    fn count_object(&mut self, uid: &str, now: Time, most: usize) {
        if self.objects.len() >= most && !self.objects.contains_key(uid) {
            self.objects.retain(|_, object| lies_ahead(object.suspended_until, now));
            if self.objects.len() >= most {
                return;
            }
        }
        let object = self.objects.entry(uid.into()).or_default();
        object.in_a_row = object.in_a_row.saturating_add(1);
        if object.in_a_row >= MAX_OBJECT_OVERRUNS {
            let round = object.in_a_row - MAX_OBJECT_OVERRUNS + 1;
            object.suspended_until = Some(end_of_suspension(round, now));
        }
    }

    /// Counts an evaluation that exceeded the limits, of which so many suspend the rule.
    pub(super) fn count_overrun(&mut self, now: Time, limit: u32) {
        let rest = (now - self.counted_at).as_millis() / OVERRUN_DECAY.as_millis();
        let forgotten = u32::try_from(rest).unwrap_or(u32::MAX);
        if forgotten > 0 {
            if self.suspended_until.is_some_and(|until| now - until > self.quiet_span()) {
                self.rounds = 0;
            }
            self.overruns = self.overruns.saturating_sub(forgotten);
            self.counted_at = now;
        }
        self.overruns += 1;
        if self.overruns >= limit {
            self.overruns = 0;
            self.rounds = self.rounds.saturating_add(1);
            self.suspended_until = Some(end_of_suspension(self.rounds, now));
        }
    }
}
