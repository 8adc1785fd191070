//! Lists and watches of every kind, as `follow` has them, over a wire that misbehaves: they lag, break, repeat, lose, are
//! refused, and find their place in the history gone.

use std::collections::BTreeSet;

use aggregator::KindId;
use controller::core::News;
use sandbox::store::{Cursor, Request};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::wire::Child;
use watcher::{Cause, Feed, Parent};

use crate::sabotage::Sabotage;
use crate::sim::{Event, Sim};
use crate::thing::Thing;

/// So many refusals in a row, and the place in the history is given up.
const REFUSALS: u32 = 3;

/// Where a kind's list or watch stands.
#[derive(Default)]
enum State {
    /// Neither.
    #[default]
    Down,
    /// What of a list is still to come.
    Listing { items: Vec<Box<RawValue>>, uids: BTreeSet<String>, revision: u64 },
    /// A watch.
    Watching(Box<Cursor>),
}

/// One kind's list and watch.
#[derive(Default)]
pub(crate) struct Wire {
    state: State,
    /// From where a watch can go on.
    place: Option<u64>,
    refusals: u32,
    deliver_at: Option<i64>,
    /// Nothing gets through until then.
    pub(crate) down_until: i64,
    /// We may not list or watch until then.
    pub(crate) forbidden_until: i64,
    /// Usual delay, in milliseconds.
    pub(crate) lag: i64,
    /// Everything was listed once in this life.
    pub(crate) synced: bool,
    /// When the server last answered; or when the process began.
    pub(crate) heard: i64,
    repeat: Option<Box<[u8]>>,
}

impl Wire {
    pub(crate) fn restart(&mut self, now: i64) {
        let (down_until, forbidden_until, lag) = (self.down_until, self.forbidden_until, self.lag);
        *self = Wire { down_until, forbidden_until, lag, heard: now, ..Wire::default() };
    }

    pub(crate) fn calm(&mut self) {
        (self.down_until, self.forbidden_until, self.lag) = (0, 0, 0);
    }
}

/// A line of a watch.
#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

impl Sim {
    fn tell(&mut self, kind: usize, news: News) {
        if matches!(news, News::Alive | News::Synced) {
            self.wires[kind].heard = self.now;
        }
        self.news.push_back((KindId(kind as u16), news));
        self.wake_loop();
    }

    fn troubled(&mut self, kind: usize, cause: Cause) {
        self.say_of(kind, format_args!("{}", cause.label()));
        self.tell(kind, News::Trouble(cause, cause.label().to_owned()));
    }

    /// May nothing be read of this kind now, and why?
    pub(crate) fn barred(&self, kind: usize) -> Option<Cause> {
        let wire = &self.wires[kind];
        match () {
            () if wire.down_until > self.now => Some(Cause::Connection),
            () if wire.forbidden_until > self.now => Some(Cause::Forbidden),
            () => None,
        }
    }

    /// Lists a kind, or goes on watching it.
    pub(crate) fn open(&mut self, kind: usize) {
        if let Some(cause) = self.barred(kind) {
            self.troubled(kind, cause);
            let wire = &mut self.wires[kind];
            wire.refusals += u32::from(cause == Cause::Forbidden);
            if wire.refusals >= REFUSALS {
                (wire.place, wire.refusals) = (None, 0);
            }
            let again = self.fate.between(200, 4_000);
            return self.at(again, Event::Open(kind));
        }
        self.wires[kind].refusals = 0;
        match self.wires[kind].place {
            None => self.list(kind),
            Some(place) => self.watch(kind, place),
        }
    }

    fn list(&mut self, kind: usize) {
        let path = self.scenario.kinds[kind].api.path(None);
        let response = self.store.handle(self.now, &Request::new("GET", &path));
        let Ok(list) = serde_json::from_slice::<List>(&response.body) else {
            return self.fail("a list can be read", String::from_utf8_lossy(&response.body));
        };
        let revision = list.metadata.resource_version.parse().unwrap_or(0);
        self.say_of(kind, format_args!("list of {} at {revision}", list.items.len()));
        self.core.reflector.begin(KindId(kind as u16), None);
        self.wires[kind].state = State::Listing { items: list.items, uids: BTreeSet::new(), revision };
        self.tell(kind, News::Listing);
        self.tell(kind, News::Alive);
        if self.sabotage == Some(Sabotage::SyncedEarly) {
            self.wires[kind].synced = false;
            self.news.push_back((KindId(kind as u16), News::Synced));
        }
        let after = self.fate.between(0, 30);
        self.at(after, Event::Page(kind));
    }

