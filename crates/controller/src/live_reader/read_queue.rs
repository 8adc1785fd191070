//! The order in which live reads are made: several at a time, kinds in turn, and less often where nothing answers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use aggregator::KindId;
use timer::{Backoff, Seed};
use tokio::time::Instant;

/// Maximum number of live reads under way.
pub(super) const MAX_READS_UNDER_WAY: usize = 8;
/// Maximum number of those of one lane, so that one that does not answer leaves room for the others.
const MAX_READS_UNDER_WAY_PER_LANE: usize = 6;
/// Waits until a lane is read again that did not answer. Meanwhile its watch is as before.
const UNANSWERED_READ_BACKOFF: Backoff =
    Backoff { base: Duration::from_secs(5), cap: Duration::from_mins(1) };

/// What is served together, and fails together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadLane {
    /// Pods and Events that say why a workload is not ready. Read before anything else: the queue of objects may be long.
    Reasons,
    /// Objects of a kind.
    Kind(KindId),
}

#[derive(Debug)]
struct LaneState<R> {
    waiting: VecDeque<R>,
    under_way: usize,
    /// Number of reads in a row that were not answered.
    unanswered: u32,
    not_before: Option<Instant>,
}

impl<R> Default for LaneState<R> {
    fn default() -> Self {
        LaneState { waiting: VecDeque::new(), under_way: 0, unanswered: 0, not_before: None }
    }
}

impl<R> LaneState<R> {
    fn has_room(&self) -> bool {
        let most = if self.unanswered > 0 { 1 } else { MAX_READS_UNDER_WAY_PER_LANE };
        !self.waiting.is_empty() && self.under_way < most
    }

    fn is_ready(&self, now: Instant) -> bool {
        self.has_room() && self.not_before.is_none_or(|at| at <= now)
    }
}

/// Live reads that wait. Who takes one has to report how it ended.
#[derive(Debug)]
pub(super) struct ReadQueue<R> {
    lanes: BTreeMap<ReadLane, LaneState<R>>,
    last_taken: ReadLane,
    under_way: usize,
    seed: Seed,
}

impl<R> ReadQueue<R> {
    pub(super) fn new(seed: Seed) -> Self {
        ReadQueue { lanes: BTreeMap::new(), last_taken: ReadLane::Reasons, under_way: 0, seed }
    }

    pub(super) fn enqueue(&mut self, lane: ReadLane, read: R) {
        self.lanes.entry(lane).or_default().waiting.push_back(read);
    }

