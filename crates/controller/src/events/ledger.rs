//! What is sent, and when: the same about the same parent within ten minutes is one Event with a count; one parent may not
//! talk all the time; and all of them together no faster than the server likes.
//!
//! No clock and no wire in here. The limits of one parent are those of client-go's own spam filter: 25 at once, then one in
//! five minutes (`tools/record/events_cache.go`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hasher;
use std::time::Duration;

use readiness::Time;
use rustc_hash::FxHasher;

use super::Notice;

/// As long as this after the last time, the same again is a repetition.
pub(super) const SERIES: Duration = Duration::from_secs(600);
/// A repetition is sent this long after the last message about its series, so that many become one.
pub(super) const GATHERED: Duration = Duration::from_secs(10);
/// One parent's Events at once.
pub(super) const BURST: f64 = 25.0;
/// Until one parent may send another one.
pub(super) const REFILL: Duration = Duration::from_secs(300);
/// All Events at once, and a second.
pub(super) const ALL_BURST: f64 = 100.0;
/// Until anybody may send another one: 20 a second.
pub(super) const ALL_REFILL: Duration = Duration::from_millis(50);
/// So many wait at most.
pub(super) const WAITING: usize = 1_000;
/// So many series are known at most; the one that was quiet for longest is forgotten first.
pub(super) const KNOWN: usize = 8_192;

/// A new Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewEvent {
    pub(super) notice: Notice,
    /// Its `metadata.name`.
    pub(super) name: String,
    pub(super) at: Time,
    key: Key,
}

/// An Event that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Series {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) last: Time,
    key: Key,
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Create(Box<NewEvent>),
    Repeat(Series),
}

/// A parent's uid and a reason.
type Key = (Box<str>, &'static str);

/// What is known of one series.
#[derive(Debug)]
struct Story {
    namespace: String,
    name: String,
    count: u32,
    last: Time,
    /// The server has it. Before, there is nothing to patch.
    created: bool,
    /// When what was gathered is to be sent.
    due: Option<Time>,
}

/// Tokens that come back with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Time,
}

impl Bucket {
    fn refill(&mut self, now: Time, burst: f64, every: Duration) {
        let since = (now - self.at).as_secs_f64() / every.as_secs_f64();
        *self = Bucket { left: (self.left + since).min(burst), at: now };
    }

    fn take(&mut self) -> bool {
        let enough = self.left >= 1.0;
        self.left -= f64::from(u8::from(enough));
        enough
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    series: BTreeMap<Key, Story>,
    /// Series by their last time, to forget the quiet ones.
    quiet: BTreeSet<(Time, Key)>,
    parents: BTreeMap<Box<str>, Bucket>,
    waiting: VecDeque<NewEvent>,
    due: BTreeSet<(Time, Key)>,
    all: Bucket,
}

impl Default for Ledger {
    fn default() -> Self {
        let all = Bucket { left: ALL_BURST, at: Time::default() };
        Ledger {
            series: BTreeMap::new(),
            quiet: BTreeSet::new(),
            parents: BTreeMap::new(),
            waiting: VecDeque::new(),
            due: BTreeSet::new(),
            all,
        }
    }
}

impl Ledger {
    /// This happened. `false` where it is more than may be sent.
    pub(super) fn note(&mut self, notice: Notice, now: Time) -> bool {
        self.forget(now);
        let key: Key = (notice.uid.as_str().into(), notice.reason);
        if let Some(story) = self.series.get_mut(&key) {
            self.quiet.remove(&(story.last, key.clone()));
            (story.count, story.last) = (story.count + 1, now);
            self.quiet.insert((now, key.clone()));
            if story.created && story.due.is_none() {
                story.due = Some(now + GATHERED);
                self.due.insert((now + GATHERED, key));
            }
            return true;
        }
        let bucket = self.parents.entry(key.0.clone()).or_insert(Bucket { left: BURST, at: now });
        bucket.refill(now, BURST, REFILL);
        if self.waiting.len() >= WAITING || !bucket.take() {
            return false;
        }
        let name = name(&notice, now);
        let namespace = namespace(&notice).to_owned();
        let story = Story { namespace, name: name.clone(), count: 1, last: now, created: false, due: None };
        self.series.insert(key.clone(), story);
        self.quiet.insert((now, key.clone()));
        self.waiting.push_back(NewEvent { notice, name, at: now, key });
        true
    }

