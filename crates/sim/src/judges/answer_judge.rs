//! The invariants, checked after every step.

use std::collections::BTreeMap;
use std::rc::Rc;

use aggregator::PolicyId;
use readiness::rollup::ParentReason;
use readiness::saturating_millis;

use super::answer_agreement::{agrees_with, awaits_child_list, check_turned_true};
use super::checked_generation::{CheckedGeneration, MAX_ANSWER_LAG_MS};
use super::judged_moment::{JudgedMoment, JudgedSum};
use super::naive_judge::is_child;
use super::own_entries::entry_of;
use super::policy_checks;
use super::shown_objects::ShownChange;
use crate::scenario::PolicyDef;
use crate::world::{ModelCondition, ModelMark, ModelObject};

/// Returns since when a parent has not been ready at the earliest, by what it says.
fn recorded_unready(said: &ModelCondition, now: i64) -> i64 {
    match said.reason {
        ParentReason::DeadlineExceeded | ParentReason::OperatorSilent => 0,
        _ if said.status == "False" => said.since.min(now),
        _ => now,
    }
}

/// The judge of the engine's answers.
#[derive(Default)]
pub(crate) struct AnswerJudge {
    phases: BTreeMap<(PolicyId, String), CheckedGeneration>,
    /// By number of a policy and parent: a generation, and since when it was not ready when another plan came.
    former_unready: BTreeMap<(usize, String), (i64, i64)>,
    turns: u64,
}

impl AnswerJudge {
    pub(crate) fn reset_for_restart(&mut self) {
        self.phases.clear();
        self.former_unready.clear();
    }

    /// Forgets what was judged by a policy of this number.
    pub(crate) fn forget_policy(&mut self, policy: PolicyId, number: usize) {
        let gone = self.phases.extract_if(.., |(id, _), _| *id == policy);
        let former = gone.map(|((_, uid), p)| ((number, uid), (p.generation, p.unready_at_earliest)));
        self.former_unready.extend(former);
    }

    /// Returns `true` if this generation of the parent was handled, or its operator was silent for long enough.
    pub(crate) fn is_handled(&self, policy: PolicyId, uid: &str) -> bool {
        self.phases.get(&(policy, uid.to_owned())).is_some_and(|phase| phase.handled)
    }

    /// Returns `true` if the operator of a parent has said that it handled the generation for as long as an answer may lag.
    pub(crate) fn has_said_handled(&self, uid: &str, now: i64) -> bool {
        let mut phases = self.phases.iter().filter(|((_, of), _)| of == uid);
        phases.any(|(_, phase)| phase.said_handled_since.is_some_and(|at| at + MAX_ANSWER_LAG_MS <= now))
    }

    /// Notes what the loop has observed just now, and the time of changes to children.
    pub(crate) fn note_changes(&mut self, at: &JudgedMoment<'_>, steps: &[ShownChange]) {
        for (old, new) in steps {
            let Some(model) = new.as_ref().or(old.as_ref()) else { continue };
            let seen = |p: &&PolicyDef| p.parent == model.kind && !at.heard.unseen.contains_key(&p.id);
            for policy in at.policies.iter().filter(seen) {
                self.note_parent(at, policy, model, new.as_deref());
            }
            for policy in at.policies.iter().filter(|p| p.parent == model.kind && !seen(p)) {
                self.note_unlisted_parent(at, policy, new.as_deref());
            }
        }
        for (old, new) in steps {
            for policy in at.policies {
                self.note_child(at, policy, old.as_deref(), new.as_deref());
            }
        }
    }

    /// Notes what stands on a parent that was shown before its kind was listed for the policy: the loop has read it too.
    fn note_unlisted_parent(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        parent: Option<&ModelObject>,
    ) {
        let Some(parent) = parent else { return };
        let Some(said) = entry_of(policy, parent).filter(|said| said.observed == parent.generation) else {
            return;
        };
        let unready = recorded_unready(said, at.now);
        let former = self.former_unready.entry((policy.number, parent.uid.clone()));
        let former = former.or_insert((parent.generation, unready));
        let earliest = if former.0 == parent.generation { former.1.min(unready) } else { unready };
        *former = (parent.generation, earliest);
    }

