//! Live reads: the rate-limited resync pass, the audit, and drift, the changes that the watch has not delivered in
//! time.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::KindId;
use readiness::saturating_millis;
use rollcall_core::{KnownObject, LiveRead, live_reads};
use sandbox::store::StoreRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use watcher::reflector::{AwaitedVersion, ReadStart};
use watcher::wire::{ChildObject, WireMeta};
use watcher::{ParentObject, ReflectorObject};

use crate::answered_read::{AnsweredRead, OrderedRead};
use crate::object_model::ModelObject;
use crate::sabotage::Sabotage;
use crate::scenario::kind_id;
use crate::sim::{AUDIT_PERIOD, Sim, SimEvent};

/// Interval between live reads, in milliseconds: twenty reads a second.
const READ_INTERVAL_MS: i64 = 50;
/// Longest time that the watch may lag behind a live read, in milliseconds, before the difference counts as drift.
const WATCH_GRACE_MS: i64 = 5_000;
/// Largest number of objects read whole in one audit.
const MAX_AUDIT_READS: usize = 500;

#[derive(Deserialize)]
struct ReadListBody {
    items: Vec<Box<RawValue>>,
}

impl Sim {
    /// Queues the live reads that the loop requested.
    pub(crate) fn enqueue_reads(&mut self, reads: Vec<LiveRead>) {
        for read in reads {
            if self.queued_read_set.insert(read.clone()) {
                let order = self.order_read(read);
                self.queued_reads.push_back(order);
            }
        }
        if !self.is_reading && !self.queued_reads.is_empty() {
            self.is_reading = true;
            self.schedule_event(READ_INTERVAL_MS, SimEvent::NextRead);
        }
    }

    /// Sends the next live read.
    pub(crate) fn send_next_read(&mut self) {
        let Some(order) = self.queued_reads.pop_front() else {
            self.is_reading = false;
            return;
        };
        self.queued_read_set.remove(&order.read);
        self.send_read(order);
        self.schedule_event(READ_INTERVAL_MS, SimEvent::NextRead);
    }

    fn send_read(&mut self, order: OrderedRead) {
        let read = &order.read;
        let kind = usize::from(read.kind().0);
        let fails = !self.calm && self.fault_dice.chance(8);
        if fails || self.blocked_cause(kind).is_some() {
            return;
        }
        let api = &self.scenario.kinds[kind].api;
        let (LiveRead::One { namespace, .. } | LiveRead::All { namespace, .. }) = read;
        let root = api.list_path(Some(namespace.as_str()).filter(|n| !n.is_empty()));
        let path = match read {
            LiveRead::One { name, .. } => format!("{root}/{name}"),
            LiveRead::All { .. } => root,
        };
        let response = self.store.handle_request(self.now, &StoreRequest::new("GET", &path));
        let objects = match (read, response.status) {
            (_, 404) => Vec::new(),
            (LiveRead::One { .. }, _) => serde_json::from_slice(&response.body).into_iter().collect(),
            (LiveRead::All { .. }, _) => {
                serde_json::from_slice::<ReadListBody>(&response.body).map(|l| l.items).unwrap_or_default()
            }
        };
        let late = self.fault_dice.between(1, 60);
        let objects = self.deny_sometimes(read, objects);
        let answered = AnsweredRead {
            start: self.core.reflector.start_read(),
            sent: self.shown.moment(),
            order,
            objects,
        };
        self.schedule_event(late, SimEvent::Answered(Box::new(answered)));
    }

    /// Some servers deny for a moment that an object is there.
    fn deny_sometimes(&mut self, read: &LiveRead, objects: Vec<Box<RawValue>>) -> Vec<Box<RawValue>> {
        if self.calm || !matches!(read, LiveRead::One { .. }) || !self.denial_dice.chance(2) {
            return objects;
        }
        self.log_kind_event(usize::from(read.kind().0), "the server denies that an object is there");
        Vec::new()
    }

    fn order_read(&self, read: LiveRead) -> OrderedRead {
        let LiveRead::One { known: Some(known), .. } = &read else {
            return OrderedRead { read, known: BTreeMap::new() };
        };
        // Of others that bear the name, because a watch lost a deletion, the loop learns nothing by this read.
        let expected = |t: &&std::rc::Rc<ModelObject>| {
            KnownObject::of(&self.core.reflector, &t.uid).as_ref() == Some(known)
        };
        let held = self.shown.held.values().filter(expected);
        let known = held.map(|t| (t.uid.clone(), t.version)).collect();
        OrderedRead { read, known }
    }

