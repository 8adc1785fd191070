//! Buffer of waiting transitions and rollouts, and the format of their batches. No clock and no I/O.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use readiness::Time;
use watcher::status::time;

use super::batch_pace::BatchPace;
use super::rollout_line::RolloutLine;
use rollcall_core::Transition;

/// Number of transitions that make a full batch, regardless of their age.
pub(super) const MAX_BATCH_TRANSITIONS: usize = 2_000;
/// Maximum number of waiting transitions while the store does not respond.
pub(super) const MAX_WAITING_TRANSITIONS: usize = 50_000;
/// Maximum size of the waiting transitions, in bytes.
pub(super) const MAX_WAITING_BYTES: usize = 32 << 20;

/// One line of the history.
#[derive(Clone, Debug)]
pub(super) enum HistoryLine {
    /// A transition.
    Transition(Arc<Transition>),
    /// A rollout that ended.
    Rollout(Arc<RolloutLine>),
}

impl HistoryLine {
    fn at(&self) -> Time {
        match self {
            HistoryLine::Transition(transition) => transition.at,
            HistoryLine::Rollout(rollout) => rollout.at,
        }
    }

    fn write_json(&self, out: impl Write) -> serde_json::Result<()> {
        match self {
            HistoryLine::Transition(transition) => serde_json::to_writer(out, &**transition),
            HistoryLine::Rollout(rollout) => serde_json::to_writer(out, &rollout.entry),
        }
    }

    /// Approximate memory, in bytes.
    fn bytes(&self) -> usize {
        match self {
            HistoryLine::Transition(transition) => transition_bytes(transition),
            HistoryLine::Rollout(line) => {
                1_024 + line.entry.rollout.as_ref().map_or(0, |rollout| rollout.parts.len() * 512)
            }
        }
    }
}

/// Waiting lines, oldest first.
#[derive(Debug, Default)]
pub(super) struct LineBuffer {
    /// Each with its time of arrival on this machine's clock: its own timestamp is of the API server's.
    waiting: VecDeque<(Time, HistoryLine)>,
    bytes: usize,
}

/// Lines of one day that are uploaded together.
#[derive(Debug)]
pub(super) struct HistoryBatch {
    /// Object key below the prefix.
    pub(super) key: String,
    pub(super) lines: Vec<HistoryLine>,
}

impl LineBuffer {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a line. Drops the oldest ones if the limits are exceeded, and returns their number.
    pub(super) fn push(&mut self, line: HistoryLine, now: Time) -> u64 {
        self.bytes += line.bytes();
        self.waiting.push_back((now, line));
        let mut lost = 0;
        while self.waiting.len() > MAX_WAITING_TRANSITIONS || self.bytes > MAX_WAITING_BYTES {
            let Some((_, oldest)) = self.waiting.pop_front() else { break };
            self.bytes -= oldest.bytes();
            lost += 1;
        }
        lost
    }

    /// True if a full batch is waiting.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_BATCH_TRANSITIONS
    }

    /// Time of the next upload: at once for a full batch, else as paced.
    pub(super) fn batch_due(&self, pace: &BatchPace) -> Option<Time> {
        let oldest = self.waiting.front()?.0;
        Some(if self.is_full() { Time(i64::MIN) } else { pace.batch_due(oldest) })
    }

    /// Takes the oldest lines, all of one day, as batch `number` of `instance`.
    pub(super) fn take_batch(&mut self, instance: &str, number: u64) -> Option<HistoryBatch> {
        let day = date_of(self.waiting.front()?.1.at());
        let mut lines = Vec::new();
        while lines.len() < MAX_BATCH_TRANSITIONS
            && self.waiting.front().is_some_and(|(_, line)| date_of(line.at()) == day)
        {
            let Some((_, next)) = self.waiting.pop_front() else { break };
            self.bytes -= next.bytes();
            lines.push(next);
        }
        // Whoever looks from a time on passes over the batches that end before it.
        let last = time::format_seconds(lines.iter().map(HistoryLine::at).max()?);
        let hour: String = last.get(11..19)?.chars().filter(char::is_ascii_digit).collect();
        Some(HistoryBatch { key: format!("date={day}/{hour}-{instance}-{number:06}.ndjson.gz"), lines })
    }
}

