//! The invariants, checked after every step.

use std::rc::Rc;

use readiness::rollup::ParentReason;
use readiness::{Level, saturating_millis};

use crate::invariant_watch::{CheckedGeneration, MAX_ANSWER_LAG_MS};
use crate::naive_judge::{NaiveJudge, NaiveSum, NaiveWeight, is_child};
use crate::object_model::{ModelMark, ModelObject};
use crate::scenario::PolicyDef;
use crate::sim::Sim;

/// Returns `true` if this reason comes from the children.
fn is_from_children(reason: ParentReason) -> bool {
    use ParentReason as R;
    matches!(
        reason,
        R::AllChildrenReady
            | R::ChildrenSettling
            | R::ChildrenProgressing
            | R::ChildrenTerminating
            | R::ChildrenFailed
            | R::ChildrenStuck
            | R::ChildrenMissing
            | R::TooManyChildren
            | R::ChildrenUnknown
            | R::ChildrenSuspended
    )
}

impl Sim {
    /// Lets the second cache observe the same objects as the loop, and notes the time of changes to children.
    pub(crate) fn observe_shown(&mut self) {
        if !self.shown.is_behind() {
            return;
        }
        let steps = self.shown.take_changes();
        let policies = self.scenario.policies.clone();
        for (old, new) in &steps {
            let Some(thing) = new.as_ref().or(old.as_ref()) else { continue };
            let seen = |p: &&PolicyDef| p.parent == thing.kind && !self.policies.unseen.contains_key(&p.id);
            for policy in policies.iter().filter(seen).collect::<Vec<_>>() {
                self.note_parent(policy, thing, new.as_deref());
            }
        }
        for (old, new) in &steps {
            for policy in &policies {
                self.note_child(policy, old.as_deref(), new.as_deref());
            }
        }
    }

    fn note_parent(&mut self, policy: &PolicyDef, thing: &ModelObject, new: Option<&ModelObject>) {
        let key = (policy.id, thing.uid.clone());
        let Some(parent) = new else {
            self.watch.phases.remove(&key);
            return;
        };
        self.apply_settle(policy, parent);
        let first = self.watch.phases.get(&key).is_none_or(|p| p.generation != parent.generation);
        if first {
            let said = entry_of(policy, parent).filter(|s| s.observed == parent.generation);
            let undecided =
                |r: ParentReason| matches!(r, ParentReason::ChildrenPending | ParentReason::OperatorSilent);
            let known = self.watch.phases.get(&key).copied();
            let well = entry_of(policy, parent).is_some_and(|s| s.status == "True");
            let unready = said.map_or(self.now, |said| match said.reason {
                ParentReason::DeadlineExceeded | ParentReason::OperatorSilent => 0,
                _ if said.status == "False" => said.since.min(self.now),
                _ => self.now,
            });
            let phase = CheckedGeneration {
                generation: parent.generation,
                since: said.filter(|s| undecided(s.reason)).map_or(self.now, |s| s.since.min(self.now)),
                children_changed_at: known.map_or(0, |p| p.children_changed_at),
                child_appeared_at: known.map_or(0, |p| p.child_appeared_at),
                handled: said.is_some_and(|s| !undecided(s.reason)),
                was_ready: known.map_or(well, |p| p.was_ready),
                unready_at_earliest: unready,
                unready_at_latest: unready,
                well_since: None,
                differs_since: None,
                awaits_first_check: false,
            };
            self.watch.phases.insert(key.clone(), phase);
        }
        if let Some(phase) = self.watch.phases.get_mut(&key) {
            phase.handled |= parent.mark == ModelMark::Handled;
        }
    }

