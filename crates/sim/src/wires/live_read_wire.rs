//! Live reads: the rate-limited resync pass, the audit, and drift, the changes that the watch has not delivered in
//! time.

use crate::world::FaultConcern;
use std::collections::{BTreeSet, VecDeque};

use readiness::saturating_millis;
use rollcall_core::{KnownObject, LiveRead, MetadataComparison, live_reads};
use serde_json::value::RawValue;
use watcher::reflector::AwaitedVersion;
use watcher::wire::{ChildObject, WireMeta};

use super::answered_read::{AnsweredRead, SentRead};
use super::kind_wires::KindWires;
use super::sim_stage::SimStage;
use super::wire_bodies::WireListBody;
use crate::scenario::{Dice, DiceStream, Sabotage, kind_id};
use crate::service::{AUDIT_PERIOD, ObjectFeed};
use crate::timeline::SimEvent;
use crate::world::ModelObject;

/// Longest time that the answer to a live read takes, in milliseconds.
const MAX_READ_MS: i64 = 60;
/// Interval between live reads, in milliseconds: twenty reads a second.
const READ_INTERVAL_MS: i64 = 50;
/// Longest time that the watch may lag behind a live read, in milliseconds, before the difference counts as drift.
const WATCH_GRACE_MS: i64 = 5_000;
/// Largest number of objects read whole in one audit.
const MAX_AUDIT_READS: usize = 500;

/// The live reads of one life of the process.
pub(crate) struct LiveReadWire {
    queue: VecDeque<LiveRead>,
    queued: BTreeSet<LiveRead>,
    /// The next read is scheduled.
    is_reading: bool,
    /// Randomness of the server's wrong answers.
    denial_dice: Dice,
    sabotage: Option<Sabotage>,
}

impl LiveReadWire {
    pub(crate) fn new(seed: u64, sabotage: Option<Sabotage>) -> LiveReadWire {
        LiveReadWire {
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            is_reading: false,
            denial_dice: DiceStream::Denials.dice(seed),
            sabotage,
        }
    }

    pub(crate) fn reset_for_restart(&mut self) {
        self.queue.clear();
        self.queued.clear();
        self.is_reading = false;
    }

    /// Queues the live reads that the loop requested.
    pub(crate) fn enqueue_reads(&mut self, stage: &mut SimStage, reads: Vec<LiveRead>) {
        for read in reads {
            if self.queued.insert(read.clone()) {
                self.queue.push_back(read);
            }
        }
        if !self.is_reading && !self.queue.is_empty() {
            self.is_reading = true;
            stage.world.timeline.schedule_event(READ_INTERVAL_MS, SimEvent::NextRead);
        }
    }

    /// Sends the next live read.
    pub(crate) fn send_next_read(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let Some(read) = self.take_next_read(&stage.feed) else {
            self.is_reading = false;
            return;
        };
        self.send_read(stage, wires, read);
        stage.world.timeline.schedule_event(READ_INTERVAL_MS, SimEvent::NextRead);
    }

    /// Takes the next read of what is not known to be gone by now.
    fn take_next_read(&mut self, feed: &ObjectFeed) -> Option<LiveRead> {
        loop {
            let read = self.queue.pop_front()?;
            self.queued.remove(&read);
            if !read.is_obsolete(&feed.reflector) {
                return Some(read);
            }
        }
    }

    /// Sends a read; returns `false` if it does not arrive.
    fn send_read(&mut self, stage: &mut SimStage, wires: &mut KindWires, read: LiveRead) -> bool {
        let world = &mut stage.world;
        let kind = read.kind().index();
        if world.faults.of(FaultConcern::Reads).strikes(8) || wires.blocked_cause(world, kind).is_some() {
            return false;
        }
        let path = match &read {
            LiveRead::One { namespace, name, .. } => world.object_path(kind, namespace, name),
            LiveRead::All { namespace, .. } => world.list_path(kind, namespace),
        };
        let mut request = prepare_read(stage, read);
        let world = &mut stage.world;
        let response = world.read_path(&path);
        let objects = match (&request.read, response.status) {
            (_, 404) => {
                request.held.clear();
                Vec::new()
            }
            (LiveRead::One { .. }, _) => serde_json::from_slice(&response.body).into_iter().collect(),
            (LiveRead::All { .. }, _) => read_list(&response.body),
        };
        let late = world.faults.of(FaultConcern::Reads).between(1, MAX_READ_MS);
        let objects = self.deny_sometimes(stage, wires, &request.read, objects);
        let (start, sent) = (stage.feed.reflector.start_read(), stage.feed.shown.moment());
        let answered = AnsweredRead { request, objects, start, sent };
        stage.world.timeline.schedule_event(late, SimEvent::Answered(Box::new(answered)));
        true
    }

    /// Some servers deny for a moment that an object is there.
    fn deny_sometimes(
        &mut self,
        stage: &SimStage,
        wires: &mut KindWires,
        read: &LiveRead,
        objects: Vec<Box<RawValue>>,
    ) -> Vec<Box<RawValue>> {
        let is_off = stage.world.faults.is_off();
        if is_off || !matches!(read, LiveRead::One { .. }) || !self.denial_dice.chance(2) {
            return objects;
        }
        let kind = read.kind().index();
        stage.world.timeline.log_kind_event(kind, "the server denies that an object is there");
        wires.wire_mut(kind).note_denial(stage.world.now());
        Vec::new()
    }