impl HistoryBatch {
    /// Encodes each line as JSON, compressed.
    pub(super) fn encode_gzip(&self) -> std::io::Result<Vec<u8>> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        for line in &self.lines {
            line.write_json(&mut out)?;
            out.write_all(b"\n")?;
        }
        out.finish()
    }
}

/// Approximate memory of a transition, in bytes.
fn transition_bytes(transition: &Transition) -> usize {
    let causes: usize = transition.causes.iter().map(|c| c.detail.len() + c.object.name.len() + 160).sum();
    512 + transition.message.len() + causes
}

/// `2026-11-21`.
pub(super) fn date_of(at: Time) -> String {
    time::format_seconds(at).chars().take(10).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use readiness::rollup::ParentReason;
    use rollcall_core::ObjectRef;

    /// 2026-11-21T23:59:00Z.
    pub(in super::super) const NOW: Time = Time(1_795_305_540_000);

    pub(in super::super) fn transition(at: Time, message: &str) -> Arc<Transition> {
        let parent = ObjectRef {
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

    fn line(at: Time, message: &str) -> HistoryLine {
        HistoryLine::Transition(transition(at, message))
    }

    #[test]
    fn a_batch_is_of_one_day_and_is_named_by_its_last_moment() {
        let mut buffer = LineBuffer::default();
        for second in [0, 30, 59, 61, 62] {
            buffer.push(line(NOW + Duration::from_secs(second), ""), NOW);
        }
        let first = buffer.take_batch("pod", 7).unwrap();
        assert_eq!(first.key, "date=2026-11-21/235959-pod-000007.ndjson.gz");
        assert_eq!(first.lines.len(), 3);
        let second = buffer.take_batch("pod", 8).unwrap();
        assert_eq!(second.key, "date=2026-11-22/000002-pod-000008.ndjson.gz");
        assert!(buffer.take_batch("pod", 9).is_none() && buffer.bytes == 0);
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes_and_the_oldest_go() {
        let mut buffer = LineBuffer::default();
        let lost: u64 = (0..MAX_WAITING_TRANSITIONS + 10)
            .map(|at| buffer.push(line(Time(i64::try_from(at).unwrap()), ""), NOW))
            .sum();
        assert_eq!((lost, buffer.len()), (10, MAX_WAITING_TRANSITIONS));
        assert_eq!(buffer.waiting[0].1.at(), Time(10));
        let mut buffer = LineBuffer::default();
        let long = "x".repeat(1_024);
        for at in 0..MAX_WAITING_TRANSITIONS {
            buffer.push(line(Time(i64::try_from(at).unwrap()), &long), NOW);
        }
        assert!(buffer.len() < MAX_WAITING_TRANSITIONS && buffer.bytes <= MAX_WAITING_BYTES);
    }

    #[test]
    fn it_is_due_when_it_is_many_or_old() {
        let mut buffer = LineBuffer::default();
        let pace = BatchPace::new(Duration::from_secs(60), NOW);
        assert_eq!(buffer.batch_due(&pace), None);
        // The server's clock may be an hour off.
        buffer.push(line(NOW + Duration::from_hours(1), ""), NOW);
        assert_eq!(buffer.batch_due(&pace), Some(pace.batch_due(NOW)));
        for _ in 0..MAX_BATCH_TRANSITIONS {
            buffer.push(line(NOW + Duration::from_hours(1), ""), NOW);
        }
        assert!(buffer.batch_due(&pace) < Some(NOW));
        assert_eq!(buffer.take_batch("pod", 0).map(|batch| batch.lines.len()), Some(MAX_BATCH_TRANSITIONS));
    }
}
