//! Checks of the loop's writes: none before everything was observed, and no False Ready (a True that is not true).

use std::rc::Rc;

use aggregator::KindState;
use readiness::rollup::ParentReason;
use readiness::saturating_millis;
use rollcall_core::ParentWrite;
use watcher::status::ConditionEntry;

use crate::invariant_watch::MAX_ANSWER_LAG_MS;
use crate::object_model::{ModelMark, ModelObject};
use crate::scenario::{PolicyDef, kind_id};
use crate::sim::Sim;
use crate::turn::BLIND_LIMIT;

impl Sim {
    /// Checks a write that leaves the loop.
    pub(crate) fn check_decision(&mut self, write: &ParentWrite) {
        for policy in self.scenario.policies.clone().iter().filter(|p| write.policies.contains(&p.id)) {
            let types = [Some(policy.condition), policy.fallback];
            let mut entries = write.wanted.entries.iter();
            if let Some(entry) = entries.find(|e| types.contains(&Some(e.r#type.as_str()))) {
                let taken = self.shown.observed.get(&write.uid).cloned();
                if let Some(parent) = taken {
                    self.apply_settle(policy, &parent);
                }
                self.check_entry(policy, write, entry);
            }
        }
    }

    fn check_entry(&mut self, policy: &PolicyDef, write: &ParentWrite, entry: &ConditionEntry) {
        let what = format!(
            "{} {}/{} {}={} {}",
            self.scenario.kind_name(policy.parent),
            write.namespace,
            write.name,
            entry.r#type,
            entry.status,
            entry.reason
        );
        for kind in policy.involved_kinds() {
            let state = self.core.engine.kind_state(kind_id(kind));
            let blind = matches!(state, KindState::Forbidden | KindState::Stale);
            let seen = self.was_listed(kind);
            let deleting = entry.reason == ParentReason::Terminating.as_str();
            // What has failed by the rules that hold is said beside what is withdrawn, and so is an operator that has not
            // handled the generation: no child has to be seen for that.
            let taken_back = [
                ParentReason::RuleChanged,
                ParentReason::ChildrenFailed,
                ParentReason::ChildrenStuck,
                ParentReason::ChildrenPending,
            ];
            let withdrawn = taken_back.iter().any(|reason| entry.reason == reason.as_str())
                && policy.involved_kinds().iter().any(|kind| self.is_withdrawn(policy, *kind));
            let refused = entry.reason == ParentReason::PolicyRefused.as_str();
            if !seen && !deleting && !withdrawn && !refused && (!blind || entry.is_true()) {
                let kind = self.scenario.kind_name(kind).to_owned();
                self.fail_invariant(
                    "nothing is said before everything was seen",
                    format_args!("{what}: {kind}"),
                );
            }
            let deaf =
                self.now - self.wires[kind].last_heard > saturating_millis(BLIND_LIMIT) + MAX_ANSWER_LAG_MS;
            if entry.is_true() && (deaf || self.wires[kind].unproven) {
                let kind = self.scenario.kind_name(kind).to_owned();
                self.fail_invariant("blindness is not readiness", format_args!("{what}: {kind}"));
            }
        }
        if entry.is_true() && !self.is_truly_ready(policy, &write.uid, entry.observed_generation) {
            let things = self.shown.all_observed();
            let parent = things.iter().find(|t| t.uid == write.uid);
            let sum = parent.map(|parent| (parent.mark, self.naive_sum(policy, parent, &things)));
            self.fail_invariant("no false ready", format_args!("{what}, to be {sum:?}"));
        }
    }

    /// Returns `true` if the loop knows that everything of a kind was listed since it was followed.
    fn was_listed(&self, kind: usize) -> bool {
        if self.policies.is_changing {
            return self.watch.open_kinds.contains(&kind_id(kind)) && !self.policies.unlisted.contains(&kind);
        }
        self.wires[kind].synced
    }

    /// Returns `true` if the parent is ready in the state that the loop has observed, or in the state shown to it
    /// since.
    fn is_truly_ready(&self, policy: &PolicyDef, uid: &str, generation: Option<i64>) -> bool {
        let true_of = |things: &[Rc<ModelObject>]| {
            things.iter().find(|t| t.uid == *uid).is_some_and(|parent| {
                let handled = self.watch.phases.get(&(policy.id, uid.to_owned())).is_some_and(|p| p.handled);
                parent.deleted.is_none()
                    && Some(parent.generation) == generation
                    && parent.mark != ModelMark::NotYet
                    && (handled || parent.mark == ModelMark::Handled)
                    && self.is_well_by_some_spec(policy, parent, things)
            })
        };
        true_of(&self.shown.all_observed()) || true_of(&self.shown.all_held())
    }

    /// Returns `true` if all children are ready by the spec in force, or by one that is on its way to the loop.
    fn is_well_by_some_spec(
        &self,
        policy: &PolicyDef,
        parent: &ModelObject,
        things: &[Rc<ModelObject>],
    ) -> bool {
        let coming =
            self.policies.coming_specs(policy.number).into_iter().filter(|_| self.policies.is_changing);
        std::iter::once(policy)
            .chain(coming)
            .any(|spec| self.naive_sum(spec, parent, things).reason.is_none())
    }
}
