//! The actors of a reference workload, who do what its script says.

use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::json;

use super::manifests;
use super::operator::leave_plain_mark;
use super::script::{ScriptedObject, ScriptedStep, steps_of};
use crate::scenario::{CUSTOM_GROUP, ChildRuleDef, PolicyDef, ReferenceWorkload, SIM_NAMESPACES, Scenario};
use crate::timeline::{PolicyEvent, SimEvent};
use crate::world::{SimObjectRef, SimWorld, conditions_of};

/// Size of an object with which it is created.
const FIRST_SIZE: i64 = 2;
/// Delay of the watch of policies, in milliseconds.
const POLICY_LAG_MS: i64 = 40;

/// All actors of a reference workload but Rollcall.
pub(crate) struct ScriptedActors {
    steps: VecDeque<(i64, ScriptedStep)>,
    scenario: Rc<Scenario>,
}

fn place_of((kind, name): ScriptedObject) -> SimObjectRef {
    SimObjectRef { kind, namespace: SIM_NAMESPACES[0].to_owned(), name: name.to_owned() }
}

impl ScriptedActors {
    pub(crate) fn new(workload: ReferenceWorkload, scenario: Rc<Scenario>) -> ScriptedActors {
        ScriptedActors { steps: steps_of(workload).into(), scenario }
    }

