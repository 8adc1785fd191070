//! Policies that were changed while the parents of their kind could not be read.

use aggregator::PolicyId;
use readiness::rollup::ParentReason;
use serde_json::{Value, json};
use watcher::plan::{ElsewhereRule, Interest, LabelMatcher, NamespaceScope, ParentRule};
use watcher::reflector::{AnswerTarget, Reflector};

use crate::objects::{NOW, WIDGETS, apply, parents, uid, widget};

const SUCCESSOR: PolicyId = PolicyId(8);
const OTHER: PolicyId = PolicyId(9);

/// A widget on which this type says True, by Rollcall.
fn told(condition: &str) -> Value {
    let entry = json!({"type": condition, "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut widget = widget(1, 1, &json!({"conditions": [entry]}));
    let key = format!("k:{{\"type\":\"{condition}\"}}");
    widget["metadata"]["managedFields"] = json!([{"manager": "rollcall", "operation": "Update",
        "fieldsV1": {"f:status": {"f:conditions": {key: {"f:status": {}}}}}}]);
    widget
}

/// A reflector that holds a widget on which a policy of an older plan said True of this type, under the plan that holds.
fn after_edit(condition: &str, newer: Interest) -> Reflector {
    let reflector = Reflector::new(|| ());
    let mut older = parents(vec![]);
    older.parent[0].condition = condition.into();
    apply(&reflector, &older, &told(condition));
    assert_eq!(speakers(&reflector), [(older.parent[0].policy, Some(ParentReason::AllChildrenReady))]);
    reflector.take_dirty(usize::MAX);
    reflector.set_interest(newer);
    reflector
}

fn ruled_by(rules: Vec<ParentRule>) -> Interest {
    Interest { parent: rules, ..parents(vec![]) }
}

fn rule(policy: PolicyId, condition: &str) -> ParentRule {
    ParentRule { condition: condition.into(), ..ParentRule::for_policy(policy) }
}

/// The policies that speak on the widget, with what stands there of them. The view and the targets of writes name the same.
fn speakers(reflector: &Reflector) -> Vec<(PolicyId, Option<ParentReason>)> {
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let targets = reflector.read_row(id, |row| {
        row.parent.as_ref().unwrap().targets.iter().map(|target| target.policy).collect::<Vec<_>>()
    });
    let of_view = reflector.with_view(id, NOW, |view| {
        let answers = view.unwrap().parent.unwrap().answers.iter();
        answers.map(|answer| (answer.policy, answer.written.map(|said| said.reason))).collect::<Vec<_>>()
    });
    assert_eq!(targets.unwrap(), of_view.iter().map(|(policy, _)| *policy).collect::<Vec<_>>());
    of_view
}

#[test]
fn a_policy_follows_the_one_that_wrote_the_same_condition() {
    let reflector = after_edit("Ready", ruled_by(vec![rule(OTHER, "Healthy"), rule(SUCCESSOR, "Ready")]));
    assert_eq!(reflector.succeed_policies(WIDGETS), 1);
    assert_eq!(speakers(&reflector), [(SUCCESSOR, Some(ParentReason::AllChildrenReady))]);
    assert_eq!(reflector.take_dirty(usize::MAX).len(), 1, "the loop observes it");
    assert_eq!(reflector.succeed_policies(WIDGETS), 0, "it has");
}

#[test]
fn a_policy_follows_the_one_that_wrote_its_fallback() {
    let newer = ParentRule { fallback: Some("RollcallReady".into()), ..rule(SUCCESSOR, "Ready") };
    let reflector = after_edit("RollcallReady", ruled_by(vec![newer]));
    assert_eq!(reflector.succeed_policies(WIDGETS), 1);
}

/// A policy whose condition had another type before it was edited.
fn edited(policy: PolicyId, condition: &str, former: &str) -> ParentRule {
    ParentRule { former: vec![former.into()], ..rule(policy, condition) }
}

#[test]
fn a_policy_whose_new_type_is_another_releases_does_not_follow() {
    let elsewhere = |outranks: &[PolicyId], namespaces: &[&str]| ElsewhereRule {
        selector: LabelMatcher::default(),
        namespace_selector: None,
        namespaces: namespaces.iter().map(|name| (*name).into()).collect(),
        types: vec!["Whole".into()],
        policy: "theirs".into(),
        outranks: outranks.to_vec(),
    };
    for (outranks, namespaces, follows) in [
        (&[SUCCESSOR][..], &[][..], 0),
        (&[SUCCESSOR], &["shop"], 0),
        (&[SUCCESSOR], &["elsewhere"], 1),
        // The older one rules.
        (&[], &[], 1),
    ] {
        let mut newer = ruled_by(vec![edited(SUCCESSOR, "Whole", "Ready")]);
        newer.release = vec!["Ready".into()];
        newer.elsewhere = vec![elsewhere(outranks, namespaces)];
        let reflector = after_edit("Ready", newer);
        assert_eq!(reflector.succeed_policies(WIDGETS), follows, "{outranks:?} {namespaces:?}");
    }
}

#[test]
fn a_policy_whose_new_type_stands_there_by_somebody_else_does_not_follow() {
    let mut widget = told("Ready");
    let theirs = json!({"type": "Whole", "status": "False", "reason": "Because", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    widget["status"]["conditions"].as_array_mut().unwrap().push(theirs);
    let reflector = Reflector::new(|| ());
    apply(&reflector, &parents(vec![]), &widget);
    let mut newer = ruled_by(vec![edited(SUCCESSOR, "Whole", "Ready")]);
    newer.release = vec!["Ready".into()];
    reflector.set_interest(newer);
    assert_eq!(reflector.succeed_policies(WIDGETS), 0, "it would stand there twice");
}

/// The types that are to be taken away go with the policies.
fn releasing(rules: Vec<ParentRule>) -> Interest {
    let release = rules.iter().flat_map(|rule| rule.former.clone()).collect();
    Interest { release, ..ruled_by(rules) }
}

#[test]
fn a_policy_follows_the_one_that_it_was_before_its_type_was_edited() {
    let heir = || edited(SUCCESSOR, "Healthy", "Ready");
    let reflector = after_edit("Ready", releasing(vec![rule(OTHER, "Whole"), heir()]));
    assert_eq!(reflector.succeed_policies(WIDGETS), 1);
    assert_eq!(speakers(&reflector), [(SUCCESSOR, Some(ParentReason::AllChildrenReady))]);
    let id = reflector.find_object(&uid(1_000)).unwrap();
    let written = |target: &AnswerTarget| (target.condition.clone(), target.former_type().map(str::to_owned));
    let writes = reflector.read_row(id, |row| written(&row.parent.as_ref().unwrap().targets[0])).unwrap();
    assert_eq!(writes, (Some("Healthy".into()), Some("Ready".into())), "it is said under the new type");
}

#[test]
fn what_a_policy_said_under_its_former_type_is_its_answer_until_it_says_more() {
    let judged = |object: &Value, rules: Vec<ParentRule>| {
        let reflector = Reflector::new(|| ());
        apply(&reflector, &releasing(rules), object);
        speakers(&reflector)
    };
    let ready = Some(ParentReason::AllChildrenReady);
    let heir = || edited(SUCCESSOR, "Healthy", "Ready");
    assert_eq!(judged(&told("Ready"), vec![heir()]), [(SUCCESSOR, ready)]);
    assert_eq!(judged(&told("Ready"), vec![rule(SUCCESSOR, "Healthy")]), [(SUCCESSOR, None)], "not its own");
    let beside = judged(&told("Ready"), vec![rule(OTHER, "Whole"), heir()]);
    assert_eq!(beside, [(OTHER, None), (SUCCESSOR, ready)]);
    let mut both = told("Healthy");
    both["status"]["conditions"][0]["reason"] = "ChildrenFailed".into();
    let former = told("Ready");
    both["status"]["conditions"].as_array_mut().unwrap().push(former["status"]["conditions"][0].clone());
    let managed = &former["metadata"]["managedFields"][0]["fieldsV1"]["f:status"]["f:conditions"];
    let fields = &mut both["metadata"]["managedFields"][0]["fieldsV1"]["f:status"]["f:conditions"];
    fields.as_object_mut().unwrap().extend(managed.as_object().unwrap().clone());
    assert_eq!(
        judged(&both, vec![heir()]),
        [(SUCCESSOR, Some(ParentReason::ChildrenFailed))],
        "it has said more"
    );
}

#[test]
fn what_a_policy_said_under_its_fallback_is_its_answer_until_it_says_it_under_its_own_type() {
    // Another client had the type of before it was edited.
    let mut beside = told("RollcallReady");
    let theirs = serde_json::json!({ "type": "Ready", "status": "True", "reason": "Up" });
    beside["status"]["conditions"].as_array_mut().unwrap().push(theirs);
    let fields = serde_json::json!({ "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": { "f:status": {} } } } });
    let operator = serde_json::json!({ "manager": "operator", "operation": "Update", "fieldsV1": fields });
    beside["metadata"]["managedFields"].as_array_mut().unwrap().push(operator);
    let judged = |rules: Vec<ParentRule>| {
        let reflector = Reflector::new(|| ());
        let older = ParentRule { fallback: Some("RollcallReady".into()), ..rule(OTHER, "Ready") };
        apply(&reflector, &ruled_by(vec![older]), &beside);
        apply(&reflector, &ruled_by(rules), &beside);
        let id = reflector.find_object(&uid(1_000)).unwrap();
        let written =
            |target: &AnswerTarget| (target.condition.clone(), target.former_type().map(str::to_owned));
        let writes = reflector.read_row(id, |row| written(&row.parent.as_ref().unwrap().targets[0])).unwrap();
        (writes, speakers(&reflector)[0].1)
    };
    let own = || ParentRule { fallback: Some("RollcallReady".into()), ..rule(SUCCESSOR, "Whole") };
    let ready = Some(ParentReason::AllChildrenReady);
    assert_eq!(judged(vec![own()]), ((Some("Whole".into()), Some("RollcallReady".into())), ready));
    let not_its_own = ((Some("Whole".into()), None), None);
    assert_eq!(judged(vec![own(), rule(OTHER, "RollcallReady")]), not_its_own);
    let shared = ParentRule { fallback: Some("RollcallReady".into()), ..rule(OTHER, "Ready") };
    assert_eq!(judged(vec![own(), shared]), not_its_own);
}

#[test]
fn where_nobody_follows_what_was_said_stays_as_it_was() {
    let elsewhere = ParentRule { namespaces: NamespaceScope::only(["bank"]), ..rule(SUCCESSOR, "Ready") };
    let left = ElsewhereRule {
        selector: LabelMatcher::default(),
        namespace_selector: None,
        namespaces: Vec::new(),
        types: vec!["Ready".into()],
        policy: "another".into(),
        outranks: Vec::new(),
    };
    for newer in [
        ruled_by(vec![]),
        ruled_by(vec![rule(SUCCESSOR, "Healthy")]),
        ruled_by(vec![elsewhere]),
        // Another release may speak for it.
        Interest { elsewhere: vec![left], ..ruled_by(vec![rule(SUCCESSOR, "Ready")]) },
    ] {
        let reflector = after_edit("Ready", newer);
        assert_eq!(reflector.succeed_policies(WIDGETS), 0);
        assert_eq!(speakers(&reflector).len(), 1);
        assert_ne!(speakers(&reflector)[0].0, SUCCESSOR);
    }
}

#[test]
fn a_policy_in_shadow_mode_follows_where_no_other_does() {
    let shadow = ParentRule { is_shadow: true, ..rule(OTHER, "Ready") };
    let reflector = after_edit("Ready", ruled_by(vec![shadow.clone(), rule(SUCCESSOR, "Ready")]));
    reflector.succeed_policies(WIDGETS);
    assert_eq!(speakers(&reflector)[0].0, SUCCESSOR);
    let reflector = after_edit("Ready", ruled_by(vec![shadow]));
    reflector.succeed_policies(WIDGETS);
    assert_eq!(speakers(&reflector)[0].0, OTHER);
}

#[test]
fn a_policy_that_still_speaks_is_followed_by_none() {
    let same = parents(vec![]).parent[0].clone();
    let reflector = after_edit("Ready", ruled_by(vec![rule(OTHER, "Ready"), same.clone()]));
    assert_eq!(reflector.succeed_policies(WIDGETS), 0);
    assert_eq!(speakers(&reflector)[0].0, same.policy);
}

#[test]
fn a_parent_that_can_be_read_again_is_of_the_policies_that_choose_it() {
    let newer = ruled_by(vec![rule(OTHER, "Ready"), rule(SUCCESSOR, "Healthy")]);
    let reflector = after_edit("Ready", newer.clone());
    reflector.succeed_policies(WIDGETS);
    apply(&reflector, &newer, &told("Ready"));
    let of: Vec<_> = speakers(&reflector).into_iter().map(|(policy, _)| policy).collect();
    assert_eq!(of, [OTHER, SUCCESSOR]);
}
