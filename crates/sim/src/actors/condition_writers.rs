//! Other writers of conditions: well-behaved field managers, and one that tampers with ours.

use serde_json::{Value, json};

use crate::scenario::Dice;
use crate::world::{FOREIGN_CONDITION_TYPES, SimObjectRef, SimWorld, conditions_of};

/// Writes a condition as another field manager; some use a type that the policies use too.
pub(super) fn write_foreign_condition(
    dice: &mut Dice,
    world: &mut SimWorld,
    kind: usize,
    object: &Value,
    may_fail: bool,
) {
    let claims = dice.chance(4);
    let name = if claims { "Ready" } else { *dice.pick(&FOREIGN_CONDITION_TYPES).unwrap_or(&"Degraded") };
    let drawn = *dice.pick(&["True", "False"]).unwrap_or(&"True");
    // What says that the parent has failed is said where operators report failures.
    let harmless = if name == "Degraded" { "False" } else { "True" };
    let status = if may_fail { drawn } else { harmless };
    if claims && conditions_of(&object["status"]).iter().any(|c| c["type"] == "Ready") {
        return;
    }
    // Words that we use as well.
    let reason = if status == "True" { "Terminating" } else { "DeadlineExceeded" };
    let condition = json!({"type": name, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": "2027-01-15T08:00:00Z"});
    put_condition(dice, world, kind, object, &condition);
}

/// Returns the object's conditions with this one among them, as a well-behaved writer sends them.
pub(super) fn put_condition(
    dice: &mut Dice,
    world: &mut SimWorld,
    kind: usize,
    object: &Value,
    condition: &Value,
) {
    let mut list = conditions_of(&object["status"]).to_vec();
    match list.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(old) => *old = condition.clone(),
        None if dice.chance(30) => list.insert(0, condition.clone()),
        None => list.push(condition.clone()),
    }
    world.patch_status(&SimObjectRef::of_object(kind, object), &json!({ "conditions": list }));
}

/// Removes or changes one of our conditions, as a badly behaved writer would.
pub(super) fn tamper_with_condition(dice: &mut Dice, world: &mut SimWorld, kind: usize, object: &Value) {
    let mut list = conditions_of(&object["status"]).to_vec();
    let Some(at) = list.iter().position(|c| c["type"] == "Ready") else { return };
    if dice.chance(50) {
        list.remove(at);
    } else {
        list[at]["status"] = json!("True");
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    world.count_overwrite(uid);
    world.patch_status(&SimObjectRef::of_object(kind, object), &json!({ "conditions": list }));
}
