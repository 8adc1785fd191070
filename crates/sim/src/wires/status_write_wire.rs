//! Writes in flight: some fail before the server commits them, some after, some conflict with a faster writer.

use std::time::Duration;

use aggregator::DeliveryOutcome;
use readiness::rollup::ParentReason;
use rollcall_core::{KnownObject, ParentWrite, WriteReply, refusal, write_reply};
use sandbox::store::{StoreRequest, StoreResponse};
use serde_json::json;
use watcher::ParentObject;
use watcher::status::ConditionEntry;

use super::kind_wires::KindWires;
use super::sim_stage::SimStage;
use super::write_in_flight::{CommittedWrite, LandedWrite, RereadStart, ServerAnswer, WriteInFlight};
use crate::actors::write_condition;
use crate::judges::ShownMoment;
use crate::perturbation::Disturbance;
use crate::scenario::Sabotage;
use crate::timeline::SimEvent;
use crate::world::{FaultConcern, ModelMark, ModelObject, SimObjectRef, SimWorld};

/// Longest time a status write may take before its outcome is unknown, in milliseconds.
pub(crate) const WRITE_TIMEOUT_MS: i64 = 15_000;

/// Delay of a write that arrives late, in milliseconds.
const LATE_WRITE_MS: i64 = 6_000;

/// The wire on which the loop's writes travel.
pub(crate) struct StatusWriteWire {
    /// Number of writes that the loop has sent.
    pub(crate) sent: u64,
    sabotage: Option<Sabotage>,
}

impl StatusWriteWire {
    pub(crate) fn new(sabotage: Option<Sabotage>) -> StatusWriteWire {
        StatusWriteWire { sent: 0, sabotage }
    }

    /// Sends a write that the loop decided on.
    pub(crate) fn send_write(
        &mut self,
        stage: &mut SimStage,
        mut write: ParentWrite,
        was_shown_handled: bool,
    ) {
        self.sent += 1;
        if self.is_dropped(stage, &write) {
            return stage.service.push_outcome(&mut stage.world, &write, DeliveryOutcome::Unsent);
        }
        self.sabotage_write(&mut write);
        let faults = &mut stage.world.faults;
        let late = if faults.of(FaultConcern::Writes).strikes(8) {
            faults.of(FaultConcern::Writes).between(200, 6_000)
        } else {
            faults.of(FaultConcern::Writes).between(1, 20)
        };
        let held = stage.feed.shown.held.get(&write.uid);
        let was_known_handled = held.is_some_and(|held| held.mark == ModelMark::Handled);
        let known = held.map(|held| held.ours.clone()).unwrap_or_default();
        let life = stage.service.life;
        let flight = WriteInFlight { life, write, was_shown_handled, was_known_handled, known };
        stage.world.timeline.schedule_event(late, SimEvent::Send(Box::new(flight)));
    }

    /// Returns `true` if a sabotage drops a write.
    fn is_dropped(&self, stage: &SimStage, write: &ParentWrite) -> bool {
        match self.sabotage {
            Some(Sabotage::QuotesKept) => changes_only_quotes(stage, write),
            Some(Sabotage::DeletionWordsKept) => {
                let parent = stage.feed.shown.observed.get(&write.uid);
                parent.is_some_and(|parent| parent.deleted.is_some() && changes_only_words(parent, write))
            }
            Some(Sabotage::BlindnessUnsaid) => says_blind(write),
            Some(Sabotage::OldAnswerKept) => replaces_older(stage, write),
            _ => false,
        }
    }

    fn sabotage_write(&self, write: &mut ParentWrite) {
        let Some(ops) = write.patch.as_array_mut() else { return };
        match self.sabotage {
            Some(Sabotage::NoGuards) => ops.retain(|op| op["op"] != "test"),
            Some(Sabotage::ForeignTouched) => {
                ops.push(json!({"op": "add", "path": "/status/conditions/0/message", "value": "ours now"}));
            }
            _ => {}
        }
    }
}

/// Returns `true` if a parent above other parents is to say the same of itself in other words.
fn changes_only_quotes(stage: &SimStage, write: &ParentWrite) -> bool {
    let kind = write.kind.index();
    let quotes = stage.world.scenario.first_policies.iter().any(|policy| {
        let is_parent = |kind| stage.world.scenario.first_policies.iter().any(|of| of.parent == kind);
        policy.parent == kind && policy.groups.iter().any(|group| is_parent(group.kind))
    });
    let parent = stage.feed.shown.observed.get(&write.uid).filter(|_| quotes);
    parent.is_some_and(|parent| changes_only_words(parent, write))
}

