//! Lists and watches of every kind, as `follow` runs them, over a faulty wire: they lag, break, repeat and lose lines,
//! are refused, and find their resume revision compacted.

use std::collections::BTreeSet;

use readiness::saturating_millis;
use rollcall_core::KindEvent;
use sandbox::store::StoreRequest;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::reflector::ListPass;
use watcher::wire::ChildObject;
use watcher::{ApiFailureCause, ParentObject, ReflectorObject};

use crate::invariant_watch::MAX_ANSWER_LAG_MS;
use crate::kind_wire::WireState;
use crate::object_model::ModelObject;
use crate::sabotage::Sabotage;
use crate::scenario::kind_id;
use crate::shown_objects::ShownMoment;
use crate::sim::{Sim, SimEvent};
use crate::turn::BLIND_LIMIT;

/// Number of refusals in a row after which the resume revision is dropped and the kind is listed again.
const MAX_WATCH_REFUSALS: u32 = 3;

/// A line of a watch.
#[derive(Deserialize)]
struct WireWatchLine<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct WireListBody {
    metadata: WireListMeta,
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireListMeta {
    resource_version: String,
}

impl Sim {
    fn push_news(&mut self, kind: usize, news: KindEvent) {
        if matches!(news, KindEvent::Alive | KindEvent::Synced) {
            let wire = &mut self.wires[kind];
            let deaf = self.now - wire.last_heard > saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS;
            wire.unproven = news != KindEvent::Synced && (wire.unproven || deaf);
            wire.last_heard = self.now;
        }
        self.news.push_back((kind_id(kind), news));
        self.wake_loop();
    }

    fn report_trouble(&mut self, kind: usize, cause: ApiFailureCause) {
        self.log_kind_event(kind, format_args!("{}", cause.metric_label()));
        self.push_news(kind, KindEvent::Failure(cause, cause.metric_label().to_owned()));
    }

    /// The loop asks for a list of a kind that was blind: its watch, whether it stands or not, is given up.
    pub(crate) fn relist(&mut self, kind: usize) {
        if self.sabotage == Some(Sabotage::BlindnessForgiven) {
            return;
        }
        let wire = &mut self.wires[kind];
        wire.resume_revision = None;
        if matches!(wire.state, WireState::Watching(_)) {
            wire.state = WireState::Down;
            self.schedule_event(0, SimEvent::Open(kind));
        }
    }

    /// Returns the reason why this kind cannot be read now, if there is one.
    pub(crate) fn blocked_cause(&self, kind: usize) -> Option<ApiFailureCause> {
        let wire = &self.wires[kind];
        match () {
            () if wire.down_until > self.now => Some(ApiFailureCause::Connection),
            () if wire.forbidden_until > self.now => Some(ApiFailureCause::Forbidden),
            () => None,
        }
    }

    /// Lists a kind, or resumes its watch.
    pub(crate) fn open_kind(&mut self, kind: usize) {
        if let Some(cause) = self.blocked_cause(kind) {
            self.report_trouble(kind, cause);
            let wire = &mut self.wires[kind];
            wire.refusals += u32::from(cause == ApiFailureCause::Forbidden);
            if wire.refusals >= MAX_WATCH_REFUSALS {
                (wire.resume_revision, wire.refusals) = (None, 0);
            }
            let again = self.fault_dice.between(200, 4_000);
            return self.schedule_event(again, SimEvent::Open(kind));
        }
        self.wires[kind].refusals = 0;
        match self.wires[kind].resume_revision {
            None => self.start_list(kind),
            Some(place) => self.start_watch(kind, place),
        }
    }

    fn start_list(&mut self, kind: usize) {
        let path = self.scenario.kinds[kind].api.list_path(None);
        let response = self.store.handle_request(self.now, &StoreRequest::new("GET", &path));
        let Ok(list) = serde_json::from_slice::<WireListBody>(&response.body) else {
            return self.fail_invariant("a list can be read", String::from_utf8_lossy(&response.body));
        };
        let revision = list.metadata.resource_version.parse().unwrap_or(0);
        self.log_kind_event(kind, format_args!("list of {} at {revision}", list.items.len()));
        let (pass, sent) = (self.core.reflector.begin_list(kind_id(kind), None), self.shown.moment());
        self.wires[kind].state =
            WireState::Listing { items: list.items, uids: BTreeSet::new(), revision, pass, sent };
        self.push_news(kind, KindEvent::Listing);
        self.push_news(kind, KindEvent::Alive);
        if self.sabotage == Some(Sabotage::SyncedEarly) {
            self.wires[kind].synced = false;
            self.news.push_back((kind_id(kind), KindEvent::Synced));
        }
        let after = self.fault_dice.between(0, 30);
        self.schedule_event(after, SimEvent::Page(kind));
    }

