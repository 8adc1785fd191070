//! The simulated world without the service: time, the API server's objects and policies, and the faults on the way to it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use sandbox::store::{SandboxStore, StoreRefusal, StoreRequest, StoreResponse};
use serde_json::{Value, json};
use watcher::ApiKind;

use super::fault_dice::FaultDice;
use super::object_model::ModelObject;
use super::policy_server::PolicyServer;
use super::sim_object_ref::SimObjectRef;
use crate::perturbation::{Disturbance, Perturbation, Perturber, PointKind};
use crate::scenario::{Scenario, SeedStreams};
use crate::timeline::SimTimeline;

/// The world of one run.
pub(crate) struct SimWorld {
    pub(crate) scenario: Rc<Scenario>,
    pub(crate) timeline: SimTimeline,
    pub(crate) faults: FaultDice,
    pub(crate) store: SandboxStore,
    pub(crate) policy_server: PolicyServer,
    pub(crate) perturber: Perturber,
    /// Number of times that another manager overwrote our conditions on a parent, by UID.
    overwritten: BTreeMap<String, u32>,
}

impl SimWorld {
    /// Creates the world of a seed, without objects.
    pub(crate) fn new(streams: SeedStreams, scenario: Rc<Scenario>) -> SimWorld {
        SimWorld::with_faults(streams, FaultDice::new(streams, false), scenario)
    }

    /// Creates a world in which nothing fails but by perturbations.
    pub(crate) fn calm(
        streams: SeedStreams,
        scenario: Rc<Scenario>,
        perturbations: &[Perturbation],
    ) -> SimWorld {
        let world = SimWorld::with_faults(streams, FaultDice::new(streams, true), scenario);
        SimWorld { perturber: Perturber::new(perturbations), ..world }
    }

    fn with_faults(streams: SeedStreams, faults: FaultDice, scenario: Rc<Scenario>) -> SimWorld {
        SimWorld {
            timeline: SimTimeline::new(scenario.kind_names()),
            faults,
            perturber: Perturber::default(),
            store: SandboxStore::new(streams.seed),
            policy_server: PolicyServer::new(streams, &scenario.first_policies),
            overwritten: BTreeMap::new(),
            scenario,
        }
    }

    /// Counts a point of the history, and returns what happens there.
    pub(crate) fn disturb_point(&mut self, point: PointKind) -> Option<Disturbance> {
        let disturbance = self.perturber.pass_point(point)?;
        self.timeline.log_event(format_args!("DISTURBED: {point:?} {disturbance:?}"));
        Some(disturbance)
    }

    /// Logs the policies with which the history begins.
    pub(crate) fn log_policies(&self) {
        for policy in &self.scenario.first_policies {
            let kinds: Vec<&str> = policy.groups.iter().map(|g| self.scenario.kind_name(g.kind)).collect();
            let (parent, types) =
                (self.scenario.kind_name(policy.parent), (policy.condition, policy.fallback));
            let mode = if policy.shadow { ", in shadow mode" } else { "" };
            let name = policy.name();
            self.timeline.log_event(format_args!("{name}: {parent} of {kinds:?} has {types:?}{mode}"));
        }
    }

    /// Returns the time in milliseconds.
    pub(crate) fn now(&self) -> i64 {
        self.timeline.now()
    }

    pub(crate) fn api_kind(&self, kind: usize) -> &ApiKind {
        &self.scenario.kinds[kind].api
    }

