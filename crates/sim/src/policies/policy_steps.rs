//! Steps of the policies' part: authors edit, the service lists and watches, plans, and follows kinds anew.

use std::collections::VecDeque;

use readiness::saturating_millis;
use rollcall_core::KindEvent;

use super::policy_follower::REFUSED_FOR_LONG;
use super::policy_server::StoredPolicy;
use super::policy_watch::{PolicyEvent, PolicyToConfirm, PolicyWire};
use crate::sabotage::Sabotage;
use crate::scenario::kind_id;
use crate::sim::{Sim, SimEvent};

impl Sim {
    pub(crate) fn schedule_policy_event(&mut self, after: i64, event: PolicyEvent) {
        self.schedule_event(after, SimEvent::Policy(event));
    }

    pub(crate) fn run_policy_event(&mut self, event: PolicyEvent) {
        match event {
            PolicyEvent::Act => self.act_on_policies(),
            PolicyEvent::List => self.list_policies(),
            PolicyEvent::Page => self.deliver_policy_page(),
            PolicyEvent::Deliver => self.deliver_policy_changes(),
            PolicyEvent::Confirm(asked) => self.confirm_departure(&asked.0),
            PolicyEvent::Keep(accepted) => self.keep_accepted(accepted.0),
            PolicyEvent::Redecide => self.replan(),
            PolicyEvent::Follow(kind) => self.follow_planned_kind(kind),
        }
    }

    fn act_on_policies(&mut self) {
        let what = self.policies.server.act(self.now);
        self.log_event(what);
        self.wake_policy_watch();
        let pause = match self.policies.server.dice.below(10) {
            0..3 => self.policies.server.dice.between(20, 2_000),
            3..7 => self.policies.server.dice.between(2_000, 20_000),
            _ => self.policies.server.dice.between(20_000, 200_000),
        };
        self.schedule_policy_event(pause, PolicyEvent::Act);
    }

    fn wake_policy_watch(&mut self) {
        let lag = match self.policies.dice.below(10) {
            0 if !self.calm => self.policies.dice.between(2_000, 15_000),
            _ => self.policies.dice.between(1, 200),
        };
        self.schedule_policy_event(lag, PolicyEvent::Deliver);
    }

    /// Lists policies, or goes on with their watch.
    fn list_policies(&mut self) {
        if !matches!(self.policies.wire, PolicyWire::Down) {
            return;
        }
        if let Some(position) = self.policies.resume_from {
            self.policies.wire = PolicyWire::Watching(position);
            return self.schedule_policy_event(0, PolicyEvent::Deliver);
        }
        let server = &self.policies.server;
        let position = server.changes.len();
        let listed: VecDeque<StoredPolicy> = server.stored.values().cloned().collect();
        self.log_event(format_args!("list of {} policies", listed.len()));
        self.policies.wire = PolicyWire::Listing(listed, position);
        self.policies.follower.begin_list();
        let after = self.policies.dice.between(0, 50);
        self.schedule_policy_event(after, PolicyEvent::Page);
    }

    fn deliver_policy_page(&mut self) {
        let is_broken = !self.calm && self.policies.dice.chance(6);
        let PolicyWire::Listing(left, position) = &mut self.policies.wire else { return };
        if is_broken {
            return self.break_policy_wire();
        }
        if let Some(policy) = left.pop_front() {
            self.policies.follower.stage_policy(policy);
            if self.sabotage == Some(Sabotage::HalfListPlanned) {
                self.policies.follower.finish_half_list();
                self.replan();
            }
            let is_slow = !self.calm && self.policies.dice.chance(10);
            let after = self.policies.dice.between(0, if is_slow { 5_000 } else { 40 });
            return self.schedule_policy_event(after, PolicyEvent::Page);
        }
        let position = *position;
        self.policies.wire = PolicyWire::Watching(position);
        self.policies.resume_from = Some(position);
        let gone = self.policies.follower.finish_list();
        self.log_event("policies are listed");
        self.replan();
        gone.into_iter().for_each(|policy| self.ask_for_policy(policy));
        self.schedule_policy_event(0, PolicyEvent::Deliver);
    }

