//! The actors that a history may be without, each of which takes its steps for itself.

use super::churn::ChurnActors;
use super::definitions::DefinitionActors;
use super::deletions::DeletionActors;
use super::drains::DrainActors;
use super::failures::FailureActors;
use crate::world::SimWorld;

/// Actors that a history may be without.
#[derive(Default)]
pub(crate) struct OptionalActors {
    /// Autoscalers and drains.
    pub(crate) churn: Option<ChurnActors>,
    /// Those who delete definitions.
    pub(crate) definitions: Option<DefinitionActors>,
    pub(crate) drains: Option<DrainActors>,
    /// Operators that report failures.
    pub(crate) failures: Option<FailureActors>,
    /// Those who delete in the foreground.
    pub(crate) deletions: Option<DeletionActors>,
}

impl OptionalActors {
    /// Schedules the first step of each.
    pub(super) fn schedule_first_steps(&mut self, world: &mut SimWorld) {
        if let Some(churn) = &mut self.churn {
            churn.schedule_step(world);
        }
        if let Some(definitions) = &mut self.definitions {
            definitions.schedule_deletion(world);
        }
        if let Some(drains) = &mut self.drains {
            drains.schedule_step(world);
        }
        if let Some(failures) = &mut self.failures {
            failures.schedule_step(world);
        }
        if let Some(deletions) = &mut self.deletions {
            deletions.schedule_step(world);
        }
    }

    /// The number of some workload's pods moves.
    pub(super) fn step_churn(&mut self, world: &mut SimWorld) {
        if let Some(churn) = &mut self.churn {
            churn.step(world);
            churn.schedule_step(world);
        }
    }

    /// Pods of some StatefulSet are taken away, or come back.
    pub(super) fn step_drains(&mut self, world: &mut SimWorld) {
        if let Some(drains) = &mut self.drains {
            drains.step(world);
            drains.schedule_step(world);
        }
    }

    /// Some parent says that it has failed, or takes that back.
    pub(super) fn step_failures(&mut self, world: &mut SimWorld) {
        if let Some(failures) = &mut self.failures {
            failures.step(world);
            failures.schedule_step(world);
        }
    }

    /// Some parent is deleted in the foreground, or what holds such a deletion lets go.
    pub(super) fn step_deletions(&mut self, world: &mut SimWorld) {
        if let Some(deletions) = &mut self.deletions {
            deletions.step(world);
            deletions.schedule_step(world);
        }
    }

    /// The definition of some kind is deleted.
    pub(super) fn delete_definition(&mut self, world: &mut SimWorld) {
        if let Some(definitions) = &mut self.definitions {
            definitions.delete_some(world);
            definitions.schedule_deletion(world);
        }
    }
}
