//! Operators: they handle a parent some time after its spec changed, act on its children, and may leave a handled mark.

use serde_json::{Value, json};

use super::cluster_actors::ClusterActors;
use super::condition_writers::put_condition;
use super::operator_visit::OperatorVisit;
use crate::scenario::OperatorStyle;
use crate::timeline::SimEvent;
use crate::world::{KOPF_ANNOTATION, SimObjectRef, SimWorld};

/// Handles a parent: creates missing children, changes existing ones, and then leaves the mark.
pub(crate) fn run_operator(actors: &mut ClusterActors, world: &mut SimWorld, visit: &OperatorVisit) {
    let OperatorVisit { kind, namespace, name, uid, generation } = visit;
    let place = SimObjectRef { kind: *kind, namespace: namespace.clone(), name: name.clone() };
    let Some(parent) = world.find_object(&place) else { return };
    if parent["metadata"]["uid"] != **uid || !parent["metadata"]["deletionTimestamp"].is_null() {
        return;
    }
    let operator = &world.api_kind(*kind).kind;
    world.timeline.log_event(format_args!("the operator of {operator} looks at {namespace}/{name}"));
    for _ in 0..actors.dice.between(0, 3) {
        actors.create_child_of(world, *kind, &parent);
    }
    if actors.dice.chance(40) {
        actors.respecify_child(world);
    }
    let later = actors.dice.between(200, 8_000);
    world.timeline.schedule_event(later, SimEvent::Heal(uid.clone()));
    leave_mark(actors, world, *kind, &parent, *generation);
}

/// Leaves the handled mark for the generation that the operator knew, even if there is a newer one by now.
fn leave_mark(actors: &mut ClusterActors, world: &mut SimWorld, kind: usize, parent: &Value, knew: i64) {
    if world.scenario.kinds[kind].style == OperatorStyle::Condition {
        let condition = json!({"type": "Synced", "status": "True", "reason": "Done", "message": "",
            "observedGeneration": knew, "lastTransitionTime": "2027-01-15T08:00:00Z"});
        return put_condition(&mut actors.dice, world, kind, parent, &condition);
    }
    leave_plain_mark(world, kind, parent, knew);
}

/// Leaves a mark that is no condition.
pub(super) fn leave_plain_mark(world: &mut SimWorld, kind: usize, parent: &Value, knew: i64) {
    let place = SimObjectRef::of_object(kind, parent);
    match world.scenario.kinds[kind].style {
        OperatorStyle::Silent | OperatorStyle::Condition => {}
        OperatorStyle::Status => world.patch_status(&place, &json!({"observedGeneration": knew})),
        OperatorStyle::Kopf => {
            let handled = json!({"spec": parent["spec"]}).to_string();
            world.patch_object(&place, &json!({"metadata": {"annotations": {KOPF_ANNOTATION: handled}}}));
        }
    }
}
