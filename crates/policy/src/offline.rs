//! Evaluates policies over objects from files: the same reflector and core, over a state that no longer changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{Acceptance, EvaluationState, KindId, KindState};
use readiness::Time;
use readiness::rollup::ParentReason;
use timer::Seed;
use watcher::ParentObject;
use watcher::reflector::{ListPass, Reflector};

use crate::compile::CompiledPolicy;
use crate::library_rules::{LibraryRules, UnreadLibraries};
use crate::plan::{IdRegistry, Released, WatchPlan, build_plan};
use crate::policy_in_use::PolicyInUse;
use rollcall_core::records::RecordStore;
use rollcall_core::{Core, ObjectRef, TreeNode, VerdictAges};

/// Maximum number of turns; more than any state at rest requires.
const MAX_OFFLINE_TURNS: usize = 1_000_000;
/// Kind that stores outcomes.
const RECORD_KIND_NAME: &str = "ReadinessRecord";

/// Trees of each policy's parents at `now`, if these objects are all that exist.
pub fn roll_up(
    policies: &[(String, CompiledPolicy)],
    objects: &[&ParentObject],
    hidden: &BTreeSet<(String, String)>,
    now: Time,
) -> Vec<TreeNode> {
    let mut world = OfflineRollup::new(policies, now);
    for object in objects.iter().filter(|object| &*object.child.meta.kind == "Namespace") {
        world.add_namespace(object);
    }
    for object in objects {
        world.add_object(object);
    }
    world.into_trees(hidden)
}

/// What a policy says of one of its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineAnswer {
    /// Name of the policy.
    pub policy: String,
    /// The parent.
    pub parent: ObjectRef,
    /// Type of the condition that is written; `None` if another client has it and the policy has no fallback.
    pub condition: Option<String>,
    /// The client that has the policy's condition, if another has it.
    pub owner: Option<String>,
    /// Reason, which implies the status.
    pub reason: ParentReason,
    /// Message.
    pub message: String,
}

/// State that is fed object by object, so that they need not be held in memory together.
///
/// All objects count as unchanged for as long as settle and hold require, unless it is said since when they are. A kind
/// without objects counts as listed unless it is hidden: the objects of hidden kinds are unknown. A rule from a ConfigMap
/// finds no script, and reports that.
pub struct OfflineRollup {
    core: Core,
    plan: WatchPlan,
    intake: OfflineIntake,
    registry: IdRegistry,
    /// Stand for what policies ask for and nobody can see.
    unseen: Vec<KindId>,
    start: Time,
    now: Time,
}

impl OfflineRollup {
    /// Creates an empty state.
    pub fn new(policies: &[(String, CompiledPolicy)], now: Time) -> OfflineRollup {
        let mut registry = IdRegistry::default();
        let in_use = policies
            .iter()
            .map(|(name, compiled)| PolicyInUse {
                id: registry.new_policy_id(),
                name: name.clone(),
                compiled: compiled.clone(),
                acceptance: Acceptance::Accepted,
            })
            .collect();
        OfflineRollup::of_policies_in_use(in_use, registry, &UnreadLibraries, (Time(i64::MIN), now))
    }

    /// Creates an empty state for policies of which it was decided what of them is in force, whose objects have been as they are
    /// since then, and no longer.
    pub fn of_policies_in_use(
        mut in_use: Vec<PolicyInUse>,
        mut registry: IdRegistry,
        libraries: &dyn LibraryRules,
        (since, now): (Time, Time),
    ) -> OfflineRollup {
        // Writes are never answered here, so nothing may wait for an answer.
        for policy in &mut in_use {
            policy.compiled.shadow = true;
        }
        let plan = build_plan(&in_use, &Released::new(), &mut registry, libraries);
        let rest = in_use.iter().map(|policy| settling_time(&policy.compiled)).max().unwrap_or_default();
        let start = Time(now.0 - i64::try_from(rest.as_millis()).unwrap_or(0)).max(since.min(now));
        let mut core = Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, Seed(0));
        let intake = OfflineIntake::begin_lists(&mut core, &plan, start);
        OfflineRollup { core, plan, intake, registry, unseen: Vec::new(), start, now }
    }

    /// The policies of this name ask for something that cannot be seen, in these words: their parents are at most Unknown. To be
    /// called before the input ends.
    pub fn hide_policy(&mut self, name: &str, what: &str) {
        let Some(kind) = self.registry.kind("", what) else { return };
        self.core.set_kind_name(kind, what, "");
        self.unseen.push(kind);
        for (id, (policy, words)) in
            self.plan.policies.iter_mut().filter(|(_, (_, words))| words.name == name)
        {
            // A refused one says nothing by itself.
            policy.acceptance = Acceptance::Accepted;
            policy.kinds.push(kind);
            words.kinds.push(kind);
            self.core.set_policy(self.start, *id, Some((policy.clone(), words.clone())));
        }
    }

    /// Adds a Namespace, whose labels may select objects: to be called before those are added.
    pub fn add_namespace(&self, object: &ParentObject) {
        self.core.reflector.set_namespace_labels(&object.child.meta.name, Some(&object.child.meta.labels));
    }

    /// Adds an object, with its type.
    pub fn add_object(&mut self, object: &ParentObject) {
        self.intake.apply_object(&self.core, object);
    }

    /// Discards everything fed of this kind (group and kind) so far; it is fed again.
    pub fn restart_kind(&mut self, kind: &(String, String)) {
        for (pass, id, _) in self.intake.kinds.iter_mut().filter(|(_, _, key)| key == kind) {
            *pass = self.core.reflector.begin_list(*id, None);
        }
    }

    /// Ends the input. The objects of the `hidden` kinds (group and kind) are unknown.
    pub fn into_trees(mut self, hidden: &BTreeSet<(String, String)>) -> Vec<TreeNode> {
        self.run_to_rest(hidden);
        self.core.parent_trees(self.now, &mut VerdictAges::default())
    }

    /// Ends the input, and returns what each policy says of each of its parents. The objects of the `hidden` kinds (group and
    /// kind) are unknown.
    pub fn into_answers(mut self, hidden: &BTreeSet<(String, String)>) -> Vec<OfflineAnswer> {
        self.run_to_rest(hidden);
        let answer = |state: EvaluationState<'_>| {
            let detail = self.core.parent_detail(state.parent, state.policy, self.now);
            let (condition, owner) = self.target_of(&state)?;
            Some(OfflineAnswer {
                condition,
                owner,
                policy: self.plan.policies.get(&state.policy)?.1.name.clone(),
                parent: self.core.parent_ref(state.parent)?.0,
                reason: state.answer.reason,
                message: detail.message,
            })
        };
        self.core.engine.evaluation_states().filter_map(answer).collect()
    }

    /// The condition that an answer is written to, and who has the policy's own.
    fn target_of(&self, state: &EvaluationState<'_>) -> Option<(Option<String>, Option<String>)> {
        self.core.reflector.read_row(state.parent, |row| {
            let targets = &row.parent.as_ref()?.targets;
            let target = targets.iter().find(|target| target.policy == state.policy)?;
            Some((target.condition.as_ref().map(ToString::to_string), target.owner().map(str::to_owned)))
        })?
    }

    fn run_to_rest(&mut self, hidden: &BTreeSet<(String, String)>) {
        self.intake.finish_lists(&mut self.core, &self.plan, self.start);
        for (id, _) in self.plan.kinds.iter().filter(|(_, kind)| hidden.contains(&kind.key)) {
            self.core.engine.set_kind_state(self.start, *id, KindState::Forbidden);
        }
        for id in &self.unseen {
            self.core.engine.set_kind_state(self.start, *id, KindState::Forbidden);
        }
        let mut at = self.start;
        for _ in 0..MAX_OFFLINE_TURNS {
            self.core.run_turn(at);
            match self.core.engine.next_deadline() {
                Some(next) if next <= self.now => at = next.max(at),
                _ => break,
            }
        }
        self.core.run_turn(self.now);
    }
}

