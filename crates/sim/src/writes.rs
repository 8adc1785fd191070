//! Writes in flight: some fail before the server commits them, some after, some conflict with a faster writer.

use std::time::Duration;

use aggregator::DeliveryOutcome;
use rollcall_core::{KnownObject, ParentWrite, WriteReply, write_reply};
use sandbox::store::{StoreRequest, StoreResponse};
use serde_json::{Value, json};
use watcher::ParentObject;

use crate::sabotage::Sabotage;
use crate::sim::{Sim, SimEvent};
use crate::write_in_flight::{LandedWrite, RereadStart, WriteInFlight};

/// Longest time a status write may take before its outcome is unknown, in milliseconds.
const WRITE_TIMEOUT_MS: i64 = 15_000;

impl Sim {
    /// Sends a write that the loop decided on.
    pub(crate) fn send_write(&mut self, mut write: ParentWrite) {
        let entries = write.wanted.entries.iter();
        let said: Vec<String> =
            entries.map(|e| format!("{}={} {}: {}", e.r#type, e.status, e.reason, e.message)).collect();
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join("; ") };
        self.log_event(format_args!("write {}/{} {said}", write.namespace, write.name));
        self.watch.sent += 1;
        self.check_decision(&write);
        self.sabotage_write(&mut write);
        let late = if !self.calm && self.fault_dice.chance(8) {
            self.fault_dice.between(200, 6_000)
        } else {
            self.fault_dice.between(1, 20)
        };
        let flight = WriteInFlight { life: self.life, write };
        self.schedule_event(late, SimEvent::Send(Box::new(flight)));
    }

    fn sabotage_write(&mut self, write: &mut ParentWrite) {
        let Some(ops) = write.patch.as_array_mut() else { return };
        match self.sabotage {
            Some(Sabotage::NoGuards) => ops.retain(|op| op["op"] != "test"),
            Some(Sabotage::ForeignTouched) => {
                ops.push(json!({"op": "add", "path": "/status/conditions/0/message", "value": "ours now"}));
            }
            _ => {}
        }
    }

    /// Delivers a write to the server, or loses it.
    pub(crate) fn deliver_write(&mut self, flight: WriteInFlight) {
        let WriteInFlight { life, write } = flight;
        let fault = if self.calm { 100 } else { self.fault_dice.below(100) };
        let answer = match fault {
            0..3 => Some((500, Duration::ZERO, Vec::new())),
            3..5 => Some((429, Duration::from_secs(1), Vec::new())),
            5..7 => Some((409, Duration::ZERO, Vec::new())),
            7..9 => None,
            9 => Some((403, Duration::ZERO, Vec::new())),
            10..14 => {
                self.commit_write(&write);
                None
            }
            _ => {
                let response = self.commit_write(&write);
                Some((response.status, Duration::ZERO, response.body))
            }
        };
        let status = answer.as_ref().map_or(0, |a| a.0);
        if status != 200 {
            self.counts.refused += 1;
            self.log_event(format_args!("write {}/{} answered {status}", write.namespace, write.name));
        }
        let late = if answer.is_some() { self.fault_dice.between(1, 30) } else { WRITE_TIMEOUT_MS };
        if life == self.life {
            let (outcome, reread) = (DeliveryOutcome::Written, RereadStart::default());
            let landed = LandedWrite { write, answer, outcome, live: None, reread };
            self.schedule_event(late, SimEvent::Landed(Box::new(landed)));
        }
    }

    fn commit_write(&mut self, write: &ParentWrite) -> StoreResponse {
        let api = &self.scenario.kinds[usize::from(write.kind.0)].api;
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        let object = format!("{}/{}", api.list_path(namespace), write.name);
        let target = format!("{object}/status?fieldManager={}", watcher::status::FIELD_MANAGER);
        let before = self.store.handle_request(self.now, &StoreRequest::new("GET", &object)).body_value();
        let revision = self.store.revision();
        let request = StoreRequest::with_body("PATCH", &target, "application/json-patch+json", &write.patch);
        let response = self.store.handle_request(self.now, &request);
        if response.is_success() {
            self.counts.writes += 1;
            let after: Value = response.body_value();
            self.check_commit(write, &before, &after, revision);
        }
        response
    }

    /// Delivers the answer, as the writer interprets it.
    pub(crate) fn receive_answer(&mut self, mut landed: LandedWrite) {
        let Some((status, retry_after, body)) = landed.answer.take() else {
            return self.reread_parent(landed, DeliveryOutcome::Retry(Duration::ZERO));
        };
        let kind = usize::from(landed.write.kind.0);
        let reply =
            WriteReply::from_status(status, &body, &self.scenario.kinds[kind].api, &landed.write.name);
        let outcome = reply.write_outcome(retry_after);
        match reply {
            WriteReply::Accepted => {
                let outcome = match serde_json::from_slice::<ParentObject>(&body) {
                    Ok(parent) => {
                        self.shown.apply_object(self.model_object(kind, &parent.text));
                        let fed = self.decode_parent(&parent.text).unwrap_or(parent);
                        write_reply::apply_accepted(&self.core.reflector, &landed.write, &fed)
                    }
                    Err(_) => outcome,
                };
                self.push_outcome(&landed.write, outcome);
            }
            WriteReply::Gone | WriteReply::Conflict => self.reread_parent(landed, outcome),
            WriteReply::Failed if write_reply::is_unknown(status) => self.reread_parent(landed, outcome),
            WriteReply::NotPermitted | WriteReply::Failed => self.push_outcome(&landed.write, outcome),
        }
    }

    fn push_outcome(&mut self, write: &ParentWrite, outcome: DeliveryOutcome) {
        self.write_outcomes.push_back((write.parent, write.ticket, outcome));
        self.wake_loop();
    }

    /// After a failed guard, or where nobody knows what became of a write, the parent is read live, if that works.
    fn reread_parent(&mut self, mut landed: LandedWrite, outcome: DeliveryOutcome) {
        landed.outcome = outcome;
        let uid = &landed.write.uid;
        landed.reread = RereadStart {
            start: self.core.reflector.start_read(),
            known: KnownObject::of(&self.core.reflector, uid),
            sent: self.shown.moment(),
            shown_version: self.shown.held.get(uid).map_or(0, |held| held.version),
        };
        let kind = usize::from(landed.write.kind.0);
        let fails = !self.calm && self.fault_dice.chance(10);
        if !fails && self.blocked_cause(kind).is_none() {
            let write = &landed.write;
            let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
            let path = format!("{}/{}", self.scenario.kinds[kind].api.list_path(namespace), write.name);
            let response = self.store.handle_request(self.now, &StoreRequest::new("GET", &path));
            landed.live = Some(if response.is_success() { response.body } else { Vec::new() });
        }
        let late = self.fault_dice.between(1, 40);
        self.schedule_event(late, SimEvent::Reread(Box::new(landed)));
    }

    /// Delivers the answer to that read.
    pub(crate) fn receive_reread(&mut self, landed: &LandedWrite) {
        let (write, kind) = (&landed.write, usize::from(landed.write.kind.0));
        if let Some(body) = &landed.live {
            let live: Option<ParentObject> = serde_json::from_slice(body).ok();
            if live.as_ref().is_none_or(|live| *live.child.meta.uid != *write.uid) {
                self.shown.miss_object(&write.uid, landed.reread.shown_version);
            }
            if let Some(live) = &live {
                self.shown.apply_read(self.model_object(kind, &live.text), landed.reread.sent);
            }
            let fed = live.map(|live| self.decode_parent(&live.text).unwrap_or(live));
            let RereadStart { start, known, .. } = landed.reread;
            write_reply::apply_reread(&self.core.reflector, write, start, known, fed.as_ref());
        }
        self.push_outcome(write, landed.outcome);
    }
}
