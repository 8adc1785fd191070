//! The actions of people and controllers, and which of all actions comes next.

use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};

use super::condition_writers;
use super::definitions;
use super::manifests;
use super::operator_visit::OperatorVisit;
use super::optional_actors::OptionalActors;
use crate::scenario::{CUSTOM_GROUP, DEPLOYMENT, Dice, SIM_NAMESPACES, Scenario, small_number};
use crate::timeline::SimEvent;
use crate::world::{SimObjectRef, SimWorld};

/// Number of objects from which no more are created.
const MAX_OBJECTS: usize = 60;

/// Installs namespaces and the definitions of custom kinds.
pub(super) fn install_kinds(world: &mut SimWorld) {
    for namespace in SIM_NAMESPACES {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        world.install_object("create namespace", object);
    }
    let scenario = world.scenario.clone();
    for kind in &scenario.kinds[3..] {
        world.install_object("create definition", manifests::crd_manifest(kind));
    }
}

/// All actors but Rollcall and the operators.
pub(crate) struct ClusterActors {
    /// Randomness of the cluster.
    pub(super) dice: Dice,
    /// Number of actions until faults stop.
    steps_left: u32,
    scenario: Rc<Scenario>,
    /// Those that the history may be without.
    optional: OptionalActors,
}

impl ClusterActors {
    pub(crate) fn new(mut dice: Dice, scenario: Rc<Scenario>, optional: OptionalActors) -> ClusterActors {
        let steps_left = small_number(40 + dice.below(50));
        ClusterActors { dice, steps_left, scenario, optional }
    }

    pub(crate) fn have_steps_left(&self) -> bool {
        self.steps_left > 0
    }

    /// Creates the first few objects.
    pub(super) fn create_first_objects(&mut self, world: &mut SimWorld) {
        for _ in 0..8 {
            self.create_parent(world);
        }
        for _ in 0..8 {
            self.create_child(world);
        }
        self.optional.schedule_first_steps(world);
    }

    /// Those that the history may be without. They go on for as long as the other actors do.
    pub(super) fn optional(&mut self) -> Option<&mut OptionalActors> {
        (self.steps_left > 0).then_some(&mut self.optional)
    }

    /// The definition of a kind is put back, and people create what they miss.
    pub(super) fn put_definition_back(&mut self, world: &mut SimWorld, kind: usize) {
        if definitions::put_back(world, kind) && self.steps_left > 0 {
            (0..3).for_each(|_| self.create_parent(world));
            (0..4).for_each(|_| self.create_child(world));
        }
    }

    /// Performs the next random action of an actor.
    pub(crate) fn step_actors(&mut self, world: &mut SimWorld) {
        self.steps_left -= 1;
        match self.dice.below(100) {
            0..5 => self.create_parent(world),
            5..17 => self.create_child(world),
            17..37 => self.flip_leaf(world),
            37..53 => self.heal_some_parent(world),
            53..61 => self.delete_child(world),
            61..68 => self.release_something(world),
            68..75 => self.respecify_parent(world),
            75..81 => self.respecify_child(world),
            81..88 => self.write_foreign_condition(world),
            88..90 => self.tamper_with_condition(world),
            90..93 => self.delete_parent(world),
            93..97 => self.adopt_leaf(world),
            _ => self.flip_many(world),
        }
        let pause = match self.dice.below(20) {
            0 => self.dice.between(20_000, 150_000),
            1..5 => self.dice.between(2_000, 15_000),
            5..9 => self.dice.between(0, 60),
            _ => self.dice.between(60, 1_500),
        };
        world.timeline.schedule_event(pause, SimEvent::ActorStep);
    }

    /// Changes many objects at once.
    fn flip_many(&mut self, world: &mut SimWorld) {
        for _ in 0..self.dice.between(5, 15) {
            self.flip_leaf(world);
        }
    }

    /// Picks an object that is not a parent.
    fn some_leaf(&mut self, world: &SimWorld) -> Option<(usize, Arc<Value>)> {
        let all = world.list_kinds(0..4);
        self.dice.pick(&all).cloned()
    }

    fn some_parent(&mut self, world: &SimWorld) -> Option<(usize, Arc<Value>)> {
        let all = world.list_kinds(4..self.scenario.kinds.len());
        self.dice.pick(&all).cloned()
    }