    fn note_parent(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        model: &ModelObject,
        new: Option<&ModelObject>,
    ) {
        let key = (policy.id, model.uid.clone());
        let Some(parent) = new else {
            // A server may deny an object that is there, and the loop may have been told by then what stood on it.
            if let Some(gone) = self.phases.remove(&key) {
                let former = (gone.generation, gone.unready_at_earliest);
                self.former_unready.insert((policy.number, key.1), former);
            }
            return;
        };
        self.apply_settle(at, policy, parent);
        let first = self.phases.get(&key).is_none_or(|p| p.generation != parent.generation);
        if first {
            let said = entry_of(policy, parent).filter(|s| s.observed == parent.generation);
            let undecided =
                |r: ParentReason| matches!(r, ParentReason::ChildrenPending | ParentReason::OperatorSilent);
            let known = self.phases.get(&key).copied();
            let well = entry_of(policy, parent).is_some_and(|s| s.status == "True");
            let unready = said.map_or(at.now, |said| recorded_unready(said, at.now));
            let former = self.former_unready.get(&(policy.number, parent.uid.clone()));
            let former = former.filter(|(of, _)| *of == parent.generation && known.is_none());
            let phase = CheckedGeneration {
                generation: parent.generation,
                since: said.filter(|s| undecided(s.reason)).map_or(at.now, |s| s.since.min(at.now)),
                children_changed_at: known.map_or(0, |p| p.children_changed_at),
                child_appeared_at: known.map_or(0, |p| p.child_appeared_at),
                handled: said.is_some_and(|s| !undecided(s.reason)),
                said_handled_since: None,
                was_ready: known.map_or(well, |p| p.was_ready),
                last_ready_at: None,
                unready_at_earliest: former.map_or(unready, |former| unready.min(former.1)),
                unready_at_latest: unready,
                well_since: None,
                differs_since: None,
                awaits_first_check: false,
            };
            self.phases.insert(key.clone(), phase);
        }
        if let Some(phase) = self.phases.get_mut(&key) {
            phase.handled |= parent.mark == ModelMark::Handled;
            let since = phase.said_handled_since.unwrap_or(at.now);
            phase.said_handled_since = (parent.mark == ModelMark::Handled).then_some(since);
            // Before this process says anything, or True, a predecessor's last word dates what it says.
            let said = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
            let is_silent = || {
                !at.core.engine.is_open(policy.id)
                    || awaits_child_list(at, policy, parent, &at.shown.all_observed())
            };
            let has_been_ready = phase.last_ready_at.is_some();
            let dates = |said: &&ModelCondition| said.status == "False" && (!has_been_ready || is_silent());
            if let Some(said) = said.filter(dates) {
                phase.unready_at_earliest = phase.unready_at_earliest.min(said.since);
            }
        }
    }

    /// Begins to check the parents of a kind that was listed just now: under these policies for the first time, each with
    /// the time of its plan, and under the others anew, because the loop may have known what its parents were meanwhile.
    pub(crate) fn note_listed_parents(
        &mut self,
        at: &JudgedMoment<'_>,
        kind: usize,
        listed: &[(PolicyId, i64)],
    ) {
        let of_kind = at.policies.iter().filter(|policy| policy.parent == kind);
        let again: Vec<_> =
            of_kind.map(|p| p.id).filter(|id| listed.iter().all(|(of, _)| of != id)).collect();
        let checked = self.phases.iter_mut().filter(|((policy, _), _)| again.contains(policy));
        checked.for_each(|(_, phase)| phase.awaits_first_check = true);
        for (id, decided_at) in listed {
            let Some(policy) = at.policies.iter().find(|p| p.id == *id) else { continue };
            for parent in at.shown.all_observed().iter().filter(|t| t.kind == policy.parent) {
                self.note_parent(at, policy, parent, Some(&**parent));
                if let Some(phase) = self.phases.get_mut(&(policy.id, parent.uid.clone())) {
                    phase.since = phase.since.min(*decided_at);
                    // What stood before this process or the predecessor wrote anything else dates it.
                    let former = self.former_unready.get(&(policy.number, parent.uid.clone()));
                    let former =
                        former.filter(|(of, _)| *of == phase.generation).map_or(*decided_at, |f| f.1);
                    phase.unready_at_earliest = phase.unready_at_earliest.min(*decided_at).min(former);
                    phase.awaits_first_check = true;
                }
            }
        }
    }

