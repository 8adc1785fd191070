//! Aggregation and rate limits of Events: repetitions about the same parent within ten minutes become one Event with a
//! count; each parent is limited; and so are all of them together.
//!
//! No clock and no I/O. The limits of one parent are those of client-go's spam filter: 25 at once, then one in five
//! minutes (`tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hasher;
use std::time::Duration;

use readiness::Time;
use rustc_hash::FxHasher;

use super::event_notice::EventNotice;

/// Time since the last occurrence within which the same Event is a repetition. 10 min.
pub(super) const SERIES_WINDOW: Duration = Duration::from_secs(600);
/// Delay since the last message about a series after which repetitions are sent, so that many become one. 1 min.
pub(super) const SERIES_FLUSH_DELAY: Duration = Duration::from_mins(1);
/// Burst of Events of one parent.
pub(super) const PARENT_EVENT_BURST: f64 = 25.0;
/// Interval at which one parent gains another Event.
pub(super) const PARENT_EVENT_REFILL: Duration = Duration::from_secs(300);
/// Burst of all Events together.
pub(super) const TOTAL_EVENT_BURST: f64 = 50.0;
/// Interval at which the total gains another Event: 5 a second, as many requests as client-go allows a client by default.
pub(super) const TOTAL_EVENT_REFILL: Duration = Duration::from_millis(200);
/// Maximum number of queued Events.
pub(super) const MAX_QUEUED_EVENTS: usize = 1_000;
/// Maximum number of tracked series; the longest quiet one is forgotten first.
pub(super) const MAX_TRACKED_SERIES: usize = 8_192;

/// New Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewEvent {
    pub(super) notice: EventNotice,
    /// Its `metadata.name`.
    pub(super) name: String,
    pub(super) at: Time,
    key: SeriesKey,
}

/// Repetition of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventSeries {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) last: Time,
    key: SeriesKey,
}

/// Request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventRequest {
    Create(Box<NewEvent>),
    Repeat(EventSeries),
}

/// Uid of a parent, and a reason.
type SeriesKey = (Box<str>, &'static str);

/// State of one series.
#[derive(Debug)]
struct SeriesState {
    namespace: String,
    name: String,
    count: u32,
    last: Time,
    /// The server has the Event. Before that there is nothing to patch.
    created: bool,
    /// Time at which the repetitions are sent.
    due: Option<Time>,
}

/// Token bucket.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    left: f64,
    at: Time,
}

impl TokenBucket {
    fn refill(&mut self, now: Time, burst: f64, every: Duration) {
        let since = (now - self.at).as_secs_f64() / every.as_secs_f64();
        *self = TokenBucket { left: (self.left + since).min(burst), at: now };
    }

    fn try_take(&mut self) -> bool {
        let enough = self.left >= 1.0;
        self.left -= f64::from(u8::from(enough));
        enough
    }
}

/// Event correlator; see the module.
#[derive(Debug)]
pub(super) struct EventCorrelator {
    series: BTreeMap<SeriesKey, SeriesState>,
    /// Series by the time of their last occurrence, to forget the quiet ones.
    quiet: BTreeSet<(Time, SeriesKey)>,
    parents: BTreeMap<Box<str>, TokenBucket>,
    waiting: VecDeque<NewEvent>,
    due: BTreeSet<(Time, SeriesKey)>,
    all: TokenBucket,
}

impl Default for EventCorrelator {
    fn default() -> Self {
        let all = TokenBucket { left: TOTAL_EVENT_BURST, at: Time::default() };
        EventCorrelator {
            series: BTreeMap::new(),
            quiet: BTreeSet::new(),
            parents: BTreeMap::new(),
            waiting: VecDeque::new(),
            due: BTreeSet::new(),
            all,
        }
    }
}

impl EventCorrelator {
    /// Admits a notice of what happened at `at`. Returns false if it exceeds a limit.
    pub(super) fn admit_notice(&mut self, notice: EventNotice, at: Time, now: Time) -> bool {
        self.evict_series(now);
        let key: SeriesKey = (notice.uid.as_str().into(), notice.reason);
        if let Some(story) = self.series.get_mut(&key) {
            self.quiet.remove(&(story.last, key.clone()));
            (story.count, story.last) = (story.count + 1, at);
            self.quiet.insert((at, key.clone()));
            if story.created && story.due.is_none() {
                story.due = Some(now + SERIES_FLUSH_DELAY);
                self.due.insert((now + SERIES_FLUSH_DELAY, key));
            }
            return true;
        }
        let bucket =
            self.parents.entry(key.0.clone()).or_insert(TokenBucket { left: PARENT_EVENT_BURST, at: now });
        bucket.refill(now, PARENT_EVENT_BURST, PARENT_EVENT_REFILL);
        if self.waiting.len() >= MAX_QUEUED_EVENTS || !bucket.try_take() {
            return false;
        }
        let name = event_name(&notice, at);
        let namespace = event_namespace(&notice).to_owned();
        let story =
            SeriesState { namespace, name: name.clone(), count: 1, last: at, created: false, due: None };
        self.series.insert(key.clone(), story);
        self.quiet.insert((at, key.clone()));
        self.waiting.push_back(NewEvent { notice, name, at, key });
        true
    }