    fn some_namespace(&mut self) -> String {
        SIM_NAMESPACES[self.dice.below(SIM_NAMESPACES.len())].to_owned()
    }

    /// Creates a parent without an owner.
    fn create_parent(&mut self, world: &mut SimWorld) {
        let kinds = self.scenario.kinds.len();
        let kind = 4 + self.dice.below(kinds - 4);
        let name = format!("p{}", self.dice.below(3));
        let namespace = self.some_namespace();
        self.create_object(world, &SimObjectRef { kind, namespace, name }, None);
    }

    /// Creates a child of some parent, as one of its policies expects it.
    fn create_child(&mut self, world: &mut SimWorld) {
        if let Some((kind, parent)) = self.some_parent(world) {
            self.create_child_of(world, kind, &parent);
        }
    }

    pub(super) fn create_child_of(&mut self, world: &mut SimWorld, kind: usize, parent: &Value) {
        let policies: Vec<_> =
            self.scenario.first_policies.iter().filter(|p| p.parent == kind).cloned().collect();
        let Some(policy) = self.dice.pick(&policies) else { return };
        let Some(group) = self.dice.pick(&policy.groups).cloned() else { return };
        let at = SimObjectRef::of_object(kind, parent);
        let name = format!("{}-x{}", at.name, self.dice.below(3));
        let namespace = if at.namespace.is_empty() { self.some_namespace() } else { at.namespace };
        self.create_object(world, &SimObjectRef { kind: group.kind, namespace, name }, Some((kind, parent)));
    }

    fn create_object(&mut self, world: &mut SimWorld, place: &SimObjectRef, parent: Option<(usize, &Value)>) {
        let crowd: usize = (0..self.scenario.kinds.len()).map(|kind| world.list_objects(kind).len()).sum();
        if crowd > MAX_OBJECTS {
            return;
        }
        let hangs = self.dice.chance(12);
        let mut object = manifests::object_manifest(&self.scenario.kinds[place.kind], place, &mut self.dice);
        if hangs {
            object["metadata"]["finalizers"] = json!([format!("{CUSTOM_GROUP}/hold")]);
        }
        if place.kind == DEPLOYMENT && self.optional.churn.as_ref().is_some_and(|churn| churn.tells_rollouts)
        {
            manifests::let_tell_rollouts(&mut object);
        }
        if let Some((kind, parent)) = parent {
            manifests::add_owner(&mut object, &self.scenario.kinds[kind], parent);
        }
        match world.create_object(place, object) {
            Ok(made) if place.kind >= 4 => self.schedule_operator(world, place.kind, &made),
            Ok(_) => {
                let later = self.dice.between(10, 6_000);
                if self.dice.chance(70) {
                    world.timeline.schedule_event(later, SimEvent::Heal(Self::uid_of(parent)));
                }
            }
            Err(refusal) => world.timeline.log_event(refusal.message()),
        }
    }

    fn uid_of(parent: Option<(usize, &Value)>) -> String {
        parent.and_then(|(_, p)| p["metadata"]["uid"].as_str()).unwrap_or_default().to_owned()
    }

    /// Changes the status of some leaf, as its controller, kubelet or operator would.
    fn flip_leaf(&mut self, world: &mut SimWorld) {
        if let Some((kind, object)) = self.some_leaf(world) {
            self.update_leaf_status(world, kind, &object);
        }
    }

    fn update_leaf_status(&mut self, world: &mut SimWorld, kind: usize, object: &Value) {
        let kinds = &self.scenario.kinds;
        if let Some(status) = manifests::random_status(&kinds[kind].api.kind, object, &mut self.dice) {
            world.patch_status(&SimObjectRef::of_object(kind, object), &status);
        }
    }

    /// Makes all descendants of some parent ready.
    fn heal_some_parent(&mut self, world: &mut SimWorld) {
        if let Some((_, parent)) = self.some_parent(world) {
            self.heal_children(world, parent["metadata"]["uid"].as_str().unwrap_or_default());
        }
    }

    /// Makes every leaf of this owner ready, as far as possible, including those selected by its labels.
    pub(crate) fn heal_children(&mut self, world: &mut SimWorld, owner: &str) {
        for (kind, object) in world.list_kinds(0..4) {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let owned = owners.into_iter().flatten().any(|o| o["uid"] == owner);
            if owned || (kind == 3 && self.dice.chance(50)) {
                let status = manifests::ready_status(&self.scenario.kinds[kind].api.kind, &object);
                if let Some(status) = status.filter(|s| !manifests::is_same_status(s, &object["status"])) {
                    world.patch_status(&SimObjectRef::of_object(kind, &object), &status);
                }
            }
        }
    }

