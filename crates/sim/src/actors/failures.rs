//! Operators that say of a parent that it has failed, whatever its children are, and take that back.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::scenario::Dice;
use crate::timeline::SimEvent;
use crate::world::{SimObjectRef, SimWorld};

/// Chance of a history to have any, in per cent.
const FAILURE_PERCENT: usize = 30;

/// Operators that report failures.
pub(crate) struct FailureActors {
    dice: Dice,
}

impl FailureActors {
    /// Draws whether operators report failures in a history.
    pub(crate) fn draw(mut dice: Dice) -> Option<FailureActors> {
        dice.chance(FAILURE_PERCENT).then_some(FailureActors { dice })
    }

    /// Schedules the next step.
    pub(super) fn schedule_step(&mut self, world: &mut SimWorld) {
        let pause =
            if self.dice.chance(30) { self.dice.between(30, 900) } else { self.dice.between(1_000, 20_000) };
        world.timeline.schedule_event(pause, SimEvent::ReportFailure);
    }

    /// The phase of some parent says that it has failed, or nothing any more.
    pub(super) fn step(&mut self, world: &mut SimWorld) {
        let parents: Vec<(usize, Arc<Value>)> = world.list_kinds(4..world.scenario.kinds.len());
        let Some((kind, object)) = self.dice.pick(&parents).cloned() else { return };
        let phase = if self.dice.chance(40) { json!("Failed") } else { json!(null) };
        if object["status"]["phase"] != phase {
            world.patch_status(&SimObjectRef::of_object(kind, &object), &json!({ "phase": phase }));
        }
    }
}
