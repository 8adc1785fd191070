//! When single reads of a kind become a comparison of all its metadata: where that asks less of the API server.

use std::time::Duration;

use rustc_hash::FxHashMap;
use timer::ResyncPace;
use tokio::time::Instant;

use super::place_comparisons::{ComparedPlace, PlaceComparisons, PlaceContent};

/// Number of objects in a list of metadata that weigh as much as one object that is read alone. Measured on kube-apiserver 1.36 with
/// etcd 3.6, processor time of both, objects of 4.6 kB: 1.1 ms for a read, 0.9 ms for a list and 0.043 ms for each object in it.
const OBJECTS_PER_READ: usize = 25;
/// Number of whole objects in a list that weigh as much as one that is read alone, beyond those that would be read: by the same
/// measurement a read of one weighs 0.2 ms more than a list without any.
const WHOLE_OBJECTS_PER_READ: usize = 5;
/// What a comparison weighs besides, in reads. It is not worth it for a few objects.
const COMPARISON_BASE: usize = 5;
/// Number of parents from which what is ordered for all of them is estimated.
const MIN_SAMPLED_PARENTS: usize = 3;
/// Of very many parents one in so many is such a sample.
const SAMPLED_SHARE: usize = 32;

/// Largest number of objects in a list of metadata that weighs no more than so many reads.
pub(super) fn max_compared_objects(reads: usize) -> usize {
    reads.saturating_sub(COMPARISON_BASE) * OBJECTS_PER_READ
}

/// Whether so many reads weigh more than one list of whole objects, which has so many others.
pub(super) fn is_whole_list_cheaper(reads: usize, others: usize) -> bool {
    reads >= COMPARISON_BASE + others / WHOLE_OBJECTS_PER_READ
}

/// What becomes of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFold {
    /// It is sent.
    Alone,
    /// Its place is compared instead.
    Compared,
    /// A comparison that began within the interval of the read covers it.
    Covered,
}

/// An interval in which each parent of a pace is ordered once.
#[derive(Clone, Copy, Debug)]
struct OrderWindow {
    begun: Instant,
    number: u32,
    /// Number of parents that were ordered in it so far.
    ordered: usize,
    /// Number of parents that are ordered in it.
    all: usize,
}

impl OrderWindow {
    /// What is ordered in all, where so many were for the parents so far. 0 where these are too few to tell.
    fn estimate(&self, count: usize) -> usize {
        let is_sample = self.ordered >= MIN_SAMPLED_PARENTS.max(self.all / SAMPLED_SHARE);
        if is_sample { count.saturating_mul(self.all) / self.ordered } else { 0 }
    }
}

/// Reads of one place in a window.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceReads {
    window: u32,
    count: usize,
    /// Number of those in the window before.
    before: usize,
}

impl PlaceReads {
    /// Counts one more.
    fn count_in(&mut self, window: u32) {
        if self.window != window {
            self.before = if self.window + 1 == window { self.count } else { 0 };
            (self.window, self.count) = (window, 0);
        }
        self.count += 1;
    }
}

/// Counts the reads of each place, and folds them where they are many.
///
/// **Invariant:** what is ordered once in an interval is read or compared once in an interval: a comparison covers what is ordered
/// within that from its beginning, and the first order after that leads to the next one, or to a read.
#[derive(Debug)]
pub(super) struct ReadFolder {
    /// Time for which a place is read one by one whose comparison was not answered.
    retry_after: Duration,
    windows: FxHashMap<Duration, OrderWindow>,
    places: FxHashMap<(ComparedPlace, Duration), PlaceReads>,
}

impl ReadFolder {
    pub(super) fn new(retry_after: Duration) -> ReadFolder {
        ReadFolder { retry_after, windows: FxHashMap::default(), places: FxHashMap::default() }
    }

