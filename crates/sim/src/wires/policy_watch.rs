//! The service's list and watch of policies, over a faulty wire: and what it plans by them.

use std::collections::VecDeque;
use std::rc::Rc;

use aggregator::PolicyId;
use readiness::saturating_millis;
use rollcall_core::KindEvent;

use super::claim_wire::{ClaimWire, is_release_over, write_claim};
use super::kind_wires::KindWires;
use super::plan_wire::PlanWire;
use super::resolving_watches::ResolvingWatches;
use super::sim_stage::SimStage;
use crate::perturbation::{Disturbance, HELD_MS, PointKind};
use crate::scenario::{Dice, DiceStream, HistoryKind, PolicyDef, Sabotage, Scenario, SeedStreams};
use crate::service::{OtherPolicies, PolicyFollower, PolicyPlan, REFUSED_FOR_LONG, TypeInventory};
use crate::timeline::{ClaimWrite, ListStep, ListedSet, PolicyEvent, SimEvent, SimTimeline};
use crate::world::{PolicyChange, SimWorld, StoredPolicy};

/// Chance of an act of an author to go with the loss of the right to read the parents of its policy, in per cent.
const BLIND_EDIT_PERCENT: usize = 12;

/// The list or watch of policies.
#[derive(Default)]
enum PolicyWire {
    #[default]
    Down,
    /// Policies that are still to be delivered, and the position from which the watch goes on.
    Listing(VecDeque<StoredPolicy>, usize),
    /// Position among the server's changes.
    Watching(usize),
}

/// The service's watch of policies in one history.
pub(crate) struct PolicyWatch {
    dice: Dice,
    /// When the right to read the parents of a policy goes with an edit of it; never where there is none.
    blind_dice: Option<Dice>,
    claims: ClaimWire,
    sabotage: Option<Sabotage>,
    /// What the policies of two releases are read by, where there are two.
    shared: Option<Rc<Scenario>>,
    /// Policies change in this history.
    pub(crate) is_changing: bool,
    /// What policies are resolved by, in a history in which that changes.
    resolving: Option<ResolvingWatches>,
    follower: PolicyFollower,
    wire: PolicyWire,
    /// Position from which a broken watch can go on.
    resume_from: Option<usize>,
    /// Seconds lie between the pages of a list.
    lists_slowly: bool,
    /// The plans on their way to the loop.
    plans: PlanWire,
}