    /// Marks a generation as handled if its operator is silent and no child has changed for the settle time.
    pub(crate) fn apply_settle(&mut self, at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) {
        let settle = saturating_millis(policy.settle);
        let now = at.now;
        if let Some(phase) = self.phases.get_mut(&(policy.id, parent.uid.clone())) {
            let quiet_since = phase.since.max(phase.children_changed_at);
            phase.handled |= parent.mark == ModelMark::Silent && quiet_since + settle <= now;
        }
    }

    fn note_child(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        old: Option<&ModelObject>,
        new: Option<&ModelObject>,
    ) {
        let Some(model) = new.or(old) else { return };
        if policy.groups.iter().all(|g| g.kind != model.kind) {
            return;
        }
        let respecified = matches!((old, new), (Some(a), Some(b)) if a.generation != b.generation);
        let parents: Vec<Rc<ModelObject>> =
            at.shown.observed.values().filter(|t| t.kind == policy.parent).cloned().collect();
        let open = at.core.engine.is_open(policy.id);
        for parent in parents {
            let counts =
                |t: &ModelObject| policy.groups.iter().any(|g| is_child(at.scenario, policy, g, &parent, t));
            let (was, is) = (old.is_some_and(counts), new.is_some_and(counts));
            if was == is && !(is && respecified) {
                continue;
            }
            self.apply_settle(at, policy, &parent);
            // Before everything was listed, a newly seen child did not appear just now: it is as old as its creation
            // timestamp.
            let changed = if is && !was && !open { model.created.min(at.now) } else { at.now };
            if let Some(phase) = self.phases.get_mut(&(policy.id, parent.uid.clone())) {
                phase.children_changed_at = phase.children_changed_at.max(changed);
                if is && !was {
                    phase.child_appeared_at = phase.child_appeared_at.max(changed);
                }
            }
        }
    }

    /// Checks, after each turn, that tallies equal a recount, and that every answer agrees with the naive judge over
    /// the observed state, or did so within the debounce's cap.
    pub(crate) fn check_answers(&mut self, at: &JudgedMoment<'_>) {
        self.turns += 1;
        let now_and_then = self.turns.is_multiple_of(4);
        if at.calm && !now_and_then && !self.has_turned(at) {
            return;
        }
        if now_and_then {
            if let Some((parent, policy)) = at.core.engine.reader().find_miscounted() {
                at.fail_invariant("tallies equal a recount", format_args!("{parent:?} under {policy:?}"));
            }
            if !at.core.engine.reader().are_unready_children_consistent() {
                at.fail_invariant("tallies equal a recount", "a ready child is among the troubles");
            }
        }
        policy_checks::check_swaps(at);
        let models = at.shown.all_observed();
        for policy in at.policies {
            let awaits_list =
                !at.core.engine.is_open(policy.id) || at.heard.unlisted.contains(&policy.parent);
            for parent in models.iter().filter(|t| t.kind == policy.parent) {
                if awaits_list {
                    self.note_taken_over(at, policy, parent);
                } else if awaits_child_list(at, policy, parent, &models) {
                    self.check_awaiting(at, policy, parent);
                } else {
                    self.check_answer(at, policy, parent, &models);
                }
            }
        }
    }

    /// Returns `true` if any answer became True, or is True no more, since it was last checked: when that was, everything else is
    /// judged by.
    fn has_turned(&self, at: &JudgedMoment<'_>) -> bool {
        let well = |policy: aggregator::PolicyId, uid: &str| {
            let id = at.core.reflector.find_object(uid);
            let answer = id.and_then(|id| at.core.engine.answer_of(id, policy));
            answer.is_some_and(|answer| answer.reason == ParentReason::AllChildrenReady)
        };
        let mut phases = self.phases.iter();
        phases.any(|((policy, uid), phase)| well(*policy, uid) != phase.was_ready)
    }

