//! Drains: pods of StatefulSets are taken away, few of them or many, and come back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::manifests;
use crate::scenario::{Dice, STATEFUL_SET};
use crate::timeline::SimEvent;
use crate::world::{SimObjectRef, SimWorld};

/// Chance of a history to have any, in per cent.
const DRAIN_PERCENT: usize = 70;

/// Those who drain nodes.
pub(crate) struct DrainActors {
    dice: Dice,
}

impl DrainActors {
    /// Draws who drains nodes in a history, if anybody does.
    pub(crate) fn draw(mut dice: Dice) -> Option<DrainActors> {
        dice.chance(DRAIN_PERCENT).then_some(DrainActors { dice })
    }

    /// Schedules the next step.
    pub(super) fn schedule_step(&mut self, world: &mut SimWorld) {
        let pause = if self.dice.chance(60) {
            self.dice.between(100, 1_200)
        } else {
            self.dice.between(1_200, 9_000)
        };
        world.timeline.schedule_event(pause, SimEvent::Drain);
    }

    /// Pods of some StatefulSet are taken away, or all are back; now and then it is made large enough to spare several.
    pub(super) fn step(&mut self, world: &mut SimWorld) {
        let sets: Vec<Arc<Value>> = world.list_objects(STATEFUL_SET);
        let Some(object) = self.dice.pick(&sets).cloned() else { return };
        let place = SimObjectRef::of_object(STATEFUL_SET, &object);
        let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
        let is_whole = object["status"]["readyReplicas"].as_i64() == Some(wanted);
        let away = match self.dice.below(10) {
            0 if wanted < 3 => {
                let size = self.dice.between(4, 6);
                return world.patch_object(&place, &json!({"spec": {"replicas": size}}));
            }
            // What one drain has taken away, others leave alone until it is back.
            0..9 if is_whole && wanted > 2 => self.dice.between(2, wanted - 1),
            _ => 0,
        };
        let status = manifests::drained_status(&object, away, true);
        if let Some(status) = status.filter(|status| !manifests::is_same_status(status, &object["status"])) {
            world.patch_status(&place, &status);
        }
    }
}
