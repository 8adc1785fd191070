//! The way of objects into the service: whatever is fed to its reflector is fed to the judges' cache too.

use std::rc::Rc;
use std::sync::Arc;

use rollcall_core::{LiveRead, live_reads};
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::Interest;
use watcher::reflector::{ListPass, NamespaceBudgets, ReadStart, Reflector};
use watcher::wire::ChildObject;
use watcher::{ParentObject, ReflectorObject};

use crate::judges::{ShownMoment, ShownObjects};
use crate::scenario::{Sabotage, Scenario, kind_id};
use crate::wires::SentRead;
use crate::world::{ModelObject, SimBudgets};

/// Maximum number of objects that one list lacks and that are read.
const MAX_UNLISTED_READS: usize = 500;

/// Both caches, and the interest by which the service's own reads each kind.
pub(crate) struct ObjectFeed {
    pub(crate) reflector: Arc<Reflector>,
    /// The judges' cache.
    pub(crate) shown: ShownObjects,
    interests: Vec<Interest>,
    scenario: Rc<Scenario>,
    sabotage: Option<Sabotage>,
}

impl ObjectFeed {
    pub(crate) fn new(
        reflector: Arc<Reflector>,
        scenario: Rc<Scenario>,
        sabotage: Option<Sabotage>,
    ) -> ObjectFeed {
        let kinds = 0..scenario.kinds.len();
        let interests = kinds.map(|kind| scenario.kind_interest(kind, &scenario.first_policies)).collect();
        ObjectFeed { reflector, shown: ShownObjects::default(), interests, scenario, sabotage }
    }

    /// Replaces what is known of PodDisruptionBudgets; the judges read what the process was `told` of them in whole.
    pub(crate) fn set_budgets(&mut self, known: NamespaceBudgets, told: Option<&SimBudgets>) {
        self.reflector.set_disruption_budgets(known);
        self.shown.set_budgets(told.cloned().unwrap_or_default());
    }

    /// Forgets everything that was shown; the new process has this reflector.
    pub(crate) fn reset_for_restart(&mut self, reflector: Arc<Reflector>) {
        self.reflector = reflector;
        self.shown = ShownObjects::default();
    }

    /// Splits off the caches of a process beside which another begins: this one begins with the new reflector and forgets
    /// everything that was shown.
    pub(crate) fn split_for_takeover(&mut self, reflector: Arc<Reflector>) -> ObjectFeed {
        ObjectFeed {
            reflector: std::mem::replace(&mut self.reflector, reflector),
            shown: std::mem::take(&mut self.shown),
            interests: self.interests.clone(),
            scenario: self.scenario.clone(),
            sabotage: self.sabotage,
        }
    }

    /// Sets the interests by which kinds were read last.
    pub(crate) fn set_interests(&self) {
        for interest in &self.interests {
            self.reflector.set_interest(interest.clone());
        }
    }

    /// Reads a kind by this interest from now on.
    pub(crate) fn set_interest(&mut self, kind: usize, interest: Interest) {
        self.interests[kind] = interest.clone();
        self.reflector.set_interest(interest);
        self.shown.follow_kind(kind);
    }

    /// A kind is served again: it is read as it was.
    pub(crate) fn follow_anew(&mut self, kind: usize) {
        self.reflector.set_interest(self.interests[kind].clone());
        self.shown.follow_kind(kind);
    }

    /// Forgets a kind that is not served or not followed any more.
    pub(crate) fn forget_kind(&mut self, kind: usize) {
        self.reflector.forget_kind(kind_id(kind));
        self.shown.forget_kind(kind);
    }

    /// Reads an object as the judges do.
    pub(crate) fn model_object(&self, kind: usize, object: &RawValue) -> ModelObject {
        let value: Value = serde_json::from_str(object.get()).unwrap_or_default();
        ModelObject::from_json(kind, &self.scenario.kinds[kind], &value)
    }

