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
use crate::plan::{IdRegistry, PolicyInUse, Released, WatchPlan, build_plan};
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
    roll_up_since(policies, objects, hidden, (Time(i64::MIN), now))
}

/// The same, if objects have been as they are since then, and no longer: what `settle` and `hold` ask for begins then.
pub fn roll_up_since(
    policies: &[(String, CompiledPolicy)],
    objects: &[&ParentObject],
    hidden: &BTreeSet<(String, String)>,
    (since, now): (Time, Time),
) -> Vec<TreeNode> {
    let mut world = OfflineRollup::since(policies, since, now);
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
    start: Time,
    now: Time,
}

impl OfflineRollup {
    /// Creates an empty state.
    pub fn new(policies: &[(String, CompiledPolicy)], now: Time) -> OfflineRollup {
        OfflineRollup::since(policies, Time(i64::MIN), now)
    }

    /// Creates an empty state whose objects have been as they are since then, and no longer.
    fn since(policies: &[(String, CompiledPolicy)], since: Time, now: Time) -> OfflineRollup {
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
        OfflineRollup::begin(in_use, registry, &UnreadLibraries, (since, now))
    }

    /// Creates an empty state for policies of which it was decided what of them is in force.
    pub fn of_policies_in_use(
        in_use: Vec<PolicyInUse>,
        registry: IdRegistry,
        libraries: &dyn LibraryRules,
        now: Time,
    ) -> OfflineRollup {
        OfflineRollup::begin(in_use, registry, libraries, (Time(i64::MIN), now))
    }