    /// Returns the path of an object; the namespace is empty for one without.
    pub(crate) fn object_path(&self, kind: usize, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.list_path(kind, namespace))
    }

    /// Returns the path of all objects of a kind, of one namespace or (empty) of all.
    pub(crate) fn list_path(&self, kind: usize, namespace: &str) -> String {
        self.api_kind(kind).list_path(Some(namespace).filter(|namespace| !namespace.is_empty()))
    }

    /// Sends a request that reads.
    pub(crate) fn read_path(&mut self, path: &str) -> StoreResponse {
        self.store.handle_request(self.timeline.now(), &StoreRequest::new("GET", path))
    }

    /// Returns all objects of a kind.
    pub(crate) fn list_objects(&self, kind: usize) -> Vec<Arc<Value>> {
        let api = self.api_kind(kind);
        self.store.list_objects(&api.api_version(), &api.kind, "")
    }

    /// Returns all objects of these kinds, each with its kind.
    pub(crate) fn list_kinds(&self, kinds: std::ops::Range<usize>) -> Vec<(usize, Arc<Value>)> {
        kinds.flat_map(|kind| self.list_objects(kind).into_iter().map(move |object| (kind, object))).collect()
    }

    /// Returns all objects as the judges read them.
    pub(crate) fn read_all_objects(&self) -> Vec<Rc<ModelObject>> {
        let all = self.list_kinds(0..self.scenario.kinds.len()).into_iter();
        all.map(|(kind, object)| Rc::new(self.read_object(kind, &object))).collect()
    }

    /// Reads an object as the judges do.
    pub(crate) fn read_object(&self, kind: usize, object: &Value) -> ModelObject {
        ModelObject::from_json(kind, &self.scenario.kinds[kind], object)
    }

    pub(crate) fn find_object(&self, place: &SimObjectRef) -> Option<Arc<Value>> {
        let api = self.api_kind(place.kind);
        self.store.get(&api.api_version(), &api.kind, &place.namespace, &place.name)
    }

    pub(crate) fn describe_ref(&self, place: &SimObjectRef) -> String {
        format!("{} {}/{}", self.scenario.kind_name(place.kind), place.namespace, place.name)
    }

    /// Creates an object of the cluster's own kinds; `what` names it in the log.
    pub(crate) fn install_object(&mut self, what: &str, object: Value) {
        let made = self.store.create_object(self.timeline.now(), object).map(drop);
        self.log_refusal(what, made);
    }

    /// Returns `true` if the server serves a kind: its definition is there.
    pub(crate) fn serves(&self, kind: usize) -> bool {
        let api = self.api_kind(kind);
        self.store.object_path(&api.api_version(), &api.kind, "", "").is_ok()
    }

    /// Deletes the definition of a custom kind, and with it all of its objects.
    pub(crate) fn delete_definition(&mut self, kind: usize) {
        let api = self.api_kind(kind);
        let name = format!("{}.{}", api.plural, api.group);
        self.timeline.log_kind_event(kind, "its definition is deleted");
        let (version, of) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let done = self.store.delete_object(self.timeline.now(), version, of, "", &name);
        self.log_refusal("delete definition", done.map(drop));
    }

    pub(crate) fn create_object(
        &mut self,
        place: &SimObjectRef,
        object: Value,
    ) -> Result<Arc<Value>, StoreRefusal> {
        self.timeline.log_event(format_args!("{} created", self.describe_ref(place)));
        self.store.create_object(self.timeline.now(), object)
    }

    pub(crate) fn patch_object(&mut self, place: &SimObjectRef, patch: &Value) {
        let api = self.api_kind(place.kind).clone();
        let (version, now) = (api.api_version(), self.now());
        let done = self.store.patch_object(now, &version, &api.kind, &place.namespace, &place.name, patch);
        self.timeline.log_event(format_args!("{} patched {patch}", self.describe_ref(place)));
        self.log_refusal("patch", done.map(drop));
    }

    /// Sets the number of a workload's replicas as an autoscaler does.
    pub(crate) fn scale_object(&mut self, place: &SimObjectRef, replicas: i64) {
        let api = self.api_kind(place.kind).clone();
        let (version, now) = (api.api_version(), self.now());
        let done = self.store.scale_object(now, &version, &api.kind, &place.namespace, &place.name, replicas);
        self.timeline.log_event(format_args!("{} scaled to {replicas}", self.describe_ref(place)));
        self.log_refusal("scale", done.map(drop));
    }

    pub(crate) fn patch_status(&mut self, place: &SimObjectRef, status: &Value) {
        let api = self.api_kind(place.kind).clone();
        let (version, now, patch) = (api.api_version(), self.now(), json!({ "status": status }));
        let done = self.store.patch_status(now, &version, &api.kind, &place.namespace, &place.name, &patch);
        self.timeline.log_event(format_args!("{} says {status}", self.describe_ref(place)));
        self.log_refusal("patch status", done.map(drop));
    }

    pub(crate) fn delete_object(&mut self, place: &SimObjectRef) {
        let api = self.api_kind(place.kind).clone();
        let (version, now) = (api.api_version(), self.now());
        self.timeline.log_event(format_args!("{} deleted", self.describe_ref(place)));
        let done = self.store.delete_object(now, &version, &api.kind, &place.namespace, &place.name);
        self.log_refusal("delete", done.map(drop));
    }

    /// Deletes an object once everything is gone that it owns and that blocks its deletion.
    pub(crate) fn delete_in_foreground(&mut self, place: &SimObjectRef) {
        let api = self.api_kind(place.kind).clone();
        let (version, now) = (api.api_version(), self.now());
        self.timeline.log_event(format_args!("{} deleted in the foreground", self.describe_ref(place)));
        let done = self.store.delete_in_foreground(now, &version, &api.kind, &place.namespace, &place.name);
        self.log_refusal("delete", done);
    }

    fn log_refusal(&self, what: &str, how: Result<(), StoreRefusal>) {
        if let Err(refusal) = how {
            self.timeline.log_event(format_args!("{what}: {}", refusal.message()));
        }
    }

    /// Counts an overwrite of our conditions on a parent by another manager.
    pub(crate) fn count_overwrite(&mut self, uid: &str) {
        *self.overwritten.entry(uid.to_owned()).or_insert(0) += 1;
    }

    /// Returns the number of times that another manager overwrote our conditions on a parent.
    pub(crate) fn overwrites_of(&self, uid: &str) -> u32 {
        self.overwritten.get(uid).copied().unwrap_or(0)
    }
}
