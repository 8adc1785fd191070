//! Autoscalers and drains: the number of a workload's pods moves, and some are away for a while.

use std::sync::Arc;

use serde_json::Value;

use super::manifests;
use crate::scenario::Dice;
use crate::timeline::SimEvent;
use crate::world::{SimObjectRef, SimWorld};

/// Chance of a history to have any, in per cent.
const CHURN_PERCENT: usize = 70;

/// What moves the number of pods.
pub(crate) struct ChurnActors {
    dice: Dice,
    /// Controllers of Deployments tell of their rollouts by conditions.
    pub(super) tells_rollouts: bool,
}

impl ChurnActors {
    /// Draws what moves the number of pods in a history, if anything does.
    pub(crate) fn draw(mut dice: Dice) -> Option<ChurnActors> {
        let has_any = dice.chance(CHURN_PERCENT);
        has_any.then(|| ChurnActors { tells_rollouts: dice.chance(80), dice })
    }

    /// Schedules the next step.
    pub(super) fn schedule_step(&mut self, world: &mut SimWorld) {
        let pause =
            if self.dice.chance(60) { self.dice.between(30, 900) } else { self.dice.between(900, 9_000) };
        world.timeline.schedule_event(pause, SimEvent::Churn);
    }

    /// An autoscaler or a drain does something to some workload, or its controller something about it.
    pub(super) fn step(&mut self, world: &mut SimWorld) {
        let workloads: Vec<(usize, Arc<Value>)> = world.list_kinds(0..2);
        let Some((kind, object)) = self.dice.pick(&workloads).cloned() else { return };
        let place = SimObjectRef::of_object(kind, &object);
        match self.dice.below(10) {
            0..3 => {
                let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
                let scaled = (wanted + self.dice.between(-1, 2)).clamp(0, 6);
                world.scale_object(&place, scaled);
            }
            // Its controller has seen what is wanted, and so many pods are not there yet, or not any more.
            3..6 => self.say(world, &place, &object, 1),
            6 => {
                let away = self.dice.between(2, 3);
                self.say(world, &place, &object, away);
            }
            _ => self.say(world, &place, &object, 0),
        }
    }

    fn say(&mut self, world: &mut SimWorld, place: &SimObjectRef, object: &Value, away: i64) {
        let status = manifests::drained_status(object, away, !self.dice.chance(5));
        if let Some(status) = status.filter(|status| !manifests::is_same_status(status, &object["status"])) {
            world.patch_status(place, &status);
        }
    }
}
