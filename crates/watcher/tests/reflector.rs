//! What the reflector holds, and what it lets go.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aggregator::{KindId, PolicyId, Target};
use readiness::{Kind, Level, Limits, Time};
use serde_json::{Value, json};
use watcher::plan::{
    After, ChildRule, Find, Interest, LabelRule, Lens, Marks, ParentRule, Selector, Template,
};
use watcher::reflector::{Applied, Reflector};
use watcher::wire::Child;
use watcher::{Feed, Parent};

const NOW: Time = Time(1_800_000_000_000);
const PODS: KindId = KindId(1);
const WIDGETS: KindId = KindId(2);
const POLICY: PolicyId = PolicyId(7);

fn limits() -> Limits {
    Limits { pending: Duration::from_mins(10), terminating: Duration::from_mins(10) }
}

fn children(find: Find, ignore: Option<Selector>) -> Interest {
    let child = vec![ChildRule { policy: POLICY, group: 0, lens: 0, find, ignore, after: After::Forget }];
    let lenses = vec![Lens { limits: limits(), rule: None, remembers: false }];
    Interest { lenses, child, ..Interest::of(PODS, "", "Pod") }
}

fn owned() -> Interest {
    children(Find::Owner { group: "example.com".into(), kind: "Widget".into() }, None)
}

fn parents(labels: Vec<LabelRule>) -> Interest {
    let rule = ParentRule { labels, ..ParentRule::of(POLICY) };
    Interest { parent: vec![rule], ..Interest::of(WIDGETS, "example.com", "Widget") }
}

fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn pod(n: u32, version: u32, ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{n}"), "namespace": "shop", "uid": uid(n), "resourceVersion": version.to_string(),
            "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid(1_000)}]},
        "spec": {"restartPolicy": "Always"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    })
}

fn widget(version: u32, generation: u32, status: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": uid(1_000), "resourceVersion": version.to_string(),
            "generation": generation},
        "spec": {"size": 1}, "status": status
    })
}

fn apply(reflector: &Reflector, interest: &Interest, object: &Value) -> Applied {
    let object: Parent = serde_json::from_str(&object.to_string()).unwrap();
    let text = (!interest.parent.is_empty()).then(|| object.text()).flatten();
    reflector.apply(interest, object.child(), text)
}

fn level(reflector: &Reflector, n: u32) -> Option<Level> {
    reflector.read(reflector.find(&uid(n))?, |row| row.assessment.at(NOW).level)
}

#[test]
fn an_object_that_no_parent_owns_gets_no_row() {
    let reflector = Reflector::new(|| ());
    let mut stray = pod(1, 5, "True");
    stray["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid(9)}]);
    assert_eq!(apply(&reflector, &owned(), &stray), Applied::Unwanted);
    assert!(reflector.is_empty() && reflector.take_dirty(9).is_empty());
    assert_eq!(apply(&reflector, &owned(), &pod(1, 6, "True")), Applied::Moved(0));
    assert_eq!(apply(&reflector, &owned(), &stray_again(&stray)), Applied::Unwanted);
    assert_eq!(level(&reflector, 1), None, "it was orphaned");
}

fn stray_again(stray: &Value) -> Value {
    let mut later = stray.clone();
    later["metadata"]["resourceVersion"] = json!("7");
    later
}

#[test]
fn only_what_a_parent_could_show_moves_an_object() {
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let reflector = Reflector::new(move || _ = count.fetch_add(1, Ordering::Relaxed));
    assert_eq!(apply(&reflector, &owned(), &pod(1, 5, "True")), Applied::Moved(0));
    let mut chatter = pod(1, 6, "True");
    chatter["metadata"]["annotations"] = json!({"touched": "again"});
    assert_eq!(apply(&reflector, &owned(), &chatter), Applied::Same);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 7, "False")), Applied::Moved(6));
    assert_eq!(reflector.take_dirty(9).len(), 1, "the set coalesces");
    assert_eq!(woken.load(Ordering::Relaxed), 1, "one wake for what nobody has taken yet");
}