    /// The reads of a parent follow.
    pub(super) fn begin_order(&mut self, pace: ResyncPace, now: Instant) {
        let fresh = OrderWindow { begun: now, number: 1, ordered: 0, all: 0 };
        let window = self.windows.entry(pace.interval).or_insert(fresh);
        let passed = now.saturating_duration_since(window.begun);
        if passed >= pace.interval {
            let missed = passed >= pace.interval * 2;
            window.number = window.number.saturating_add(1 + u32::from(missed));
            (window.begun, window.ordered) = (now, 0);
        }
        window.ordered += 1;
        window.all = pace.keys;
    }

    /// Decides what becomes of a read of such a parent, in a place with so many objects.
    pub(super) fn fold_read(
        &mut self,
        comparisons: &PlaceComparisons,
        (place, objects): (&ComparedPlace, usize),
        pace: ResyncPace,
        now: Instant,
    ) -> ReadFold {
        let Some(window) = self.windows.get(&pace.interval) else { return ReadFold::Alone };
        let reads = self.places.entry((place.clone(), pace.interval)).or_default();
        reads.count_in(window.number);
        if comparisons.is_covered(place, pace.interval, now) {
            return ReadFold::Covered;
        }
        let expected = reads.count.max(reads.before).max(window.estimate(reads.count));
        let is_cheaper = match place.content {
            PlaceContent::Workloads(_) => is_whole_list_cheaper(expected, objects.saturating_sub(expected)),
            PlaceContent::Metadata(_) | PlaceContent::Pods => {
                expected >= COMPARISON_BASE + objects / OBJECTS_PER_READ
            }
        };
        if !is_cheaper || comparisons.was_unanswered(place, self.retry_after, now) {
            return ReadFold::Alone;
        }
        comparisons.order(place, now);
        ReadFold::Compared
    }

    /// Forgets places that nothing is read of any more.
    pub(super) fn remove_idle(&mut self) {
        let windows = &self.windows;
        let is_used = |interval: &Duration, reads: &PlaceReads| {
            windows.get(interval).is_some_and(|window| window.number < reads.window.saturating_add(3))
        };
        self.places.retain(|(_, interval), reads| is_used(interval, reads));
    }
}