/// Time from the first observation of an object to its parent's final answer, plus a margin.
fn settling_time(policy: &CompiledPolicy) -> Duration {
    policy.settle + policy.hold + 2 * (policy.debounce.quiet + policy.debounce.cap) + Duration::from_secs(1)
}

/// Feeds objects to a core, in any order.
struct OfflineIntake {
    kinds: Vec<(ListPass, KindId, (String, String))>,
    /// Records about deleted objects.
    records: Vec<(usize, ParentObject)>,
}

impl OfflineIntake {
    fn begin_lists(core: &mut Core, plan: &WatchPlan, start: Time) -> OfflineIntake {
        core.reflector.set_now(start);
        for (id, kind) in &plan.kinds {
            core.set_kind_name(*id, &kind.key.1, &kind.key.0);
        }
        for (id, policy) in &plan.policies {
            core.set_policy(start, *id, Some(policy.clone()));
        }
        for kind in plan.kinds.values() {
            core.reflector.set_interest(kind.interest.clone());
        }
        let kinds =
            plan.kinds.iter().map(|(id, kind)| (core.reflector.begin_list(*id, None), *id, kind.key.clone()));
        OfflineIntake { kinds: kinds.collect(), records: Vec::new() }
    }

    fn apply_object(&mut self, core: &Core, object: &ParentObject) {
        let meta = &object.child.meta;
        for (at, (pass, _, key)) in self.kinds.iter().enumerate() {
            if !is_of_kind(object, key) {
                continue;
            }
            core.reflector.apply_listed(pass, &object.child, Some(&object.text));
            if &*meta.kind == RECORD_KIND_NAME {
                self.records.push((at, object.clone()));
            }
        }
    }

    fn finish_lists(&self, core: &mut Core, plan: &WatchPlan, start: Time) {
        for (pass, ..) in &self.kinds {
            core.reflector.finish_list(pass);
        }
        self.recall_records(core, plan);
        let moved = core.reflector.take_dirty(usize::MAX);
        core.observe_objects(start, &moved);
        for id in plan.kinds.keys() {
            core.engine.set_kind_state(start, *id, KindState::Synced);
        }
    }

    /// Applies the records among the objects.
    fn recall_records(&self, core: &Core, plan: &WatchPlan) {
        for (at, (_, id, _)) in self.kinds.iter().enumerate() {
            let Some(spoken_of) = plan.kinds.get(id).and_then(|kind| kind.records.as_ref()) else { continue };
            let mut keeper = RecordStore::new(spoken_of.clone());
            keeper.begin_list();
            for (_, record) in self.records.iter().filter(|(of, _)| *of == at) {
                if let Ok(record) = serde_json::from_str(record.text.get()) {
                    keeper.stage_record(&record);
                }
            }
            keeper.finish_list(&core.reflector);
        }
    }
}

/// Feeds all objects at once.
pub fn load_objects(core: &mut Core, plan: &WatchPlan, objects: &[&ParentObject], start: Time) {
    let mut intake = OfflineIntake::begin_lists(core, plan, start);
    for object in objects {
        intake.apply_object(core, object);
    }
    intake.finish_lists(core, plan, start);
}

fn is_of_kind(object: &ParentObject, (group, kind): &(String, String)) -> bool {
    let meta = &object.child.meta;
    let of = meta.api_version.split_once('/').map_or("", |(group, _)| group);
    *meta.kind == **kind && of == group
}

#[cfg(test)]
mod tests;
