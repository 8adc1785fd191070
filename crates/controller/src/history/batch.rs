//! What waits to be put away, and what a batch of it looks like. No clock and no wire.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use readiness::Time;
use watcher::status::time;

use super::pace::Pace;
use crate::core::Transition;

/// So many transitions make a batch, however young they are.
pub(super) const BATCH: usize = 2_000;
/// So many wait at most, for a store that does not answer.
pub(super) const WAITING: usize = 50_000;
/// So many bytes wait at most.
pub(super) const BYTES: usize = 32 << 20;

/// Transitions that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Each with when it came by the clock of this machine: its own moment is of the API server's.
    waiting: VecDeque<(Time, Arc<Transition>)>,
    bytes: usize,
}

/// Transitions of one day that go together.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where it goes, below the prefix.
    pub(super) key: String,
    pub(super) transitions: Vec<Arc<Transition>>,
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Keeps this one. Where that is too much, the oldest ones go; it says how many.
    pub(super) fn push(&mut self, transition: Arc<Transition>, now: Time) -> u64 {
        self.bytes += weight(&transition);
        self.waiting.push_back((now, transition));
        let mut lost = 0;
        while self.waiting.len() > WAITING || self.bytes > BYTES {
            let Some((_, oldest)) = self.waiting.pop_front() else { break };
            self.bytes -= weight(&oldest);
            lost += 1;
        }
        lost
    }

    /// There is a whole batch.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= BATCH
    }

    /// When it is time to put something away: at once where there is a whole batch, else at the pace.
    pub(super) fn due(&self, pace: &Pace) -> Option<Time> {
        let oldest = self.waiting.front()?.0;
        Some(if self.is_full() { Time(i64::MIN) } else { pace.due(oldest) })
    }

    /// The oldest ones, of one day, as batch `number` of `instance`.
    pub(super) fn take(&mut self, instance: &str, number: u64) -> Option<Batch> {
        let day = day(self.waiting.front()?.1.at);
        let mut transitions = Vec::new();
        while transitions.len() < BATCH && self.waiting.front().is_some_and(|(_, t)| self::day(t.at) == day) {
            let Some((_, next)) = self.waiting.pop_front() else { break };
            self.bytes -= weight(&next);
            transitions.push(next);
        }
        let last = time::format(transitions.last()?.at);
        let hour: String = last.get(11..19)?.chars().filter(char::is_ascii_digit).collect();
        Some(Batch { key: format!("date={day}/{hour}-{instance}-{number:06}.ndjson.gz"), transitions })
    }
}

impl Batch {
    /// A line for each, compressed.
    pub(super) fn encoded(&self) -> std::io::Result<Vec<u8>> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        for transition in &self.transitions {
            serde_json::to_writer(&mut out, &**transition)?;
            out.write_all(b"\n")?;
        }
        out.finish()
    }
}

/// What it takes in memory, roughly.
fn weight(transition: &Transition) -> usize {
    let causes: usize = transition.causes.iter().map(|c| c.detail.len() + c.place.name.len() + 160).sum();
    512 + transition.message.len() + causes
}

/// `2026-11-21`.
pub(super) fn day(at: Time) -> String {
    time::format(at).chars().take(10).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::Place;
    use readiness::rollup::ParentReason;

    /// 2026-11-21T23:59:00Z.
    pub(in super::super) const NOW: Time = Time(1_795_305_540_000);

    pub(in super::super) fn transition(at: Time, message: &str) -> Arc<Transition> {
        let parent = Place {
            group: "example.com".to_owned(),
            kind: "Database".to_owned(),
            namespace: "shop".to_owned(),
            name: "orders".to_owned(),
        };
        Arc::new(Transition {
            at,
            policy: "databases".to_owned(),
            parent,
            version: "v1".to_owned(),
            uid: "u".to_owned(),
            generation: Some(3),
            from: Some(ParentReason::AllChildrenReady),
            to: ParentReason::ChildrenFailed,
            message: message.to_owned(),
            causes: Vec::new(),
            shadow: false,
            kind: aggregator::KindId(7),
        })
    }

    #[test]
    fn a_batch_is_of_one_day_and_is_named_by_its_last_moment() {
        let mut buffer = Buffer::default();
        for second in [0, 30, 59, 61, 62] {
            buffer.push(transition(NOW + Duration::from_secs(second), ""), NOW);
        }
        let first = buffer.take("pod", 7).unwrap();
        assert_eq!(first.key, "date=2026-11-21/235959-pod-000007.ndjson.gz");
        assert_eq!(first.transitions.len(), 3);
        let second = buffer.take("pod", 8).unwrap();
        assert_eq!(second.key, "date=2026-11-22/000002-pod-000008.ndjson.gz");
        assert!(buffer.take("pod", 9).is_none() && buffer.bytes == 0);
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes_and_the_oldest_go() {
        let mut buffer = Buffer::default();
        let lost: u64 = (0..WAITING + 10).map(|at| buffer.push(transition(Time(at as i64), ""), NOW)).sum();
        assert_eq!((lost, buffer.len()), (10, WAITING));
        assert_eq!(buffer.waiting[0].1.at, Time(10));
        let mut buffer = Buffer::default();
        let long = "x".repeat(1_024);
        for at in 0..WAITING {
            buffer.push(transition(Time(at as i64), &long), NOW);
        }
        assert!(buffer.len() < WAITING && buffer.bytes <= BYTES);
    }

    #[test]
    fn it_is_due_when_it_is_many_or_old() {
        let mut buffer = Buffer::default();
        let pace = Pace::new(Duration::from_secs(60), NOW);
        assert_eq!(buffer.due(&pace), None);
        // The server's clock may be an hour off.
        buffer.push(transition(NOW + Duration::from_hours(1), ""), NOW);
        assert_eq!(buffer.due(&pace), Some(pace.due(NOW)));
        for _ in 0..BATCH {
            buffer.push(transition(NOW + Duration::from_hours(1), ""), NOW);
        }
        assert!(buffer.due(&pace) < Some(NOW));
        assert_eq!(buffer.take("pod", 0).map(|batch| batch.transitions.len()), Some(BATCH));
    }
}