    /// The next few objects of a list, or its end.
    pub(crate) fn page(&mut self, kind: usize) {
        let slow = !self.calm && self.fate.chance(10);
        let (few, broken) = (1 + self.fate.below(12), !self.calm && self.fate.chance(4));
        let State::Listing { items, uids, revision } = &mut self.wires[kind].state else { return };
        if broken {
            self.wires[kind].state = State::Down;
            self.troubled(kind, Cause::Connection);
            let again = self.fate.between(200, 2_000);
            return self.at(again, Event::Open(kind));
        }
        let page: Vec<_> = items.drain(..few.min(items.len())).collect();
        if page.is_empty() {
            let (uids, revision) = (std::mem::take(uids), *revision);
            return self.list_ends(kind, revision, &uids);
        }
        for item in page {
            let uid = self.feed(kind, &item);
            if let State::Listing { uids, .. } = &mut self.wires[kind].state {
                uids.insert(uid);
            }
        }
        let after = if slow { self.fate.between(500, 5_000) } else { self.fate.between(0, 20) };
        self.at(after, Event::Page(kind));
        self.wake_loop();
    }

    fn list_ends(&mut self, kind: usize, revision: u64, uids: &BTreeSet<String>) {
        if self.sabotage != Some(Sabotage::NoSweep) {
            self.core.reflector.finish(KindId(kind as u16), None);
        }
        self.shown.listed(kind, revision, uids);
        let wire = &mut self.wires[kind];
        (wire.state, wire.place, wire.synced) = (State::Down, Some(revision), true);
        self.say_of(kind, format_args!("listed"));
        self.tell(kind, News::Synced);
        self.open(kind);
    }

    fn watch(&mut self, kind: usize, place: u64) {
        let path = self.scenario.kinds[kind].api.path(None);
        let seconds = self.fate.between(60, 90);
        let target = format!(
            "{path}?watch=1&resourceVersion={place}&timeoutSeconds={seconds}&allowWatchBookmarks=true"
        );
        let opened = self.store.open_watch(self.now, &Request::new("GET", &target));
        match opened {
            Ok(cursor) => {
                let wake = cursor.wake();
                self.wires[kind].state = State::Watching(Box::new(cursor));
                self.tell(kind, News::Alive);
                self.deliver_by(kind, wake.unwrap_or(self.now));
                self.deliver_by(kind, self.now);
            }
            Err(refusal) => self.fail("a watch can be opened", refusal.message()),
        }
    }

    /// A watch is looked at no later than `at`.
    fn deliver_by(&mut self, kind: usize, at: i64) {
        let wire = &mut self.wires[kind];
        if wire.deliver_at.is_none_or(|old| old > at) {
            wire.deliver_at = Some(at);
            self.at(at - self.now, Event::Deliver(kind));
        }
    }

    /// Something may have happened: every watch that is behind will bring it, after its lag.
    pub(crate) fn wake_watches(&mut self) {
        let revision = self.store.revision();
        for kind in 0..self.wires.len() {
            let behind = matches!(&self.wires[kind].state, State::Watching(c) if c.revision() < revision);
            if behind && revision != self.watch.revision {
                let lag = self.wires[kind].lag + self.fate.between(1, 25);
                self.deliver_by(kind, self.now + lag);
            }
        }
        self.watch.revision = revision;
    }

    /// Brings what a watch has, unless it breaks.
    pub(crate) fn deliver(&mut self, kind: usize) {
        if self.wires[kind].deliver_at != Some(self.now) {
            return;
        }
        self.wires[kind].deliver_at = None;
        if self.wires[kind].down_until > self.now {
            return self.broken(kind);
        }
        let State::Watching(mut cursor) = std::mem::take(&mut self.wires[kind].state) else { return };
        // A replica that lags may have seen only a part of what there is.
        let limit = if !self.calm && self.fate.chance(20) {
            cursor.revision() + self.fate.between(0, 4) as u64
        } else {
            u64::MAX
        };
        while let Some(line) = self.store.next_until(self.now, &mut cursor, limit) {
            let bytes = line.to_bytes();
            if !self.line(kind, &bytes, &line.object) {
                return;
            }
            self.wires[kind].place = Some(line.revision().max(self.wires[kind].place.unwrap_or(0)));
        }
        let (ended, wake) = (cursor.ended(), cursor.wake());
        let behind = cursor.revision() < self.store.revision() && limit != u64::MAX;
        self.wires[kind].state = State::Watching(cursor);
        if ended || (!self.calm && self.fate.chance(2)) {
            self.wires[kind].state = State::Down;
            let again = self.fate.between(1, 300);
            return self.at(again, Event::Open(kind));
        }
        if behind {
            let after = self.fate.between(5, 100);
            self.deliver_by(kind, self.now + after);
        }
        self.deliver_by(kind, wake.unwrap_or(self.now + 60_000));
    }