    /// Takes the next read, if there is room for one: that of the next lane after the last one, of those that are ready.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<(ReadLane, R)> {
        let lane = self.next_lane(now)?;
        let state = self.lanes.get_mut(&lane)?;
        let read = state.waiting.pop_front()?;
        state.under_way += 1;
        self.under_way += 1;
        if lane != ReadLane::Reasons {
            self.last_taken = lane;
        }
        Some((lane, read))
    }

    /// Whether a read could be taken now.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.next_lane(now).is_some()
    }

    fn next_lane(&self, now: Instant) -> Option<ReadLane> {
        if self.under_way >= MAX_READS_UNDER_WAY {
            return None;
        }
        let ready = |lane: &(&ReadLane, &LaneState<R>)| lane.1.is_ready(now);
        let reasons = self.lanes.get_key_value(&ReadLane::Reasons);
        let after = self.lanes.range(self.last_taken..).filter(|(lane, _)| **lane != self.last_taken);
        let mut turn = reasons.into_iter().chain(after).chain(&self.lanes);
        turn.find(ready).map(|(lane, _)| *lane)
    }

    /// A read that was taken is not sent after all.
    pub(super) fn cancel_read(&mut self, lane: ReadLane) {
        let is_idle = |state: &mut LaneState<R>| {
            state.unanswered == 0 && state.waiting.is_empty() && state.under_way == 0
        };
        if self.end_read(lane).is_some_and(is_idle) {
            self.lanes.remove(&lane);
        }
    }

    fn end_read(&mut self, lane: ReadLane) -> Option<&mut LaneState<R>> {
        self.under_way = self.under_way.saturating_sub(1);
        let state = self.lanes.get_mut(&lane)?;
        state.under_way = state.under_way.saturating_sub(1);
        Some(state)
    }

    /// A read ended; `answered` if the server said something useful.
    pub(super) fn settle_read(&mut self, lane: ReadLane, answered: bool, now: Instant) {
        let seed = self.seed;
        let Some(state) = self.end_read(lane) else { return };
        if answered {
            (state.unanswered, state.not_before) = (0, None);
            if state.waiting.is_empty() && state.under_way == 0 {
                self.lanes.remove(&lane);
            }
        } else {
            // Those that were sent together fail together, and count once.
            if state.not_before.is_none_or(|at| at <= now) {
                state.unanswered = state.unanswered.saturating_add(1);
            }
            let key = match lane {
                ReadLane::Reasons => u64::MAX,
                ReadLane::Kind(kind) => u64::from(kind),
            };
            state.not_before = Some(now + UNANSWERED_READ_BACKOFF.delay_after(state.unanswered, seed, key));
        }
    }

    /// Earliest time at which a lane that did not answer is read again; `None` if none waits for that alone.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        let waits = self.lanes.values().filter(|lane| lane.has_room());
        waits.filter_map(|lane| lane.not_before).min().filter(|_| self.under_way < MAX_READS_UNDER_WAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds of which every read is answered after 10 ms, unless they are mute: then after five seconds it is not.
    struct SlowReadServer {
        queue: ReadQueue<u32>,
        mute: Vec<u32>,
        under_way: Vec<(Instant, ReadLane, bool)>,
        sent: Vec<(Duration, u32)>,
        start: Instant,
    }

    const TICK: Duration = Duration::from_millis(50);

    impl SlowReadServer {
        /// So many reads are ordered of each of these kinds.
        fn with(kinds: &[(u32, u32)], mute: &[u32]) -> SlowReadServer {
            let mut queue = ReadQueue::new(Seed(1));
            for (kind, reads) in kinds {
                (0..*reads).for_each(|read| queue.enqueue(lane(*kind), read));
            }
            let (under_way, sent) = (Vec::new(), Vec::new());
            SlowReadServer { queue, mute: mute.to_vec(), under_way, sent, start: Instant::now() }
        }

        /// One read a tick, as the budget allows.
        fn run(mut self, span: Duration) -> SlowReadServer {
            for tick in 0..span.as_millis() / TICK.as_millis() {
                let now = self.start + TICK * u32::try_from(tick).unwrap();
                let (done, left): (Vec<_>, Vec<_>) =
                    self.under_way.drain(..).partition(|(at, ..)| *at <= now);
                self.under_way = left;
                for (_, lane, answered) in done {
                    self.queue.settle_read(lane, answered, now);
                }
                assert_eq!(self.queue.is_ready(now), self.queue.next_lane(now).is_some());
                let Some((lane, _)) = self.queue.take_next(now) else { continue };
                let ReadLane::Kind(KindId(kind)) = lane else { continue };
                let mute = self.mute.contains(&kind);
                let takes = if mute { Duration::from_secs(5) } else { Duration::from_millis(10) };
                self.under_way.push((now + takes, lane, !mute));
                assert!(self.under_way.len() <= MAX_READS_UNDER_WAY);
                self.sent.push((now - self.start, kind));
            }
            self
        }

        fn count_of(&self, kind: u32) -> usize {
            self.sent.iter().filter(|(_, of)| *of == kind).count()
        }
    }

    fn lane(kind: u32) -> ReadLane {
        ReadLane::Kind(KindId(kind))
    }

    #[test]
    fn kinds_take_turns() {
        let server =
            SlowReadServer::with(&[(1, 1_000), (2, 3), (3, 1_000)], &[]).run(Duration::from_secs(10));
        assert_eq!(
            server.sent[..9].iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
            [1, 2, 3, 1, 2, 3, 1, 2, 3]
        );
        assert!(server.count_of(1).abs_diff(server.count_of(3)) <= 1);
    }

    #[test]
    fn a_kind_that_does_not_answer_takes_nothing_from_the_others() {
        let server = SlowReadServer::with(&[(1, 1_000), (2, 1_000)], &[1]).run(Duration::from_secs(52));
        assert_eq!(server.count_of(2), 1_000, "{:?}", server.sent.len());
    }

    #[test]
    fn what_does_not_answer_is_asked_ever_more_rarely_and_one_at_a_time() {
        let server = SlowReadServer::with(&[(1, 1_000)], &[1]).run(Duration::from_mins(10));
        assert_eq!(server.sent[..6].iter().filter(|(at, _)| *at < Duration::from_secs(1)).count(), 6);
        let later = server.sent.iter().filter(|(at, _)| *at > Duration::from_mins(1)).count();
        assert!((7..12).contains(&later), "{later} in nine minutes");
        assert!(server.queue.next_retry().is_some() || !server.under_way.is_empty());
    }

    #[test]
    fn what_answers_again_is_read_at_full_speed_at_once() {
        let mut server = SlowReadServer::with(&[(1, 1_000)], &[1]).run(Duration::from_secs(8));
        let now = server.start + Duration::from_mins(5);
        for (_, lane, _) in std::mem::take(&mut server.under_way) {
            server.queue.settle_read(lane, false, now);
        }
        let now = now + Duration::from_mins(1);
        let (lane, _) = server.queue.take_next(now).unwrap();
        assert!(server.queue.take_next(now).is_none(), "one shows whether the others would be answered");
        server.queue.settle_read(lane, true, now);
        let taken = (0..20).filter(|_| server.queue.take_next(now).is_some()).count();
        assert_eq!(taken, MAX_READS_UNDER_WAY_PER_LANE);
    }

    #[test]
    fn reasons_come_before_everything_else_and_leave_room() {
        let mut queue = ReadQueue::new(Seed(1));
        (0..20).for_each(|read| queue.enqueue(lane(1), read));
        (0..20).for_each(|read| queue.enqueue(ReadLane::Reasons, read));
        let now = Instant::now();
        let taken: Vec<_> = std::iter::from_fn(|| queue.take_next(now)).map(|(lane, _)| lane).collect();
        assert_eq!(taken[..6], [ReadLane::Reasons; 6]);
        assert_eq!(taken[6..], [lane(1); 2]);
    }

    #[test]
    fn a_queue_that_is_done_holds_nothing() {
        let mut queue = ReadQueue::new(Seed(1));
        queue.enqueue(lane(1), 1);
        let now = Instant::now();
        let (lane, _) = queue.take_next(now).unwrap();
        queue.settle_read(lane, true, now);
        assert!(queue.lanes.is_empty() && queue.next_retry().is_none() && !queue.is_ready(now));
    }
}
