//! What the judges remember of all parents between two steps: what the loop has observed of each, and when.

use std::collections::BTreeMap;
use std::rc::Rc;

use aggregator::PolicyId;
use readiness::rollup::ParentReason;
use readiness::saturating_millis;

use super::answer_agreement::awaits_child_list;
use super::checked_generation::{CheckedGeneration, MAX_ANSWER_LAG_MS};
use super::judged_moment::JudgedMoment;
use super::naive_judge::is_child;
use super::own_entries::{condition_of, entry_of};
use super::shown_objects::ShownChange;
use crate::scenario::PolicyDef;
use crate::world::{FailureReach, ModelCondition, ModelMark, ModelObject, ModelSteadiness};

/// Returns since when a parent has not been ready at the earliest, by what it says.
fn recorded_unready(said: &ModelCondition, now: i64) -> i64 {
    match said.reason {
        ParentReason::DeadlineExceeded | ParentReason::OperatorSilent => 0,
        _ if said.status == "False" => said.since.min(now),
        _ => now,
    }
}

/// What was known of a generation before it was checked.
#[derive(Clone, Copy)]
struct FormerGeneration {
    generation: i64,
    /// Since when it was not ready.
    unready_since: i64,
    /// A condition said of it what is said of a generation that was handled.
    handled: bool,
}

/// The operator is still waited for, or was in vain.
fn is_undecided(reason: ParentReason) -> bool {
    matches!(reason, ParentReason::ChildrenPending | ParentReason::OperatorSilent)
}

impl FormerGeneration {
    /// What a later plan knows of a generation that was checked. That it was handled, nobody remembers.
    fn of(checked: &CheckedGeneration) -> FormerGeneration {
        FormerGeneration {
            generation: checked.generation,
            unready_since: checked.unready_at_earliest,
            handled: false,
        }
    }
}

/// The generation that is checked of each parent under each policy.
#[derive(Default)]
pub(crate) struct CheckedParents {
    phases: BTreeMap<(PolicyId, String), CheckedGeneration>,
    /// By number of a policy and parent: what was known of it before it was checked under the plan that holds.
    former: BTreeMap<(usize, String), FormerGeneration>,
    /// By parent and condition type: the policies of the last committed write that changed it.
    last_decided_by: BTreeMap<(String, String), Vec<PolicyId>>,
}

impl CheckedParents {
    pub(crate) fn reset_for_restart(&mut self) {
        self.phases.clear();
        self.former.clear();
        self.last_decided_by.clear();
    }

    /// Notes by which policies of this process the server's last write of each entry was decided: by none where a predecessor
    /// sent it.
    pub(crate) fn note_committed(&mut self, (old, new): (&ModelObject, &ModelObject), policies: &[PolicyId]) {
        for (kind, _) in new.ours.iter().filter(|(kind, said)| old.ours.get(*kind) != Some(said)) {
            self.last_decided_by.insert((new.uid.clone(), kind.clone()), policies.to_vec());
        }
    }

    /// Forgets what was judged by a policy of this number.
    pub(crate) fn forget_policy(&mut self, policy: PolicyId, number: usize) {
        let gone = self.phases.extract_if(.., |(id, _), _| *id == policy);
        self.former.extend(gone.map(|((_, uid), phase)| ((number, uid), FormerGeneration::of(&phase))));
    }

    /// Returns `true` if this generation of the parent was handled, or its operator was silent for long enough.
    pub(crate) fn is_handled(&self, policy: PolicyId, uid: &str) -> bool {
        self.phases.get(&(policy, uid.to_owned())).is_some_and(|phase| phase.handled)
    }

    /// Returns `true` if the operator of a parent has said that it handled the generation for as long as an answer may lag.
    pub(crate) fn has_reported_handled(&self, uid: &str, now: i64) -> bool {
        let mut phases = self.phases.iter().filter(|((_, of), _)| of == uid);
        phases.any(|(_, phase)| phase.said_handled_since.is_some_and(|at| at + MAX_ANSWER_LAG_MS <= now))
    }

