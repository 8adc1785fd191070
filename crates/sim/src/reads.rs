//! Live reads: the periodic pass at its bounded rate, the audit, and what the watch still lacks later.

use std::collections::BTreeSet;

use aggregator::KindId;
use controller::core::{Read, reads};
use sandbox::store::Request;
use serde::Deserialize;
use serde_json::value::RawValue;
use watcher::reflector::Awaited;
use watcher::wire::{Child, Meta};
use watcher::{Feed, Parent};

use crate::sabotage::Sabotage;
use crate::sim::{AUDIT, Event, Sim};
use crate::thing::Thing;

/// Twenty reads a second.
const RATE: i64 = 50;
/// The watch may be so much behind a live read.
const GRACE: i64 = 5_000;
/// So many objects are read whole in one audit.
const MOST: usize = 500;

/// A live read with what the server said.
#[derive(Debug)]
pub(crate) struct Answered {
    read: Read,
    /// The objects; none where it is gone.
    objects: Vec<Box<RawValue>>,
    /// As of then.
    revision: u64,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Box<RawValue>>,
}

impl Sim {
    /// The loop orders live reads.
    pub(crate) fn order(&mut self, reads: Vec<Read>) {
        for read in reads {
            if self.queued.insert(read.clone()) {
                self.looks.push_back(read);
            }
        }
        if !self.looking && !self.looks.is_empty() {
            self.looking = true;
            self.at(RATE, Event::Look);
        }
    }

    /// The next one goes out.
    pub(crate) fn look(&mut self) {
        let Some(read) = self.looks.pop_front() else {
            self.looking = false;
            return;
        };
        self.queued.remove(&read);
        self.ask(read);
        self.at(RATE, Event::Look);
    }

    fn ask(&mut self, read: Read) {
        let kind = usize::from(read.kind().0);
        let fails = !self.calm && self.fate.chance(8);
        if fails || self.barred(kind).is_some() {
            return;
        }
        let api = &self.scenario.kinds[kind].api;
        let (Read::One { namespace, .. } | Read::All { namespace, .. }) = &read;
        let root = api.path(Some(namespace.as_str()).filter(|n| !n.is_empty()));
        let path = match &read {
            Read::One { name, .. } => format!("{root}/{name}"),
            Read::All { .. } => root,
        };
        let response = self.store.handle(self.now, &Request::new("GET", &path));
        let objects = match (&read, response.status) {
            (_, 404) => Vec::new(),
            (Read::One { .. }, _) => serde_json::from_slice(&response.body).into_iter().collect(),
            (Read::All { .. }, _) => {
                serde_json::from_slice::<List>(&response.body).map(|l| l.items).unwrap_or_default()
            }
        };
        let (late, revision) = (self.fate.between(1, 60), self.store.revision());
        self.at(late, Event::Answered(Box::new(Answered { read, objects, revision })));
    }

    /// It is answered: both caches learn it.
    pub(crate) fn answered(&mut self, answered: Answered) {
        let Answered { read, objects, revision } = answered;
        let kind = usize::from(read.kind().0);
        let reflector = self.core.reflector.clone();
        self.learn(kind, &read, &objects, revision);
        let interest = &self.interests[kind];
        let mut ahead = Vec::new();
        if interest.parent.is_empty() {
            let live: Vec<Child> =
                objects.iter().filter_map(|o| serde_json::from_str(o.get()).ok()).collect();
            ahead.extend(found(&reflector, interest, &read, &live));
        } else {
            let live: Vec<Parent> = objects.iter().filter_map(|o| self.as_parent(o)).collect();
            ahead.extend(found(&reflector, interest, &read, &live));
        }
        if !ahead.is_empty() {
            let what: Vec<String> = ahead.iter().map(|a| format!("{} at {}", a.object, a.live)).collect();
            self.say_of(kind, format_args!("read live {}", what.join(", ")));
            let awaited = ahead.into_iter().map(|a| a.awaited).collect();
            self.at(GRACE, Event::Drift(awaited));
        }
        self.wake_loop();
    }

    /// What a live read says without doubt: each object that it has, and that the one it was asked for is gone if there is
    /// none of that name or another one.
    fn learn(&mut self, kind: usize, read: &Read, objects: &[Box<RawValue>], revision: u64) {
        for object in objects {
            let thing = self.thing(kind, object);
            self.shown.apply(thing);
        }
        let Read::One { namespace, name, known: Some(_), .. } = read else { return };
        let live = objects.first().map(|object| self.thing(kind, object).uid);
        let named = |t: &&std::rc::Rc<Thing>| t.kind == kind && t.namespace == *namespace && t.name == *name;
        let gone: Vec<String> = self
            .shown
            .held
            .values()
            .filter(named)
            .filter(|t| live.as_ref() != Some(&t.uid) && t.version <= revision)
            .map(|t| t.uid.clone())
            .collect();
        for uid in gone {
            self.shown.delete(&uid, 0);
        }
    }

    /// After a while: what is still known from live reads alone was lost by the watch.
    pub(crate) fn drift(&mut self, awaited: &[Awaited]) {
        let lost = awaited.iter().filter(|a| self.core.reflector.still_awaited(a)).count();
        self.counts.drift += lost as u64;
    }

    /// Metadata of everything of a kind; what differs is read whole.
    pub(crate) fn audit(&mut self, kind: usize) {
        self.at(AUDIT.as_millis() as i64, Event::Audit(kind));
        if self.sabotage == Some(Sabotage::DeletesLost) || self.barred(kind).is_some() {
            return;
        }
        let held = reads::held(&self.core.reflector, KindId(kind as u16), None);
        let path = self.scenario.kinds[kind].api.path(None);
        let response = self.store.handle(self.now, &Request::new("GET", &path));
        let list: Vec<Box<RawValue>> =
            serde_json::from_slice::<List>(&response.body).map(|l| l.items).unwrap_or_default();
        let metas: Vec<Meta> = list.iter().map(|o| Child::read(o).meta).collect();
        let differing = reads::differing(&self.core.reflector, &self.interests[kind], held, &metas, MOST);
        if !differing.is_empty() {
            self.say_of(kind, format_args!("audit reads {}", differing.len()));
        }
        let distinct: BTreeSet<Read> = differing.into_iter().collect();
        for read in distinct {
            self.ask(read);
        }
    }
}

fn found<K: Feed>(
    reflector: &watcher::reflector::Reflector,
    interest: &watcher::plan::Interest,
    read: &Read,
    live: &[K],
) -> Vec<reads::Ahead> {
    match read {
        Read::One { known, .. } => reads::found(reflector, interest, *known, live.first()),
        Read::All { .. } => live.iter().filter_map(|k| reads::listed(reflector, interest, k)).collect(),
    }
}