    fn broken(&mut self, kind: usize) {
        if matches!(self.wires[kind].state, State::Watching(_)) {
            self.wires[kind].state = State::Down;
            self.troubled(kind, Cause::Connection);
            let again = self.fate.between(200, 2_000);
            self.at(again, Event::Open(kind));
        }
    }

    /// One line of a watch; `false` where it ended the watch.
    fn line(&mut self, kind: usize, bytes: &[u8], value: &Value) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(bytes) else {
            self.fail("a line can be read", String::from_utf8_lossy(bytes));
            return false;
        };
        match line.r#type {
            "BOOKMARK" => return true,
            "ERROR" => {
                self.wires[kind].place = None;
                self.troubled(kind, Cause::Gone);
                let again = self.fate.between(10, 500);
                self.at(again, Event::Open(kind));
                return false;
            }
            _ => {}
        }
        let thing = Thing::read(kind, &self.scenario.kinds[kind], value);
        let deleted = line.r#type == "DELETED";
        let lost = !self.calm && self.fate.chance(2);
        if lost || (deleted && self.sabotage == Some(Sabotage::DeletesLost)) {
            self.counts.lost += 1;
            self.say_of(kind, format_args!("lost {} {}", line.r#type, named(&thing)));
            return true;
        }
        self.carry(kind, &line, thing);
        if !self.calm && self.fate.chance(5) {
            self.repeat(kind);
        }
        if self.wires[kind].repeat.is_none() || self.fate.chance(30) {
            self.wires[kind].repeat = Some(bytes.into());
        }
        true
    }

    fn carry(&mut self, kind: usize, line: &Line<'_>, thing: Thing) {
        self.say_of(kind, format_args!("{} {}", line.r#type, named(&thing)));
        if line.r#type == "DELETED" {
            self.core.reflector.delete(&thing.uid, thing.version);
            self.shown.delete(&thing.uid, thing.version);
        } else {
            self.apply(kind, line.object);
            self.shown.apply(thing);
        }
        self.wake_loop();
    }

    /// Something that was said before is said again.
    fn repeat(&mut self, kind: usize) {
        let Some(bytes) = self.wires[kind].repeat.clone() else { return };
        let mut bytes = bytes.to_vec();
        if self.sabotage == Some(Sabotage::StaleLooksNew)
            && let Ok(mut line) = serde_json::from_slice::<Value>(&bytes)
        {
            line["object"]["metadata"]["resourceVersion"] = self.store.revision().to_string().into();
            bytes = line.to_string().into_bytes();
            self.say("a repeated line looks new");
            let Ok(line) = serde_json::from_slice::<Line<'_>>(&bytes) else { return };
            // The second cache knows better.
            return self.apply(kind, line.object);
        }
        if let Ok(line) = serde_json::from_slice::<Line<'_>>(&bytes) {
            let thing = self.thing(kind, line.object);
            self.carry(kind, &line, thing);
        }
    }

    pub(crate) fn thing(&self, kind: usize, object: &RawValue) -> Thing {
        let value: Value = serde_json::from_str(object.get()).unwrap_or_default();
        Thing::read(kind, &self.scenario.kinds[kind], &value)
    }

    /// Shows one object to the product and to the second cache; its uid.
    pub(crate) fn feed(&mut self, kind: usize, object: &RawValue) -> String {
        let thing = self.thing(kind, object);
        let uid = thing.uid.clone();
        self.apply(kind, object);
        self.shown.apply(thing);
        uid
    }

    fn apply(&mut self, kind: usize, object: &RawValue) {
        let (reflector, interest) = (&self.core.reflector, &self.interests[kind]);
        if interest.parent.is_empty() {
            if let Ok(child) = serde_json::from_str::<Child>(object.get()) {
                reflector.apply(interest, &child, None);
            }
        } else if let Some(parent) = self.as_parent(object) {
            reflector.apply(interest, parent.child(), parent.text());
        }
    }

    pub(crate) fn as_parent(&self, object: &RawValue) -> Option<Parent> {
        if self.sabotage != Some(Sabotage::NoEvidence) {
            return serde_json::from_str(object.get()).ok();
        }
        let mut value: Value = serde_json::from_str(object.get()).ok()?;
        if let Some(status) = value["status"].as_object_mut() {
            status.remove("observedGeneration");
        }
        if let Some(conditions) = value["status"]["conditions"].as_array_mut() {
            for condition in conditions.iter_mut().filter(|c| c["type"] == "Synced") {
                condition["observedGeneration"] = Value::Null;
            }
        }
        if let Some(meta) = value["metadata"].as_object_mut() {
            meta.remove("annotations");
        }
        serde_json::from_str(&value.to_string()).ok()
    }
}

/// What a log calls an object.
fn named(thing: &Thing) -> String {
    format!("{}/{} at {}", thing.namespace, thing.name, thing.version)
}