    /// Deletes a leaf; half of the time another one is created under its name at once.
    fn delete_child(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_leaf(world) else { return };
        self.delete_and_maybe_recreate(world, kind, &object);
    }

    fn delete_parent(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_parent(world) else { return };
        self.delete_and_maybe_recreate(world, kind, &object);
    }

    fn delete_and_maybe_recreate(&mut self, world: &mut SimWorld, kind: usize, object: &Value) {
        let place = SimObjectRef::of_object(kind, object);
        world.delete_object(&place);
        if self.dice.chance(50) {
            let parents = world.list_kinds(4..self.scenario.kinds.len());
            let owner = object["metadata"]["ownerReferences"][0]["uid"].clone();
            let parent = parents.iter().find(|(_, p)| p["metadata"]["uid"] == owner);
            self.create_object(world, &place, parent.map(|(kind, p)| (*kind, &**p)));
        }
    }

    /// Removes the finalizers from an object whose deletion is held up.
    fn release_something(&mut self, world: &mut SimWorld) {
        let all = world.list_kinds(0..self.scenario.kinds.len());
        let hang: Vec<_> =
            all.into_iter().filter(|(_, o)| !o["metadata"]["deletionTimestamp"].is_null()).collect();
        if let Some((kind, object)) = self.dice.pick(&hang).cloned() {
            world.patch_object(
                &SimObjectRef::of_object(kind, &object),
                &json!({"metadata": {"finalizers": null}}),
            );
        }
    }

    fn respecify_parent(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_parent(world) else { return };
        let size = self.dice.between(1, 1_000_000);
        let place = SimObjectRef::of_object(kind, &object);
        world.patch_object(&place, &json!({"spec": {"size": size}}));
        if let Some(object) = world.find_object(&place) {
            self.schedule_operator(world, kind, &object);
        }
    }

    pub(super) fn respecify_child(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_leaf(world) else { return };
        let patch = manifests::respec_patch(&self.scenario.kinds[kind].api.kind, &mut self.dice);
        world.patch_object(&SimObjectRef::of_object(kind, &object), &patch);
    }

    /// Changes a leaf's owner: it is orphaned, or adopted by another parent.
    fn adopt_leaf(&mut self, world: &mut SimWorld) {
        let (Some((kind, object)), Some((to, parent))) = (self.some_leaf(world), self.some_parent(world))
        else {
            return;
        };
        let place = SimObjectRef::of_object(kind, &object);
        if self.dice.chance(40) {
            return world
                .patch_object(&place, &json!({"metadata": {"ownerReferences": null, "labels": null}}));
        }
        let home = SimObjectRef::of_object(to, &parent).namespace;
        if home.is_empty() || home == place.namespace {
            let mut adopted = json!({"metadata": {}});
            manifests::add_owner(&mut adopted, &self.scenario.kinds[to], &parent);
            world.patch_object(&place, &adopted);
        }
    }

    fn write_foreign_condition(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_parent(world) else { return };
        let may_fail = self.optional.failures.is_some();
        condition_writers::write_foreign_condition(&mut self.dice, world, kind, &object, may_fail);
    }

    fn tamper_with_condition(&mut self, world: &mut SimWorld) {
        let Some((kind, object)) = self.some_parent(world) else { return };
        condition_writers::tamper_with_condition(&mut self.dice, world, kind, &object);
    }

    /// Schedules an operator's handling of a parent: soon, late, or never.
    fn schedule_operator(&mut self, world: &mut SimWorld, kind: usize, parent: &Value) {
        let SimObjectRef { namespace, name, .. } = SimObjectRef::of_object(kind, parent);
        let uid = parent["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let generation = parent["metadata"]["generation"].as_i64().unwrap_or(0);
        let after = match self.dice.below(20) {
            0 => return,
            1..5 => self.dice.between(5_000, 40_000),
            _ => self.dice.between(5, 2_500),
        };
        let visit = OperatorVisit { kind, namespace, name, uid, generation };
        world.timeline.schedule_event(after, SimEvent::Operator(visit));
    }
}