    /// Compares the metadata of all objects of a kind; those that differ are read whole.
    pub(crate) fn audit_kind(&mut self, stage: &mut SimStage, wires: &mut KindWires, kind: usize) {
        stage.world.timeline.schedule_event(saturating_millis(AUDIT_PERIOD), SimEvent::Audit(kind));
        let is_blocked = wires.blocked_cause(&stage.world, kind).is_some();
        if self.sabotage == Some(Sabotage::DeletesLost) || is_blocked {
            return;
        }
        let reflector = &stage.feed.reflector;
        let mut comparison = MetadataComparison::begin(reflector, kind_id(kind), None);
        let path = stage.world.list_path(kind, "");
        let list = read_list(&stage.world.read_path(&path).body);
        let metas: Vec<WireMeta> = list.iter().map(|o| ChildObject::from_raw(o).meta).collect();
        comparison.compare_page(reflector, &metas);
        let differing = comparison.into_outdated(MAX_AUDIT_READS).reads;
        if !differing.is_empty() {
            stage.world.timeline.log_kind_event(kind, format_args!("audit reads {}", differing.len()));
        }
        let distinct: BTreeSet<LiveRead> = differing.into_iter().collect();
        let mut arrive_all = true;
        for read in distinct {
            arrive_all &= self.send_read(stage, wires, read);
        }
        if arrive_all {
            let now = stage.world.now();
            wires.wire_mut(kind).note_audit(now, now + MAX_READ_MS);
        }
    }

    /// Applies the answer to both caches, and queues reads of what a list lacks.
    pub(crate) fn receive_read(&mut self, stage: &mut SimStage, answered: AnsweredRead) {
        apply_read_to_shown(&mut stage.feed, &answered);
        let AnsweredRead { request, objects, start, .. } = answered;
        let kind = request.read.kind().index();
        let (ahead, unlisted) = stage.feed.feed_live_objects(request, start, &objects);
        if !ahead.is_empty() {
            let what: Vec<String> = ahead.iter().map(|a| format!("{} at {}", a.object, a.live)).collect();
            stage.world.timeline.log_kind_event(kind, format_args!("read live {}", what.join(", ")));
            let awaited = ahead.into_iter().map(|a| a.awaited).collect();
            stage.world.timeline.schedule_event(WATCH_GRACE_MS, SimEvent::Drift(awaited));
        }
        self.enqueue_reads(stage, unlisted);
        stage.service.wake_loop(&mut stage.world);
    }
}

fn read_list(body: &[u8]) -> Vec<Box<RawValue>> {
    serde_json::from_slice::<WireListBody>(body).map(|list| list.items).unwrap_or_default()
}

/// Notes what both caches hold when a read is sent.
fn prepare_read(stage: &SimStage, read: LiveRead) -> SentRead {
    let SimStage { feed, world, .. } = stage;
    let expected = read.expected_object(&feed.reflector);
    // Of others that bear the name, because a watch lost a deletion, the loop learns nothing by this read.
    let is_expected = |t: &&std::rc::Rc<ModelObject>| {
        expected.is_some() && KnownObject::of(&feed.reflector, &t.uid) == expected
    };
    let shown = feed.shown.held.values().filter(is_expected);
    let known = shown.map(|t| (t.uid.clone(), t.version)).collect();
    let held = match &read {
        LiveRead::One { .. } => Vec::new(),
        LiveRead::All { kind, namespace } => {
            let is_namespaced = world.api_kind(kind.index()).namespaced;
            let scope = Some(namespace.as_str()).filter(|n| !n.is_empty() && is_namespaced);
            live_reads::held_objects(&feed.reflector, *kind, scope)
        }
    };
    SentRead { read, expected, known, held }
}

/// Applies what a live read shows: each object in the answer is there; and what was known under the name before the
/// read was sent is gone, if the answer has no object of that name, or one with another UID.
fn apply_read_to_shown(feed: &mut ObjectFeed, answered: &AnsweredRead) {
    let kind = answered.request.read.kind().index();
    for object in &answered.objects {
        let model = feed.model_object(kind, object);
        feed.shown.apply_live(model, answered.sent);
    }
    let live = answered.objects.first().map(|object| feed.model_object(kind, object).uid);
    for (uid, version) in answered.request.known.iter().filter(|(uid, _)| live.as_ref() != Some(*uid)) {
        feed.shown.miss_object(uid, *version);
    }
}

/// Counts as drift, after the grace time, the facts that are still known from live reads alone: the watch has lost
/// them.
pub(crate) fn count_drift(stage: &mut SimStage, awaited: &[AwaitedVersion]) {
    let lost = awaited.iter().filter(|a| stage.feed.reflector.give_up_awaiting(a)).count();
    stage.world.timeline.counts.drift += lost as u64;
}
