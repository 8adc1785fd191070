//! Which parent is written next. Answers come first; conditions that only leave a parent have a pace of their own.

use aggregator::{DeliveryOutcome, EntriesDigest, KindId, ObjectId, WriteTicket};
use readiness::Time;

use super::outage_end::OutageEnd;
use super::parent_write::ParentWrite;
use super::release_pace::ReleasePace;
use super::write_breaker::WriteBreakers;
use super::write_queue::{QueuedParent, WriteQueue, WriteRank};

/// Number of parents from which on their release is reported.
const REPORTED_RELEASE: usize = 6;

/// Turn of a parent to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteTurn {
    pub(super) parent: ObjectId,
    pub(super) rank: WriteRank,
    /// It has waited since an earlier turn: what is to be said may have changed.
    pub(super) waited: bool,
    /// It has waited to be released.
    pub(super) is_release: bool,
}

/// Progress of the release of many parents that no policy chooses any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseProgress {
    /// Number of parents that are still to be released.
    pub waiting: usize,
    /// Number of parents released a second.
    pub per_second: u64,
}

/// The parents that wait to be written, and what the server lets be sent.
#[derive(Debug)]
pub(super) struct WriteSchedule {
    answers: WriteQueue,
    releases: WriteQueue,
    pace: ReleasePace,
    breakers: WriteBreakers,
    outage_end: OutageEnd,
    max_in_flight: usize,
    /// A release of many parents was reported, and not yet its end.
    is_release_reported: bool,
}

impl Default for WriteSchedule {
    fn default() -> Self {
        WriteSchedule {
            answers: WriteQueue::default(),
            releases: WriteQueue::default(),
            pace: ReleasePace::default(),
            breakers: WriteBreakers::default(),
            outage_end: OutageEnd::default(),
            max_in_flight: usize::MAX,
            is_release_reported: false,
        }
    }
}

impl WriteSchedule {
    /// Limits the writes that are begun and not ended.
    pub(super) fn set_max_in_flight(&mut self, most: usize) {
        self.max_in_flight = most;
    }

    /// Adds a parent that has something to say. Where it waited to be released only, that no longer holds it up.
    pub(super) fn enqueue_parent(&mut self, parent: ObjectId, kind: KindId, rank: WriteRank) {
        self.releases.remove_parent(parent);
        self.answers.enqueue_parent(parent, kind, rank);
    }

    /// Adds a parent that conditions only leave.
    pub(super) fn enqueue_release(&mut self, parent: ObjectId, kind: KindId, rank: WriteRank) {
        self.releases.enqueue_parent(parent, kind, rank);
    }

    /// Removes a parent that is gone.
    pub(super) fn remove_parent(&mut self, parent: ObjectId) {
        self.answers.remove_parent(parent);
        self.releases.remove_parent(parent);
    }

    /// Number that the next parent with something to say gets.
    pub(super) fn next_number(&self) -> u64 {
        self.answers.next_number()
    }

    /// Number of waiting parents.
    pub(super) fn len(&self) -> usize {
        self.answers.len() + self.releases.len()
    }

    /// Takes the parent whose turn it is, if there is room; `first_new` is the number of the first that came in this turn.
    pub(super) fn take_next(&mut self, first_new: u64, now: Time) -> Option<WriteTurn> {
        self.pace.set_waiting(now, self.releases.len());
        if !self.has_room() {
            return None;
        }
        let breakers = &self.breakers;
        let may_write = |kind, rank| breakers.may_write(kind, rank == WriteRank::Retry, now);
        if let Some(QueuedParent { parent, number, rank }) = self.answers.take_next(may_write) {
            return Some(WriteTurn { parent, rank, waited: number < first_new, is_release: false });
        }
        if !self.pace.may_release(now) {
            return None;
        }
        let QueuedParent { parent, rank, .. } = self.releases.take_next(may_write)?;
        Some(WriteTurn { parent, rank, waited: true, is_release: true })
    }

    fn has_room(&self) -> bool {
        self.breakers.in_flight_count() < self.max_in_flight
    }