    /// What may be sent now.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Order> {
        let ripe = self.due.first().is_some_and(|(at, _)| *at <= now);
        if self.waiting.is_empty() && !ripe {
            return None;
        }
        self.all.refill(now, ALL_BURST, ALL_REFILL);
        if !self.all.take() {
            return None;
        }
        if let Some(event) = self.waiting.pop_front() {
            return Some(Order::Create(Box::new(event)));
        }
        let (_, key) = self.due.pop_first()?;
        let story = self.series.get_mut(&key)?;
        story.due = None;
        let Story { namespace, name, count, last, .. } = story;
        Some(Order::Repeat(Series {
            namespace: namespace.clone(),
            name: name.clone(),
            count: *count,
            last: *last,
            key,
        }))
    }

    /// When to ask again, if nothing is noted before.
    pub(super) fn next_due(&self) -> Option<Time> {
        let next = if self.waiting.is_empty() { self.due.first().map(|(at, _)| *at)? } else { self.all.at };
        // A full bucket has nothing to wait for.
        let missing = ALL_REFILL.mul_f64((1.0 - self.all.left).max(0.0));
        Some(next.max(self.all.at + missing + Duration::from_millis(1)))
    }

    /// It was sent. What did not arrive begins anew at its next time.
    pub(super) fn sent(&mut self, order: &Order, arrived: bool, now: Time) {
        let key = match order {
            Order::Create(event) => &event.key,
            Order::Repeat(series) => &series.key,
        };
        let Some(story) = self.series.get_mut(key) else { return };
        if !arrived {
            self.drop_series(&key.clone());
            return;
        }
        story.created = true;
        let told = match order {
            Order::Create(_) => 1,
            Order::Repeat(series) => series.count,
        };
        if story.count > told && story.due.is_none() {
            story.due = Some(now + GATHERED);
            self.due.insert((now + GATHERED, key.clone()));
        }
    }

    fn forget(&mut self, now: Time) {
        while let Some((last, key)) = self.quiet.first() {
            // One that waits to be sent is not forgotten for its age.
            let waits = self.series.get(key).is_some_and(|story| !story.created || story.due.is_some());
            let over = now - *last > SERIES && !waits;
            if !over && self.series.len() < KNOWN {
                break;
            }
            let key = key.clone();
            self.drop_series(&key);
        }
        if self.parents.len() > KNOWN {
            self.parents.retain(|_, bucket| {
                bucket.refill(now, BURST, REFILL);
                bucket.left < BURST
            });
        }
        // All of them talk too much: the strict ones stay strict as long as there is room.
        while self.parents.len() > 2 * KNOWN {
            self.parents.pop_first();
        }
    }

    fn drop_series(&mut self, key: &Key) {
        if let Some(story) = self.series.remove(key) {
            self.quiet.remove(&(story.last, key.clone()));
            if let Some(at) = story.due {
                self.due.remove(&(at, key.clone()));
            }
        }
    }
}

/// Where an Event lives: with its parent; those about cluster-scoped objects are all in `default`, as the API asks.
fn namespace(notice: &Notice) -> &str {
    if notice.about.namespace.is_empty() { "default" } else { &notice.about.namespace }
}

