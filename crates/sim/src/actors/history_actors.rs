//! The actors of a history: drawn, or of a script.

use super::cluster_actors::{ClusterActors, install_kinds};
use super::operator::run_operator;
use super::operator_visit::OperatorVisit;
use super::optional_actors::OptionalActors;
use super::scripted_actors::ScriptedActors;
use crate::world::SimWorld;

/// All actors but Rollcall.
pub(crate) enum HistoryActors {
    /// They do what the dice say.
    Drawn(Box<ClusterActors>),
    /// They do what a script says.
    Scripted(ScriptedActors),
}

impl HistoryActors {
    pub(crate) fn have_steps_left(&self) -> bool {
        match self {
            HistoryActors::Drawn(actors) => actors.have_steps_left(),
            HistoryActors::Scripted(actors) => actors.have_steps_left(),
        }
    }

    /// Installs the kinds, and the first few objects where they are drawn.
    pub(crate) fn install_cluster(&mut self, world: &mut SimWorld) {
        install_kinds(world);
        if let HistoryActors::Drawn(actors) = self {
            actors.create_first_objects(world);
        }
    }

    /// Does the next step of the actors.
    pub(crate) fn step_actors(&mut self, world: &mut SimWorld) {
        match self {
            HistoryActors::Drawn(actors) => actors.step_actors(world),
            HistoryActors::Scripted(actors) => actors.step_actors(world),
        }
    }

    /// Those that a drawn history may be without, for as long as the others go on.
    fn optional(&mut self) -> Option<&mut OptionalActors> {
        match self {
            HistoryActors::Drawn(actors) => actors.optional(),
            HistoryActors::Scripted(_) => None,
        }
    }

    /// The number of some workload's pods moves.
    pub(crate) fn step_churn(&mut self, world: &mut SimWorld) {
        if let Some(actors) = self.optional() {
            actors.step_churn(world);
        }
    }

    /// Pods of some StatefulSet are taken away, or come back.
    pub(crate) fn step_drains(&mut self, world: &mut SimWorld) {
        if let Some(actors) = self.optional() {
            actors.step_drains(world);
        }
    }

    /// Some parent says that it has failed, or takes that back.
    pub(crate) fn step_failures(&mut self, world: &mut SimWorld) {
        if let Some(actors) = self.optional() {
            actors.step_failures(world);
        }
    }

    /// Some parent is deleted in the foreground, or what holds such a deletion lets go.
    pub(crate) fn step_deletions(&mut self, world: &mut SimWorld) {
        if let Some(actors) = self.optional() {
            actors.step_deletions(world);
        }
    }

    /// Somebody deletes a definition.
    pub(crate) fn delete_definition(&mut self, world: &mut SimWorld) {
        if let Some(actors) = self.optional() {
            actors.delete_definition(world);
        }
    }

    /// A definition is put back.
    pub(crate) fn put_definition_back(&mut self, world: &mut SimWorld, kind: usize) {
        if let HistoryActors::Drawn(actors) = self {
            actors.put_definition_back(world, kind);
        }
    }

    /// An operator handles a parent.
    pub(crate) fn run_operator(&mut self, world: &mut SimWorld, visit: &OperatorVisit) {
        if let HistoryActors::Drawn(actors) = self {
            run_operator(actors, world, visit);
        }
    }

    /// Makes every leaf of this owner ready.
    pub(crate) fn heal_children(&mut self, world: &mut SimWorld, owner: &str) {
        if let HistoryActors::Drawn(actors) = self {
            actors.heal_children(world, owner);
        }
    }
}
