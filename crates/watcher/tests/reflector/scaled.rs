//! A workload that was ready, and is scaled: what it had then goes on to be counted on.

use std::sync::Arc;

use aggregator::PolicyId;
use readiness::{DisruptionBudget, ReplicaAmount, RuleKind, Steadiness};
use rules::{CompiledRule, RuleDefinition};
use serde_json::{Value, json};
use watcher::plan::{
    AssessmentRule, ChildRule, Interest, LabelMatchTerm, LabelMatcher, RuleSharing, UserRule,
};
use watcher::reflector::{NamespaceBudgets, Reflector};
use watcher::{ParentObject, ReflectorObject};

use crate::objects::{judge_by, owned, pod, uid};

/// A StatefulSet in this version: replicas wanted, there, and available; its controller has seen the first `observed`
/// generations.
fn set(version: u32, (generation, observed): (u32, u32), wanted: u32, there: u32, available: u32) -> Value {
    let mut set = pod(1, version, "True");
    set["metadata"]["generation"] = json!(generation);
    set["spec"] = json!({ "replicas": wanted, "template": { "image": "shop:1" } });
    set["status"] = json!({ "observedGeneration": observed, "replicas": there, "updatedReplicas": there,
        "readyReplicas": available, "availableReplicas": available, "currentRevision": "a", "updateRevision": "a" });
    set
}

fn steadiness(reflector: &Reflector, interest: &Interest, object: &Value) -> Steadiness {
    steadiness_by(0, reflector, interest, object)
}

fn steadiness_by(rule_index: u16, reflector: &Reflector, interest: &Interest, object: &Value) -> Steadiness {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    judge_by(reflector, interest);
    reflector.apply_object(interest.id, object.as_child(), object.raw_text());
    let id = reflector.find_object(&uid(1)).unwrap();
    reflector.read_row(id, |row| row.assessment_for(rule_index).verdict.steadiness).unwrap()
}

#[test]
fn what_it_had_when_it_was_ready_counts_until_it_is_lost_or_it_is_ready_again() {
    use Steadiness::{Available, Unsteady};
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    let reflector = Reflector::new(|| ());
    for (what, object, expected) in [
        ("it was never ready", set(1, (1, 1), 6, 3, 3), Unsteady),
        ("it is ready", set(2, (1, 1), 3, 3, 3), Unsteady),
        ("it is scaled", set(3, (2, 1), 6, 3, 3), Available),
        ("pods come", set(4, (2, 2), 6, 4, 3), Available),
        ("and become ready", set(5, (2, 2), 6, 6, 5), Available),
        ("as many as before are left", set(6, (2, 2), 6, 6, 3), Available),
        ("one less, as its budget allows", set(7, (2, 2), 6, 6, 2), Available),
        ("too many are lost", set(8, (2, 2), 6, 6, 1), Unsteady),
        ("and what it had counts no more", set(9, (2, 2), 6, 6, 3), Unsteady),
        ("it is ready with more", set(10, (2, 2), 6, 6, 6), Unsteady),
        ("which is what counts now", set(11, (2, 2), 6, 6, 4), Unsteady),
    ] {
        assert_eq!(steadiness(&reflector, &sets, &object), expected, "{what}");
    }
    // Another process has not seen it ready.
    let restarted = Reflector::new(|| ());
    assert_eq!(steadiness(&restarted, &sets, &set(5, (2, 2), 6, 4, 3)), Unsteady);
}

/// The same with another template.
fn with_image(mut set: Value, image: &str) -> Value {
    set["spec"]["template"]["image"] = json!(image);
    set
}

#[test]
fn what_is_only_scaled_is_counted_on_however_long_its_controller_takes_and_nothing_else_is() {
    use Steadiness::{Available, Unobserved, Unsteady};
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    let reflector = Reflector::new(|| ());
    for (what, object, expected) in [
        ("it is ready", set(1, (2, 2), 3, 3, 3), Unsteady),
        ("it is scaled", set(2, (3, 2), 6, 3, 3), Available),
        ("and again", set(3, (4, 2), 4, 3, 3), Available),
        ("the first is observed", set(4, (4, 3), 4, 6, 3), Available),
        ("its template changes, too", with_image(set(5, (5, 3), 4, 6, 3), "shop:2"), Unobserved),
        ("and back before anything is observed", set(6, (6, 3), 5, 6, 3), Available),
        ("back to what may have been observed", set(7, (6, 5), 5, 6, 3), Unobserved),
        ("that is observed", set(8, (6, 6), 5, 6, 3), Available),
        ("it is scaled from there", set(9, (7, 6), 7, 6, 3), Available),
        ("versions between were not seen", set(10, (9, 7), 8, 6, 3), Available),
        ("and one of these is observed", set(11, (9, 8), 8, 6, 3), Unobserved),
        ("too many are lost", set(12, (9, 8), 8, 6, 1), Unsteady),
    ] {
        assert_eq!(steadiness(&reflector, &sets, &object), expected, "{what}");
    }
}

