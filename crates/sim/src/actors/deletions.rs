//! Those who delete parents in the foreground: what these own goes first, and they wait for what blocks their deletion.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::scenario::{CUSTOM_GROUP, Dice};
use crate::timeline::SimEvent;
use crate::world::{SimObjectRef, SimWorld};

/// Chance of a history to have any, in per cent.
const DELETION_PERCENT: usize = 40;

/// Those who delete in the foreground.
pub(crate) struct DeletionActors {
    dice: Dice,
}

impl DeletionActors {
    /// Draws whether somebody deletes parents in the foreground in a history.
    pub(crate) fn draw(mut dice: Dice) -> Option<DeletionActors> {
        dice.chance(DELETION_PERCENT).then_some(DeletionActors { dice })
    }

    /// Schedules the next step.
    pub(super) fn schedule_step(&mut self, world: &mut SimWorld) {
        let pause =
            if self.dice.chance(30) { self.dice.between(30, 900) } else { self.dice.between(2_000, 30_000) };
        world.timeline.schedule_event(pause, SimEvent::DeleteInForeground);
    }

    /// What holds up some deletion lets go of one finalizer more often than a parent is deleted, so that some are left.
    pub(super) fn step(&mut self, world: &mut SimWorld) {
        if self.dice.chance(60) { self.release_one(world) } else { self.delete_some(world) }
    }

    /// Some object in deletion loses its last finalizer, unless that is the garbage collector's.
    fn release_one(&mut self, world: &mut SimWorld) {
        let held =
            world.list_kinds(0..world.scenario.kinds.len()).into_iter().filter_map(|(kind, object)| {
                let mut left = object["metadata"]["finalizers"].as_array()?.clone();
                let released = left.pop_if(|name| *name != "foregroundDeletion").is_some();
                (released && !object["metadata"]["deletionTimestamp"].is_null())
                    .then_some((kind, object, left))
            });
        let held: Vec<(usize, Arc<Value>, Vec<Value>)> = held.collect();
        if let Some((kind, object, left)) = self.dice.pick(&held).cloned() {
            let place = SimObjectRef::of_object(kind, &object);
            world.patch_object(&place, &json!({ "metadata": { "finalizers": left } }));
        }
    }

    /// Some parent is deleted, after most of what it owns came to block that and some of it to be held.
    fn delete_some(&mut self, world: &mut SimWorld) {
        let parents: Vec<(usize, Arc<Value>)> = world.list_kinds(4..world.scenario.kinds.len());
        let Some((kind, parent)) = self.dice.pick(&parents).cloned() else { return };
        let uid = &parent["metadata"]["uid"];
        for (kind, object) in world.list_kinds(0..world.scenario.kinds.len()) {
            let meta = &object["metadata"];
            let mut owners = meta["ownerReferences"].as_array().cloned().unwrap_or_default();
            if !owners.iter().any(|owner| owner["uid"] == *uid) || !meta["deletionTimestamp"].is_null() {
                continue;
            }
            let blocks = self.dice.chance(80);
            for owner in owners.iter_mut().filter(|owner| owner["uid"] == *uid) {
                owner["blockOwnerDeletion"] = json!(blocks);
            }
            let mut changed = json!({ "metadata": { "ownerReferences": owners } });
            if self.dice.chance(60) {
                let held = [format!("{CUSTOM_GROUP}/hold"), format!("{CUSTOM_GROUP}/keep")];
                let count = if self.dice.chance(50) { 1 } else { 2 };
                changed["metadata"]["finalizers"] = json!(held[..count]);
            }
            world.patch_object(&SimObjectRef::of_object(kind, &object), &changed);
        }
        world.delete_in_foreground(&SimObjectRef::of_object(kind, &parent));
    }
}
