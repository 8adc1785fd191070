//! State that the judges read after a step. Nothing of it changes while they judge.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::Rc;

use readiness::Level;
use rollcall_core::Core;
use watcher::reflector::RuleWork;

use super::naive_judge::{CountedSteady, NaiveJudge, NaiveSum, NaiveWeight, is_child};
use super::plan_watch::PlanWatch;
use super::shown_objects::ShownObjects;
use crate::scenario::{ChildRuleDef, PolicyDef, Scenario, kind_id};
use crate::wires::{KindWire, KindWires, PolicyWatch, SimStage};
use crate::world::{BudgetReading, ModelObject, ModelSteadiness, SimWorld};

/// What a moment is read from: the world and the service, and the wires between them.
pub(crate) type JudgedScene<'a> = (&'a SimStage, &'a KindWires, &'a PolicyWatch);

/// The state of a run at one moment.
pub(crate) struct JudgedMoment<'a> {
    pub(crate) now: i64,
    /// Faults have stopped.
    pub(crate) faults_stopped: bool,
    pub(crate) scenario: &'a Scenario,
    pub(crate) world: &'a SimWorld,
    pub(crate) core: &'a Core,
    /// Number of writes that the writer has room for.
    pub(crate) writer_room: usize,
    /// Policies that are in force in the loop.
    pub(crate) policies: &'a [PolicyDef],
    pub(crate) shown: &'a ShownObjects,
    pub(crate) wires: &'a [KindWire],
    /// The service's watch of policies, with the plans that are on their way to the loop.
    pub(crate) policy_watch: &'a PolicyWatch,
    /// Plans and kinds as the loop has observed them.
    pub(crate) plan_watch: &'a PlanWatch,
}

