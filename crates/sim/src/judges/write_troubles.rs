//! What keeps the loop's writes from arriving in time: failures, overwrites, and places of the writer that are taken.

use std::collections::BTreeMap;

use super::judged_moment::JudgedMoment;
use crate::wires::WRITE_TIMEOUT_MS;

/// Time that writes of others may wait for a writer that has room for few, while some are not answered: as long as three of
/// these take, and longer where there were more.
const QUEUE_LAG_MS: i64 = 3 * WRITE_TIMEOUT_MS;
/// Longest backoff of a parent some of whose writes failed or were overwritten.
const BACKOFF_LAG_MS: i64 = 75_000;
/// Time after such a write for which its parent may still back off: as long as a conflict lasts.
const BACKOFF_LASTS_MS: i64 = 300_000;

/// The writes of one life of the process that failed.
#[derive(Default)]
pub(crate) struct WriteTroubles {
    /// Time of the last write of a parent that failed, by its UID, and of the last of any.
    failures: BTreeMap<String, i64>,
    last_failure: Option<i64>,
    /// Times of writes of any parent that were not answered.
    unanswered: Vec<i64>,
}

impl WriteTroubles {
    pub(crate) fn reset_for_restart(&mut self) {
        *self = WriteTroubles::default();
    }

    /// Notes a write that failed or, if it was not answered, of which nobody knows what became.
    pub(crate) fn note_failure(&mut self, uid: &str, is_answered: bool, now: i64) {
        self.failures.insert(uid.to_owned(), now);
        self.last_failure = Some(now);
        self.unanswered.extend((!is_answered).then_some(now));
    }

    /// Returns by how much longer a write of this parent may take to arrive that has been due since then.
    pub(crate) fn allowed_lag(&self, at: &JudgedMoment<'_>, uid: &str, since: i64) -> i64 {
        let lately = |since: Option<i64>, lasts: i64| since.is_some_and(|since| at.now < since + lasts);
        let overwritten = at.world.overwrites_of(uid) > 0 && !at.faults_stopped;
        let backs_off = lately(self.failures.get(uid).copied(), BACKOFF_LASTS_MS) || overwritten;
        let queues = lately(self.last_failure, BACKOFF_LAG_MS);
        let queue_lag = if queues { self.queue_lag(at, since) } else { 0 };
        queue_lag + if backs_off { BACKOFF_LAG_MS } else { 0 }
    }

    /// Time for which the writer's places may have been taken by writes that were not answered, since then.
    fn queue_lag(&self, at: &JudgedMoment<'_>, since: i64) -> i64 {
        let meanwhile = self.unanswered.iter().filter(|sent| **sent > since - WRITE_TIMEOUT_MS);
        let rounds = meanwhile.count().div_ceil(at.writer_room);
        QUEUE_LAG_MS.max(i64::try_from(rounds).unwrap_or(i64::MAX).saturating_mul(WRITE_TIMEOUT_MS))
    }
}
