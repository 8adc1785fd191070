//! When single reads of a kind become a comparison of all its metadata: where that asks less of the API server.

use std::time::Duration;

use aggregator::KindId;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

/// Number of objects in a list of metadata that weigh as much as one object that is read alone: the server answers them together,
/// without spec and status.
const OBJECTS_PER_READ: usize = 20;
/// What a comparison weighs besides, in reads. It is not worth it for a few objects.
const COMPARISON_BASE: usize = 5;

/// Where metadata is compared: the objects of a kind in a namespace, or (`None`) in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ComparedPlace {
    pub(super) kind: KindId,
    pub(super) namespace: Option<String>,
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFold {
    /// It is sent.
    Alone,
    /// Its place is compared instead.
    Compared,
    /// A comparison that began within the period covers it.
    Covered,
}

/// Reads of one place.
#[derive(Clone, Copy, Debug)]
struct PlaceReads {
    /// Beginning of the period in which they are counted.
    begun: Instant,
    count: usize,
    /// Number of those in the period before.
    before: usize,
    compared_at: Option<Instant>,
    /// When a comparison was not answered: for a period, reads go alone again.
    unanswered_at: Option<Instant>,
}

/// Counts the reads of each place, and folds them where they are many.
///
/// **Invariant:** what is ordered once a period is read or compared once a period: a comparison covers what is ordered within a
/// period from its beginning, and the first order after that leads to the next one.
#[derive(Debug)]
pub(super) struct ReadFolder {
    period: Duration,
    places: FxHashMap<ComparedPlace, PlaceReads>,
}

impl ReadFolder {
    /// A folder of reads that are ordered once in this period for each object.
    pub(super) fn new(period: Duration) -> ReadFolder {
        ReadFolder { period, places: FxHashMap::default() }
    }

    /// Decides what becomes of a read in a place with so many objects.
    pub(super) fn fold_read(&mut self, place: &ComparedPlace, objects: usize, now: Instant) -> ReadFold {
        let fresh = PlaceReads { begun: now, count: 0, before: 0, compared_at: None, unanswered_at: None };
        let reads = self.places.entry(place.clone()).or_insert(fresh);
        let passed = now.saturating_duration_since(reads.begun);
        if passed >= self.period {
            reads.before = if passed < self.period * 2 { reads.count } else { 0 };
            (reads.begun, reads.count) = (now, 0);
        }
        reads.count += 1;
        let is_recent = |at: Option<Instant>| at.is_some_and(|at| now < at + self.period);
        let is_dearer = reads.count.max(reads.before) < COMPARISON_BASE + objects / OBJECTS_PER_READ;
        if is_dearer || is_recent(reads.unanswered_at) {
            return ReadFold::Alone;
        }
        if is_recent(reads.compared_at) {
            return ReadFold::Covered;
        }
        reads.compared_at = Some(now);
        ReadFold::Compared
    }

    /// A comparison was not answered: it covers nothing.
    pub(super) fn forget_comparison(&mut self, place: &ComparedPlace, now: Instant) {
        if let Some(reads) = self.places.get_mut(place) {
            (reads.compared_at, reads.unanswered_at) = (None, Some(now));
        }
    }

    /// Forgets places that nothing is read of any more.
    pub(super) fn remove_idle(&mut self, now: Instant) {
        let period = self.period;
        self.places.retain(|_, reads| now.saturating_duration_since(reads.begun) < period * 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);

    fn place() -> ComparedPlace {
        ComparedPlace { kind: KindId(1), namespace: None }
    }

    /// So many objects that are not ready, among so many, are ordered once a period each, evenly, for ten periods. Returns the
    /// number of single reads and of comparisons in each period.
    fn played(unready: u32, objects: usize) -> Vec<(u32, u32)> {
        let (mut folder, start) = (ReadFolder::new(PERIOD), Instant::now());
        let mut periods = vec![(0, 0); 10];
        for period in 0..10 {
            for number in 0..unready {
                let now = start + PERIOD * period + PERIOD * number / unready;
                match folder.fold_read(&place(), objects, now) {
                    ReadFold::Alone => periods[period as usize].0 += 1,
                    ReadFold::Compared => periods[period as usize].1 += 1,
                    ReadFold::Covered => {}
                }
            }
        }
        periods
    }

    #[test]
    fn few_objects_are_read_one_by_one() {
        assert_eq!(played(4, 4), [(4, 0); 10]);
        assert_eq!(played(54, 1_000), [(54, 0); 10], "of many, a list would be dearer");
    }

    #[test]
    fn many_are_compared_once_a_period_from_the_first_on() {
        let periods = played(110, 110);
        assert_eq!(periods[0], (9, 1));
        assert_eq!(periods[1..], [(0, 1); 9]);
    }

    #[test]
    fn what_is_covered_was_compared_within_a_period() {
        let (mut folder, start) = (ReadFolder::new(PERIOD), Instant::now());
        let mut compared = None;
        for tick in 0..10_000_u32 {
            let now = start + Duration::from_millis(u64::from(tick) * 70);
            match folder.fold_read(&place(), 50, now) {
                ReadFold::Compared => compared = Some(now),
                ReadFold::Covered => assert!(now < compared.unwrap() + PERIOD),
                ReadFold::Alone => assert!(compared.is_none()),
            }
        }
        assert!(compared.unwrap() + PERIOD > start + Duration::from_secs(700 - 1));
    }

    #[test]
    fn a_comparison_that_was_not_answered_covers_nothing_and_is_not_tried_again_at_once() {
        let (mut folder, now) = (ReadFolder::new(PERIOD), Instant::now());
        let folded: Vec<_> = (0..6).map(|_| folder.fold_read(&place(), 0, now)).collect();
        assert_eq!(folded[4..], [ReadFold::Compared, ReadFold::Covered]);
        folder.forget_comparison(&place(), now);
        assert_eq!(
            folder.fold_read(&place(), 0, now),
            ReadFold::Alone,
            "a list may be what cannot be answered"
        );
        (0..9).for_each(|_| _ = folder.fold_read(&place(), 0, now + PERIOD - Duration::from_secs(1)));
        assert_eq!(folder.fold_read(&place(), 0, now + PERIOD), ReadFold::Compared);
    }

    #[test]
    fn when_they_become_few_they_are_read_one_by_one_again_and_forgotten() {
        let (mut folder, start) = (ReadFolder::new(PERIOD), Instant::now());
        (0..100).for_each(|_| _ = folder.fold_read(&place(), 0, start));
        let later = |periods: u32| start + PERIOD * periods;
        assert_eq!(folder.fold_read(&place(), 0, later(1)), ReadFold::Compared, "they were many");
        assert_eq!(folder.fold_read(&place(), 0, later(2)), ReadFold::Alone);
        folder.remove_idle(later(4));
        assert_eq!(folder.places.len(), 1);
        folder.remove_idle(later(5));
        assert!(folder.places.is_empty());
    }
}