impl PolicyWatch {
    pub(crate) fn new(
        streams: SeedStreams,
        sabotage: Option<Sabotage>,
        kind: HistoryKind,
        scenario: &Rc<Scenario>,
    ) -> PolicyWatch {
        let seed = streams.seed;
        let shared = (kind == HistoryKind::SharedCluster).then(|| scenario.clone());
        let resolves = kind == HistoryKind::ChangingResolution;
        PolicyWatch {
            dice: DiceStream::PolicyWire.dice(seed),
            blind_dice: streams.widened_by(DiceStream::BlindEdits),
            claims: ClaimWire::new(seed),
            sabotage,
            is_changing: kind.changes_policies(),
            resolving: resolves.then(|| ResolvingWatches::new(streams, sabotage)),
            follower: PolicyFollower::new(shared.clone().map(OtherPolicies::new), TypeInventory::default()),
            shared,
            wire: PolicyWire::Down,
            resume_from: None,
            lists_slowly: false,
            plans: PlanWire::new(streams),
        }
    }

    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        let inventory = self.follower.take_inventory();
        self.follower = PolicyFollower::new(self.shared.clone().map(OtherPolicies::new), inventory);
        self.resolving.iter_mut().for_each(ResolvingWatches::reset_for_restart);
        self.wire = PolicyWire::Down;
        self.resume_from = None;
        self.claims.reset_for_restart();
        self.plans.reset_for_restart();
    }

    /// Starts the service's part, which knows no policy before they are listed.
    pub(crate) fn start_watch(&mut self, stage: &mut SimStage) {
        let after = self.dice.between(0, 100);
        stage.world.timeline.schedule_policy_event(after, PolicyEvent::List);
        self.resolving.iter_mut().for_each(|watches| watches.start_watch(&mut stage.world.timeline));
    }

    /// Schedules the first edits of what policies are resolved by.
    pub(crate) fn schedule_edits(&self, timeline: &mut SimTimeline) {
        for of in self.resolving.iter().flat_map(ResolvingWatches::edited) {
            timeline.schedule_event(2_000, SimEvent::of_list(of, ListStep::Edit));
        }
    }

    /// Notes what a plan rests on; `false` if that is no state of the server that it could rest on.
    pub(crate) fn note_resolved(&mut self, plan: &PolicyPlan) -> bool {
        let resolved = self.resolving.as_mut().zip(plan.resolved.as_ref());
        resolved.is_none_or(|(watches, items)| watches.note_planned(items))
    }

    /// Returns a spec as it is judged by, by what the server has now.
    pub(crate) fn resolve_now(&self, spec: &PolicyDef) -> PolicyDef {
        self.resolving.as_ref().map_or_else(|| spec.clone(), |watches| watches.stored().resolve(spec))
    }

    /// Takes the next plan on its way to the loop, which judges by it from now on.
    pub(crate) fn take_plan(&mut self, world: &mut SimWorld) -> Option<PolicyPlan> {
        self.plans.take_plan(world)
    }

    /// Returns the specs by which answers may be right now: those of the loop's plan, and those of plans on their way to
    /// it.
    pub(crate) fn coming_specs(&self, number: usize) -> Vec<&PolicyDef> {
        let plans = self.plans.coming().chain(std::iter::once(&self.follower.plan));
        plans.flat_map(|plan| plan.policies.iter().filter(|p| p.number == number)).collect()
    }

    /// Returns `true` if a plan is on its way to the loop: kinds are read by it already.
    pub(crate) fn awaits_plan(&self) -> bool {
        self.plans.coming().next().is_some()
    }

    /// Returns `true` if a plan on its way to the loop lacks this policy.
    pub(crate) fn is_leaving(&self, policy: PolicyId) -> bool {
        self.plans.coming().any(|plan| plan.policies.iter().all(|of| of.id != policy))
    }

    pub(crate) fn run_event(&mut self, stage: &mut SimStage, wires: &mut KindWires, event: PolicyEvent) {
        match event {
            PolicyEvent::Act => self.act_on_policies(stage, wires),
            PolicyEvent::List => self.list_policies(stage),
            PolicyEvent::Page => self.deliver_policy_page(stage, wires),
            PolicyEvent::Deliver => self.deliver_policy_changes(stage, wires),
            PolicyEvent::Confirm(asked) => self.confirm_departure(stage, wires, &asked),
            PolicyEvent::WriteStatus(accepted) => self.keep_accepted(stage, *accepted),
            PolicyEvent::WriteClaim(claim) => self.write_claim(stage, &claim),
            PolicyEvent::CheckRelease => self.check_release(stage, wires),
            PolicyEvent::Redecide => self.replan(stage, wires),
            PolicyEvent::Follow(kind) => self.follow_planned_kind(stage, wires, kind),
            PolicyEvent::PlanArrives => stage.service.wake_loop(&mut stage.world),
            PolicyEvent::Forget => self.plans.forget_left(stage),
            PolicyEvent::Resolve(of, step) => self.run_resolving(stage, wires, (of, step)),
        }
    }

    fn run_resolving(&mut self, stage: &mut SimStage, wires: &mut KindWires, step: (ListedSet, ListStep)) {
        let (timeline, is_calm) = (&mut stage.world.timeline, stage.world.faults.is_off());
        let mut watches = self.resolving.iter_mut();
        if watches.any(|watches| watches.run_step(timeline, step, is_calm)) {
            self.replan(stage, wires);
        }
    }

    fn act_on_policies(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let what = stage.world.policy_server.act(stage.world.now());
        stage.world.timeline.log_event(what);
        self.blind_edited_parents(stage, wires);
        self.wake_policy_watch(stage);
        let pause = match stage.world.policy_server.dice.below(10) {
            0..3 => stage.world.policy_server.dice.between(20, 2_000),
            3..7 => stage.world.policy_server.dice.between(2_000, 20_000),
            _ => stage.world.policy_server.dice.between(20_000, 200_000),
        };
        stage.world.timeline.schedule_policy_event(pause, PolicyEvent::Act);
    }

    /// Takes away, for a while, the right to read the parents of the policy that was edited just now: those of its new generation
    /// cannot be listed.
    fn blind_edited_parents(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let Some(PolicyChange::Applied(edited)) = stage.world.policy_server.changes.last() else { return };
        let (kind, now, is_calm) = (edited.stub.parent, stage.world.now(), stage.world.faults.is_off());
        let Some(dice) = self.blind_dice.as_mut().filter(|_| !is_calm) else { return };
        if dice.chance(BLIND_EDIT_PERCENT) {
            let span = dice.between(100_000, 400_000);
            stage.world.timeline.log_kind_event(kind, format_args!("may not be read for {span} ms"));
            wires.wire_mut(kind).forbidden_until = now + span;
        }
    }

    fn wake_policy_watch(&mut self, stage: &mut SimStage) {
        let lag = match self.dice.below(10) {
            0 if !stage.world.faults.is_off() => self.dice.between(2_000, 15_000),
            _ => self.dice.between(1, 200),
        };
        stage.world.timeline.schedule_policy_event(lag, PolicyEvent::Deliver);
    }

    /// Lists policies, or goes on with their watch.
    fn list_policies(&mut self, stage: &mut SimStage) {
        if !matches!(self.wire, PolicyWire::Down) {
            return;
        }
        if let Some(position) = self.resume_from {
            self.wire = PolicyWire::Watching(position);
            return stage.world.timeline.schedule_policy_event(0, PolicyEvent::Deliver);
        }
        let server = &stage.world.policy_server;
        let position = server.changes.len();
        let listed: VecDeque<StoredPolicy> = server.stored.values().cloned().collect();
        stage.world.timeline.log_event(format_args!("list of {} policies", listed.len()));
        self.wire = PolicyWire::Listing(listed, position);
        self.follower.begin_list();
        let after = self.dice.between(0, 50);
        stage.world.timeline.schedule_policy_event(after, PolicyEvent::Page);
    }

    fn deliver_policy_page(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let is_broken = !stage.world.faults.is_off() && self.dice.chance(6);
        let PolicyWire::Listing(left, position) = &mut self.wire else { return };
        if is_broken {
            return self.break_policy_wire(stage);
        }
        if let Some(policy) = left.pop_front() {
            self.follower.stage_policy(policy);
            if self.sabotage == Some(Sabotage::HalfListPlanned) {
                self.follower.finish_half_list();
                self.replan(stage, wires);
            }
            if self.sabotage == Some(Sabotage::HalfOthersUsed) && self.follower.finish_half_others() {
                self.replan(stage, wires);
            }
            let is_slow = !stage.world.faults.is_off() && self.dice.chance(10);
            let drawn = self.dice.between(0, if is_slow { 5_000 } else { 40 });
            let after = if self.lists_slowly { HELD_MS } else { drawn };
            return stage.world.timeline.schedule_policy_event(after, PolicyEvent::Page);
        }
        let position = *position;
        self.wire = PolicyWire::Watching(position);
        self.resume_from = Some(position);
        let gone = self.follower.finish_list();
        stage.world.timeline.log_event("policies are listed");
        self.replan(stage, wires);
        for policy in gone {
            self.ask_for_policy(stage, policy);
        }
        stage.world.timeline.schedule_policy_event(0, PolicyEvent::Deliver);
    }

    fn deliver_policy_changes(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let PolicyWire::Watching(position) = &mut self.wire else { return };
        let (from, to) = (*position, stage.world.policy_server.changes.len());
        (*position, self.resume_from) = (to, Some(to));
        let mut is_due = false;
        let changes = stage.world.policy_server.changes[from..to].to_vec();
        for (at, change) in (from..).zip(changes) {
            if let Some(disturbance) = stage.world.disturb_point(PointKind::PolicyChange)
                && self.disturb_change(stage, at, disturbance)
            {
                break;
            }
            let (due, gone) = self.follower.apply_change(change);
            is_due |= due;
            if let Some(policy) = gone {
                self.ask_for_policy(stage, policy);
            }
        }
        if is_due {
            self.replan(stage, wires);
        } else {
            self.claims.send_claims(stage, &mut self.follower);
        }
        if !stage.world.faults.is_off() && self.dice.chance(8) {
            self.break_policy_wire(stage);
        }
    }

    /// Disturbs the delivery of a change; returns `true` if it is not delivered.
    fn disturb_change(&mut self, stage: &mut SimStage, at: usize, disturbance: Disturbance) -> bool {
        if disturbance == Disturbance::KilledAfter {
            return false;
        }
        self.wire = PolicyWire::Down;
        self.resume_from = (disturbance == Disturbance::Held).then_some(at);
        self.lists_slowly = disturbance == Disturbance::Relisted;
        stage.world.timeline.schedule_policy_event(HELD_MS, PolicyEvent::List);
        true
    }

    /// The list or watch of policies breaks; half of the time its position is lost too.
    pub(crate) fn break_policy_wire(&mut self, stage: &mut SimStage) {
        self.wire = PolicyWire::Down;
        if self.dice.chance(50) {
            self.resume_from = None;
        }
        let again = self.dice.between(50, 8_000);
        stage.world.timeline.schedule_policy_event(again, PolicyEvent::List);
    }

    fn ask_for_policy(&mut self, stage: &mut SimStage, policy: StoredPolicy) {
        let late = self.dice.between(1, 300);
        stage.world.timeline.schedule_policy_event(late, PolicyEvent::Confirm(Box::new(policy)));
    }

    fn confirm_departure(&mut self, stage: &mut SimStage, wires: &mut KindWires, asked: &StoredPolicy) {
        if !stage.world.faults.is_off() && self.dice.chance(15) {
            let again = PolicyEvent::Confirm(Box::new(asked.clone()));
            return stage.world.timeline.schedule_policy_event(5_000, again);
        }
        let live = stage.world.policy_server.stored.get(&asked.number).cloned();
        if self.follower.settle_departure(asked, live.as_ref()) {
            stage.world.timeline.log_event(format_args!("policy-{} is gone", asked.number));
            self.replan(stage, wires);
        }
    }

    fn keep_accepted(&mut self, stage: &mut SimStage, policy: StoredPolicy) {
        if let Some(accepted) = policy.kept {
            let now = stage.world.now();
            stage.world.policy_server.keep_accepted(policy.number, policy.uid, accepted, now);
            self.wake_policy_watch(stage);
        }
    }

    /// Decides which policies are in force, tells the kinds, and then the loop.
    fn replan(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        let resolved = self.resolving.as_ref().map(ResolvingWatches::known);
        // Before labels, scripts and groups were listed there is no plan.
        if resolved == Some(None) {
            return;
        }
        let (now, scenario) = (stage.world.now(), &stage.world.scenario);
        let decided = self.follower.decide(now, scenario, self.sabotage, resolved.flatten());
        let Some((before, accepted)) = decided else { return };
        for policy in accepted {
            let late = self.dice.between(5, 1_000);
            stage.world.timeline.schedule_policy_event(late, PolicyEvent::WriteStatus(Box::new(policy)));
        }
        if self.follower.has_refused() {
            stage
                .world
                .timeline
                .schedule_policy_event(saturating_millis(REFUSED_FOR_LONG), PolicyEvent::Redecide);
        }
        let plan = self.follower.plan.clone();
        let ids: Vec<String> = plan.policies.iter().map(|p| format!("{} {:?}", p.name(), p.id)).collect();
        stage.world.timeline.log_event(format_args!("plan of {}", ids.join(", ")));
        for kind in 0..wires.all().len() {
            let (old, new) = (before.interests.get(&kind), plan.interests.get(&kind));
            if old == new || (self.sabotage == Some(Sabotage::OldRuleKept) && old.is_some() && new.is_some())
            {
                continue;
            }
            if new.is_none() {
                stage.world.timeline.log_kind_event(kind, "is not followed any more");
                wires.stop_kind(stage, kind);
                self.plans.leave_kind(stage, kind);
                continue;
            }
            let changed = plan.changed_rules(&before, kind);
            if !changed.is_empty() {
                stage.service.push_kind_event(&mut stage.world, kind, KindEvent::RuleChanged(changed));
            }
            wires.stop_kind(stage, kind);
            self.plans.keep_kind(kind);
            stage.service.push_kind_event(&mut stage.world, kind, KindEvent::Starting);
            let after = self.dice.between(1, 60);
            stage.world.timeline.schedule_policy_event(after, PolicyEvent::Follow(kind));
        }
        self.plans.send_plan(stage, plan);
        self.claims.send_claims(stage, &mut self.follower);
        self.claims.schedule_steps(stage, &self.follower);
    }

    fn write_claim(&mut self, stage: &mut SimStage, claim: &ClaimWrite) {
        write_claim(stage, claim);
        self.wake_policy_watch(stage);
    }

    fn check_release(&mut self, stage: &mut SimStage, wires: &mut KindWires) {
        if is_release_over(stage, &mut self.follower) {
            self.replan(stage, wires);
        }
        self.claims.schedule_release_check(stage, &self.follower);
    }

    fn follow_planned_kind(&mut self, stage: &mut SimStage, wires: &mut KindWires, kind: usize) {
        let Some(interest) = self.follower.plan.interests.get(&kind).cloned() else { return };
        stage.feed.set_interest(kind, interest);
        wires.open_kind(stage, kind);
    }
}
