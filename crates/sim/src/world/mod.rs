//! Everybody but Rollcall: people, operators, controllers of workloads, other writers of status, and bad luck.

mod objects;
mod operator;
mod trouble;

use std::sync::Arc;

use sandbox::store::Refusal;
use serde_json::{Value, json};

use crate::scenario::GROUP;
use crate::sim::{Event, Sim};
use crate::thing::conditions;

/// Where everything lives.
const NAMESPACES: [&str; 2] = ["red", "blue"];
/// Nobody grows a world beyond this.
const CROWD: usize = 60;

/// The address of an object.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) kind: usize,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Sim {
    /// The kinds are installed, and the first few objects are there.
    pub(crate) fn found(&mut self) {
        for namespace in NAMESPACES {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            let made = self.store.create(self.now, object).map(drop);
            self.done("create namespace", made);
        }
        for at in 3..self.scenario.kinds.len() {
            let definition = objects::definition(&self.scenario.kinds[at]);
            let made = self.store.create(self.now, definition).map(drop);
            self.done("create definition", made);
        }
        for _ in 0..8 {
            self.create_parent();
        }
        for _ in 0..8 {
            self.create_child();
        }
        for wire in &mut self.wires {
            wire.lag = self.fate.between(0, 120);
        }
    }

    pub(crate) fn done(&mut self, what: &str, how: Result<(), Refusal>) {
        if let Err(refusal) = how {
            self.say(format_args!("{what}: {}", refusal.message()));
        }
    }

    /// The next thing that somebody does.
    pub(crate) fn world_step(&mut self) {
        self.steps -= 1;
        match self.dice.below(100) {
            0..5 => self.create_parent(),
            5..17 => self.create_child(),
            17..37 => self.flip(),
            37..53 => self.heal_somebody(),
            53..61 => self.delete_child(),
            61..68 => self.release_something(),
            68..75 => self.respecify_parent(),
            75..81 => self.respecify_child(),
            81..88 => self.foreign_word(),
            88..90 => self.tamper(),
            90..93 => self.delete_parent(),
            93..97 => self.adopt(),
            _ => self.burst(),
        }
        let pause = match self.dice.below(20) {
            0 => self.dice.between(20_000, 150_000),
            1..5 => self.dice.between(2_000, 15_000),
            5..9 => self.dice.between(0, 60),
            _ => self.dice.between(60, 1_500),
        };
        self.at(pause, Event::World);
    }

    /// Many small things at once.
    fn burst(&mut self) {
        for _ in 0..self.dice.between(5, 15) {
            self.flip();
        }
    }

    pub(crate) fn objects(&self, kind: usize) -> Vec<Arc<Value>> {
        let api = &self.scenario.kinds[kind].api;
        self.store.list(&api.api_version(), &api.kind, "")
    }

    fn all_of(&mut self, kinds: std::ops::Range<usize>) -> Vec<(usize, Arc<Value>)> {
        kinds.flat_map(|kind| self.objects(kind).into_iter().map(move |object| (kind, object))).collect()
    }

    /// Some object that nobody's children hang on.
    fn some_leaf(&mut self) -> Option<(usize, Arc<Value>)> {
        let all = self.all_of(0..4);
        self.dice.pick(&all).cloned()
    }

    fn some_parent(&mut self) -> Option<(usize, Arc<Value>)> {
        let all = self.all_of(4..self.scenario.kinds.len());
        self.dice.pick(&all).cloned()
    }

    pub(crate) fn place(kind: usize, object: &Value) -> Place {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Place { kind, namespace: text("namespace"), name: text("name") }
    }

    pub(crate) fn called(&self, place: &Place) -> String {
        format!("{} {}/{}", self.scenario.name(place.kind), place.namespace, place.name)
    }

    pub(crate) fn patch(&mut self, place: &Place, patch: &Value) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now) = (api.api_version(), self.now);
        let done = self.store.patch(now, &version, &api.kind, &place.namespace, &place.name, patch);
        self.say(format_args!("{} patched {patch}", self.called(place)));
        self.done("patch", done.map(drop));
    }

    pub(crate) fn status(&mut self, place: &Place, status: &Value) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now, patch) = (api.api_version(), self.now, json!({ "status": status }));
        let done = self.store.patch_status(now, &version, &api.kind, &place.namespace, &place.name, &patch);
        self.say(format_args!("{} says {status}", self.called(place)));
        self.done("patch status", done.map(drop));
    }

    fn delete(&mut self, place: &Place) {
        let api = self.scenario.kinds[place.kind].api.clone();
        let (version, now) = (api.api_version(), self.now);
        self.say(format_args!("{} deleted", self.called(place)));
        let done = self.store.delete(now, &version, &api.kind, &place.namespace, &place.name);
        self.done("delete", done.map(drop));
    }

    fn some_namespace(&mut self) -> String {
        NAMESPACES[self.dice.below(NAMESPACES.len())].to_owned()
    }

    /// Somebody creates a parent that nobody owns.
    fn create_parent(&mut self) {
        let kinds = self.scenario.kinds.len();
        let kind = 4 + self.dice.below(kinds - 4);
        let name = format!("p{}", self.dice.below(3));
        let namespace = self.some_namespace();
        self.create(&Place { kind, namespace, name }, None);
    }

    /// Somebody creates a child of some parent, as one of its policies wants it.
    fn create_child(&mut self) {
        if let Some((kind, parent)) = self.some_parent() {
            self.create_child_of(kind, &parent);
        }
    }

    pub(crate) fn create_child_of(&mut self, kind: usize, parent: &Value) {
        let policies: Vec<_> = self.scenario.policies.iter().filter(|p| p.parent == kind).cloned().collect();
        let Some(policy) = self.dice.pick(&policies) else { return };
        let Some(group) = self.dice.pick(&policy.groups).cloned() else { return };
        let at = Self::place(kind, parent);
        let name = format!("{}-x{}", at.name, self.dice.below(3));
        let namespace = if at.namespace.is_empty() { self.some_namespace() } else { at.namespace };
        self.create(&Place { kind: group.kind, namespace, name }, Some((kind, parent)));
    }

    pub(crate) fn create(&mut self, place: &Place, parent: Option<(usize, &Value)>) {
        let crowd: usize = (0..self.scenario.kinds.len()).map(|kind| self.objects(kind).len()).sum();
        if crowd > CROWD {
            return;
        }
        let hangs = self.dice.chance(12);
        let mut object = objects::manifest(&self.scenario.kinds[place.kind], place, &mut self.dice);
        if hangs {
            object["metadata"]["finalizers"] = json!([format!("{GROUP}/hold")]);
        }
        if let Some((kind, parent)) = parent {
            objects::adopt(&mut object, &self.scenario.kinds[kind], parent);
        }
        self.say(format_args!("{} created", self.called(place)));
        match self.store.create(self.now, object) {
            Ok(made) if place.kind >= 4 => self.notice(place.kind, &made),
            Ok(_) => {
                let later = self.dice.between(10, 6_000);
                if self.dice.chance(70) {
                    self.at(later, Event::Heal(Self::uid(parent)));
                }
            }
            Err(refusal) => self.say(refusal.message()),
        }
    }

    fn uid(parent: Option<(usize, &Value)>) -> String {
        parent.and_then(|(_, p)| p["metadata"]["uid"].as_str()).unwrap_or_default().to_owned()
    }

    /// Some leaf's controller, kubelet or operator says something new.
    fn flip(&mut self) {
        if let Some((kind, object)) = self.some_leaf() {
            self.say_something(kind, &object);
        }
    }

    fn say_something(&mut self, kind: usize, object: &Value) {
        let kinds = &self.scenario.kinds;
        if let Some(status) = objects::some_status(&kinds[kind].api.kind, object, &mut self.dice) {
            self.status(&Self::place(kind, object), &status);
        }
    }

    /// Everything below some parent becomes ready.
    fn heal_somebody(&mut self) {
        if let Some((_, parent)) = self.some_parent() {
            self.heal(parent["metadata"]["uid"].as_str().unwrap_or_default());
        }
    }

    /// Every leaf of this owner becomes ready, as far as it can; and those that are found by its labels.
    pub(crate) fn heal(&mut self, owner: &str) {
        for (kind, object) in self.all_of(0..4) {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let owned = owners.into_iter().flatten().any(|o| o["uid"] == owner);
            if owned || (kind == 3 && self.dice.chance(50)) {
                let status = objects::ready_status(&self.scenario.kinds[kind].api.kind, &object);
                if let Some(status) = status.filter(|s| !objects::same(s, &object["status"])) {
                    self.status(&Self::place(kind, &object), &status);
                }
            }
        }
    }

    /// A leaf goes; half of the time another one comes under its name at once.
    fn delete_child(&mut self) {
        let Some((kind, object)) = self.some_leaf() else { return };
        self.delete_and_maybe_recreate(kind, &object);
    }

    fn delete_parent(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        self.delete_and_maybe_recreate(kind, &object);
    }

    fn delete_and_maybe_recreate(&mut self, kind: usize, object: &Value) {
        let place = Self::place(kind, object);
        self.delete(&place);
        if self.dice.chance(50) {
            let parents = self.all_of(4..self.scenario.kinds.len());
            let owner = object["metadata"]["ownerReferences"][0]["uid"].clone();
            let parent = parents.iter().find(|(_, p)| p["metadata"]["uid"] == owner);
            self.create(&place, parent.map(|(kind, p)| (*kind, &**p)));
        }
    }

    /// Somebody takes the finalizers off something that hangs.
    fn release_something(&mut self) {
        let all = self.all_of(0..self.scenario.kinds.len());
        let hang: Vec<_> =
            all.into_iter().filter(|(_, o)| !o["metadata"]["deletionTimestamp"].is_null()).collect();
        if let Some((kind, object)) = self.dice.pick(&hang).cloned() {
            self.patch(&Self::place(kind, &object), &json!({"metadata": {"finalizers": null}}));
        }
    }

    fn respecify_parent(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let size = self.dice.between(1, 1_000_000);
        let place = Self::place(kind, &object);
        self.patch(&place, &json!({"spec": {"size": size}}));
        let api = &self.scenario.kinds[kind].api;
        let version = api.api_version();
        if let Some(object) = self.store.get(&version, &api.kind, &place.namespace, &place.name) {
            self.notice(kind, &object);
        }
    }

    fn respecify_child(&mut self) {
        let Some((kind, object)) = self.some_leaf() else { return };
        let patch = objects::respecified(&self.scenario.kinds[kind].api.kind, &mut self.dice);
        self.patch(&Self::place(kind, &object), &patch);
    }

    /// A leaf changes hands: it is left by its owner, or goes to another one.
    fn adopt(&mut self) {
        let (Some((kind, object)), Some((to, parent))) = (self.some_leaf(), self.some_parent()) else {
            return;
        };
        let place = Self::place(kind, &object);
        if self.dice.chance(40) {
            return self.patch(&place, &json!({"metadata": {"ownerReferences": null, "labels": null}}));
        }
        let home = Self::place(to, &parent).namespace;
        if home.is_empty() || home == place.namespace {
            let mut adopted = json!({"metadata": {}});
            objects::adopt(&mut adopted, &self.scenario.kinds[to], &parent);
            self.patch(&place, &adopted);
        }
    }

    /// Another writer of status says something of its own; some claim what others would like to say.
    fn foreign_word(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let claims = self.dice.chance(4);
        let name =
            if claims { "Ready" } else { *self.dice.pick(&["Degraded", "Reachable"]).unwrap_or(&"Degraded") };
        let status = *self.dice.pick(&["True", "False"]).unwrap_or(&"True");
        if claims && conditions(&object["status"]).iter().any(|c| c["type"] == "Ready") {
            return;
        }
        let condition = json!({"type": name, "status": status, "reason": "SaysSomebody", "message": "",
            "lastTransitionTime": "2027-01-15T08:00:00Z"});
        self.put_condition(kind, &object, &condition);
    }

    /// The conditions of an object with this one among them, as a polite writer puts them.
    pub(crate) fn put_condition(&mut self, kind: usize, object: &Value, condition: &Value) {
        let mut list = conditions(&object["status"]).to_vec();
        match list.iter_mut().find(|c| c["type"] == condition["type"]) {
            Some(old) => *old = condition.clone(),
            None if self.dice.chance(30) => list.insert(0, condition.clone()),
            None => list.push(condition.clone()),
        }
        self.status(&Self::place(kind, object), &json!({ "conditions": list }));
    }

    /// Somebody rude takes an entry of ours away, or turns it.
    fn tamper(&mut self) {
        let Some((kind, object)) = self.some_parent() else { return };
        let mut list = conditions(&object["status"]).to_vec();
        let Some(at) = list.iter().position(|c| c["type"] == "Ready") else { return };
        if self.dice.chance(50) {
            list.remove(at);
        } else {
            list[at]["status"] = json!("True");
        }
        self.status(&Self::place(kind, &object), &json!({ "conditions": list }));
    }
}