    /// Applies the answer to both caches.
    pub(crate) fn receive_read(&mut self, answered: AnsweredRead) {
        self.apply_read_to_shown(&answered);
        let AnsweredRead { order: OrderedRead { read, .. }, objects, start, .. } = answered;
        let kind = usize::from(read.kind().0);
        let reflector = self.core.reflector.clone();
        let (of, no_parents) = (kind_id(kind), !self.interests[kind].reads_whole());
        let mut ahead = Vec::new();
        if no_parents {
            let live: Vec<ChildObject> =
                objects.iter().filter_map(|o| serde_json::from_str(o.get()).ok()).collect();
            ahead.extend(find_ahead(&reflector, of, start, &read, &live));
        } else {
            let live: Vec<ParentObject> = objects.iter().filter_map(|o| self.decode_parent(o)).collect();
            ahead.extend(find_ahead(&reflector, of, start, &read, &live));
        }
        if !ahead.is_empty() {
            let what: Vec<String> = ahead.iter().map(|a| format!("{} at {}", a.object, a.live)).collect();
            self.log_kind_event(kind, format_args!("read live {}", what.join(", ")));
            let awaited = ahead.into_iter().map(|a| a.awaited).collect();
            self.schedule_event(WATCH_GRACE_MS, SimEvent::Drift(awaited));
        }
        self.wake_loop();
    }

    /// Applies what a live read shows: each object in the answer is there; and what was known under the name before the
    /// read was sent is gone, if the answer has no object of that name, or one with another UID.
    fn apply_read_to_shown(&mut self, answered: &AnsweredRead) {
        let kind = usize::from(answered.order.read.kind().0);
        for object in &answered.objects {
            let thing = self.model_object(kind, object);
            self.shown.apply_read(thing, answered.sent);
        }
        let live = answered.objects.first().map(|object| self.model_object(kind, object).uid);
        for (uid, version) in answered.order.known.iter().filter(|(uid, _)| live.as_ref() != Some(*uid)) {
            self.shown.miss_object(uid, *version);
        }
    }

    /// Counts as drift, after the grace time, the facts that are still known from live reads alone: the watch has lost
    /// them.
    pub(crate) fn count_drift(&mut self, awaited: &[AwaitedVersion]) {
        let lost = awaited.iter().filter(|a| self.core.reflector.is_still_awaited(a)).count();
        self.counts.drift += lost as u64;
    }

    /// Compares the metadata of all objects of a kind; those that differ are read whole.
    pub(crate) fn audit_kind(&mut self, kind: usize) {
        self.schedule_event(saturating_millis(AUDIT_PERIOD), SimEvent::Audit(kind));
        if self.sabotage == Some(Sabotage::DeletesLost) || self.blocked_cause(kind).is_some() {
            return;
        }
        let held = live_reads::held_objects(&self.core.reflector, kind_id(kind), None);
        let path = self.scenario.kinds[kind].api.list_path(None);
        let response = self.store.handle_request(self.now, &StoreRequest::new("GET", &path));
        let list: Vec<Box<RawValue>> =
            serde_json::from_slice::<ReadListBody>(&response.body).map(|l| l.items).unwrap_or_default();
        let metas: Vec<WireMeta> = list.iter().map(|o| ChildObject::from_raw(o).meta).collect();
        let differing =
            live_reads::outdated_reads(&self.core.reflector, kind_id(kind), held, &metas, MAX_AUDIT_READS);
        if !differing.is_empty() {
            self.log_kind_event(kind, format_args!("audit reads {}", differing.len()));
        }
        let distinct: BTreeSet<LiveRead> = differing.into_iter().collect();
        for read in distinct {
            let order = self.order_read(read);
            self.send_read(order);
        }
    }
}

fn find_ahead<K: ReflectorObject>(
    reflector: &watcher::reflector::Reflector,
    kind: KindId,
    start: ReadStart,
    read: &LiveRead,
    live: &[K],
) -> Vec<live_reads::WatchLag> {
    match read {
        LiveRead::One { known, .. } => {
            live_reads::apply_live_read(reflector, kind, start, *known, live.first())
        }
        LiveRead::All { .. } => {
            live.iter().filter_map(|k| live_reads::apply_live_object(reflector, kind, start, k)).collect()
        }
    }
}
