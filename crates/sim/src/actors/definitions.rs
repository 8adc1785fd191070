//! Administrators who delete the definitions of custom kinds, and put them back.

use super::manifests;
use crate::scenario::{Dice, WIDGET};
use crate::timeline::SimEvent;
use crate::world::SimWorld;

/// Chance of a history to have any, in per cent.
const DELETIONS_PERCENT: usize = 40;
/// Chance of a definition not to be put back, in per cent.
const GONE_FOR_GOOD_PERCENT: usize = 12;
/// Time after which it is tried again to put a definition back whose objects are still there, in milliseconds.
const RETRY_MS: i64 = 2_000;

/// Those who delete definitions.
pub(crate) struct DefinitionActors {
    dice: Dice,
}

impl DefinitionActors {
    /// Draws whether anybody deletes definitions in a history.
    pub(crate) fn draw(mut dice: Dice) -> Option<DefinitionActors> {
        dice.chance(DELETIONS_PERCENT).then_some(DefinitionActors { dice })
    }

    /// Schedules the next deletion.
    pub(super) fn schedule_deletion(&mut self, world: &mut SimWorld) {
        let pause = self.dice.between(3_000, 150_000);
        world.timeline.schedule_event(pause, SimEvent::DefinitionGoes);
    }

    /// Somebody deletes the definition of a kind of children or of parents, and with it all objects of the kind.
    pub(super) fn delete_some(&mut self, world: &mut SimWorld) {
        let kind = WIDGET + self.dice.below(world.scenario.kinds.len() - WIDGET);
        if !world.serves(kind) {
            return;
        }
        world.delete_definition(kind);
        world.timeline.counts.vanished += 1;
        if self.dice.chance(GONE_FOR_GOOD_PERCENT) {
            return;
        }
        let away = match self.dice.below(10) {
            0..3 => self.dice.between(10, 1_500),
            3..7 => self.dice.between(1_500, 20_000),
            _ => self.dice.between(20_000, 200_000),
        };
        world.timeline.schedule_event(away, SimEvent::DefinitionReturns(kind));
    }
}

/// Puts a definition back; returns `false` if the deleted one is not gone yet.
pub(super) fn put_back(world: &mut SimWorld, kind: usize) -> bool {
    if world.serves(kind) {
        world.timeline.schedule_event(RETRY_MS, SimEvent::DefinitionReturns(kind));
        return false;
    }
    let definition = manifests::crd_manifest(&world.scenario.kinds[kind]);
    world.timeline.log_kind_event(kind, "is defined again");
    world.install_object("create definition", definition);
    world.timeline.counts.returned += 1;
    true
}
