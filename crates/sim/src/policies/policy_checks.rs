//! Invariants of histories in which policies change.

use readiness::rollup::ParentReason;
use readiness::saturating_millis;
use watcher::status::written_types;

use crate::invariant_watch::MAX_ANSWER_LAG_MS;
use crate::object_model::{ModelMark, ModelObject};
use crate::scenario::PolicyDef;
use crate::sim::Sim;
use crate::turn::BLIND_LIMIT;

/// Longest time after the re-creation of a policy for which an earlier release may still be on its way, in milliseconds.
const RELEASE_LAG_MS: i64 = 180_000;

/// Returns `true` if the parent carries an entry of this policy.
fn has_entry(policy: &PolicyDef, parent: &ModelObject) -> bool {
    let types = [Some(policy.condition), policy.fallback];
    types.into_iter().flatten().any(|of| parent.ours.contains_key(of))
}

impl Sim {
    /// Checks that no entry leaves a parent whose policy exists.
    pub(crate) fn check_release(&mut self, name: &str, old: &ModelObject, new: &ModelObject) {
        let server = &self.policies.server;
        let kept = server.stored.values().filter(|policy| policy.stub.parent == new.kind).find(|policy| {
            let absent = server.absent_at.get(&policy.number).copied();
            has_entry(&policy.stub, old)
                && !has_entry(&policy.stub, new)
                && absent.is_none_or(|at| at + RELEASE_LAG_MS < self.now)
        });
        if let Some(number) = kept.map(|policy| policy.number) {
            let what = format!("{name}: policy-{number} exists");
            self.fail_invariant("entries leave for a confirmed deletion only", what);
        }
    }

    /// Checks that an answer about this generation does not go back to the first word.
    pub(crate) fn check_turn(
        &mut self,
        policy: &PolicyDef,
        name: &str,
        old: &ModelObject,
        new: &ModelObject,
    ) {
        let entry = |parent: &ModelObject| {
            crate::invariants::entry_of(policy, parent).map(|said| (said.observed, said.reason))
        };
        let (Some((before, was)), Some((_, is))) = (entry(old), entry(new)) else { return };
        let decided = !matches!(
            was,
            ParentReason::ChildrenPending | ParentReason::OperatorSilent | ParentReason::DeadlineExceeded
        );
        if self.policies.is_changing
            && before == new.generation
            && decided
            && is == ParentReason::ChildrenPending
            && new.mark == ModelMark::Handled
        {
            self.fail_invariant("an answer turns once", format_args!("{name}: {was:?} became {is:?}"));
        }
    }

    /// Returns `true` if a rule of this policy changed so long ago that answers of the old one are withdrawn.
    pub(crate) fn is_withdrawn(&self, policy: &PolicyDef, kind: usize) -> bool {
        let since = self.policies.swapped_at.get(&(kind, policy.name()));
        since.is_some_and(|since| *since + saturating_millis(BLIND_LIMIT) <= self.now)
    }

    /// Checks that no True rests on a changed rule for longer than its kind may take to be listed.
    pub(crate) fn check_swaps(&mut self) {
        let late = |since: &i64| since + saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS < self.now;
        let mut found = None;
        for ((kind, name), _) in self.policies.swapped_at.iter().filter(|(_, since)| late(since)) {
            let policies = self.scenario.policies.iter().filter(|policy| {
                let rests =
                    policy.groups.iter().any(|group| group.kind == *kind && group.critical && group.min > 0);
                policy.name() == *name && rests
            });
            for policy in policies {
                for parent in self.shown.all_observed().iter().filter(|parent| parent.kind == policy.parent) {
                    let id = self.core.reflector.find_object(&parent.uid);
                    let answer = id.and_then(|id| self.core.engine.answer_of(id, policy.id));
                    if answer.is_some_and(|answer| answer.reason == ParentReason::AllChildrenReady) {
                        found = Some(format!("{}/{} under {name}", parent.namespace, parent.name));
                    }
                }
            }
        }
        if let Some(found) = found {
            self.fail_invariant("a changed rule is swapped in or withdrawn", found);
        }
    }

    /// Returns `true` if a policy that was never accepted speaks for this kind, or for one that may be below it.
    pub(crate) fn rests_on_refused(&self, kind: usize) -> bool {
        self.scenario.policies.iter().any(|policy| policy.groups.is_empty() && policy.parent <= kind)
    }

    /// Returns the condition types of policies that do not exist: a restart may have left some behind.
    pub(crate) fn types_left_behind(&self, kind: usize) -> Vec<&'static str> {
        let written = |policies: &[PolicyDef]| -> Vec<&'static str> {
            let of_kind = policies.iter().filter(|policy| policy.parent == kind);
            of_kind.flat_map(|policy| written_types(policy.condition, policy.fallback)).collect()
        };
        let in_force = written(&self.scenario.policies);
        let first = written(&self.scenario.first_policies);
        first.into_iter().filter(|of| !in_force.contains(of)).collect()
    }

    /// Everything is quiet: what is in force is what the server has, or had when it was accepted last.
    pub(crate) fn check_policies_in_force(&mut self) {
        let undated = |policy: &PolicyDef| PolicyDef {
            id: aggregator::PolicyId(0),
            acceptance: aggregator::Acceptance::Accepted,
            ..policy.clone()
        };
        let mut wrong = Vec::new();
        for stored in self.policies.server.stored.values() {
            let in_force =
                self.scenario.policies.iter().find(|policy| policy.number == stored.number).map(undated);
            let specs = self.policies.server.specs_by_uid.get(&stored.uid);
            let mut allowed =
                stored.spec.iter().chain(specs.into_iter().flatten().filter(|_| stored.spec.is_none()));
            let is_stub = stored.spec.is_none() && in_force.as_ref() == Some(&undated(&stored.stub));
            if !is_stub && !allowed.any(|spec| in_force.as_ref() == Some(&undated(spec))) {
                wrong.push(format!("policy-{}: {in_force:?}", stored.number));
            }
        }
        for policy in &self.scenario.policies {
            if !self.policies.server.stored.contains_key(&policy.number) {
                wrong.push(format!("{} is deleted and in force", policy.name()));
            }
        }
        if let Some(first) = wrong.first() {
            self.fail_invariant("the policy that exists is in force", first);
        }
    }

    /// Checks the entries of policies that are not in force: those of deleted policies are gone, unless a restart came in
    /// between, and a policy that was never accepted says nothing True.
    pub(crate) fn check_entries_without_policy(&mut self, parent: &ModelObject) {
        let mut wrong = Vec::new();
        for first in self.scenario.first_policies.iter().filter(|policy| policy.parent == parent.kind) {
            let in_force = self.scenario.policies.iter().find(|policy| policy.number == first.number);
            let absent = self.policies.server.absent_at.get(&first.number).copied();
            let was_told = absent.is_some_and(|at| at > self.policies.started_at);
            // A parent that has said its end is left alone.
            if in_force.is_none() && was_told && parent.deleted.is_none() && has_entry(first, parent) {
                wrong.push(format!("{} keeps an entry of policy-{}", parent.name, first.number));
            }
            let refused = in_force.is_some_and(|policy| policy.groups.is_empty());
            let types = [Some(first.condition), first.fallback];
            let says_true = types.into_iter().flatten().filter_map(|of| parent.ours.get(of));
            if refused && says_true.into_iter().any(|said| said.status == "True") {
                wrong.push(format!("{} says True by policy-{}, never accepted", parent.name, first.number));
            }
        }
        if let Some(first) = wrong.first() {
            self.fail_invariant("eventually exact", first);
        }
    }
}