    fn begin(
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
        OfflineRollup { core, plan, intake, start, now }
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
            Some(OfflineAnswer {
                policy: self.plan.policies.get(&state.policy)?.1.name.clone(),
                parent: self.core.parent_ref(state.parent)?.0,
                reason: state.answer.reason,
                message: detail.message,
            })
        };
        self.core.engine.evaluation_states().filter_map(answer).collect()
    }

    fn run_to_rest(&mut self, hidden: &BTreeSet<(String, String)>) {
        self.intake.finish_lists(&mut self.core, &self.plan, self.start);
        for (id, _) in self.plan.kinds.iter().filter(|(_, kind)| hidden.contains(&kind.key)) {
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
            for (_, record) in self.records.iter().filter(|(of, _)| *of == at) {
                if let Ok(record) = serde_json::from_str(record.text.get()) {
                    keeper.observe_record(&core.reflector, &record);
                }
            }
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
mod tests {
    use super::*;
    use crate::compile::compile;
    use serde_json::{Value, json};

    const NOW: Time = Time(1_800_000_000_000);

    fn object(kind: &str, api_version: &str, name: &str, owner: Option<&str>) -> ParentObject {
        let owners = owner.map(|owner| {
            json!([{ "apiVersion": "example.com/v1", "kind": "Database", "name": owner, "uid": owner }])
        });
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let value: Value = json!({ "apiVersion": api_version, "kind": kind,
            "metadata": { "name": name, "namespace": "shop", "uid": name, "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners },
            "status": { "observedGeneration": 1, "phase": "Running", "conditions": ready } });
        serde_json::from_str(&value.to_string()).unwrap()
    }

    fn children(told: impl Fn(&mut OfflineRollup)) -> Vec<String> {
        let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] });
        let policy = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
        let mut world = OfflineRollup::new(&[("p".to_owned(), policy)], NOW);
        told(&mut world);
        let trees = world.into_trees(&BTreeSet::new());
        assert_eq!(trees.len(), 1);
        trees[0].children.iter().map(|child| child.name.clone()).collect()
    }

    /// What is said of a parent in the namespace `shop`, or in none, below which a rule reads an object of `vault`.
    fn said(of: Option<&str>, find: &Value, spec: &Value) -> (String, usize) {
        let policy = json!({
            "parent": { "group": "example.com", "kind": "Database" },
            "children": [{
                "kind": { "kind": "ConfigMap" }, "find": find,
                "ready": { "lua": "return { status = 'Degraded', message = obj.data.text }" },
            }],
        });
        let policy = compile(&serde_json::from_value(policy).unwrap(), Duration::from_mins(10)).unwrap();
        let parent = json!({ "apiVersion": "example.com/v1", "kind": "Database", "spec": spec,
            "metadata": { "name": "db", "namespace": of, "uid": "db", "generation": 1 } });
        let child = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "text": "of the vault" },
            "metadata": { "name": "it", "namespace": "vault", "uid": "it", "labels": { "app": "web" },
                "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "db" }] } });
        let objects = [&parent, &child].map(|object| serde_json::from_str(&object.to_string()).unwrap());
        let trees = roll_up(&[("p".to_owned(), policy)], &objects.each_ref(), &BTreeSet::new(), NOW);
        (trees[0].detail.clone(), trees[0].children.len())
    }

    #[test]
    fn the_words_of_a_rule_stay_in_their_namespace_unless_the_policy_names_it() {
        let (by_label, spec) = (
            json!({ "app": "web" }),
            json!({ "ns": "vault", "refs": [{ "name": "it", "namespace": "vault" }] }),
        );
        let chosen = |allowed: &[&str]| json!({ "labels": by_label, "namespaces": ["{parent.spec.ns}"], "allowedNamespaces": allowed });
        let refs = |allowed: &[&str]| json!({ "refs": "spec.refs[*]", "allowedNamespaces": allowed });
        for (of, find, is_named) in [
            (Some("shop"), json!({}), false),
            (Some("shop"), json!({ "labels": by_label }), false),
            (Some("shop"), chosen(&["other"]), false),
            (Some("shop"), chosen(&["va*"]), true),
            (Some("shop"), json!({ "labels": by_label, "namespaces": ["vault"] }), true),
            (Some("shop"), refs(&["vault"]), false),
            (None, json!({}), false),
            (None, json!({ "labels": by_label }), false),
            (None, refs(&["other"]), false),
            (None, refs(&["vault"]), true),
            (None, json!({ "allowedNamespaces": ["other"] }), false),
            (None, json!({ "allowedNamespaces": ["vault"] }), true),
        ] {
            let (detail, children) = said(of, &find, &spec);
            assert_eq!(detail.contains("of the vault"), is_named, "{of:?} {find}: {detail}");
            assert_eq!(children > 0, is_named, "{of:?} {find}: {detail}");
        }
    }

    #[test]
    fn each_policy_tells_of_a_child_in_the_words_of_its_own_rule() {
        let says = |script: &str| {
            let spec = json!({
                "parent": { "group": "example.com", "kind": "Database" }, "settle": "0s",
                "children": [{ "kind": { "kind": "ConfigMap" }, "ready": { "lua": script } }],
            });
            compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap()
        };
        let told =
            |status: &str, word: &str| says(&format!("return {{ status = '{status}', message = '{word}' }}"));
        let words = [("Progressing", "still copying"), ("Healthy", "copied"), ("Degraded", "copy failed")];
        let mut policies: Vec<_> =
            words.iter().map(|(status, word)| ((*word).to_owned(), told(status, word))).collect();
        let objects =
            [object("Database", "example.com/v1", "db", None), object("ConfigMap", "v1", "copy", Some("db"))];
        for _ in 0..policies.len() {
            policies.rotate_left(1);
            for tree in roll_up(&policies, &objects.each_ref(), &BTreeSet::new(), NOW) {
                let own = tree.policy.as_str();
                for (_, word) in words.iter().filter(|(status, _)| *status != "Healthy") {
                    assert_eq!(tree.detail.contains(word), own == *word, "{own}: {}", tree.detail);
                }
            }
        }
    }

    #[test]
    fn objects_come_in_any_order_and_a_list_that_is_told_anew_counts_alone() {
        let (db, web) = (object("Database", "example.com/v1", "db", None), |n: u8| {
            object("Pod", "v1", &format!("web-{n}"), Some("db"))
        });
        let pods = (String::new(), "Pod".to_owned());
        let mixed = children(|world| {
            for object in [&web(1), &db, &web(0)] {
                world.add_object(object);
            }
        });
        assert_eq!(mixed, ["web-0", "web-1"]);
        let anew = children(|world| {
            for object in [&db, &web(0), &web(1)] {
                world.add_object(object);
            }
            world.restart_kind(&pods);
            world.add_object(&web(1));
            world.add_object(&web(2));
        });
        assert_eq!(anew, ["web-1", "web-2"]);
    }
}