#[test]
fn nothing_older_than_what_is_held_is_applied() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 50, "False"));
    assert_eq!(apply(&reflector, &owned(), &pod(1, 49, "True")), Applied::Stale);
    assert_ne!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn a_live_read_that_a_deletion_overtook_brings_nothing_back() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 50, "True"));
    reflector.delete(&uid(1), 60);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 50, "True")), Applied::Stale);
    assert_eq!(level(&reflector, 1), None);
}

#[test]
fn identity_is_the_uid_and_not_the_name() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "True"));
    let mut again = pod(1, 6, "False");
    again["metadata"]["uid"] = json!(uid(2));
    apply(&reflector, &owned(), &again);
    assert_ne!(reflector.find(&uid(1)), reflector.find(&uid(2)));
    reflector.delete(&uid(1), 7);
    assert_eq!(level(&reflector, 1), None);
    assert!(level(&reflector, 2).is_some(), "deleting the old one does not touch the new one");
}

#[test]
fn a_relist_is_mark_and_sweep_within_its_scope() {
    let reflector = Reflector::new(|| ());
    reflector.begin(PODS, Some("shop"));
    for n in 1..=3 {
        apply(&reflector, &owned(), &pod(n, n, "True"));
    }
    let mut elsewhere = pod(4, 4, "True");
    elsewhere["metadata"]["namespace"] = json!("bank");
    reflector.begin(PODS, Some("bank"));
    apply(&reflector, &owned(), &elsewhere);
    assert_eq!(reflector.finish(PODS, Some("bank")), 0);

    reflector.begin(PODS, Some("shop"));
    apply(&reflector, &owned(), &pod(2, 9, "True"));
    // The list breaks off and begins again: nothing is gone before one is complete.
    reflector.begin(PODS, Some("shop"));
    assert!(level(&reflector, 1).is_some());
    apply(&reflector, &owned(), &pod(1, 10, "True"));
    assert_eq!(reflector.finish(PODS, Some("shop")), 2);
    assert_eq!([1, 2, 3, 4].map(|n| level(&reflector, n).is_some()), [true, false, false, true]);
}

#[test]
fn a_place_is_used_again_only_after_the_engine_let_go() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "True"));
    let owner = reflector.find(&uid(1_000)).expect("the owner has a place before it is seen");
    reflector.delete(&uid(1), 6);
    let dirty = reflector.take_dirty(9);
    assert!(dirty.contains(&owner), "the owner that nobody refers to any more is let go as well");
    assert!(reflector.find(&uid(1)).is_some(), "until the engine has heard of it");
    for id in dirty {
        assert!(reflector.view(id, NOW, |view| view.is_none()));
        reflector.recycle(id);
    }
    assert!(reflector.is_empty());
}

#[test]
fn what_a_live_read_knew_first_is_awaited_from_the_watch() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "False"));
    let live = |version: u32| {
        let object: Parent = serde_json::from_str(&pod(1, version, "True").to_string()).unwrap();
        reflector.apply_live(&owned(), object.child(), None)
    };
    let (applied, awaited) = live(8);
    assert_eq!(applied, Applied::Moved(5));
    let awaited = awaited.expect("it was news");
    apply(&reflector, &owned(), &pod(1, 8, "True"));
    assert!(!reflector.still_awaited(&awaited), "the watch brought it too");
    apply(&reflector, &owned(), &pod(1, 9, "False"));
    let (_, awaited) = live(12);
    assert!(reflector.still_awaited(&awaited.expect("news again")), "drift");
}

/// Which of these pods the one widget selects by the label `app`.
fn selected(pods: &[Value]) -> Vec<bool> {
    let reflector = Reflector::new(|| ());
    let values = vec![Template::parse("{parent.metadata.name}eb").unwrap()];
    let by_name = LabelRule { group: 0, values, namespaces: vec![] };
    apply(&reflector, &parents(vec![by_name]), &widget(1, 1, &json!(null)));
    let of = ("example.com".into(), "Widget".into());
    let by_label = children(Find::Labels { keys: vec!["app".into()], of }, None);
    let selects = reflector.read(reflector.find(&uid(1_000)).unwrap(), |row| {
        row.parent.as_ref().unwrap().view.answers[0].selects.clone()
    });
    let selects = selects.unwrap();
    let is_selected = |pod: &Value| {
        apply(&reflector, &by_label, pod);
        let id = reflector.find(pod["metadata"]["uid"].as_str().unwrap()).unwrap();
        let target = reflector.view(id, NOW, |v| v.unwrap().links[0].target());
        selects.iter().any(|s| Target::Selector(*s) == target)
    };
    pods.iter().map(is_selected).collect()
}