#[cfg(test)]
mod tests {
    use aggregator::KindId;

    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);
    const SLOW: Duration = Duration::from_mins(10);

    fn place() -> ComparedPlace {
        ComparedPlace { content: PlaceContent::Metadata(KindId(1)), namespace: None }
    }

    /// Parents whose children of one kind are read.
    struct FoldedReads {
        folder: ReadFolder,
        comparisons: PlaceComparisons,
        pace: ResyncPace,
    }

    impl FoldedReads {
        fn of(parents: usize, interval: Duration) -> FoldedReads {
            let pace = ResyncPace { interval, keys: parents };
            FoldedReads { folder: ReadFolder::new(PERIOD), comparisons: PlaceComparisons::default(), pace }
        }

        /// A parent is ordered, with one such read among so many objects.
        fn order(&mut self, objects: usize, now: Instant) -> ReadFold {
            self.folder.begin_order(self.pace, now);
            self.folder.fold_read(&self.comparisons, (&place(), objects), self.pace, now)
        }

        /// All are ordered once a period each, evenly, for ten periods. Returns the number of single reads and of comparisons in
        /// each period.
        fn play(mut self, objects: usize) -> Vec<(u32, u32)> {
            let (start, mut periods) = (Instant::now(), vec![(0, 0); 10]);
            let (interval, parents) = (self.pace.interval, u32::try_from(self.pace.keys).unwrap());
            for period in 0..10 {
                for number in 0..parents {
                    match self.order(objects, start + interval * period + interval * number / parents) {
                        ReadFold::Alone => periods[period as usize].0 += 1,
                        ReadFold::Compared => periods[period as usize].1 += 1,
                        ReadFold::Covered => {}
                    }
                }
            }
            periods
        }
    }

    #[test]
    fn few_objects_are_read_one_by_one() {
        assert_eq!(FoldedReads::of(4, PERIOD).play(4), [(4, 0); 10]);
        assert_eq!(FoldedReads::of(44, PERIOD).play(1_000), [(44, 0); 10], "of many, a list would be dearer");
    }

    #[test]
    fn many_are_compared_once_an_interval_from_the_first_on() {
        for interval in [PERIOD, SLOW] {
            for objects in [110, 1_100] {
                let periods = FoldedReads::of(110, interval).play(objects);
                assert_eq!(periods[0], (2, 1), "the first few do not tell yet");
                assert_eq!(periods[1..], [(0, 1); 9]);
            }
        }
    }

    #[test]
    fn of_very_many_parents_the_first_few_tell_nothing() {
        let mut reads = FoldedReads::of(3_200, PERIOD);
        let now = Instant::now();
        let folded: Vec<_> = (0..100).map(|_| reads.order(10_000, now)).collect();
        assert!(folded[..99].iter().all(|fold| *fold == ReadFold::Alone) && folded[99] == ReadFold::Compared);
    }

    #[test]
    fn what_is_covered_was_compared_within_an_interval() {
        let (mut reads, start) = (FoldedReads::of(430, PERIOD), Instant::now());
        let mut compared = None;
        for tick in 0..10_000_u32 {
            let now = start + Duration::from_millis(u64::from(tick) * 70);
            match reads.order(50, now) {
                ReadFold::Compared => compared = Some(now),
                ReadFold::Covered => assert!(now < compared.unwrap() + PERIOD),
                ReadFold::Alone => assert!(compared.is_none()),
            }
        }
        assert!(compared.unwrap() + PERIOD > start + Duration::from_secs(700 - 1));
    }

    #[test]
    fn what_the_audit_has_compared_is_not_asked_for_again() {
        let (mut reads, now) = (FoldedReads::of(4, SLOW), Instant::now());
        reads.comparisons.cover(&place(), now);
        assert_eq!(reads.order(4, now + SLOW - PERIOD), ReadFold::Covered);
        assert_eq!(reads.order(4, now + SLOW), ReadFold::Alone);
        reads.pace = ResyncPace { interval: PERIOD, keys: 4 };
        assert_eq!(reads.order(4, now + PERIOD), ReadFold::Alone, "what is read more often is");
    }

    #[test]
    fn a_comparison_that_was_not_answered_covers_nothing_and_is_not_tried_again_at_once() {
        let (mut reads, now) = (FoldedReads::of(30, PERIOD), Instant::now());
        let folded: Vec<_> = (0..4).map(|_| reads.order(0, now)).collect();
        assert_eq!(folded[2..], [ReadFold::Compared, ReadFold::Covered]);
        reads.comparisons.forget(&place(), now);
        assert_eq!(reads.order(0, now), ReadFold::Alone, "a list may be what cannot be answered");
        (0..9).for_each(|_| _ = reads.order(0, now + PERIOD - Duration::from_secs(1)));
        assert_eq!(reads.order(0, now + PERIOD), ReadFold::Compared);
    }

    #[test]
    fn when_they_become_few_they_are_read_one_by_one_again_and_forgotten() {
        let (mut reads, start) = (FoldedReads::of(100, PERIOD), Instant::now());
        (0..100).for_each(|_| _ = reads.order(0, start));
        reads.pace.keys = 1;
        let later = |periods: u32| start + PERIOD * periods;
        assert_eq!(reads.order(0, later(1)), ReadFold::Compared, "they were many");
        assert_eq!(reads.order(0, later(2)), ReadFold::Alone);
        reads.folder.remove_idle();
        assert_eq!(reads.folder.places.len(), 1);
        let other = ComparedPlace { content: PlaceContent::Metadata(KindId(2)), namespace: None };
        for period in 4..6 {
            reads.folder.begin_order(reads.pace, later(period));
            _ = reads.folder.fold_read(&reads.comparisons, (&other, 0), reads.pace, later(period));
        }
        reads.folder.remove_idle();
        assert_eq!(reads.folder.places.keys().map(|(place, _)| place).collect::<Vec<_>>(), [&other]);
    }
}