#[test]
fn a_template_that_was_whole_in_a_history_that_is_gone_is_counted_on_for_a_moment_alone() {
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    let reflector = Reflector::new(|| ());
    let new = with_image(set(1, (10, 10), 3, 3, 3), "shop:2");
    assert_eq!(steadiness(&reflector, &sets, &new), Steadiness::Unsteady, "it is ready");
    // A backup had the generation before, which is observed; whoever applies the new template again makes the same generation.
    let applied = with_image(set(2, (10, 9), 3, 3, 3), "shop:2");
    assert_eq!(steadiness(&reflector, &sets, &applied), Steadiness::Unobserved);
}

/// Sets that another policy judges first, by a script that says this of all of them.
fn judged_first_by(says: &str) -> Interest {
    let source = format!("return {{status = '{says}'}}");
    let rule = CompiledRule::compile(&RuleDefinition::Lua { name: "set.lua", source: &source }).unwrap();
    let rule = UserRule {
        rule: Arc::new(rule),
        source: source.into(),
        shared_by: RuleSharing::Kind,
        of: ("apps/v1".into(), "StatefulSet".into()),
    };
    let owned = owned();
    let by_kind = owned.assessment_rules[0].clone();
    let scripted = AssessmentRule { rule: Some(rule), ..by_kind.clone() };
    let other = ChildRule { policy: PolicyId(2), rule_index: 1, ..owned.child[0].clone() };
    Interest {
        judge: RuleKind::from_group_kind("apps", "StatefulSet"),
        assessment_rules: vec![scripted, by_kind],
        child: vec![owned.child[0].clone(), other],
        ..owned
    }
}

#[test]
fn what_another_policys_rule_says_of_it_is_no_rollout_and_ends_none() {
    use Steadiness::{Available, Unsteady};
    for says in ["Healthy", "Progressing"] {
        let (reflector, sets) = (Reflector::new(|| ()), judged_first_by(says));
        for (what, object, expected) in [
            ("it was never ready", set(1, (1, 1), 6, 3, 3), Unsteady),
            ("it is ready", set(2, (1, 1), 3, 3, 3), Unsteady),
            ("it is scaled", set(3, (2, 1), 6, 3, 3), Available),
            ("pods come", set(4, (2, 2), 6, 6, 3), Available),
            ("it is read again", set(4, (2, 2), 6, 6, 3), Available),
        ] {
            assert_eq!(steadiness_by(1, &reflector, &sets, &object), expected, "{what}, where {says}");
        }
    }
}

#[test]
fn a_workload_lacks_no_more_pods_than_the_narrowest_budget_of_its_namespace_that_covers_them() {
    use Steadiness::{Available, Unsteady};
    let sets = Interest { judge: RuleKind::from_group_kind("apps", "StatefulSet"), ..owned() };
    let reflector = Reflector::new(|| ());
    let disrupted = |version: u32| {
        let mut set = set(version, (1, 1), 6, 6, 3);
        set["spec"]["selector"] = json!({ "matchLabels": { "set": "store" } });
        set["spec"]["template"] = json!({ "metadata": { "labels": { "set": "store", "app": "store", "tier": "data" } }, "spec": {} });
        set
    };
    let covering =
        |app: &str| LabelMatcher { requirements: vec![LabelMatchTerm::In("app".into(), vec![app.into()])] };
    let budgets = |all: &[(&str, &str, i64)]| {
        let mut known = NamespaceBudgets::new();
        for (namespace, app, most) in all {
            let budget = DisruptionBudget::MaxUnavailable(ReplicaAmount::Count(*most));
            known.entry((*namespace).into()).or_default().push((covering(app), budget));
        }
        known
    };
    for (version, known, expected) in [
        (1, budgets(&[]), Unsteady),
        (2, budgets(&[("shop", "store", 3)]), Available),
        (3, budgets(&[("elsewhere", "store", 3)]), Unsteady),
        (4, budgets(&[("shop", "web", 3)]), Unsteady),
        (5, budgets(&[("shop", "store", 3), ("shop", "store", 2)]), Unsteady),
        (6, budgets(&[("shop", "web", 1), ("shop", "store", 3)]), Available),
    ] {
        reflector.set_disruption_budgets(known);
        assert_eq!(steadiness(&reflector, &sets, &disrupted(version)), expected, "{version}");
    }
}
