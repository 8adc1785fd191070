//! Writes on their way: some fail before the server takes them, some after, some meet somebody who was faster.

use std::time::Duration;

use aggregator::{ObjectId, Outcome};
use controller::core::{Reply, Write, reply};
use sandbox::store::{Request, Response};
use serde_json::{Value, json};
use timer::Seed;
use watcher::Parent;

use crate::sabotage::Sabotage;
use crate::sim::{Event, Sim};

/// A write that takes longer has an unknown end.
const PATIENCE: i64 = 15_000;

/// A write on its way to the server.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) life: u32,
    pub(crate) write: Write,
}

/// An answer on its way back.
#[derive(Debug)]
pub(crate) struct Landed {
    write: Write,
    /// Status, `Retry-After`, body; nothing where it never came.
    answer: Option<(u16, Duration, Vec<u8>)>,
    outcome: Outcome,
    live: Option<Vec<u8>>,
}

impl Sim {
    /// The loop hands a write over.
    pub(crate) fn decided(&mut self, mut write: Write) {
        let entry = write.wanted.entries.first();
        let said = entry.map_or_else(
            || "nothing".to_owned(),
            |e| format!("{}={} {}: {}", e.r#type, e.status, e.reason, e.message),
        );
        self.say(format_args!("write {}/{} {said}", write.namespace, write.name));
        self.watch.sent += 1;
        self.check_decision(&write);
        self.tamper_with(&mut write);
        let late = if !self.calm && self.fate.chance(8) {
            self.fate.between(200, 6_000)
        } else {
            self.fate.between(1, 20)
        };
        let flight = Flight { life: self.life, write };
        self.at(late, Event::Send(Box::new(flight)));
    }

    fn tamper_with(&mut self, write: &mut Write) {
        let Some(ops) = write.patch.as_array_mut() else { return };
        match self.sabotage {
            Some(Sabotage::NoGuards) => ops.retain(|op| op["op"] != "test"),
            Some(Sabotage::ForeignTouched) => {
                ops.push(json!({"op": "add", "path": "/status/conditions/0/message", "value": "ours now"}));
            }
            _ => {}
        }
    }

    /// A write arrives at the server, or does not.
    pub(crate) fn arrive(&mut self, flight: Flight) {
        let Flight { life, write } = flight;
        let fault = if self.calm { 100 } else { self.fate.below(100) };
        let answer = match fault {
            0..3 => Some((500, Duration::ZERO, Vec::new())),
            3..5 => Some((429, Duration::from_secs(1), Vec::new())),
            5..7 => Some((409, Duration::ZERO, Vec::new())),
            7..9 => None,
            9 => Some((403, Duration::ZERO, Vec::new())),
            10..14 => {
                self.commit(&write);
                None
            }
            _ => {
                let response = self.commit(&write);
                Some((response.status, Duration::ZERO, response.body))
            }
        };
        let status = answer.as_ref().map_or(0, |a| a.0);
        if status != 200 {
            self.counts.refused += 1;
            self.say(format_args!("write {}/{} answered {status}", write.namespace, write.name));
        }
        let late = if answer.is_some() { self.fate.between(1, 30) } else { PATIENCE };
        if life == self.life {
            let landed = Landed { write, answer, outcome: Outcome::Written, live: None };
            self.at(late, Event::Landed(Box::new(landed)));
        }
    }

    fn commit(&mut self, write: &Write) -> Response {
        let api = &self.scenario.kinds[usize::from(write.kind.0)].api;
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        let object = format!("{}/{}", api.path(namespace), write.name);
        let target = format!("{object}/status?fieldManager={}", watcher::status::MANAGER);
        let before = self.store.handle(self.now, &Request::new("GET", &object)).value();
        let revision = self.store.revision();
        let request = Request::with("PATCH", &target, "application/json-patch+json", &write.patch);
        let response = self.store.handle(self.now, &request);
        if response.is_success() {
            self.counts.writes += 1;
            let after: Value = response.value();
            self.check_commit(write, &before, &after, revision);
        }
        response
    }

    fn reply_seed(&self) -> Seed {
        Seed(self.seed).derive(3)
    }

    /// The answer arrives: what the writer makes of it.
    pub(crate) fn landed(&mut self, mut landed: Landed) {
        let seed = self.reply_seed();
        let Some((status, retry_after, body)) = landed.answer.take() else {
            let outcome = reply::retry(&landed.write, seed, Duration::ZERO);
            return self.settle(landed.write.parent, outcome);
        };
        let kind = usize::from(landed.write.kind.0);
        let reply = Reply::of(status);
        let outcome = reply.outcome(&landed.write, seed, retry_after);
        match reply {
            Reply::Accepted => {
                let outcome = match serde_json::from_slice::<Parent>(&body) {
                    Ok(parent) => {
                        self.shown.apply(self.thing(kind, &parent.text));
                        let fed = self.as_parent(&parent.text).unwrap_or(parent);
                        reply::accepted(&self.core.reflector, &self.interests[kind], &landed.write, &fed)
                    }
                    Err(_) => outcome,
                };
                self.settle(landed.write.parent, outcome);
            }
            Reply::Gone | Reply::Conflict => self.read_anew(landed, outcome),
            Reply::NotPermitted | Reply::Failed => self.settle(landed.write.parent, outcome),
        }
    }

    fn settle(&mut self, parent: ObjectId, outcome: Outcome) {
        self.settled.push_back((parent, outcome));
        self.wake_loop();
    }

    /// After a failed guard the parent is read live, if that works.
    fn read_anew(&mut self, mut landed: Landed, outcome: Outcome) {
        landed.outcome = outcome;
        let kind = usize::from(landed.write.kind.0);
        let fails = !self.calm && self.fate.chance(10);
        if !fails && self.barred(kind).is_none() {
            let write = &landed.write;
            let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
            let path = format!("{}/{}", self.scenario.kinds[kind].api.path(namespace), write.name);
            let response = self.store.handle(self.now, &Request::new("GET", &path));
            landed.live = Some(if response.is_success() { response.body } else { Vec::new() });
        }
        let late = self.fate.between(1, 40);
        self.at(late, Event::Reread(Box::new(landed)));
    }

    /// That read is answered.
    pub(crate) fn reread(&mut self, landed: &Landed) {
        let (write, kind) = (&landed.write, usize::from(landed.write.kind.0));
        if let Some(body) = &landed.live {
            let live: Option<Parent> = serde_json::from_slice(body).ok();
            if live.as_ref().is_none_or(|live| *live.child.meta.uid != *write.uid) {
                self.shown.delete(&write.uid, 0);
            }
            if let Some(live) = &live {
                self.shown.apply(self.thing(kind, &live.text));
            }
            let fed = live.map(|live| self.as_parent(&live.text).unwrap_or(live));
            reply::reread(&self.core.reflector, &self.interests[kind], write, fed.as_ref());
        }
        self.settle(write.parent, landed.outcome);
    }
}
