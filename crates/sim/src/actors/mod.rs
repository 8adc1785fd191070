//! All actors but Rollcall: people, operators, workload controllers, other writers of status, and random faults.

mod faults;
mod manifests;
mod operator;
mod sim_object_ref;

use std::sync::Arc;

use sandbox::store::StoreRefusal;
use serde_json::{Value, json};

use crate::object_model::{STRANGERS, conditions_of};
use crate::scenario::CUSTOM_GROUP;
use crate::sim::{Sim, SimEvent};

pub(crate) use sim_object_ref::SimObjectRef;

/// Namespaces of all simulated objects.
const NAMESPACES: [&str; 2] = ["red", "blue"];
/// Number of objects from which no more are created.
const MAX_OBJECTS: usize = 60;

impl Sim {
    /// Installs the kinds and creates the first few objects.
    pub(crate) fn install_cluster(&mut self) {
        for namespace in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let made = self.store.create_object(self.now, object).map(drop);
            self.log_refusal("create namespace", made);
        }
        for at in 3..self.scenario.kinds.len() {
            let definition = manifests::crd_manifest(&self.scenario.kinds[at]);
            let made = self.store.create_object(self.now, definition).map(drop);
            self.log_refusal("create definition", made);
        }
        for _ in 0..8 {
            self.create_parent();
        }
        for _ in 0..8 {
            self.create_child();
        }
        for wire in &mut self.wires {
            wire.lag = self.fault_dice.between(0, 120);
        }
    }

    pub(crate) fn log_refusal(&mut self, what: &str, how: Result<(), StoreRefusal>) {
        if let Err(refusal) = how {
            self.log_event(format_args!("{what}: {}", refusal.message()));
        }
    }

    /// Performs the next random action of an actor.
    pub(crate) fn step_actors(&mut self) {
        self.steps -= 1;
        match self.dice.below(100) {
            0..5 => self.create_parent(),
            5..17 => self.create_child(),
            17..37 => self.flip_leaf(),
            37..53 => self.heal_some_parent(),
            53..61 => self.delete_child(),
            61..68 => self.release_something(),
            68..75 => self.respecify_parent(),
            75..81 => self.respecify_child(),
            81..88 => self.write_foreign_condition(),
            88..90 => self.tamper_with_condition(),
            90..93 => self.delete_parent(),
            93..97 => self.adopt_leaf(),
            _ => self.flip_many(),
        }
        let pause = match self.dice.below(20) {
            0 => self.dice.between(20_000, 150_000),
            1..5 => self.dice.between(2_000, 15_000),
            5..9 => self.dice.between(0, 60),
            _ => self.dice.between(60, 1_500),
        };
        self.schedule_event(pause, SimEvent::ActorStep);
    }

    /// Changes many objects at once.
    fn flip_many(&mut self) {
        for _ in 0..self.dice.between(5, 15) {
            self.flip_leaf();
        }
    }

    pub(crate) fn list_objects(&self, kind: usize) -> Vec<Arc<Value>> {
        let api = &self.scenario.kinds[kind].api;
        self.store.list_objects(&api.api_version(), &api.kind, "")
    }

    fn list_kinds(&mut self, kinds: std::ops::Range<usize>) -> Vec<(usize, Arc<Value>)> {
        kinds.flat_map(|kind| self.list_objects(kind).into_iter().map(move |object| (kind, object))).collect()
    }

    /// Picks an object that is not a parent.
    fn some_leaf(&mut self) -> Option<(usize, Arc<Value>)> {
        let all = self.list_kinds(0..4);
        self.dice.pick(&all).cloned()
    }

    fn some_parent(&mut self) -> Option<(usize, Arc<Value>)> {
        let all = self.list_kinds(4..self.scenario.kinds.len());
        self.dice.pick(&all).cloned()
    }

    pub(crate) fn object_ref(kind: usize, object: &Value) -> SimObjectRef {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        SimObjectRef { kind, namespace: text("namespace"), name: text("name") }
    }

    pub(crate) fn describe_ref(&self, place: &SimObjectRef) -> String {
        format!("{} {}/{}", self.scenario.kind_name(place.kind), place.namespace, place.name)
    }

    pub(crate) fn patch_object(&mut self, place: &SimObjectRef, patch: &Value) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now) = (api.api_version(), self.now);
        let done = self.store.patch_object(now, &version, &api.kind, &place.namespace, &place.name, patch);
        self.log_event(format_args!("{} patched {patch}", self.describe_ref(place)));
        self.log_refusal("patch", done.map(drop));
    }

    pub(crate) fn patch_status(&mut self, place: &SimObjectRef, status: &Value) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now, patch) = (api.api_version(), self.now, json!({ "status": status }));
        let done = self.store.patch_status(now, &version, &api.kind, &place.namespace, &place.name, &patch);
        self.log_event(format_args!("{} says {status}", self.describe_ref(place)));
        self.log_refusal("patch status", done.map(drop));
    }

    fn delete_object(&mut self, place: &SimObjectRef) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now) = (api.api_version(), self.now);
        self.log_event(format_args!("{} deleted", self.describe_ref(place)));
        let done = self.store.delete_object(now, &version, &api.kind, &place.namespace, &place.name);
        self.log_refusal("delete", done.map(drop));
    }

    fn some_namespace(&mut self) -> String {
        NAMESPACES[self.dice.below(NAMESPACES.len())].to_owned()
    }

    /// Creates a parent without an owner.
    fn create_parent(&mut self) {
        let kinds = self.scenario.kinds.len();
        let kind = 4 + self.dice.below(kinds - 4);
        let name = format!("p{}", self.dice.below(3));
        let namespace = self.some_namespace();
        self.create_object(&SimObjectRef { kind, namespace, name }, None);
    }

    /// Creates a child of some parent, as one of its policies expects it.
    fn create_child(&mut self) {
        if let Some((kind, parent)) = self.some_parent() {
            self.create_child_of(kind, &parent);
        }
    }

    pub(crate) fn create_child_of(&mut self, kind: usize, parent: &Value) {
        let policies: Vec<_> =
            self.scenario.first_policies.iter().filter(|p| p.parent == kind).cloned().collect();
        let Some(policy) = self.dice.pick(&policies) else { return };
        let Some(group) = self.dice.pick(&policy.groups).cloned() else { return };
        let at = Self::object_ref(kind, parent);
        let name = format!("{}-x{}", at.name, self.dice.below(3));
        let namespace = if at.namespace.is_empty() { self.some_namespace() } else { at.namespace };
        self.create_object(&SimObjectRef { kind: group.kind, namespace, name }, Some((kind, parent)));
    }

    pub(crate) fn create_object(&mut self, place: &SimObjectRef, parent: Option<(usize, &Value)>) {
        let crowd: usize = (0..self.scenario.kinds.len()).map(|kind| self.list_objects(kind).len()).sum();
        if crowd > MAX_OBJECTS {
            return;
        }
        let hangs = self.dice.chance(12);
        let mut object = manifests::object_manifest(&self.scenario.kinds[place.kind], place, &mut self.dice);
        if hangs {
            object["metadata"]["finalizers"] = json!([format!("{CUSTOM_GROUP}/hold")]);
        }
        if let Some((kind, parent)) = parent {
            manifests::add_owner(&mut object, &self.scenario.kinds[kind], parent);
        }
        self.log_event(format_args!("{} created", self.describe_ref(place)));
        match self.store.create_object(self.now, object) {
            Ok(made) if place.kind >= 4 => self.schedule_operator(place.kind, &made),
            Ok(_) => {
                let later = self.dice.between(10, 6_000);
                if self.dice.chance(70) {
                    self.schedule_event(later, SimEvent::Heal(Self::uid_of(parent)));
                }
            }
            Err(refusal) => self.log_event(refusal.message()),
        }
    }

    fn uid_of(parent: Option<(usize, &Value)>) -> String {
        parent.and_then(|(_, p)| p["metadata"]["uid"].as_str()).unwrap_or_default().to_owned()
    }

    /// Changes the status of some leaf, as its controller, kubelet or operator would.
    fn flip_leaf(&mut self) {
        if let Some((kind, object)) = self.some_leaf() {
            self.update_leaf_status(kind, &object);
        }
    }

    fn update_leaf_status(&mut self, kind: usize, object: &Value) {
        let kinds = &self.scenario.kinds;
        if let Some(status) = manifests::random_status(&kinds[kind].api.kind, object, &mut self.dice) {
            self.patch_status(&Self::object_ref(kind, object), &status);
        }
    }

    /// Makes all descendants of some parent ready.
    fn heal_some_parent(&mut self) {
        if let Some((_, parent)) = self.some_parent() {
            self.heal_children(parent["metadata"]["uid"].as_str().unwrap_or_default());
        }
    }

    /// Makes every leaf of this owner ready, as far as possible, including those selected by its labels.
    pub(crate) fn heal_children(&mut self, owner: &str) {
        for (kind, object) in self.list_kinds(0..4) {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let owned = owners.into_iter().flatten().any(|o| o["uid"] == owner);
            if owned || (kind == 3 && self.dice.chance(50)) {
                let status = manifests::ready_status(&self.scenario.kinds[kind].api.kind, &object);
                if let Some(status) = status.filter(|s| !manifests::is_same_status(s, &object["status"])) {
                    self.patch_status(&Self::object_ref(kind, &object), &status);
                }
            }
        }
    }

    /// Deletes a leaf; half of the time another one is created under its name at once.
    fn delete_child(&mut self) {
        let Some((kind, object)) = self.some_leaf() else { return };
        self.delete_and_maybe_recreate(kind, &object);
    }

    fn delete_parent(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        self.delete_and_maybe_recreate(kind, &object);
    }

    fn delete_and_maybe_recreate(&mut self, kind: usize, object: &Value) {
        let place = Self::object_ref(kind, object);
        self.delete_object(&place);
        if self.dice.chance(50) {
            let parents = self.list_kinds(4..self.scenario.kinds.len());
            let owner = object["metadata"]["ownerReferences"][0]["uid"].clone();
            let parent = parents.iter().find(|(_, p)| p["metadata"]["uid"] == owner);
            self.create_object(&place, parent.map(|(kind, p)| (*kind, &**p)));
        }
    }

    /// Removes the finalizers from an object whose deletion is held up.
    fn release_something(&mut self) {
        let all = self.list_kinds(0..self.scenario.kinds.len());
        let hang: Vec<_> =
            all.into_iter().filter(|(_, o)| !o["metadata"]["deletionTimestamp"].is_null()).collect();
        if let Some((kind, object)) = self.dice.pick(&hang).cloned() {
            self.patch_object(&Self::object_ref(kind, &object), &json!({"metadata": {"finalizers": null}}));
        }
    }

    fn respecify_parent(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let size = self.dice.between(1, 1_000_000);
        let place = Self::object_ref(kind, &object);
        self.patch_object(&place, &json!({"spec": {"size": size}}));
        let api = &self.scenario.kinds[kind].api;
        let version = api.api_version();
        if let Some(object) = self.store.get(&version, &api.kind, &place.namespace, &place.name) {
            self.schedule_operator(kind, &object);
        }
    }

    fn respecify_child(&mut self) {
        let Some((kind, object)) = self.some_leaf() else { return };
        let patch = manifests::respec_patch(&self.scenario.kinds[kind].api.kind, &mut self.dice);
        self.patch_object(&Self::object_ref(kind, &object), &patch);
    }

    /// Changes a leaf's owner: it is orphaned, or adopted by another parent.
    fn adopt_leaf(&mut self) {
        let (Some((kind, object)), Some((to, parent))) = (self.some_leaf(), self.some_parent()) else {
            return;
        };
        let place = Self::object_ref(kind, &object);
        if self.dice.chance(40) {
            return self
                .patch_object(&place, &json!({"metadata": {"ownerReferences": null, "labels": null}}));
        }
        let home = Self::object_ref(to, &parent).namespace;
        if home.is_empty() || home == place.namespace {
            let mut adopted = json!({"metadata": {}});
            manifests::add_owner(&mut adopted, &self.scenario.kinds[to], &parent);
            self.patch_object(&place, &adopted);
        }
    }

    /// Writes a condition as another field manager; some use a type that the policies use too.
    fn write_foreign_condition(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let claims = self.dice.chance(4);
        let name = if claims { "Ready" } else { *self.dice.pick(&STRANGERS).unwrap_or(&"Degraded") };
        let status = *self.dice.pick(&["True", "False"]).unwrap_or(&"True");
        if claims && conditions_of(&object["status"]).iter().any(|c| c["type"] == "Ready") {
            return;
        }
        // Words that we use as well.
        let reason = if status == "True" { "Terminating" } else { "DeadlineExceeded" };
        let condition = json!({"type": name, "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2027-01-15T08:00:00Z"});
        self.put_condition(kind, &object, &condition);
    }

    /// Returns the object's conditions with this one among them, as a well-behaved writer sends them.
    pub(crate) fn put_condition(&mut self, kind: usize, object: &Value, condition: &Value) {
        let mut list = conditions_of(&object["status"]).to_vec();
        match list.iter_mut().find(|c| c["type"] == condition["type"]) {
            Some(old) => *old = condition.clone(),
            None if self.dice.chance(30) => list.insert(0, condition.clone()),
            None => list.push(condition.clone()),
        }
        self.patch_status(&Self::object_ref(kind, object), &json!({ "conditions": list }));
    }

    /// Removes or changes one of our conditions, as a badly behaved writer would.
    fn tamper_with_condition(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let mut list = conditions_of(&object["status"]).to_vec();
        let Some(at) = list.iter().position(|c| c["type"] == "Ready") else { return };
        if self.dice.chance(50) {
            list.remove(at);
        } else {
            list[at]["status"] = json!("True");
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        *self.overwritten.entry(uid.to_owned()).or_insert(0) += 1;
        self.patch_status(&Self::object_ref(kind, &object), &json!({ "conditions": list }));
    }
}
