//! Everything that the judges look at after a step. Nothing of it changes while they judge.

use std::fmt::Display;
use std::rc::Rc;

use readiness::Level;
use rollcall_core::Core;

use crate::kind_wire::KindWire;
use crate::kind_wires::KindWires;
use crate::naive_judge::{NaiveJudge, NaiveSum, NaiveWeight};
use crate::object_model::ModelObject;
use crate::policies::{PlanWatch, PolicyWatch};
use crate::scenario::{PolicyDef, Scenario};
use crate::shown_objects::ShownObjects;
use crate::sim_stage::SimStage;
use crate::sim_world::SimWorld;

/// The state of a run at one moment.
pub(crate) struct JudgedMoment<'a> {
    pub(crate) now: i64,
    /// Faults have stopped.
    pub(crate) calm: bool,
    pub(crate) scenario: &'a Scenario,
    pub(crate) world: &'a SimWorld,
    pub(crate) core: &'a Core,
    /// Policies that are in force in the loop.
    pub(crate) policies: &'a [PolicyDef],
    pub(crate) shown: &'a ShownObjects,
    pub(crate) wires: &'a [KindWire],
    /// The service's watch of policies, with the plans that are on their way to the loop.
    pub(crate) policy_watch: &'a PolicyWatch,
    /// What the loop has heard of plans and kinds.
    pub(crate) heard: &'a PlanWatch,
}

impl<'a> JudgedMoment<'a> {
    pub(crate) fn new(
        stage: &'a SimStage,
        wires: &'a KindWires,
        policy_watch: &'a PolicyWatch,
        heard: &'a PlanWatch,
    ) -> JudgedMoment<'a> {
        JudgedMoment {
            now: stage.world.now(),
            calm: stage.world.faults.is_calm,
            scenario: &stage.world.scenario,
            world: &stage.world,
            core: &stage.service.core,
            policies: &stage.service.policies,
            shown: &stage.feed.shown,
            wires: wires.all(),
            policy_watch,
            heard,
        }
    }

    /// Records the first violated invariant and ends the run.
    pub(crate) fn fail_invariant(&self, invariant: &'static str, detail: impl Display) {
        self.world.timeline.fail_invariant(invariant, detail);
    }

    pub(crate) fn describe_object(&self, thing: &ModelObject) -> String {
        format!("{} {}/{}", self.scenario.kind_name(thing.kind), thing.namespace, thing.name)
    }

    /// Returns the engine's weight of a child that is itself a parent: each such answer is checked at its own parent.
    fn engine_weight(&self, thing: &ModelObject) -> Option<NaiveWeight> {
        let policies = self.policies.iter().filter(|p| p.parent == thing.kind);
        let id = self.core.reflector.find_object(&thing.uid);
        let weigh = |policy: &PolicyDef| {
            id.and_then(|id| self.core.engine.answer_of(id, policy.id))
                .map_or((Level::Unknown, false), |a| (a.reason.child_level(), a.stalled))
        };
        policies.map(weigh).min()
    }

    /// Returns what the naive judge says of a parent, if these objects exist.
    pub(crate) fn naive_sum(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        things: &[Rc<ModelObject>],
    ) -> NaiveSum {
        let judge = NaiveJudge { scenario: self.scenario, things, now: self.now };
        judge.sum_children(policy, parent, &|thing| self.engine_weight(thing))
    }
}