/// Returns `true` if a parent is to say the same in other words.
fn changes_only_words(parent: &ModelObject, write: &ParentWrite) -> bool {
    let is_said = |entry: &ConditionEntry| {
        let said = parent.ours.get(&entry.r#type);
        said.is_some_and(|said| said.status == entry.status && said.reason.as_str() == entry.reason)
            && said.map(|said| said.observed) == entry.observed_generation
    };
    write.wanted.entries.len() == parent.ours.len() && write.wanted.entries.iter().all(is_said)
}

/// Returns `true` if a parent is to say nothing but that a kind cannot be seen.
fn says_blind(write: &ParentWrite) -> bool {
    let blind = [ParentReason::WatchStale, ParentReason::KindNotVisible];
    write.wanted.entries.iter().all(|entry| blind.iter().any(|reason| reason.as_str() == entry.reason))
}

/// Returns `true` if something of another generation stands on a parent.
fn replaces_older(stage: &SimStage, write: &ParentWrite) -> bool {
    let parent = stage.feed.shown.held.get(&write.uid);
    parent.is_some_and(|parent| parent.ours.values().any(|said| said.observed != parent.generation))
}

fn commit_write(world: &mut SimWorld, write: &ParentWrite) -> (StoreResponse, Option<CommittedWrite>) {
    let kind = write.kind.index();
    let path = world.object_path(kind, &write.namespace, &write.name);
    let target = format!("{path}/status?fieldManager={}", watcher::status::FIELD_MANAGER);
    let place = SimObjectRef { kind, namespace: write.namespace.clone(), name: write.name.clone() };
    let before = world.find_object(&place).unwrap_or_default();
    let revision = world.store.revision();
    let request = StoreRequest::with_body("PATCH", &target, "application/json-patch+json", &write.patch);
    // What the server's own controllers do about it is not the write's doing.
    world.store.set_controllers(false);
    let response = world.store.handle_request(world.timeline.now(), &request);
    let committed = response.is_success().then(|| CommittedWrite {
        before,
        after: world.find_object(&place).unwrap_or_default(),
        changes: world.store.revision() - revision,
    });
    world.store.set_controllers(true);
    world.store.run_controllers(world.timeline.now());
    if committed.is_some() {
        world.timeline.counts.writes += 1;
    }
    (response, committed)
}

/// Returns the line of the log for a write that is sent.
pub(crate) fn describe_write(write: &ParentWrite) -> String {
    let entries = write.wanted.entries.iter();
    let said: Vec<String> =
        entries.map(|e| format!("{}={} {}: {}", e.r#type, e.status, e.reason, e.message)).collect();
    let said = if said.is_empty() { "nothing".to_owned() } else { said.join("; ") };
    format!("write {}/{} {said}", write.namespace, write.name)
}

/// Disturbs a write that is about to arrive; returns it if it arrives now.
pub(crate) fn disturb_write(
    world: &mut SimWorld,
    flight: WriteInFlight,
    disturbance: Option<Disturbance>,
) -> Option<WriteInFlight> {
    let Some(disturbance) = disturbance else { return Some(flight) };
    match disturbance {
        Disturbance::KilledBefore => return None,
        Disturbance::Delayed => {
            world.timeline.schedule_event(LATE_WRITE_MS, SimEvent::Send(Box::new(flight)));
            return None;
        }
        Disturbance::Overtaken => {
            let (namespace, name) = (flight.write.namespace.clone(), flight.write.name.clone());
            let place = SimObjectRef { kind: flight.write.kind.index(), namespace, name };
            write_condition(world, &place, "Overtaken");
        }
        _ => {}
    }
    Some(flight)
}

/// Answer to a write that leaves a parent invalid, whatever is said on it.
const INVALID_ELSEWHERE: &[u8] =
    br#"{"details":{"causes":[{"reason":"FieldValueRequired","field":"status.phase","message":"Required value"}]}}"#;

/// Delivers a write to the server, or loses it; returns the server's answer, and the write if it was committed.
pub(crate) fn deliver_write(
    world: &mut SimWorld,
    write: &ParentWrite,
    disturbance: Option<Disturbance>,
) -> (Option<ServerAnswer>, Option<CommittedWrite>) {
    let fault = match disturbance {
        Some(Disturbance::Refused) => 0,
        Some(Disturbance::Swallowed) => 7,
        Some(Disturbance::Unanswered) => 10,
        _ if world.faults.is_off() => 100,
        _ => world.faults.of(FaultConcern::Writes).below(100),
    };
    let refused = |status, retry_after| (Some((status, retry_after, Vec::new())), None);
    match fault {
        0..3 => refused(500, Duration::ZERO),
        3..5 => refused(429, Duration::from_secs(1)),
        5 => refused(409, Duration::ZERO),
        6 => (Some((422, Duration::ZERO, INVALID_ELSEWHERE.to_vec())), None),
        7..9 => (None, None),
        9 => refused(403, Duration::ZERO),
        10..14 => (None, commit_write(world, write).1),
        _ => {
            let (response, committed) = commit_write(world, write);
            (Some((response.status, Duration::ZERO, response.body)), committed)
        }
    }
}

/// Sends the server's answer on its way back, if a process awaits it.
pub(crate) fn send_answer(
    stage: &mut SimStage,
    flight: WriteInFlight,
    answer: Option<ServerAnswer>,
    is_awaited: bool,
) {
    let WriteInFlight { life, write, .. } = flight;
    let world = &mut stage.world;
    let status = answer.as_ref().map_or(0, |a| a.0);
    if status != 200 {
        world.timeline.counts.refused += 1;
        world.timeline.log_event(format_args!("write {}/{} answered {status}", write.namespace, write.name));
    }
    let late = if answer.is_some() {
        world.faults.of(FaultConcern::Writes).between(1, 30)
    } else {
        WRITE_TIMEOUT_MS
    };
    if is_awaited {
        let (outcome, reread) = (DeliveryOutcome::Written, RereadStart::default());
        let landed = LandedWrite { life, write, answer, outcome, live: None, reread };
        world.timeline.schedule_event(late, SimEvent::Landed(Box::new(landed)));
    }
}

/// Delivers the answer, as the writer interprets it.
pub(crate) fn receive_answer(stage: &mut SimStage, wires: &KindWires, mut landed: LandedWrite) {
    let Some((status, retry_after, body)) = landed.answer.take() else {
        return reread_parent(stage, wires, landed, DeliveryOutcome::Retry(Duration::ZERO));
    };
    let kind = landed.write.kind.index();
    let reply = WriteReply::from_status(status, &body, stage.world.api_kind(kind), &landed.write.name);
    let outcome = reply.write_outcome(&landed.write, retry_after);
    let SimStage { world, service, feed } = stage;
    match reply {
        WriteReply::Accepted => {
            let outcome = match serde_json::from_slice::<ParentObject>(&body) {
                Ok(parent) => {
                    feed.shown.apply_live(feed.model_object(kind, &parent.text), ShownMoment::default());
                    let fed = feed.decode_parent(&parent.text).unwrap_or(parent);
                    write_reply::apply_accepted(&feed.reflector, &landed.write, &fed)
                }
                Err(_) => outcome,
            };
            service.push_outcome(world, &landed.write, outcome);
        }
        WriteReply::Gone | WriteReply::Conflict => reread_parent(stage, wires, landed, outcome),
        WriteReply::Failed if write_reply::is_unknown(status) => {
            reread_parent(stage, wires, landed, outcome);
        }
        WriteReply::Invalid => {
            let outcome = refusal::outcome_of(&feed.reflector, &landed.write, &body);
            service.push_outcome(world, &landed.write, outcome);
        }
        WriteReply::NotPermitted | WriteReply::Failed => {
            service.push_outcome(world, &landed.write, outcome);
        }
    }
}

/// Reads the parent live after a failed precondition or a write whose outcome is unknown, if the read works.
fn reread_parent(stage: &mut SimStage, wires: &KindWires, mut landed: LandedWrite, outcome: DeliveryOutcome) {
    let SimStage { world, feed, .. } = stage;
    landed.outcome = outcome;
    let uid = &landed.write.uid;
    landed.reread = RereadStart {
        start: feed.reflector.start_read(),
        known: KnownObject::of(&feed.reflector, uid),
        sent: feed.shown.moment(),
        shown_version: feed.shown.held.get(uid).map_or(0, |held| held.version),
    };
    let kind = landed.write.kind.index();
    if !world.faults.of(FaultConcern::Writes).strikes(10) && wires.blocked_cause(world, kind).is_none() {
        let path = world.object_path(kind, &landed.write.namespace, &landed.write.name);
        let response = world.read_path(&path);
        landed.live = Some(if response.is_success() { response.body } else { Vec::new() });
    }
    let late = world.faults.of(FaultConcern::Writes).between(1, 40);
    world.timeline.schedule_event(late, SimEvent::Reread(Box::new(landed)));
}

/// Delivers the answer to that read.
pub(crate) fn receive_reread(stage: &mut SimStage, landed: &LandedWrite) {
    let SimStage { world, service, feed } = stage;
    let (write, kind) = (&landed.write, landed.write.kind.index());
    if let Some(body) = &landed.live {
        let live: Option<ParentObject> = serde_json::from_slice(body).ok();
        if live.as_ref().is_none_or(|live| *live.child.meta.uid != *write.uid) {
            feed.shown.miss_object(&write.uid, landed.reread.shown_version);
        }
        if let Some(live) = &live {
            feed.shown.apply_live(feed.model_object(kind, &live.text), landed.reread.sent);
        }
        let fed = live.map(|live| feed.decode_parent(&live.text).unwrap_or(live));
        let RereadStart { start, known, .. } = landed.reread;
        _ = write_reply::apply_reread(&feed.reflector, write, start, known, fed.as_ref());
    }
    service.push_outcome(world, write, landed.outcome);
}