    /// Takes the next request that may be sent now.
    pub(super) fn take_due(&mut self, now: Time) -> Option<EventRequest> {
        let is_due = self.due.first().is_some_and(|(at, _)| *at <= now);
        if self.waiting.is_empty() && !is_due {
            return None;
        }
        self.all.refill(now, TOTAL_EVENT_BURST, TOTAL_EVENT_REFILL);
        if !self.all.try_take() {
            return None;
        }
        if let Some(event) = self.waiting.pop_front() {
            return Some(EventRequest::Create(Box::new(event)));
        }
        let (_, key) = self.due.pop_first()?;
        let story = self.series.get_mut(&key)?;
        story.due = None;
        let SeriesState { namespace, name, count, last, .. } = story;
        Some(EventRequest::Repeat(EventSeries {
            namespace: namespace.clone(),
            name: name.clone(),
            count: *count,
            last: *last,
            key,
        }))
    }

    /// Forgets what could be sent at once.
    pub(super) fn forgo_burst(&mut self) {
        self.all.left = 0.0;
    }

    /// Time of the next request if nothing is admitted before.
    pub(super) fn next_due(&self) -> Option<Time> {
        let next = if self.waiting.is_empty() { self.due.first().map(|(at, _)| *at)? } else { self.all.at };
        // A full bucket does not have to wait.
        let missing = TOTAL_EVENT_REFILL.mul_f64((1.0 - self.all.left).max(0.0));
        Some(next.max(self.all.at + missing + Duration::from_millis(1)))
    }

    /// Settles a request. A series whose Event did not arrive is created again at its next occurrence.
    pub(super) fn settle_request(&mut self, order: &EventRequest, arrived: bool, now: Time) {
        let key = match order {
            EventRequest::Create(event) => &event.key,
            EventRequest::Repeat(series) => &series.key,
        };
        let Some(story) = self.series.get_mut(key) else { return };
        if !arrived {
            self.drop_series(&key.clone());
            return;
        }
        story.created = true;
        let told = match order {
            EventRequest::Create(_) => 1,
            EventRequest::Repeat(series) => series.count,
        };
        if story.count > told && story.due.is_none() {
            story.due = Some(now + SERIES_FLUSH_DELAY);
            self.due.insert((now + SERIES_FLUSH_DELAY, key.clone()));
        }
    }

    fn evict_series(&mut self, now: Time) {
        while let Some((last, key)) = self.quiet.first() {
            // A series with a pending request is not forgotten for its age.
            let waits = self.series.get(key).is_some_and(|story| !story.created || story.due.is_some());
            let over = now - *last > SERIES_WINDOW && !waits;
            if !over && self.series.len() < MAX_TRACKED_SERIES {
                break;
            }
            let key = key.clone();
            self.drop_series(&key);
        }
        if self.parents.len() > MAX_TRACKED_SERIES {
            self.parents.retain(|_, bucket| {
                bucket.refill(now, PARENT_EVENT_BURST, PARENT_EVENT_REFILL);
                bucket.left < PARENT_EVENT_BURST
            });
        }
        // All of them exceed their limit: the limited ones stay limited as long as there is room.
        while self.parents.len() > 2 * MAX_TRACKED_SERIES {
            self.parents.pop_first();
        }
    }

    fn drop_series(&mut self, key: &SeriesKey) {
        if let Some(story) = self.series.remove(key) {
            self.quiet.remove(&(story.last, key.clone()));
            if let Some(at) = story.due {
                self.due.remove(&(at, key.clone()));
            }
        }
    }
}

/// Namespace of an Event: the parent's; `default` for cluster-scoped objects, as the API requires.
fn event_namespace(notice: &EventNotice) -> &str {
    if notice.about.namespace.is_empty() { "default" } else { &notice.about.namespace }
}

/// Name of an Event, formed as client-go does: the object's name, and a number that is unique in time.
fn event_name(notice: &EventNotice, now: Time) -> String {
    let mut hash = FxHasher::default();
    hash.write(notice.uid.as_bytes());
    hash.write(notice.reason.as_bytes());
    hash.write_i64(now.0);
    // A name may have 253 characters.
    let about: String = notice.about.name.chars().take(230).collect();
    let about = about.trim_end_matches(['-', '.']);
    format!("{about}.{:016x}", hash.finish())
}

#[cfg(test)]
mod tests;
