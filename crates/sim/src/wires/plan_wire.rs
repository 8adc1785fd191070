//! Plans on their way to the loop, and kinds that no plan follows any more.

use std::collections::{BTreeSet, VecDeque};

use rollcall_core::KindEvent;

use super::sim_stage::SimStage;
use crate::scenario::{Dice, DiceStream, SeedStreams};
use crate::service::PolicyPlan;
use crate::timeline::PolicyEvent;
use crate::world::SimWorld;

/// The way of plans to the loop of one process.
pub(super) struct PlanWire {
    forget_dice: Dice,
    /// How long a plan takes to the loop; at once where there is none.
    plan_dice: Option<Dice>,
    /// Plans on their way, each with the time at which it arrives.
    plans: VecDeque<(i64, PolicyPlan)>,
    /// Kinds of the plan by which the loop judges.
    kinds_in_force: BTreeSet<usize>,
    /// Kinds that are not followed any more, and not forgotten yet.
    left: BTreeSet<usize>,
}

impl PlanWire {
    pub(super) fn new(streams: SeedStreams) -> PlanWire {
        PlanWire {
            forget_dice: DiceStream::Forgetting.dice(streams.seed),
            plan_dice: streams.widened_by(DiceStream::PlanWire),
            plans: VecDeque::new(),
            kinds_in_force: BTreeSet::new(),
            left: BTreeSet::new(),
        }
    }

    /// Forgets what was under way to the process.
    pub(super) fn reset_for_restart(&mut self) {
        self.plans.clear();
        self.kinds_in_force.clear();
        self.left.clear();
    }

    /// Plans that have not arrived yet.
    pub(super) fn coming(&self) -> impl Iterator<Item = &PolicyPlan> {
        self.plans.iter().map(|(_, plan)| plan)
    }

    /// Takes the next plan that has arrived, by which the loop judges from now on.
    pub(super) fn take_plan(&mut self, world: &mut SimWorld) -> Option<PolicyPlan> {
        let (_, plan) = self.plans.pop_front_if(|(at, _)| *at <= world.now())?;
        self.kinds_in_force = plan.interests.keys().copied().collect();
        let after = self.forget_dice.between(0, 50);
        world.timeline.schedule_policy_event(after, PolicyEvent::Forget);
        Some(plan)
    }

    /// Sends a plan to the loop, which takes it over at once, or a moment after the tasks of kinds have begun to bring objects.
    pub(super) fn send_plan(&mut self, stage: &mut SimStage, plan: PolicyPlan) {
        let late = self.plan_dice.as_mut().and_then(|dice| dice.chance(25).then(|| dice.between(20, 400)));
        let now = stage.world.now();
        let last = self.plans.back().map_or(now, |(at, _)| *at);
        let at = last.max(now + late.unwrap_or(0));
        self.plans.push_back((at, plan));
        if at == now {
            return stage.service.wake_loop(&mut stage.world);
        }
        stage.world.timeline.schedule_policy_event(at - now, PolicyEvent::PlanArrives);
    }

    /// A kind is not followed any more.
    pub(super) fn leave_kind(&mut self, stage: &mut SimStage, kind: usize) {
        self.left.insert(kind);
        stage.service.push_kind_event(&mut stage.world, kind, KindEvent::Stopped);
    }

    /// A kind is followed, again or still.
    pub(super) fn keep_kind(&mut self, kind: usize) {
        self.left.remove(&kind);
    }

    /// Forgets the objects of kinds that were left, once the loop does not judge by them any more.
    pub(super) fn forget_left(&mut self, stage: &mut SimStage) {
        for kind in self.left.extract_if(.., |kind| !self.kinds_in_force.contains(kind)) {
            stage.world.timeline.log_kind_event(kind, "is forgotten");
            stage.feed.forget_kind(kind);
            stage.service.wake_loop(&mut stage.world);
        }
    }
}