    /// Delivers the next objects of a list, or its end.
    pub(crate) fn deliver_page(&mut self, kind: usize) {
        let slow = !self.calm && self.fault_dice.chance(10);
        let (few, broken) = (1 + self.fault_dice.below(12), !self.calm && self.fault_dice.chance(4));
        let WireState::Listing { items, uids, revision, pass, sent } = &mut self.wires[kind].state else {
            return;
        };
        if broken {
            self.wires[kind].state = WireState::Down;
            self.report_trouble(kind, ApiFailureCause::Connection);
            let again = self.fault_dice.between(200, 2_000);
            return self.schedule_event(again, SimEvent::Open(kind));
        }
        let page: Vec<_> = items.drain(..few.min(items.len())).collect();
        if page.is_empty() {
            let (uids, revision, pass) = (std::mem::take(uids), *revision, pass.clone());
            return self.finish_list(kind, revision, &uids, &pass);
        }
        let (pass, sent) = (pass.clone(), *sent);
        for item in page {
            let uid = self.feed_object(kind, &pass, sent, &item);
            if let WireState::Listing { uids, .. } = &mut self.wires[kind].state {
                uids.insert(uid);
            }
        }
        let after = if slow { self.fault_dice.between(500, 5_000) } else { self.fault_dice.between(0, 20) };
        self.schedule_event(after, SimEvent::Page(kind));
        self.wake_loop();
    }

    fn finish_list(&mut self, kind: usize, revision: u64, uids: &BTreeSet<String>, pass: &ListPass) {
        if self.sabotage != Some(Sabotage::NoSweep) {
            self.core.reflector.finish_list(pass);
        }
        self.shown.finish_list(kind, revision, uids);
        let wire = &mut self.wires[kind];
        (wire.state, wire.resume_revision, wire.synced) = (WireState::Down, Some(revision), true);
        self.log_kind_event(kind, format_args!("listed"));
        self.push_news(kind, KindEvent::Synced);
        self.open_kind(kind);
    }

    fn start_watch(&mut self, kind: usize, place: u64) {
        let path = self.scenario.kinds[kind].api.list_path(None);
        let seconds = self.fault_dice.between(60, 90);
        let target = format!(
            "{path}?watch=1&resourceVersion={place}&timeoutSeconds={seconds}&allowWatchBookmarks=true"
        );
        let opened = self.store.open_watch(self.now, &StoreRequest::new("GET", &target));
        match opened {
            Ok(cursor) => {
                let wake = cursor.wake_at();
                self.wires[kind].state = WireState::Watching(Box::new(cursor));
                self.push_news(kind, KindEvent::Alive);
                if self.sabotage == Some(Sabotage::BlindnessForgiven) {
                    self.news.push_back((kind_id(kind), KindEvent::Synced));
                }
                self.schedule_delivery(kind, wake.unwrap_or(self.now));
                self.schedule_delivery(kind, self.now);
            }
            Err(refusal) => self.fail_invariant("a watch can be opened", refusal.message()),
        }
    }

    /// Schedules a delivery of a watch no later than `at`.
    fn schedule_delivery(&mut self, kind: usize, at: i64) {
        let wire = &mut self.wires[kind];
        if wire.deliver_at.is_none_or(|old| old > at) {
            wire.deliver_at = Some(at);
            self.schedule_event(at - self.now, SimEvent::Deliver(kind));
        }
    }

    /// Schedules, after a change, the delivery of every watch that is behind, after its lag.
    pub(crate) fn wake_watches(&mut self) {
        let revision = self.store.revision();
        for kind in 0..self.wires.len() {
            let behind = matches!(&self.wires[kind].state, WireState::Watching(c) if c.revision() < revision);
            if behind && revision != self.watch.revision {
                let lag = self.wires[kind].lag + self.fault_dice.between(1, 25);
                self.schedule_delivery(kind, self.now + lag);
            }
        }
        self.watch.revision = revision;
    }

    /// Delivers the available lines of a watch, unless it breaks.
    pub(crate) fn deliver_watch(&mut self, kind: usize) {
        if self.wires[kind].deliver_at != Some(self.now) {
            return;
        }
        self.wires[kind].deliver_at = None;
        if self.wires[kind].down_until > self.now {
            return self.break_watch(kind);
        }
        let WireState::Watching(mut cursor) = std::mem::take(&mut self.wires[kind].state) else { return };
        // A lagging replica may have only a part of the changes.
        let limit = if !self.calm && self.fault_dice.chance(20) {
            cursor.revision() + self.fault_dice.between(0, 4).unsigned_abs()
        } else {
            u64::MAX
        };
        while let Some(line) = self.store.next_line_until(self.now, &mut cursor, limit) {
            let bytes = line.to_bytes();
            if !self.deliver_line(kind, &bytes, &line.object) {
                return;
            }
            self.wires[kind].resume_revision =
                Some(line.revision().max(self.wires[kind].resume_revision.unwrap_or(0)));
        }
        let (ended, wake) = (cursor.has_ended(), cursor.wake_at());
        let behind = cursor.revision() < self.store.revision() && limit != u64::MAX;
        self.wires[kind].state = WireState::Watching(cursor);
        if ended || (!self.calm && self.fault_dice.chance(2)) {
            self.wires[kind].state = WireState::Down;
            let again = self.fault_dice.between(1, 300);
            return self.schedule_event(again, SimEvent::Open(kind));
        }
        if behind {
            let after = self.fault_dice.between(5, 100);
            self.schedule_delivery(kind, self.now + after);
        }
        self.schedule_delivery(kind, wake.unwrap_or(self.now + 60_000));
    }

