//! What an outage cost: requests and log.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::failure::RequestFailure;

/// A request that the server was sent.
#[derive(Clone, Debug)]
pub(crate) struct OutageRequest {
    pub(crate) at: Duration,
    pub(crate) asked: String,
    /// A write of a parent or of an Event that succeeds: a server that never fails gets these too.
    pub(crate) is_news: bool,
    /// What a start asks about its rights and policies, and is answered.
    pub(crate) is_start: bool,
    /// It fails.
    pub(crate) fails: bool,
}

/// What an outage cost.
pub(crate) struct OutageCost {
    pub(crate) span: Duration,
    pub(crate) requests: Vec<OutageRequest>,
    pub(crate) log: Arc<LogVolume>,
    /// Parents that are told True at its end.
    pub(crate) ready: usize,
}

/// Lines of log by their message.
#[derive(Default)]
pub(crate) struct LogVolume {
    bytes: AtomicUsize,
    /// Bytes of lines that tell of a write that succeeded.
    news_bytes: AtomicUsize,
    lines: Mutex<BTreeMap<String, usize>>,
}

impl LogVolume {
    /// Bytes of all lines, but for those that tell of a write that succeeded: a day without failures has these too.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes of all lines.
    pub(crate) fn all_bytes(&self) -> usize {
        self.bytes() + self.news_bytes.load(Ordering::Relaxed)
    }

    /// Number of lines by their message.
    pub(crate) fn lines(&self) -> BTreeMap<String, usize> {
        self.lines.lock().unwrap().clone()
    }
}

/// Counts what is logged.
pub(crate) struct LogWriter(pub(crate) Arc<LogVolume>);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        let message = text["message"].as_str().unwrap_or("?").to_owned();
        let bytes = if message == "status written" { &self.0.news_bytes } else { &self.0.bytes };
        bytes.fetch_add(line.len(), Ordering::Relaxed);
        *self.0.lines.lock().unwrap().entry(message).or_default() += 1;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl OutageCost {
    /// From when on the service knows that the server fails: what it sent before, it sent to a server that works. The claim of a
    /// policy, which comes before the first lists, says nothing of parents.
    pub(crate) fn onset(&self, failure: RequestFailure) -> Duration {
        let is_of_policy = |request: &OutageRequest| request.asked.contains("/readinesspolicies/");
        let first = self.requests.iter().find(|request| request.fails && !is_of_policy(request));
        first.map_or(Duration::ZERO, |request| request.at + failure.known_after())
    }

    /// The requests of the second that has most of them, among those that begin `after` this time or later.
    pub(crate) fn busiest_second(&self, after: Duration, with_news: bool) -> Vec<&OutageRequest> {
        let late = self.requests.iter().filter(|request| request.at >= after && !request.is_start);
        let late: Vec<_> = late.filter(|request| with_news || !request.is_news).collect();
        let second = Duration::from_secs(1);
        let seconds = late.iter().enumerate().map(|(first, request)| {
            let rest = &late[first..];
            &rest[..rest.partition_point(|other| other.at < request.at + second)]
        });
        seconds.max_by_key(|requests| requests.len()).unwrap_or_default().to_vec()
    }
}

/// Number of requests by what was asked.
pub(crate) fn count_by_target(requests: &[&OutageRequest]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        *counts.entry(request.asked.replace(|letter: char| letter.is_ascii_digit(), "")).or_default() += 1;
    }
    counts
}