    /// Notes that the loop holds a True that stands on the parent, of a policy that waits for a list: a predecessor's last write
    /// may land that late. To keep it is no turn.
    fn note_taken_over(&mut self, at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) {
        let id = at.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
        let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
        let says = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
        if well
            && says.is_some_and(|said| said.status == "True")
            && let Some(phase) = self.phases.get_mut(&(policy.id, parent.uid.clone()))
        {
            phase.was_ready = true;
        }
    }

    /// Checks a parent with a descendant that waits for a list: what that one said before makes nothing ready.
    fn check_awaiting(&mut self, at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) {
        let id = at.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
        let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
        let Some(phase) = self.phases.get_mut(&(policy.id, parent.uid.clone())) else { return };
        phase.differs_since = None;
        phase.unready_at_latest = if phase.was_ready && !well { at.now } else { phase.unready_at_latest };
        phase.unready_at_earliest = if well { at.now } else { phase.unready_at_earliest };
        phase.last_ready_at = if well { Some(at.now) } else { phase.last_ready_at };
        // A predecessor may have said so last, by what it had seen.
        let says = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
        let stands = says.is_some_and(|said| said.status == "True");
        if !std::mem::replace(&mut phase.was_ready, well) && well && !stands {
            let name = at.describe_object(parent);
            at.fail_invariant("no false ready", format_args!("{name}: not all is listed below it"));
        }
    }

    fn check_answer(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        parent: &ModelObject,
        models: &[Rc<ModelObject>],
    ) {
        let id = at.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
        let JudgedSum { sum, is_known, is_ready_as_judged } = at.judged_sum(policy, parent, models);
        let said = answer.map(|a| a.reason);
        let key = (policy.id, parent.uid.clone());
        if let Some(phase) = self.phases.get_mut(&key)
            && std::mem::take(&mut phase.awaits_first_check)
        {
            phase.unready_at_latest = at.now;
            phase.well_since = Some(0);
        }
        let (unready, down) =
            self.phases.get(&key).map_or((at.now, at.now), |p| (p.unready_at_earliest, p.unready_at_latest));
        let due = |since: i64| policy.deadline.map(|limit| since + saturating_millis(limit));
        // Of a kind that is to be listed anew, nobody knows what the loop may still rest on.
        let is_known = !at.heard.awaits_list(policy) && is_known;
        if is_known
            && said == Some(ParentReason::DeadlineExceeded)
            && due(unready).is_none_or(|due| at.now < due)
        {
            let name = at.describe_object(parent);
            at.fail_invariant(
                "answers follow what was shown",
                format_args!("{name}: its deadline is not over"),
            );
        }
        let agrees = !is_known || agrees_with(at, policy, parent, said, &sum, down);
        let now = at.now;
        self.apply_settle(at, policy, parent);
        let Some(phase) = self.phases.get_mut(&key) else { return };
        if sum.reason.is_some() && is_known {
            phase.well_since = None;
        } else if sum.reason.is_none() && phase.well_since.is_none() {
            phase.well_since = Some(now);
        }
        phase.differs_since = if agrees { None } else { Some(phase.differs_since.unwrap_or(now)) };
        let well = said == Some(ParentReason::AllChildrenReady);
        phase.unready_at_latest = if phase.was_ready && !well { now } else { phase.unready_at_latest };
        phase.unready_at_earliest = if well { now } else { phase.unready_at_earliest };
        phase.last_ready_at = if well { Some(at.now) } else { phase.last_ready_at };
        let turned = !std::mem::replace(&mut phase.was_ready, well) && well;
        let phase = *phase;
        if phase.differs_since.is_some_and(|since| since + MAX_ANSWER_LAG_MS < now) {
            let name = at.describe_object(parent);
            let what = format!("{:?}: {name} is {said:?}, to be {:?}", policy.id, sum.reason);
            at.fail_invariant("answers follow what was shown", what);
        }
        if turned && !is_ready_as_judged && !at.heard.awaits_list(policy) {
            let name = at.describe_object(parent);
            at.fail_invariant("no false ready", format_args!("{name}: a child awaits its rule"));
        }
        if turned && is_known {
            check_turned_true(at, policy, parent, &phase);
        }
    }
}
