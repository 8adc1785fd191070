//! What changed labels of namespaces cost.

use std::time::Duration;

use aggregator::Acceptance;
use policy::{IdRegistry, PolicyBook, PolicyInUse, PolicySettings, UnreadLibraries, read_policy};
use serde_json::json;

use super::*;

fn namespace(name: &str, labels: &[(&str, &str)]) -> ChildObject {
    let labels: serde_json::Map<_, _> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let object = json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": labels } });
    serde_json::from_str(&object.to_string()).expect("a namespace")
}

/// Policies in force: one for each kind, with what the labels of its parents' namespaces have to be.
fn policies(choosing: &[(&str, Option<&str>)]) -> Vec<PolicyInUse> {
    let found: Vec<_> = choosing
        .iter()
        .map(|(kind, team)| {
            let selector = team.map(|team| json!({ "matchLabels": { "team": team } }));
            let object = json!({
                "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
                "metadata": { "name": kind.to_lowercase(), "uid": kind, "generation": 1 },
                "spec": { "parent": { "group": "example.com", "kind": kind, "namespaceSelector": selector } },
            });
            read_policy(&serde_json::from_value(object).expect("a policy"))
        })
        .collect();
    let mut book = PolicyBook::default();
    let settings = PolicySettings::with_stuck_after(Duration::from_mins(10));
    let all = StagedList::of_complete(found.into_iter().enumerate());
    let all = all.complete_list().expect("a complete list");
    book.decide(all, std::iter::empty(), &settings, &UnreadLibraries, &mut IdRegistry::default());
    assert!(book.in_use.iter().all(|policy| policy.acceptance == Acceptance::Accepted), "{:?}", book.refused);
    book.in_use
}

fn listed(items: &[(&str, &[(&str, &str)])]) -> StagedList<Box<str>, NamespaceLabels> {
    let mut known = StagedList::default();
    list(&mut known, items);
    known
}

fn list(
    known: &mut StagedList<Box<str>, NamespaceLabels>,
    items: &[(&str, &[(&str, &str)])],
) -> Vec<LabelChange> {
    apply_namespace_event(known, FollowEvent::Init);
    for (name, labels) in items {
        assert_eq!(apply_namespace_event(known, FollowEvent::InitApply(namespace(name, labels))), []);
    }
    apply_namespace_event(known, FollowEvent::InitDone)
}

/// Kinds of the parents of the policies that choose otherwise.
fn choosing(in_use: &[PolicyInUse], changes: &[LabelChange]) -> Vec<String> {
    let policies = in_use.iter().map(|policy| &policy.compiled);
    policies_choosing_otherwise(policies, changes).map(|policy| policy.parent.kind.to_lowercase()).collect()
}

#[test]
fn a_label_by_which_no_policy_chooses_costs_no_list() {
    let in_use = policies(&[("Database", Some("a")), ("Queue", Some("b")), ("Cache", None)]);
    let before = [("team", "a"), ("tier", "1")];
    let mut known = listed(&[("shop", &before), ("bank", &[])]);
    for (labels, otherwise) in [
        (vec![("team", "a"), ("tier", "2")], vec![]),
        (vec![("team", "a")], vec![]),
        (vec![("team", "c")], vec!["database"]),
        (vec![("team", "d"), ("tier", "2")], vec![]),
        (vec![("team", "b")], vec!["queue"]),
        (vec![("team", "a")], vec!["database", "queue"]),
    ] {
        let changes = apply_namespace_event(&mut known, FollowEvent::Apply(namespace("shop", &labels)));
        assert_eq!(changes.len(), 1, "the reflector is told");
        let mut found = choosing(&in_use, &changes);
        found.sort_unstable();
        assert_eq!(found, otherwise, "{labels:?}");
    }
    let gone = apply_namespace_event(&mut known, FollowEvent::Delete(namespace("shop", &[])));
    assert_eq!(choosing(&in_use, &gone), ["database"]);
}

#[test]
fn a_list_tells_what_changed_since_the_one_before() {
    let in_use = policies(&[("Database", Some("a"))]);
    let mut known = listed(&[("shop", &[("team", "a")]), ("bank", &[("team", "b")])]);
    assert_eq!(list(&mut known, &[("shop", &[("team", "a")]), ("bank", &[("team", "b")])]), []);
    let changes = list(&mut known, &[("bank", &[("team", "c")])]);
    let changed: Vec<&str> = changes.iter().map(|change| &*change.name).collect();
    assert_eq!(changed, ["bank", "shop"]);
    assert_eq!(choosing(&in_use, &changes), ["database"], "for shop is gone");
}

#[tokio::test(start_paused = true)]
async fn labels_that_flip_without_end_list_a_kind_ever_more_rarely_and_no_other() {
    let (kind, other) = (KindId(1), KindId(2));
    let mut schedule = RelistSchedule::default();
    let begin = Instant::now();
    let mut lists = Vec::new();
    while begin.elapsed() < Duration::from_secs(100) {
        schedule.request_relist(kind, Instant::now());
        for listed in schedule.take_due(Instant::now()) {
            lists.push((listed, begin.elapsed().as_secs()));
        }
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(lists, [0, 1, 3, 7, 15, 31, 61, 91].map(|at| (kind, at)));
    schedule.request_relist(other, Instant::now());
    assert_eq!(schedule.take_due(Instant::now()), BTreeSet::from([other]), "the first one at once");
    schedule.wait_until_due().await;
    assert_eq!(schedule.take_due(Instant::now()), BTreeSet::from([kind]), "the last change is not forgotten");
    tokio::time::advance(Duration::from_mins(2)).await;
    for seconds in [0, 1] {
        schedule.request_relist(kind, Instant::now());
        assert_eq!(
            schedule.take_due(Instant::now()),
            BTreeSet::from([kind]),
            "at once again, then after {seconds} s"
        );
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}