    /// Notes what the loop has observed just now, and the time of changes to children.
    pub(crate) fn note_changes(&mut self, at: &JudgedMoment<'_>, steps: &[ShownChange]) {
        for (old, new) in steps {
            let Some(model) = new.as_ref().or(old.as_ref()) else { continue };
            let seen = |p: &&PolicyDef| p.parent == model.kind && !at.plan_watch.unseen.contains_key(&p.id);
            for policy in at.policies.iter().filter(seen) {
                self.note_parent(at, policy, model, new.as_deref());
            }
            // Before its first plan a process reads what policies have said that it does not know yet.
            let has_plan = at.plan_watch.planned_since.is_some();
            let unlisted: Vec<_> = if has_plan {
                at.policies.iter().filter(|p| !seen(p)).collect()
            } else {
                at.scenario.first_policies.iter().collect()
            };
            for policy in unlisted.into_iter().filter(|policy| policy.parent == model.kind) {
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
        let said = FormerGeneration {
            generation: parent.generation,
            unready_since: recorded_unready(said, at.now),
            handled: !is_undecided(said.reason),
        };
        let former = self.former.entry((policy.number, parent.uid.clone())).or_insert(said);
        *former = if former.generation == said.generation {
            FormerGeneration {
                unready_since: former.unready_since.min(said.unready_since),
                handled: former.handled || said.handled,
                ..said
            }
        } else {
            said
        };
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
                self.former.insert((policy.number, key.1), FormerGeneration::of(&gone));
            }
            return;
        };
        self.apply_settle(at, policy, parent);
        let first = self.phases.get(&key).is_none_or(|p| p.generation != parent.generation);
        // A predecessor that spoke of the children had seen the operator done with the generation.
        let is_told_handled = entry_of(policy, parent).is_some_and(|said| {
            said.observed == parent.generation
                && !is_undecided(said.reason)
                && self.is_of_former(policy, parent)
        });
        if first {
            let said = entry_of(policy, parent).filter(|s| s.observed == parent.generation);
            let known = self.phases.get(&key).copied();
            let well = entry_of(policy, parent).is_some_and(|s| s.status == "True");
            let unready = said.map_or(at.now, |said| recorded_unready(said, at.now));
            let former = self.former.get(&(policy.number, parent.uid.clone()));
            let former = former.filter(|of| of.generation == parent.generation && known.is_none());
            let phase = CheckedGeneration {
                generation: parent.generation,
                since: said.filter(|s| is_undecided(s.reason)).map_or(at.now, |s| s.since.min(at.now)),
                children_changed_at: known.map_or(0, |p| p.children_changed_at),
                child_appeared_at: known.map_or(0, |p| p.child_appeared_at),
                handled: said.is_some_and(|s| !is_undecided(s.reason))
                    || former.is_some_and(|former| former.handled),
                said_handled_since: None,
                was_ready: known.map_or(well, |p| p.was_ready),
                last_ready_at: None,
                unready_at_earliest: former.map_or(unready, |former| unready.min(former.unready_since)),
                unready_at_latest: unready,
                well_since: None,
                kept_since: None,
                kept_loosely_since: None,
                whole_at: None,
                shared_at: known.map_or(0, |p| p.shared_at),
                differs_since: None,
                to_say: None,
                awaits_first_check: false,
            };
            self.phases.insert(key.clone(), phase);
        }
        if let Some(phase) = self.phases.get_mut(&key) {
            phase.handled |= parent.mark == ModelMark::Handled || is_told_handled;
            let since = phase.said_handled_since.unwrap_or(at.now);
            phase.said_handled_since = (parent.mark == ModelMark::Handled).then_some(since);
        }
        self.note_recorded(at, policy, parent);
    }

    /// Notes since when the parent has not been ready, as far as what stands on it says that.
    fn note_recorded(&mut self, at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) {
        let is_of_former = self.is_of_former(policy, parent);
        let Some(phase) = self.find_mut(policy, parent) else { return };
        let said = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
        let is_silent = || {
            !at.core.engine.is_open(policy.id)
                || awaits_child_list(at, policy, parent, &at.shown.all_observed())
        };
        if let Some(said) = said.filter(|said| said.status == "False") {
            // Before this process says anything, or True, a predecessor's last word dates what it says.
            if phase.last_ready_at.is_none() || is_silent() {
                phase.unready_at_earliest = phase.unready_at_earliest.min(said.since);
            }
            // What a former process has turned to False was perhaps True until then, for all that this one knows.
            if is_of_former {
                phase.unready_at_latest = phase.unready_at_latest.max(said.since);
            }
        }
        if is_told_late(parent) {
            phase.unready_at_earliest = 0;
        }
    }