    fn break_watch(&mut self, kind: usize) {
        if matches!(self.wires[kind].state, WireState::Watching(_)) {
            self.wires[kind].state = WireState::Down;
            self.report_trouble(kind, ApiFailureCause::Connection);
            let again = self.fault_dice.between(200, 2_000);
            self.schedule_event(again, SimEvent::Open(kind));
        }
    }

    /// Delivers one line of a watch; returns `false` if it ended the watch.
    fn deliver_line(&mut self, kind: usize, bytes: &[u8], value: &Value) -> bool {
        let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(bytes) else {
            self.fail_invariant("a line can be read", String::from_utf8_lossy(bytes));
            return false;
        };
        match line.r#type {
            "BOOKMARK" => return true,
            "ERROR" => {
                self.wires[kind].resume_revision = None;
                self.report_trouble(kind, ApiFailureCause::Gone);
                let again = self.fault_dice.between(10, 500);
                self.schedule_event(again, SimEvent::Open(kind));
                return false;
            }
            _ => {}
        }
        let thing = ModelObject::from_json(kind, &self.scenario.kinds[kind], value);
        let deleted = line.r#type == "DELETED";
        let lost = !self.calm && self.fault_dice.chance(2);
        if lost || (deleted && self.sabotage == Some(Sabotage::DeletesLost)) {
            self.counts.lost += 1;
            self.log_kind_event(kind, format_args!("lost {} {}", line.r#type, describe_object(&thing)));
            return true;
        }
        self.apply_line(kind, &line, thing);
        if !self.calm && self.fault_dice.chance(5) {
            self.repeat_line(kind);
        }
        if self.wires[kind].repeatable_line.is_none() || self.fault_dice.chance(30) {
            self.wires[kind].repeatable_line = Some(bytes.into());
        }
        true
    }

    fn apply_line(&mut self, kind: usize, line: &WireWatchLine<'_>, thing: ModelObject) {
        self.log_kind_event(kind, format_args!("{} {}", line.r#type, describe_object(&thing)));
        if line.r#type == "DELETED" {
            self.core.reflector.delete_object(&thing.uid, thing.version);
            self.shown.delete_object(&thing.uid, thing.version);
        } else {
            self.apply_to_reflector(kind, line.object);
            self.shown.apply_object(thing);
        }
        self.wake_loop();
    }

    /// Delivers an earlier line again.
    fn repeat_line(&mut self, kind: usize) {
        let Some(bytes) = self.wires[kind].repeatable_line.clone() else { return };
        let mut bytes = bytes.to_vec();
        if self.sabotage == Some(Sabotage::StaleLooksNew)
            && let Ok(mut line) = serde_json::from_slice::<Value>(&bytes)
        {
            line["object"]["metadata"]["resourceVersion"] = self.store.revision().to_string().into();
            bytes = line.to_string().into_bytes();
            self.log_event("a repeated line looks new");
            let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(&bytes) else { return };
            // The second cache recognises it as stale.
            return self.apply_to_reflector(kind, line.object);
        }
        if let Ok(line) = serde_json::from_slice::<WireWatchLine<'_>>(&bytes) {
            let thing = self.model_object(kind, line.object);
            self.apply_line(kind, &line, thing);
        }
    }

    pub(crate) fn model_object(&self, kind: usize, object: &RawValue) -> ModelObject {
        let value: Value = serde_json::from_str(object.get()).unwrap_or_default();
        ModelObject::from_json(kind, &self.scenario.kinds[kind], &value)
    }

    /// Feeds one object to the product and to the second cache; returns its UID.
    fn feed_object(&mut self, kind: usize, pass: &ListPass, sent: ShownMoment, object: &RawValue) -> String {
        let thing = self.model_object(kind, object);
        let uid = thing.uid.clone();
        if !self.interests[kind].reads_whole() {
            if let Ok(child) = serde_json::from_str::<ChildObject>(object.get()) {
                self.core.reflector.apply_listed(pass, &child, None);
            }
        } else if let Some(parent) = self.decode_parent(object) {
            self.core.reflector.apply_listed(pass, parent.as_child(), parent.raw_text());
        }
        self.shown.apply_read(thing, sent);
        uid
    }

    fn apply_to_reflector(&mut self, kind: usize, object: &RawValue) {
        let (reflector, of) = (&self.core.reflector, kind_id(kind));
        if !self.interests[kind].reads_whole() {
            if let Ok(child) = serde_json::from_str::<ChildObject>(object.get()) {
                reflector.apply_object(of, &child, None);
            }
        } else if let Some(parent) = self.decode_parent(object) {
            reflector.apply_object(of, parent.as_child(), parent.raw_text());
        }
    }

    pub(crate) fn decode_parent(&self, object: &RawValue) -> Option<ParentObject> {
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

/// Name of an object in the log.
fn describe_object(thing: &ModelObject) -> String {
    format!("{}/{} at {}", thing.namespace, thing.name, thing.version)
}