    fn deliver_policy_changes(&mut self) {
        let PolicyWire::Watching(position) = &mut self.policies.wire else { return };
        let (from, to) = (*position, self.policies.server.changes.len());
        (*position, self.policies.resume_from) = (to, Some(to));
        let mut is_due = false;
        for change in self.policies.server.changes[from..to].to_vec() {
            let (due, gone) = self.policies.follower.apply_change(change);
            is_due |= due;
            gone.into_iter().for_each(|policy| self.ask_for_policy(policy));
        }
        if is_due {
            self.replan();
        }
        if !self.calm && self.policies.dice.chance(8) {
            self.break_policy_wire();
        }
    }

    /// The list or watch of policies breaks; half of the time its position is lost too.
    pub(crate) fn break_policy_wire(&mut self) {
        self.policies.wire = PolicyWire::Down;
        if self.policies.dice.chance(50) {
            self.policies.resume_from = None;
        }
        let again = self.policies.dice.between(50, 8_000);
        self.schedule_policy_event(again, PolicyEvent::List);
    }

    fn ask_for_policy(&mut self, policy: StoredPolicy) {
        let late = self.policies.dice.between(1, 300);
        self.schedule_policy_event(late, PolicyEvent::Confirm(Box::new(PolicyToConfirm(policy))));
    }

    fn confirm_departure(&mut self, asked: &StoredPolicy) {
        if !self.calm && self.policies.dice.chance(15) {
            let again = PolicyEvent::Confirm(Box::new(PolicyToConfirm(asked.clone())));
            return self.schedule_policy_event(5_000, again);
        }
        let live = self.policies.server.stored.get(&asked.number).cloned();
        if self.policies.follower.settle_departure(asked, live.as_ref()) {
            self.log_event(format_args!("policy-{} is gone", asked.number));
            self.replan();
        }
    }

    fn keep_accepted(&mut self, policy: StoredPolicy) {
        if let Some(accepted) = policy.kept {
            self.policies.server.keep_accepted(policy.number, policy.uid, accepted);
            self.wake_policy_watch();
        }
    }

    /// Decides which policies are in force, tells the kinds, and then the loop.
    fn replan(&mut self) {
        let decided = self.policies.follower.decide(self.now, &self.scenario, self.sabotage);
        let Some((before, accepted)) = decided else { return };
        for policy in accepted {
            let late = self.policies.dice.between(5, 1_000);
            self.schedule_policy_event(late, PolicyEvent::Keep(Box::new(PolicyToConfirm(policy))));
        }
        if self.policies.follower.has_refused() {
            self.schedule_policy_event(saturating_millis(REFUSED_FOR_LONG), PolicyEvent::Redecide);
        }
        let plan = self.policies.follower.plan.clone();
        let ids: Vec<String> = plan.policies.iter().map(|p| format!("{} {:?}", p.name(), p.id)).collect();
        self.log_event(format_args!("plan of {}", ids.join(", ")));
        for kind in 0..self.wires.len() {
            let (old, new) = (before.interests.get(&kind), plan.interests.get(&kind));
            if old == new || (self.sabotage == Some(Sabotage::OldRuleKept) && old.is_some() && new.is_some())
            {
                continue;
            }
            if new.is_none() {
                self.forget_kind(kind);
                continue;
            }
            let changed = plan.changed_rules(&before, kind);
            if !changed.is_empty() {
                self.push_policy_news(kind, KindEvent::RuleChanged(changed));
            }
            self.stop_kind(kind);
            self.push_policy_news(kind, KindEvent::Starting);
            let after = self.policies.dice.between(1, 60);
            self.schedule_policy_event(after, PolicyEvent::Follow(kind));
        }
        self.policies.plans.push_back(plan);
        self.wake_loop();
    }

    fn push_policy_news(&mut self, kind: usize, news: KindEvent) {
        self.news.push_back((kind_id(kind), news));
        self.wake_loop();
    }

    fn stop_kind(&mut self, kind: usize) {
        self.core.reflector.remove_interest(kind_id(kind));
        self.wires[kind].stop();
        self.remove_events_of_kind(kind);
    }