    /// Begins to check the parents of a kind that was listed just now: under these policies for the first time, each with
    /// the time of its plan, and under the others again, because the loop may have known what its parents were meanwhile.
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
                    let former = self.former.get(&(policy.number, parent.uid.clone()));
                    let former = former
                        .filter(|former| former.generation == phase.generation)
                        .map_or(*decided_at, |former| former.unready_since);
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
        if let Some(phase) = self.find_mut(policy, parent) {
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
            if let Some(phase) = self.find_mut(policy, &parent) {
                phase.children_changed_at = phase.children_changed_at.max(changed);
                if is && !was {
                    phase.child_appeared_at = phase.child_appeared_at.max(changed);
                }
            }
        }
    }

    /// Notes that the policy waits for a list: until that is through, nothing can be said anew, and what differs or is kept
    /// counts from its end. The loop may hold a True that stands on the parent, which a predecessor's last write may have said that
    /// late: to keep it is no turn.
    pub(super) fn note_list_awaited(
        &mut self,
        at: &JudgedMoment<'_>,
        policy: &PolicyDef,
        parent: &ModelObject,
    ) {
        let id = at.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
        let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
        let says = entry_of(policy, parent).filter(|said| said.observed == parent.generation);
        let Some(phase) = self.find_mut(policy, parent) else { return };
        phase.was_ready |= well && says.is_some_and(|said| said.status == "True");
        phase.differs_since = None;
        phase.note_kept(false, ModelSteadiness::Unsteady, at.now);
    }

    /// Notes that another release may speak for the parent: what it is to say is checked from the beginning once that is over.
    pub(super) fn note_shared(&mut self, at: &JudgedMoment<'_>, policy: &PolicyDef, parent: &ModelObject) {
        let id = at.core.reflector.find_object(&parent.uid);
        let answer = id.and_then(|id| at.core.engine.answer_of(id, policy.id));
        let well = answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
        self.apply_settle(at, policy, parent);
        if let Some(phase) = self.find_mut(policy, parent) {
            phase.was_ready = well;
            phase.differs_since = None;
            phase.unready_at_latest = at.now;
            phase.awaits_first_check = true;
            phase.shared_at = at.now;
            phase.whole_at = if well { Some(at.now) } else { phase.whole_at };
        }
    }

    /// Returns `true` if the True that stands on the parent was decided by a predecessor, or by the plan before this policy's:
    /// its write was under way when the process or the plan changed. To keep it is no turn.
    pub(super) fn is_taken_over(&self, policy: &PolicyDef, parent: &ModelObject) -> bool {
        let is_ready = |kind: &&str| {
            let said = parent.ours.get(*kind).filter(|said| said.observed == parent.generation);
            said.is_some_and(|said| said.status == "True")
        };
        let types = [Some(policy.condition), Some(policy.other_condition), policy.fallback];
        let mut ready = types.into_iter().flatten().filter(is_ready);
        ready.any(|kind| {
            let decided_by = self.last_decided_by.get(&(parent.uid.clone(), kind.to_owned()));
            decided_by.is_some_and(|policies| !policies.contains(&policy.id))
        })
    }

    /// Returns `true` if a former process was the last to write the condition of this policy on a parent.
    fn is_of_former(&self, policy: &PolicyDef, parent: &ModelObject) -> bool {
        let condition = condition_of(policy, parent).map(str::to_owned);
        let decided_by = condition.and_then(|of| self.last_decided_by.get(&(parent.uid.clone(), of)));
        decided_by.is_some_and(Vec::is_empty)
    }

    /// Returns what is remembered of a parent under a policy.
    pub(super) fn find(&self, policy: &PolicyDef, parent: &ModelObject) -> Option<&CheckedGeneration> {
        self.phases.get(&(policy.id, parent.uid.clone()))
    }

    /// The same, to note what was checked.
    pub(super) fn find_mut(
        &mut self,
        policy: &PolicyDef,
        parent: &ModelObject,
    ) -> Option<&mut CheckedGeneration> {
        self.phases.get_mut(&(policy.id, parent.uid.clone()))
    }

    /// Returns what is remembered, with the policy and the uid of the parent.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PolicyId, &str, &CheckedGeneration)> {
        self.phases.iter().map(|((policy, uid), phase)| (*policy, &**uid, phase))
    }
}

/// Returns `true` if what stands on a parent says that its failure, which may pass, has exceeded a limit: a predecessor knew since
/// when it had not been ready.
fn is_told_late(parent: &ModelObject) -> bool {
    let may_pass = parent.failure.is_some_and(|failure| failure.reach != FailureReach::Final);
    let is_late = |said: &ModelCondition| {
        said.status == "True"
            && said.observed == parent.generation
            && said.reason == ParentReason::OperatorFailed
    };
    may_pass && parent.ours.get("Stalled").is_some_and(is_late)
}