impl<'a> JudgedMoment<'a> {
    pub(crate) fn new(
        (stage, wires, policy_watch): JudgedScene<'a>,
        plan_watch: &'a PlanWatch,
    ) -> JudgedMoment<'a> {
        JudgedMoment {
            now: stage.world.now(),
            faults_stopped: stage.world.faults.have_stopped,
            scenario: &stage.world.scenario,
            world: &stage.world,
            core: &stage.service.core,
            writer_room: stage.service.writer_room,
            policies: &stage.service.policies,
            shown: &stage.feed.shown,
            wires: wires.all(),
            policy_watch,
            plan_watch,
        }
    }

    /// Records the first violated invariant and ends the run.
    pub(crate) fn fail_invariant(&self, invariant: &'static str, detail: impl Display) {
        self.world.timeline.fail_invariant(invariant, detail);
    }

    pub(crate) fn describe_object(&self, model: &ModelObject) -> String {
        format!("{} {}/{}", self.scenario.kind_name(model.kind), model.namespace, model.name)
    }

    /// Returns `true` if the answer of a policy about this parent counts above it. What is read by a plan that lacks a policy
    /// does not count under it any more.
    pub(super) fn counts_under(&self, policy: &PolicyDef, model: &ModelObject) -> bool {
        let id = self.core.reflector.find_object(&model.uid);
        let answer = id.and_then(|id| self.core.engine.answer_of(id, policy.id));
        answer.is_some() || !self.policy_watch.is_leaving(policy.id)
    }

    /// Returns the engine's weight of a child that is itself a parent: each such answer is checked at its own parent.
    pub(super) fn engine_weight(&self, model: &ModelObject) -> Option<NaiveWeight> {
        let policies = self.policies.iter().filter(|p| p.parent == model.kind);
        let id = self.core.reflector.find_object(&model.uid);
        let weigh = |policy: &PolicyDef| {
            id.and_then(|id| self.core.engine.answer_of(id, policy.id))
                .map_or((Level::Unknown, false), |a| (a.weight().level(), a.weight().is_terminal()))
        };
        policies.filter(|policy| self.counts_under(policy, model)).map(weigh).min()
    }

    /// Returns what the naive judge says of a parent, if these objects exist.
    pub(crate) fn naive_sum(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        models: &[Rc<ModelObject>],
    ) -> NaiveSum {
        self.naive_sum_with(BTreeMap::new(), policy, parent, models)
    }

    /// The same, if the rules of these children say so.
    pub(crate) fn naive_sum_with(
        &self,
        unjudged: BTreeMap<String, Level>,
        policy: &PolicyDef,
        parent: &ModelObject,
        models: &[Rc<ModelObject>],
    ) -> NaiveSum {
        let judge = NaiveJudge { scenario: self.scenario, models, now: self.now, unjudged, counted: None };
        judge.sum_children(policy, parent, &|model| self.engine_weight(model))
    }

    /// Returns how far those children that keep a parent from being ready can be counted on, which all were ready last at
    /// `whole_at`; by this reading where there are two.
    pub(crate) fn naive_steadiness(
        &self,
        unjudged: &BTreeMap<String, Level>,
        policy: &PolicyDef,
        parent: &ModelObject,
        (models, whole_at): (&[Rc<ModelObject>], i64),
        reading: BudgetReading,
    ) -> ModelSteadiness {
        let suffices = |least: &ModelSteadiness| {
            let counted = Some(CountedSteady { least: *least, whole_at, reading });
            let unjudged = unjudged.clone();
            let judge = NaiveJudge { scenario: self.scenario, models, now: self.now, unjudged, counted };
            judge.sum_children(policy, parent, &|model| self.engine_weight(model)).reason.is_none()
        };
        let steady = [ModelSteadiness::Available, ModelSteadiness::Unobserved];
        let found = steady.into_iter().filter(|_| policy.is_tolerant()).find(suffices);
        found.unwrap_or(ModelSteadiness::Unsteady)
    }

    /// Returns the objects that await the rule of a group of this policy, and whether what stands for them does not any more.
    pub(crate) fn find_unjudged(
        &self,
        policy: &PolicyDef,
        models: &[Rc<ModelObject>],
    ) -> BTreeMap<String, bool> {
        let (work, reflector) = (self.core.reflector.rule_work(), &self.core.reflector);
        let mut unjudged = BTreeMap::new();
        for (at, group) in (0..).zip(&policy.groups) {
            if group.rule == ChildRuleDef::Native || work.is_done_before(kind_id(group.kind), work.mark()) {
                continue;
            }
            for model in models.iter().filter(|model| model.kind == group.kind) {
                let awaited =
                    |id| reflector.read_row(id, |row| row.awaited_in_group(policy.id, at)).flatten();
                if let Some(since) = reflector.find_object(&model.uid).and_then(awaited) {
                    let end = since + RuleWork::INTERIM_LIMIT;
                    *unjudged.entry(model.uid.clone()).or_default() |= end.0 <= self.now;
                }
            }
        }
        unjudged
    }

    /// Returns what the naive judge says of a parent some of whose children may await their rule.
    pub(crate) fn judged_sum(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        models: &[Rc<ModelObject>],
    ) -> JudgedSum {
        let mut unjudged = self.find_unjudged(policy, models);
        let counts = |t: &ModelObject| {
            policy.groups.iter().any(|group| is_child(self.scenario, policy, group, parent, t))
        };
        unjudged.retain(|uid, _| models.iter().any(|t| t.uid == *uid && counts(t)));
        let sum = self.naive_sum(policy, parent, models);
        if unjudged.is_empty() {
            return JudgedSum { sum, is_known: true, is_ready_as_judged: true };
        }
        let is_overdue = unjudged.values().all(|overdue| *overdue);
        let unknown = unjudged.into_keys().map(|uid| (uid, Level::Unknown)).collect();
        let strict = self.naive_sum_with(unknown, policy, parent, models);
        let is_ready_as_judged = strict.reason.is_none();
        JudgedSum { sum: if is_overdue { strict } else { sum }, is_known: is_overdue, is_ready_as_judged }
    }
}

/// What the naive judge says of a parent some of whose children may await their rule.
pub(crate) struct JudgedSum {
    pub(crate) sum: NaiveSum,
    /// What is awaited is overdue, or nothing is: nothing stands for it.
    pub(crate) is_known: bool,
    /// The parent would be ready if all that is awaited were unknown; always so where nothing is awaited.
    pub(crate) is_ready_as_judged: bool,
}