#[test]
fn labels_find_children_in_the_namespace_of_the_parent_alone() {
    let mut elsewhere = pod(2, 5, "True");
    elsewhere["metadata"]["namespace"] = json!("bank");
    assert_eq!(selected(&[pod(1, 5, "True"), elsewhere]), [true, false]);
}

#[test]
fn a_label_that_was_copied_to_what_a_sibling_owns_selects_nothing() {
    let (mut of_a_sibling, mut of_nobody) = (pod(2, 5, "True"), pod(3, 5, "True"));
    of_a_sibling["metadata"]["ownerReferences"][0]["uid"] = json!(uid(2_000));
    of_nobody["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(selected(&[pod(1, 5, "True"), of_a_sibling, of_nobody]), [true, false, true]);
}

#[test]
fn a_template_that_reads_a_missing_field_is_said_of_its_parent() {
    let reflector = Reflector::new(|| ());
    let bad = LabelRule {
        group: 0,
        values: vec![Template::parse("{parent.spec.nothing}").unwrap()],
        namespaces: vec![],
    };
    apply(&reflector, &parents(vec![bad]), &widget(1, 1, &json!(null)));
    let unrendered = reflector.read(reflector.find(&uid(1_000)).unwrap(), |row| {
        let parent = row.parent.as_ref().unwrap();
        (parent.view.answers[0].unrendered, parent.targets[0].unrendered.as_ref().map(ToString::to_string))
    });
    let (unrendered, error) = unrendered.unwrap();
    assert!(unrendered && error.unwrap().contains("parent.spec.nothing"));
}

#[test]
fn evidence_is_read_from_what_the_operator_left() {
    use aggregator::Evidence::{Handled, NotYet, Silent};
    let by = |manager: &str| json!([{"manager": manager, "operation": "Update", "fieldsV1": {"f:status": {"f:observedGeneration": {}}}}]);
    let kopf =
        |spec: &str| json!({"kopf.zalando.org/last-handled-configuration": format!("{{\"spec\":{spec}}}\n")});
    for (annotations, fields, status, expected) in [
        (json!({}), json!([]), json!({}), Silent),
        (json!({}), by("operator"), json!({"observedGeneration": 3}), Handled),
        (json!({}), by("operator"), json!({"observedGeneration": 2}), NotYet),
        (json!({}), by("rollcall"), json!({"observedGeneration": 3}), Silent),
        (
            json!({}),
            json!([]),
            json!({"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 3}]}),
            Handled,
        ),
        (
            json!({}),
            json!([]),
            json!({"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 2}]}),
            NotYet,
        ),
        (kopf(r#"{"size":1}"#), json!([]), json!({}), Handled),
        (kopf(r#"{"size":0}"#), json!([]), json!({}), NotYet),
        (kopf("not json"), json!([]), json!({}), Silent),
        (kopf(r#"{"size":0}"#), by("operator"), json!({"observedGeneration": 3}), NotYet),
    ] {
        let reflector = Reflector::new(|| ());
        let mut parent = widget(1, 3, &status);
        parent["metadata"]["annotations"] = annotations.clone();
        parent["metadata"]["managedFields"] = fields.clone();
        apply(&reflector, &parents(vec![]), &parent);
        let evidence = reflector
            .view(reflector.find(&uid(1_000)).unwrap(), NOW, |v| v.unwrap().parent.unwrap().evidence);
        assert_eq!(evidence, expected, "{annotations} {fields} {status}");
    }
}

#[test]
fn what_comes_late_does_not_bring_back_an_object_that_is_not_owned_any_more() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "False"));
    let mut disowned = pod(1, 9, "True");
    disowned["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(apply(&reflector, &owned(), &disowned), Applied::Unwanted);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 5, "False")), Applied::Stale);
    assert_eq!(level(&reflector, 1), None);
    assert!(matches!(apply(&reflector, &owned(), &pod(1, 9, "True")), Applied::Moved(_)), "by other rules");
    apply(&reflector, &owned(), &disowned);
    assert!(matches!(apply(&reflector, &owned(), &pod(1, 11, "True")), Applied::Moved(_)), "owned again");
}

#[test]
fn a_namespace_that_the_policy_does_not_choose_has_no_parents() {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].namespace_selector = Some(Selector {
        requirements: vec![watcher::plan::Requirement::In("team".into(), vec!["a".into()])],
    });
    assert_eq!(apply(&reflector, &interest, &widget(1, 1, &json!(null))), Applied::Unwanted);
    assert!(reflector.set_namespace("shop", Some(&[("team".into(), "a".into())])));
    assert!(!reflector.set_namespace("shop", Some(&[("team".into(), "a".into())])), "that is no news");
    assert_eq!(apply(&reflector, &interest, &widget(2, 1, &json!(null))), Applied::Moved(0));
}

#[test]
fn an_owner_in_another_namespace_owns_nothing_whoever_is_seen_first() {
    for parent_first in [true, false] {
        let reflector = Reflector::new(|| ());
        let mut elsewhere = pod(2, 5, "True");
        elsewhere["metadata"]["namespace"] = json!("bank");
        let see_children = || {
            apply(&reflector, &owned(), &pod(1, 5, "True"));
            apply(&reflector, &owned(), &elsewhere);
        };
        if !parent_first {
            see_children();
            reflector.take_dirty(9);
        }
        apply(&reflector, &parents(vec![]), &widget(1, 1, &json!(null)));
        if parent_first {
            see_children();
        }
        assert!(reflector.take_dirty(9).contains(&reflector.find(&uid(2)).unwrap()), "it is looked at again");
        let links = |n| reflector.view(reflector.find(&uid(n)).unwrap(), NOW, |v| v.unwrap().links.len());
        assert_eq!((links(1), links(2)), (1, 0), "parent first: {parent_first}");
        assert_eq!(reflector.strangers(9), [("bank/pod-2".to_owned(), "shop/w".to_owned())]);
    }
}

#[test]
fn finalizers_that_change_are_told_once_with_who_holds_them_and_others_cost_nothing() {
    let reflector = Reflector::new(|| ());
    let with = |version: u32, finalizers: &Value| {
        let mut parent = widget(version, 1, &json!(null));
        parent["metadata"]["finalizers"] = finalizers.clone();
        parent["metadata"]["managedFields"] = json!([{"manager": "kopf", "operation": "Update",
            "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, "v:\"a/x\"": {}}}}}]);
        parent
    };
    let told = |version, finalizers: Value| {
        apply(&reflector, &parents(vec![]), &with(version, &finalizers));
        let changes = reflector.take_finalizer_changes();
        assert!(changes.len() < 2);
        changes
            .into_iter()
            .next()
            .map(|c| (c.names.join(","), c.managers.get("a/x").map(ToString::to_string)))
    };
    assert_eq!(told(1, json!(["a/x"])), None, "what was there at first sight");
    assert_eq!(told(2, json!(["a/x"])), None);
    assert_eq!(told(3, json!(["a/x", "b/y"])), Some(("a/x,b/y".to_owned(), Some("kopf".to_owned()))));
    assert_eq!(told(4, json!(["b/y", "a/x"])), None, "in another order");
    assert_eq!(told(2, json!([])), None, "older than what is held");
    assert_eq!(told(5, json!([])).map(|(names, _)| names), Some(String::new()));
    let mut leaving = with(6, &json!(["a/x"]));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    apply(&reflector, &parents(vec![]), &leaving);
    assert_eq!(reflector.take_finalizer_changes(), [], "nothing is put back on what is being deleted");
}

/// Since when a pod has not been ready, as many milliseconds after [`NOW`], and who says so.
fn since(reflector: &Reflector, n: u32) -> Option<(i64, String)> {
    let row = |row: &watcher::reflector::Row| row.since(0).map(|s| (s.at.0 - NOW.0, s.from.to_string()));
    reflector.read(reflector.find(&uid(n)).unwrap(), row).unwrap()
}

#[test]
fn since_when_it_has_not_been_ready_is_known_of_what_is_not() {
    let reflector = Reflector::new(|| ());
    let moment = |millis: i64| Time(NOW.0 + millis).to_string();
    let turned = |version, ready, at: i64| {
        let mut pod = pod(1, version, ready);
        pod["metadata"]["creationTimestamp"] = json!(moment(-3_600_000));
        pod["status"]["conditions"][0]["lastTransitionTime"] = json!(moment(at));
        pod
    };
    let step = |object: &Value, at: i64| {
        apply(&reflector, &owned(), object);
        for id in reflector.take_dirty(9) {
            reflector.date(id, Time(NOW.0 + at));
        }
        since(&reflector, 1)
    };
    let ready = "conditions[Ready].lastTransitionTime".to_owned();
    assert_eq!(step(&turned(5, "False", -60_000), 0), Some((-60_000, ready)), "it says so itself");
    assert_eq!(step(&turned(6, "True", 1_000), 1_000), None, "it is ready");
    assert_eq!(step(&turned(7, "False", 2_000), 2_500), Some((2_500, "seen".to_owned())));
    let mut failing = turned(8, "False", 9_000);
    failing["status"]["containerStatuses"] =
        json!([{ "name": "a", "ready": false, "state": { "waiting": { "reason": "CrashLoopBackOff" } } }]);
    assert_eq!(step(&failing, 9_000), Some((2_500, "seen".to_owned())), "another reason is no new beginning");
    let mut leaving = turned(9, "False", 9_000);
    leaving["metadata"]["deletionTimestamp"] = json!(moment(40_000));
    let deletion = "metadata.deletionTimestamp".to_owned();
    assert_eq!(step(&leaving, 10_000), Some((10_000, deletion.clone())), "not in the future");
    let mut still = leaving.clone();
    still["metadata"]["resourceVersion"] = json!("10");
    still["status"]["phase"] = json!("Failed");
    assert_eq!(step(&still, 20_000), Some((10_000, deletion)), "and it does not move on");
}

#[test]
fn what_tells_no_time_has_not_been_ready_since_it_was_created_or_for_as_long_as_anybody_looked() {
    for (created, expected) in [(-2_000, (-2_000, "metadata.creationTimestamp")), (-60_000, (0, "firstSeen"))]
    {
        let reflector = Reflector::new(|| ());
        let mut pod = pod(1, 5, "False");
        pod["metadata"]["creationTimestamp"] = json!(Time(NOW.0 + created).to_string());
        let sets = Interest { judge: Kind::of("apps", "StatefulSet"), ..owned() };
        apply(&reflector, &sets, &pod);
        for id in reflector.take_dirty(9) {
            reflector.date(id, NOW);
        }
        assert_eq!(since(&reflector, 1), Some((expected.0, expected.1.to_owned())));
    }
}

#[test]
fn of_a_child_whose_text_nobody_keeps_it_is_known_who_set_its_finalizers() {
    let reflector = Reflector::new(|| ());
    let see = |version: u32, finalizers: Value, by: Value| {
        let mut pod = pod(1, version, "True");
        pod["metadata"]["finalizers"] = finalizers;
        pod["metadata"]["managedFields"] = by;
        let child: Child = serde_json::from_str(&pod.to_string()).unwrap();
        reflector.apply(&owned(), &child, None);
        let managers = |change: watcher::reflector::FinalizerChange| {
            let pairs = change.managers.into_iter().map(|(name, by)| format!("{name} by {by}"));
            pairs.collect::<Vec<_>>().join(", ")
        };
        reflector.take_finalizer_changes().into_iter().map(managers).collect::<Vec<_>>()
    };
    let set = |by: &str, name: &str| {
        json!({"manager": by, "operation": "Update", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {}, "f:finalizers": {".": {}, format!("v:\"{name}\""): {}}}, "f:spec": {}}})
    };
    see(1, json!([]), json!([]));
    assert_eq!(see(2, json!(["a/x"]), json!([set("kopf", "a/x")])), ["a/x by kopf"]);
    let both = json!([set("kopf", "a/x"), set("shop-controller", "b/y")]);
    assert_eq!(see(3, json!(["a/x", "b/y"]), both), ["a/x by kopf, b/y by shop-controller"]);
    for odd in [json!("none"), json!([7, {"manager": 5}, {"manager": "m", "fieldsV1": {"f:metadata": []}}])] {
        assert_eq!(
            see(4, json!(["a/x"]), odd.clone()).len(),
            usize::from(odd == json!("none")),
            "and nothing breaks"
        );
    }
}

#[test]
fn a_type_that_is_given_up_is_said_by_the_fallback_from_the_next_reading_on_and_by_nothing_else() {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].fallback = Some("ChildrenReady".into());
    let see = |interest: &Interest, version: u32| {
        let entry =
            |kind: &str| json!({"type": kind, "status": "False", "reason": "ChildrenMissing", "message": ""});
        let status = json!({"conditions": [entry("Ready")]});
        apply(&reflector, interest, &widget(version, 1, &status));
        let said = reflector.read(reflector.find(&uid(1_000)).unwrap(), |row| {
            let parent = row.parent.as_ref().unwrap();
            (parent.targets[0].condition.clone().unwrap(), parent.view.answers[0].owned)
        });
        said.map(|(condition, owned)| (condition.to_string(), owned)).unwrap()
    };
    assert_eq!(see(&interest, 1), ("Ready".to_owned(), false));
    reflector.give_up(reflector.find(&uid(1_000)).unwrap());
    for version in [2, 3, 4] {
        assert_eq!(see(&interest, version), ("ChildrenReady".to_owned(), false));
        reflector.give_up(reflector.find(&uid(1_000)).unwrap());
    }
    // Another type is another matter, and without a fallback there is nowhere else to go.
    interest.parent[0].condition = "Healthy".into();
    assert_eq!(see(&interest, 5), ("Healthy".to_owned(), false));
    interest.parent[0].condition = "Ready".into();
    interest.parent[0].fallback = None;
    assert_eq!(see(&interest, 6), ("Ready".to_owned(), false));
}

/// The evidence of parents that are seen one after another, each with or without a mark, once all were seen.
fn evidence_of(marks: Marks, seen: &[(u32, &str, bool)]) -> Vec<aggregator::Evidence> {
    let reflector = Reflector::new(|| ());
    let mut interest = parents(vec![]);
    interest.parent[0].marks = marks;
    for (n, namespace, marked) in seen {
        let mut parent = widget(*n, 1, &json!(null));
        parent["metadata"]["uid"] = json!(uid(1_000 + n));
        parent["metadata"]["namespace"] = json!(namespace);
        if *marked {
            let mark = json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n"});
            parent["metadata"]["annotations"] = mark;
        }
        apply(&reflector, &interest, &parent);
    }
    let evidence = |(n, ..): &(u32, &str, bool)| {
        let id = reflector.find(&uid(1_000 + n)).unwrap();
        reflector.view(id, NOW, |view| view.unwrap().parent.unwrap().evidence)
    };
    seen.iter().map(evidence).collect()
}

#[test]
fn a_parent_without_a_mark_is_not_handled_where_its_neighbour_has_one_whichever_was_seen_first() {
    use aggregator::Evidence::{Handled, Silent, Unmarked};
    let shop = [(1, "shop", false), (2, "shop", true), (3, "shop", false)];
    assert_eq!(evidence_of(Marks::Learned, &shop), [Unmarked, Handled, Unmarked]);
    assert_eq!(evidence_of(Marks::Optional, &shop), [Silent, Handled, Silent]);
    let alone = [(1, "shop", false)];
    assert_eq!(evidence_of(Marks::Learned, &alone), [Silent]);
    assert_eq!(evidence_of(Marks::Expected, &alone), [Unmarked]);
    // A mark can be forged by whoever may write in its namespace, and there alone it counts.
    let elsewhere = [(1, "shop", false), (2, "bank", true)];
    assert_eq!(evidence_of(Marks::Learned, &elsewhere), [Silent, Handled]);
}