    /// Feeds one object of a list; returns its UID.
    pub(crate) fn feed_listed(
        &mut self,
        kind: usize,
        pass: &ListPass,
        sent: ShownMoment,
        object: &RawValue,
    ) -> String {
        let model = self.model_object(kind, object);
        let uid = model.uid.clone();
        if !self.interests[kind].reads_whole() {
            if let Ok(child) = serde_json::from_str::<ChildObject>(object.get()) {
                self.reflector.apply_listed(pass, &child, None);
            }
        } else if let Some(parent) = self.decode_parent(object) {
            self.reflector.apply_listed(pass, parent.as_child(), parent.raw_text());
        }
        self.shown.apply_listed(model, sent);
        uid
    }

    /// Feeds one object of a watch.
    pub(crate) fn feed_watched(&mut self, kind: usize, model: ModelObject, object: &RawValue) {
        self.feed_reflector_alone(kind, object);
        self.shown.apply_object(model);
    }

    /// Feeds a deletion of a watch.
    pub(crate) fn feed_deletion(&mut self, model: &ModelObject) {
        self.reflector.delete_object(&model.uid, model.version);
        self.shown.delete_object(&model.uid, model.version);
    }

    /// Feeds an object of a watch that the judges' cache would recognise as stale.
    pub(crate) fn feed_reflector_alone(&self, kind: usize, object: &RawValue) {
        let (reflector, of) = (&self.reflector, kind_id(kind));
        if !self.interests[kind].reads_whole() {
            if let Ok(child) = serde_json::from_str::<ChildObject>(object.get()) {
                reflector.apply_object(of, &child, None);
            }
        } else if let Some(parent) = self.decode_parent(object) {
            reflector.apply_object(of, parent.as_child(), parent.raw_text());
        }
    }

    /// Feeds the answer to a live read to the reflector; returns what the watch has not delivered yet, and reads of what a list
    /// lacks.
    pub(crate) fn feed_live_objects(
        &self,
        request: SentRead,
        start: ReadStart,
        objects: &[Box<RawValue>],
    ) -> (Vec<live_reads::WatchLag>, Vec<LiveRead>) {
        if self.interests[request.read.kind().index()].reads_whole() {
            let live: Vec<ParentObject> = objects.iter().filter_map(|o| self.decode_parent(o)).collect();
            return self.find_ahead(start, request, &live);
        }
        let live: Vec<ChildObject> =
            objects.iter().filter_map(|o| serde_json::from_str(o.get()).ok()).collect();
        self.find_ahead(start, request, &live)
    }

    fn find_ahead<K: ReflectorObject>(
        &self,
        start: ReadStart,
        request: SentRead,
        live: &[K],
    ) -> (Vec<live_reads::WatchLag>, Vec<LiveRead>) {
        let (reflector, SentRead { read, expected, held, .. }) = (&self.reflector, request);
        let kind = read.kind();
        match read {
            LiveRead::One { .. } => {
                (live_reads::apply_live_read(reflector, kind, start, expected, live.first()), Vec::new())
            }
            LiveRead::All { .. } => {
                let apply = |k| live_reads::apply_live_object(reflector, kind, start, k);
                let ahead = live.iter().filter_map(apply).collect();
                (ahead, live_reads::unlisted_reads(reflector, held, live, MAX_UNLISTED_READS))
            }
        }
    }

    /// Reads a parent as the service does.
    pub(crate) fn decode_parent(&self, object: &RawValue) -> Option<ParentObject> {
        let blur = match self.sabotage {
            Some(Sabotage::NoEvidence) => remove_evidence,
            Some(Sabotage::FailuresUnread) => remove_phase,
            _ => return serde_json::from_str(object.get()).ok(),
        };
        let mut value: Value = serde_json::from_str(object.get()).ok()?;
        blur(&mut value);
        serde_json::from_str(&value.to_string()).ok()
    }
}

/// Removes the operator's handled marks.
fn remove_evidence(parent: &mut Value) {
    if let Some(status) = parent["status"].as_object_mut() {
        status.remove("observedGeneration");
    }
    if let Some(conditions) = parent["status"]["conditions"].as_array_mut() {
        for condition in conditions.iter_mut().filter(|c| c["type"] == "Synced") {
            condition["observedGeneration"] = Value::Null;
        }
    }
    if let Some(meta) = parent["metadata"].as_object_mut() {
        meta.remove("annotations");
    }
}

/// Removes what the parent says of its own failure.
fn remove_phase(parent: &mut Value) {
    if let Some(status) = parent["status"].as_object_mut() {
        status.remove("phase");
    }
}