    fn forget_kind(&mut self, kind: usize) {
        self.log_kind_event(kind, "is not followed any more");
        self.stop_kind(kind);
        self.core.reflector.forget_kind(kind_id(kind));
        self.shown.forget_kind(kind);
        self.push_policy_news(kind, KindEvent::Stopped);
    }

    fn follow_planned_kind(&mut self, kind: usize) {
        let Some(interest) = self.policies.follower.plan.interests.get(&kind).cloned() else { return };
        self.interests[kind] = interest.clone();
        self.core.reflector.set_interest(interest);
        self.open_kind(kind);
    }

    /// The loop takes over a plan; returns `false` if there is none.
    pub(crate) fn take_plan(&mut self) -> bool {
        let Some(plan) = self.policies.plans.pop_front() else { return false };
        let now = self.current_time();
        let before = std::mem::take(&mut self.scenario.policies);
        for policy in before.iter().filter(|old| plan.policies.iter().all(|new| new.id != old.id)) {
            self.core.set_policy(now, policy.id, None);
            let gone = self.watch.phases.extract_if(.., |(id, _), _| *id == policy.id);
            let former =
                gone.map(|((_, uid), p)| ((policy.number, uid), (p.generation, p.unready_at_earliest)));
            self.policies.former_unready.extend(former);
        }
        for policy in &plan.policies {
            let held = before.iter().find(|old| old.id == policy.id);
            let compile = |p: &crate::scenario::PolicyDef| p.compile_policy(&self.scenario, self.sabotage);
            let compiled = compile(policy);
            if held.is_none_or(|held| compile(held).0 != compiled.0) {
                self.core.set_policy(now, policy.id, Some(compiled));
            }
        }
        let added = plan.policies.iter().map(|p| p.id).filter(|id| before.iter().all(|old| old.id != *id));
        self.policies.unseen.extend(added.map(|id| (id, plan.decided_at)));
        self.scenario.policies = plan.policies;
        self.counts.plans += 1;
        self.log_event("the loop takes over a plan");
        for kind in 0..self.wires.len() {
            if !self.policies.unlisted.contains(&kind) {
                self.note_listed_parents(kind);
            }
        }
        true
    }

    /// The loop hears of a kind; what concerns changed rules is kept apart.
    pub(crate) fn observe_policy_news(&mut self, kind: usize, news: &KindEvent) {
        let now = self.current_time();
        self.policies.swaps.observe_event(kind_id(kind), news, now);
        match news {
            KindEvent::RuleChanged(names) => {
                for name in names {
                    self.policies.swapped_at.entry((kind, name.clone())).or_insert(self.now);
                }
            }
            KindEvent::Starting if self.watch.open_kinds.contains(&kind_id(kind)) => {
                self.policies.unlisted.insert(kind);
            }
            KindEvent::Synced | KindEvent::Stopped => {
                self.policies.unlisted.remove(&kind);
                self.policies.swapped_at.retain(|(of, _), _| *of != kind);
                self.note_listed_parents(kind);
            }
            _ => {}
        }
    }

    pub(crate) fn next_swap_deadline(&self) -> Option<readiness::Time> {
        self.policies.swaps.next_deadline()
    }

    /// Withdraws answers of changed rules whose kind could not be listed in time.
    pub(crate) fn withdraw_unswapped_rules(&mut self) {
        let now = self.current_time();
        while let Some((kind, name)) = self.policies.swaps.take_overdue(now) {
            self.log_event(format_args!("{name}: its changed rule is withdrawn"));
            let ids = self.scenario.policies.iter().filter(|p| p.name() == name).map(|p| p.id);
            for id in ids.collect::<Vec<_>>() {
                self.core.engine.withdraw_changed_rule(now, id, kind);
            }
        }
    }

    /// Starts the service's part, which knows no policy before they are listed.
    pub(crate) fn start_policy_watch(&mut self) {
        self.scenario.policies.clear();
        let after = self.policies.dice.between(0, 100);
        self.schedule_policy_event(after, PolicyEvent::List);
    }
}