    /// Records a write that is sent.
    pub(super) fn begin_write(&mut self, turn: WriteTurn, write: &ParentWrite, now: Time) {
        self.breakers.begin_write(write.kind, write.ticket, write.digest, now);
        if turn.is_release {
            self.pace.begin_release(now);
        }
    }

    /// Records the outcome of a write after which the parent shows `shown`.
    pub(super) fn end_write(
        &mut self,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        shown: Option<EntriesDigest>,
        now: Time,
    ) {
        self.breakers.end_write(ticket, outcome, shown, now);
        self.outage_end.observe_outcome(outcome, now);
    }

    /// Time until which nothing is said of a blindness: an outage has just ended, and the lists that end the blindness are on
    /// their way.
    pub(super) fn blindness_waits_until(&self, now: Time) -> Option<Time> {
        self.outage_end.waits_until(now)
    }

    /// Returns `true` once after each outage: what is not seen can be listed again.
    pub(super) fn take_outage_end(&mut self) -> bool {
        self.outage_end.take_news()
    }

    /// Time at which a waiting write may be sent though nothing else happens: the next probe of a kind that failed, the next
    /// write that the failures leave room for, or the next release.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        if !self.has_room() {
            return None;
        }
        let next_write = |(kind, rank)| self.breakers.next_write(kind, rank == WriteRank::Retry);
        let answer = self.answers.waiting_kinds().filter_map(next_write).min();
        let release = self.releases.waiting_kinds().filter_map(next_write).min();
        answer.into_iter().chain(release.map(|at| at.max(self.pace.next_release()))).min()
    }

    /// The release of many parents, where it begins and where it ends.
    pub(super) fn take_release_progress(&mut self) -> Option<ReleaseProgress> {
        let waiting = self.releases.len();
        let turned = if self.is_release_reported { waiting == 0 } else { waiting >= REPORTED_RELEASE };
        if !turned {
            return None;
        }
        self.is_release_reported = !self.is_release_reported;
        Some(ReleaseProgress { waiting, per_second: self.pace.per_second() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASES: KindId = KindId(1);
    const NOW: Time = Time(1_800_000_000_000);

    fn take_all(schedule: &mut WriteSchedule) -> Vec<(u32, bool)> {
        let turns = std::iter::from_fn(|| {
            let turn = schedule.take_next(u64::MAX, NOW)?;
            if turn.is_release {
                schedule.pace.begin_release(NOW);
            }
            Some(turn)
        });
        turns.map(|turn| (turn.parent.0, turn.is_release)).collect()
    }

    #[test]
    fn answers_precede_releases_and_a_parent_with_news_leaves_its_place_among_them() {
        let mut schedule = WriteSchedule::default();
        for parent in 1..=30 {
            schedule.enqueue_release(ObjectId(parent), DATABASES, WriteRank::Answer);
        }
        for parent in [40, 25] {
            schedule.enqueue_parent(ObjectId(parent), DATABASES, WriteRank::Answer);
        }
        assert_eq!(schedule.len(), 31);
        let released = (1..=10).map(|parent| (parent, true));
        let expected: Vec<_> = [(40, false), (25, false)].into_iter().chain(released).collect();
        assert_eq!(take_all(&mut schedule), expected);
        assert_eq!(schedule.next_deadline(), Some(NOW + std::time::Duration::from_millis(100)));
    }

    #[test]
    fn a_release_of_many_is_reported_where_it_begins_and_where_it_ends() {
        let mut schedule = WriteSchedule::default();
        let release = |schedule: &mut WriteSchedule, many: u32| {
            (0..many)
                .for_each(|parent| schedule.enqueue_release(ObjectId(parent), DATABASES, WriteRank::Answer));
            let begun = schedule.take_release_progress().map(|progress| progress.waiting);
            while !take_all(schedule).is_empty() {
                schedule.pace = ReleasePace::default();
            }
            (begun, schedule.take_release_progress().map(|progress| progress.waiting))
        };
        assert_eq!(release(&mut schedule, 5), (None, None), "a handful");
        assert_eq!(release(&mut schedule, 6), (Some(6), Some(0)));
        assert_eq!(schedule.next_deadline(), None);
    }
}