/// As client-go names them: the object, and a number that is unique in time.
fn name(notice: &Notice, now: Time) -> String {
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
mod tests {
    use super::*;
    use crate::transitions::Place;

    const NOW: Time = Time(1_800_000_000_000);

    fn notice(uid: &str, reason: &'static str) -> Notice {
        let about = Place {
            group: "example.com".to_owned(),
            kind: "Database".to_owned(),
            namespace: "shop".to_owned(),
            name: uid.to_owned(),
        };
        let (version, uid, note) = ("v1".to_owned(), uid.to_owned(), "1 of 3 not ready".to_owned());
        Notice { about, version, uid, reason, note, warning: true }
    }

    fn after(seconds: u64) -> Time {
        NOW + Duration::from_secs(seconds)
    }

    /// Everything that may be sent at `now`; all of it arrives.
    fn send(ledger: &mut Ledger, now: Time) -> Vec<Order> {
        let orders: Vec<_> = std::iter::from_fn(|| ledger.take_due(now)).collect();
        for order in &orders {
            ledger.sent(order, true, now);
        }
        orders
    }

    fn counts(orders: &[Order]) -> Vec<u32> {
        let count = |order: &Order| match order {
            Order::Create(_) => 1,
            Order::Repeat(series) => series.count,
        };
        orders.iter().map(count).collect()
    }

    #[test]
    fn the_same_within_ten_minutes_is_one_event_with_a_count() {
        let mut ledger = Ledger::default();
        assert!(ledger.note(notice("a", "ChildrenFailed"), NOW));
        assert_eq!(counts(&send(&mut ledger, NOW)), [1]);
        for second in 1..=5 {
            assert!(ledger.note(notice("a", "ChildrenFailed"), after(second)));
        }
        assert!(send(&mut ledger, after(6)).is_empty(), "they are gathered first");
        let orders = send(&mut ledger, after(11));
        assert_eq!(counts(&orders), [6]);
        let [Order::Repeat(series)] = &orders[..] else { panic!("{orders:?}") };
        assert_eq!(series.last, after(5));
        // Another reason is another Event, and so is the same one much later.
        assert!(ledger.note(notice("a", "ChildrenStuck"), after(20)));
        assert!(ledger.note(notice("a", "ChildrenFailed"), after(700)));
        let orders = send(&mut ledger, after(700));
        assert!(orders.iter().all(|order| matches!(order, Order::Create(_))), "{orders:?}");
        assert_eq!(orders.len(), 2);
    }

    #[test]
    fn what_repeats_before_its_event_was_sent_is_counted_too() {
        let mut ledger = Ledger::default();
        for _ in 0..3 {
            ledger.note(notice("a", "ChildrenFailed"), NOW);
        }
        assert_eq!(counts(&send(&mut ledger, NOW)), [1]);
        assert_eq!(ledger.next_due().map(|at| at >= after(10)), Some(true));
        assert_eq!(counts(&send(&mut ledger, after(10))), [3]);
        assert_eq!(ledger.next_due(), None);
    }

    #[test]
    fn one_parent_may_not_talk_all_the_time() {
        let mut ledger = Ledger::default();
        let reason = |at: usize| readiness::rollup::ParentReason::ALL[at % 18].word();
        // 18 reasons, each anew because more than ten minutes lie between: so a parent's own limit is what holds.
        let mut sent = 0;
        for round in 0..200 {
            let at = after(round * 40);
            sent += usize::from(ledger.note(notice("a", reason(round as usize)), at));
            send(&mut ledger, at);
        }
        // 25 at once, and one more every five minutes of 8,000 seconds.
        assert!((25..=25 + 8_000 / 300 + 1).contains(&sent), "{sent}");
        assert!(ledger.note(notice("b", "ChildrenFailed"), after(8_000)), "others may");
    }

    #[test]
    fn all_together_are_no_faster_than_twenty_a_second_and_what_waits_is_bounded() {
        let mut ledger = Ledger::default();
        let noted =
            (0..5_000).filter(|at| ledger.note(notice(&format!("p-{at}"), "ChildrenFailed"), NOW)).count();
        assert_eq!(noted, WAITING);
        assert_eq!(send(&mut ledger, NOW).len(), ALL_BURST as usize);
        let next = ledger.next_due().unwrap();
        assert!(next > NOW && next - NOW <= ALL_REFILL + Duration::from_millis(2), "{next:?}");
        assert_eq!(send(&mut ledger, after(2)).len(), 40);
    }

    #[test]
    fn what_did_not_arrive_begins_anew() {
        let mut ledger = Ledger::default();
        ledger.note(notice("a", "ChildrenFailed"), NOW);
        let order = ledger.take_due(NOW).unwrap();
        ledger.sent(&order, false, NOW);
        ledger.note(notice("a", "ChildrenFailed"), after(1));
        assert!(matches!(ledger.take_due(after(1)), Some(Order::Create(_))));
    }

    #[test]
    fn it_is_bounded_whatever_happens() {
        let mut ledger = Ledger::default();
        for at in 0..50_000_u32 {
            let now = NOW + Duration::from_millis(u64::from(at));
            ledger.note(notice(&format!("p-{at}"), "ChildrenFailed"), now);
            send(&mut ledger, now);
        }
        assert!(ledger.series.len() <= KNOWN && ledger.quiet.len() == ledger.series.len());
        assert!(ledger.parents.len() <= 2 * KNOWN, "{}", ledger.parents.len());
        assert!(ledger.due.len() <= KNOWN);
    }

    #[test]
    fn a_name_is_one_that_the_server_takes() {
        let mut long = notice("a", "ChildrenFailed");
        long.about.name = format!("{}.{}", "x".repeat(229), "y".repeat(20));
        let name = name(&long, NOW);
        assert!(name.len() <= 253 && !name.contains(".."), "{name}");
        assert_ne!(super::name(&long, after(1)), name);
    }
}