    /// Begins to check the parents of this kind under policies for which it was listed just now.
    pub(crate) fn note_listed_parents(&mut self, kind: usize) {
        for policy in self.scenario.policies.clone().iter().filter(|p| p.parent == kind) {
            let Some(decided_at) = self.policies.unseen.remove(&policy.id) else {
                // What its parents were in the meantime, the loop may have known.
                let checked = self.watch.phases.iter_mut().filter(|((id, _), _)| *id == policy.id);
                checked.for_each(|(_, phase)| phase.awaits_first_check = true);
                continue;
            };
            for parent in self.shown.all_observed().iter().filter(|t| t.kind == kind) {
                self.note_parent(policy, parent, Some(&**parent));
                if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
                    phase.since = phase.since.min(decided_at);
                    // What stood before this process or the predecessor wrote anything else dates it.
                    let former = self.policies.former_unready.get(&(policy.number, parent.uid.clone()));
                    let former = former.filter(|(of, _)| *of == phase.generation).map_or(decided_at, |f| f.1);
                    phase.unready_at_earliest = phase.unready_at_earliest.min(decided_at).min(former);
                    phase.awaits_first_check = true;
                }
            }
        }
    }

    /// Marks a generation as handled if its operator is silent and no child has changed for the settle time.
    pub(crate) fn apply_settle(&mut self, policy: &PolicyDef, parent: &ModelObject) {
        let settle = saturating_millis(policy.settle);
        let now = self.now;
        if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
            let quiet_since = phase.since.max(phase.children_changed_at);
            phase.handled |= parent.mark == ModelMark::Silent && quiet_since + settle <= now;
        }
    }

    fn note_child(&mut self, policy: &PolicyDef, old: Option<&ModelObject>, new: Option<&ModelObject>) {
        let Some(thing) = new.or(old) else { return };
        if policy.groups.iter().all(|g| g.kind != thing.kind) {
            return;
        }
        let respecified = matches!((old, new), (Some(a), Some(b)) if a.generation != b.generation);
        let parents: Vec<Rc<ModelObject>> =
            self.shown.observed.values().filter(|t| t.kind == policy.parent).cloned().collect();
        let open = self.core.engine.is_open(policy.id);
        for parent in parents {
            let counts = |t: &ModelObject| {
                policy.groups.iter().any(|g| is_child(&self.scenario, policy, g, &parent, t))
            };
            let (was, is) = (old.is_some_and(counts), new.is_some_and(counts));
            if was == is && !(is && respecified) {
                continue;
            }
            self.apply_settle(policy, &parent);
            // Before everything was listed, a newly seen child did not appear just now: it is as old as its creation
            // timestamp.
            let at = if is && !was && !open { thing.created.min(self.now) } else { self.now };
            if let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) {
                phase.children_changed_at = phase.children_changed_at.max(at);
                if is && !was {
                    phase.child_appeared_at = phase.child_appeared_at.max(at);
                }
            }
        }
    }

    /// Returns the engine's weight of a child that is itself a parent: each such answer is checked at its own parent.
    fn engine_weight(&self, thing: &ModelObject) -> Option<NaiveWeight> {
        let policies = self.scenario.policies.iter().filter(|p| p.parent == thing.kind);
        let id = self.core.reflector.find_object(&thing.uid);
        let weigh = |policy: &PolicyDef| {
            id.and_then(|id| self.core.engine.answer_of(id, policy.id))
                .map_or((Level::Unknown, false), |a| (a.reason.child_level(), a.stalled))
        };
        policies.map(weigh).min()
    }

    pub(crate) fn naive_sum(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        things: &[Rc<ModelObject>],
    ) -> NaiveSum {
        let judge = NaiveJudge { scenario: &self.scenario, things, now: self.now };
        judge.sum_children(policy, parent, &|thing| self.engine_weight(thing))
    }

    /// Checks, after each turn, that tallies equal a recount, and that every answer agrees with the naive judge over
    /// the observed state, or did so within the debounce's cap.
    pub(crate) fn check_answers(&mut self) {
        self.watch.turns += 1;
        let now_and_then = self.watch.turns.is_multiple_of(4);
        if self.calm && !now_and_then && !self.has_turned() {
            return;
        }
        if now_and_then {
            if let Some((parent, policy)) = self.core.engine.find_miscounted() {
                self.fail_invariant("tallies equal a recount", format_args!("{parent:?} under {policy:?}"));
            }
            if !self.core.engine.are_unready_children_consistent() {
                self.fail_invariant("tallies equal a recount", "a ready child is among the troubles");
            }
        }
        self.check_swaps();
        let things = self.shown.all_observed();
        let policies = self.scenario.policies.clone();
        for policy in &policies {
            if !self.core.engine.is_open(policy.id) || self.policies.unlisted.contains(&policy.parent) {
                continue;
            }
            for parent in things.iter().filter(|t| t.kind == policy.parent) {
                if self.awaits_child_list(policy, parent, &things) {
                    self.check_awaiting(policy, parent);
                } else {
                    self.check_answer(policy, parent, &things);
                }
            }
        }
    }

    /// Returns `true` if any answer became True, or is True no more, since it was last checked: when that was, everything else is
    /// judged by.
    fn has_turned(&self) -> bool {
        let well = |policy: aggregator::PolicyId, uid: &str| {
            let id = self.core.reflector.find_object(uid);
            let answer = id.and_then(|id| self.core.engine.answer_of(id, policy));
            answer.is_some_and(|answer| answer.reason == ParentReason::AllChildrenReady)
        };
        let mut phases = self.watch.phases.iter();
        phases.any(|((policy, uid), phase)| well(*policy, uid) != phase.was_ready)
    }

    /// Checks a parent with a descendant that waits for a list: what that one said before makes nothing ready.
    fn check_awaiting(&mut self, policy: &PolicyDef, parent: &ModelObject) {
        let id = self.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| self.core.engine.answer_of(id, policy.id));
        let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
        let Some(phase) = self.watch.phases.get_mut(&(policy.id, parent.uid.clone())) else { return };
        phase.differs_since = None;
        phase.unready_at_latest = if phase.was_ready && !well { self.now } else { phase.unready_at_latest };
        phase.unready_at_earliest = if well { self.now } else { phase.unready_at_earliest };
        if !std::mem::replace(&mut phase.was_ready, well) && well {
            let name = self.describe_object(parent);
            self.fail_invariant("no false ready", format_args!("{name}: not all is listed below it"));
        }
    }

    /// Returns `true` if a descendant is a parent whose policy still waits for a list: until that list is complete, the
    /// earlier answer stays.
    fn awaits_child_list(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        things: &[Rc<ModelObject>],
    ) -> bool {
        let below = self.scenario.policies.iter().filter(|p| p.id != policy.id);
        let below: Vec<&PolicyDef> =
            below.filter(|p| policy.groups.iter().any(|g| g.kind == p.parent)).collect();
        let counts = |t: &&Rc<ModelObject>| {
            policy.groups.iter().any(|g| is_child(&self.scenario, policy, g, parent, t))
        };
        !below.is_empty()
            && things.iter().filter(counts).any(|child| {
                let mut over = below.iter().filter(|p| p.parent == child.kind);
                over.any(|p| {
                    !self.core.engine.is_open(p.id)
                        || self.policies.awaits_list(p)
                        || self.awaits_child_list(p, child, things)
                })
            })
    }

    fn check_answer(&mut self, policy: &PolicyDef, parent: &ModelObject, things: &[Rc<ModelObject>]) {
        let id = self.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| self.core.engine.answer_of(id, policy.id));
        let sum = self.naive_sum(policy, parent, things);
        let said = answer.map(|a| a.reason);
        let key = (policy.id, parent.uid.clone());
        if let Some(phase) = self.watch.phases.get_mut(&key)
            && std::mem::take(&mut phase.awaits_first_check)
        {
            phase.unready_at_latest = self.now;
            phase.well_since = Some(0);
        }
        let (unready, down) = self
            .watch
            .phases
            .get(&key)
            .map_or((self.now, self.now), |p| (p.unready_at_earliest, p.unready_at_latest));
        let due = |since: i64| policy.deadline.map(|limit| since + saturating_millis(limit));
        // Of a kind that is to be listed anew, nobody knows what the loop may still rest on.
        let is_known = !self.policies.awaits_list(policy);
        if is_known
            && said == Some(ParentReason::DeadlineExceeded)
            && due(unready).is_none_or(|due| self.now < due)
        {
            let name = self.describe_object(parent);
            self.fail_invariant(
                "answers follow what was shown",
                format_args!("{name}: its deadline is not over"),
            );
        }
        let agrees = !is_known || self.agrees_with(policy, parent, said, &sum, down);
        let now = self.now;
        self.apply_settle(policy, parent);
        let Some(phase) = self.watch.phases.get_mut(&key) else { return };
        if sum.reason.is_some() && is_known {
            phase.well_since = None;
        } else if sum.reason.is_none() && phase.well_since.is_none() {
            phase.well_since = Some(now);
        }
        phase.differs_since = if agrees { None } else { Some(phase.differs_since.unwrap_or(now)) };
        let well = said == Some(ParentReason::AllChildrenReady);
        phase.unready_at_latest = if phase.was_ready && !well { now } else { phase.unready_at_latest };
        phase.unready_at_earliest = if well { now } else { phase.unready_at_earliest };
        let turned = !std::mem::replace(&mut phase.was_ready, well) && well;
        let phase = *phase;
        if phase.differs_since.is_some_and(|since| since + MAX_ANSWER_LAG_MS < now) {
            let name = self.describe_object(parent);
            let what = format!("{:?}: {name} is {said:?}, to be {:?}", policy.id, sum.reason);
            self.fail_invariant("answers follow what was shown", what);
        }
        if turned && is_known {
            self.check_turned_true(policy, parent, &phase);
        }
    }

    /// Returns `true` if the naive judge comes to this answer too, which has not been True since `down` at the latest.
    fn agrees_with(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        said: Option<ParentReason>,
        sum: &NaiveSum,
        down: i64,
    ) -> bool {
        let due = |since: i64| policy.deadline.map(|limit| since + saturating_millis(limit));
        let suspended = sum.reason == Some(ParentReason::ChildrenSuspended);
        let recorded = condition_of(policy, parent).is_some();
        match said {
            None => false,
            Some(ParentReason::DeadlineExceeded) => {
                parent.deleted.is_none()
                    && !suspended
                    && (sum.reason.is_some() || parent.mark != ModelMark::Handled)
            }
            Some(ParentReason::Terminating) => parent.deleted.is_some(),
            Some(reason) if is_from_children(reason) => {
                let well = matches!(reason, ParentReason::AllChildrenReady | ParentReason::ChildrenSettling);
                let late = !well
                    && !suspended
                    && recorded
                    && due(down).is_some_and(|due| due + MAX_ANSWER_LAG_MS < self.now);
                !late
                    && parent.deleted.is_none()
                    && parent.mark != ModelMark::NotYet
                    && sum.reason == (!well).then_some(reason)
            }
            Some(_) => parent.deleted.is_none(),
        }
    }

    fn describe_object(&self, thing: &ModelObject) -> String {
        format!("{} {}/{}", self.scenario.kind_name(thing.kind), thing.namespace, thing.name)
    }

    /// Checks an answer that has just become True.
    fn check_turned_true(&mut self, policy: &PolicyDef, parent: &ModelObject, phase: &CheckedGeneration) {
        // Where another client has the condition, nothing would record how long it has held.
        let hold = condition_of(policy, parent).map_or(0, |_| saturating_millis(policy.hold));
        let settle = saturating_millis(policy.settle);
        let name = self.describe_object(parent);
        if !phase.handled {
            self.fail_invariant("no false ready", format_args!("{name}: its operator has not handled it"));
        }
        if phase.child_appeared_at + saturating_millis(policy.debounce.quiet) + settle + hold > self.now {
            self.fail_invariant("no false ready", format_args!("{name}: a child has just appeared"));
        }
        // In the calm phase not every turn is checked.
        if !self.calm && phase.well_since.is_none_or(|since| since + hold > self.now) {
            self.fail_invariant(
                "no false ready",
                format_args!("{name}: not well for as long as the policy asks"),
            );
        }
    }
}

/// Returns the parent's condition that a policy writes.
pub(crate) fn entry_of<'a>(
    policy: &PolicyDef,
    parent: &'a ModelObject,
) -> Option<&'a crate::object_model::ModelCondition> {
    let condition = condition_of(policy, parent)?;
    parent.ours.get(condition)
}

/// Returns the condition type that a policy writes.
pub(crate) fn condition_of(policy: &PolicyDef, parent: &ModelObject) -> Option<&'static str> {
    let types = [given_up_for(policy, parent), Some(policy.condition), policy.fallback];
    types.into_iter().flatten().find(|kind| !parent.foreign.contains(*kind))
}

/// Returns the fallback type if it stands on the parent although nobody else has the policy's own: that one was given up,
/// because it kept being overwritten.
pub(crate) fn given_up_for(policy: &PolicyDef, parent: &ModelObject) -> Option<&'static str> {
    let vacant = !parent.foreign.contains(policy.condition) && !parent.ours.contains_key(policy.condition);
    policy.fallback.filter(|fallback| vacant && parent.ours.contains_key(*fallback))
}