    pub(super) fn have_steps_left(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Does the next step, and schedules the one after.
    pub(super) fn step_actors(&mut self, world: &mut SimWorld) {
        if let Some((_, step)) = self.steps.pop_front() {
            self.do_step(world, step);
        }
        if let Some((pause, _)) = self.steps.front() {
            world.timeline.schedule_event(*pause, SimEvent::ActorStep);
        }
    }

    fn do_step(&self, world: &mut SimWorld, step: ScriptedStep) {
        match step {
            ScriptedStep::Create(object, owner) => self.create_object(world, object, owner),
            ScriptedStep::Ready(of) => self.say_status(world, of, manifests::ready_status),
            ScriptedStep::Unready(of) => self.say_status(world, of, manifests::unready_status),
            ScriptedStep::Fail(of) => self.say_status(world, of, manifests::failed_status),
            ScriptedStep::SayFailed(of) => world.patch_status(&place_of(of), &json!({ "phase": "Failed" })),
            ScriptedStep::SayNothing(of) => world.patch_status(&place_of(of), &json!({ "phase": null })),
            ScriptedStep::Resize(of, size) => {
                let field = if of.0 < 2 { "replicas" } else { "size" };
                world.patch_object(&place_of(of), &json!({"spec": {field: size}}));
            }
            ScriptedStep::Handle(of) => {
                if let Some(parent) = world.find_object(&place_of(of)) {
                    let generation = parent["metadata"]["generation"].as_i64().unwrap_or(0);
                    leave_plain_mark(world, of.0, &parent, generation);
                }
            }
            ScriptedStep::Adopt(of, owner) => self.adopt_object(world, of, owner),
            ScriptedStep::Hold(of) => {
                let held = json!({"metadata": {"finalizers": [format!("{CUSTOM_GROUP}/hold")]}});
                world.patch_object(&place_of(of), &held);
            }
            ScriptedStep::Release(of) => {
                world.patch_object(&place_of(of), &json!({"metadata": {"finalizers": null}}));
            }
            ScriptedStep::Delete(of) => world.delete_object(&place_of(of)),
            ScriptedStep::BlockOwners(of) => block_owners(world, of),
            ScriptedStep::DeleteInForeground(of) => world.delete_in_foreground(&place_of(of)),
            ScriptedStep::WriteForeign(of, kind) => write_condition(world, &place_of(of), kind),
            ScriptedStep::Tamper(of) => tamper(world, of),
            ScriptedStep::Restart => world.perturber.end_process(),
            ScriptedStep::EditRule
            | ScriptedStep::BreakPolicy
            | ScriptedStep::MendPolicy
            | ScriptedStep::DeletePolicy
            | ScriptedStep::EnterShadow => self.change_policy(world, step),
            ScriptedStep::Rest => {}
        }
    }

    fn create_object(&self, world: &mut SimWorld, of: ScriptedObject, owner: Option<ScriptedObject>) {
        let place = place_of(of);
        let mut object = manifests::manifest_of_size(&self.scenario.kinds[of.0], &place, FIRST_SIZE);
        if let Some((kind, parent)) = owner.and_then(|of| Some((of.0, world.find_object(&place_of(of))?))) {
            manifests::add_owner(&mut object, &self.scenario.kinds[kind], &parent);
        }
        if let Err(refusal) = world.create_object(&place, object) {
            world.timeline.log_event(refusal.message());
        }
    }

    fn say_status(
        &self,
        world: &mut SimWorld,
        of: ScriptedObject,
        status: fn(&str, &serde_json::Value) -> Option<serde_json::Value>,
    ) {
        let place = place_of(of);
        let Some(object) = world.find_object(&place) else { return };
        if let Some(status) = status(&self.scenario.kinds[of.0].api.kind, &object) {
            world.patch_status(&place, &status);
        }
    }

    fn adopt_object(&self, world: &mut SimWorld, of: ScriptedObject, owner: Option<ScriptedObject>) {
        let mut adopted = json!({"metadata": {"ownerReferences": null, "labels": null}});
        if let Some((kind, parent)) = owner.and_then(|of| Some((of.0, world.find_object(&place_of(of))?))) {
            manifests::add_owner(&mut adopted, &self.scenario.kinds[kind], &parent);
        }
        world.patch_object(&place_of(of), &adopted);
    }

    fn change_policy(&self, world: &mut SimWorld, step: ScriptedStep) {
        let first = &self.scenario.first_policies[0];
        let now = world.now();
        let said = match step {
            ScriptedStep::DeletePolicy => world.policy_server.delete_policy(first.number, now),
            ScriptedStep::BreakPolicy => world.policy_server.put_spec(first.number, None, now),
            ScriptedStep::EditRule => {
                let mut spec = first.clone();
                spec.groups[0].rule = ChildRuleDef::Observed;
                world.policy_server.put_spec(first.number, Some(spec), now)
            }
            ScriptedStep::EnterShadow => {
                let spec = PolicyDef { shadow: true, ..first.clone() };
                world.policy_server.put_spec(first.number, Some(spec), now)
            }
            _ => world.policy_server.put_spec(first.number, Some(first.clone()), now),
        };
        world.timeline.log_event(said);
        world.timeline.schedule_policy_event(POLICY_LAG_MS, PolicyEvent::Deliver);
    }
}

/// Makes the deletion of an object's owners wait for its own.
fn block_owners(world: &mut SimWorld, of: ScriptedObject) {
    let Some(object) = world.find_object(&place_of(of)) else { return };
    let mut owners = object["metadata"]["ownerReferences"].clone();
    for owner in owners.as_array_mut().into_iter().flatten() {
        owner["blockOwnerDeletion"] = json!(true);
    }
    world.patch_object(&place_of(of), &json!({ "metadata": { "ownerReferences": owners } }));
}

/// Writes a condition as another field manager.
pub(crate) fn write_condition(world: &mut SimWorld, place: &SimObjectRef, kind: &str) {
    let Some(object) = world.find_object(place) else { return };
    let condition = json!({"type": kind, "status": "False", "reason": "Because", "message": "",
        "lastTransitionTime": "2027-01-15T08:00:00Z"});
    let mut list = conditions_of(&object["status"]).to_vec();
    list.retain(|held| held["type"] != kind);
    list.push(condition);
    world.patch_status(place, &json!({ "conditions": list }));
}

/// Turns our condition to True as a badly behaved writer would.
fn tamper(world: &mut SimWorld, of: ScriptedObject) {
    let Some(object) = world.find_object(&place_of(of)) else { return };
    let mut list = conditions_of(&object["status"]).to_vec();
    let Some(ours) = list.iter_mut().find(|held| held["type"] == "Ready") else { return };
    ours["status"] = json!("True");
    world.count_overwrite(object["metadata"]["uid"].as_str().unwrap_or_default());
    world.patch_status(&place_of(of), &json!({ "conditions": list }));
}
