//! The numbers of all parents, which are kept and not counted.

#![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

mod shadow_cluster;

use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::FleetNumbers;
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::plan::{ElsewhereRule, Interest, LabelMatcher};
use watcher::reflector::RulingPolicy;

use shadow_cluster::{ShadowCluster, object, pod};

fn database(name: &str, version: u64, status: &Value) -> ParentObject {
    object("Database", name, None, version, status)
}

fn databases(objects: &[ParentObject]) -> ShadowCluster {
    ShadowCluster::begin(&[("Database", ("", "Pod"))], objects)
}

/// The numbers, brought up to date; they equal those that are counted.
fn numbers(cluster: &mut ShadowCluster) -> &FleetNumbers {
    cluster.core.refresh_numbers(cluster.now);
    let core = &cluster.core;
    let counted = core.numbers.recount(&core.engine, &core.reflector, cluster.now);
    assert_eq!(core.numbers.find_difference(&counted), None);
    &core.numbers
}

/// Names of the parents that are not ready, with the reason and for how many seconds, worst first.
fn unready(cluster: &mut ShadowCluster) -> Vec<(String, ParentReason, i64)> {
    let all: Vec<_> = numbers(cluster).unready().collect();
    let name = |id| cluster.core.reflector.read_row(id, |row| row.name.to_string()).unwrap();
    let told = |((id, _), reason, since): (_, _, Time)| (name(id), reason, (cluster.now.0 - since.0) / 1_000);
    all.into_iter().map(told).collect()
}

#[test]
fn what_failed_a_moment_ago_comes_before_what_has_been_starting_for_long_and_of_these_the_oldest_first() {
    let mut fleet =
        databases(&[database("old", 1, &Value::Null), pod("old-0", "Database/old", 1, "Pending")]);
    assert_eq!(unready(&mut fleet).len(), 1);
    for (name, phase) in [("young", "Pending"), ("broken", "Failed"), ("youngest", "Pending")] {
        fleet.apply(&database(name, 1, &Value::Null));
        unready(&mut fleet);
        fleet.apply(&pod(&format!("{name}-0"), &format!("Database/{name}"), 1, phase));
    }
    let order =
        |fleet: &mut ShadowCluster| unready(fleet).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(order(&mut fleet), ["broken", "old", "young", "youngest"]);
    fleet.apply(&pod("youngest-0", "Database/youngest", 2, "Failed"));
    assert_eq!(order(&mut fleet), ["broken", "youngest", "old", "young"]);
    let (_, reason, seconds) = unready(&mut fleet)[1].clone();
    assert_eq!((reason, seconds), (ParentReason::ChildrenFailed, 10), "it has not been ready since it began");
}

#[test]
fn what_others_write_is_counted_although_no_answer_moves() {
    let mut fleet = databases(&[database("a", 1, &Value::Null), pod("a-0", "Database/a", 1, "Pending")]);
    let policy = fleet.core.engine.evaluation_states().next().unwrap().policy;
    let counts = |fleet: &mut ShadowCluster| {
        let counts = numbers(fleet).counts_of(policy).cloned().unwrap_or_default();
        (counts.undefaulted, counts.disagreeing, counts.owned.values().sum::<u64>())
    };
    assert_eq!(counts(&mut fleet), (1, 0, 0), "its CRD has no default");
    fleet.apply(&database("a", 2, &json!({ "observedGeneration": 1 })));
    assert_eq!(counts(&mut fleet), (0, 0, 0));
    fleet.apply(&database("a", 3, &theirs("True")));
    assert_eq!(counts(&mut fleet), (0, 1, 1));
    fleet.apply(&database("a", 4, &theirs("False")));
    assert_eq!(counts(&mut fleet), (0, 0, 1));
}

/// A status whose owner says this of its readiness.
fn theirs(status: &str) -> Value {
    let ready = json!({ "type": "Ready", "status": status, "reason": "Theirs", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    json!({ "observedGeneration": 1, "conditions": [ready] })
}

#[test]
fn an_owner_of_the_condition_who_says_otherwise_than_the_children_is_counted_where_nothing_is_written() {
    let objects = [database("a", 1, &theirs("True")), pod("a-0", "Database/a", 1, "Pending")];
    let mut fleet = ShadowCluster::begin_in_mode("write", &[("Database", ("", "Pod"))], &objects);
    let policy = fleet.core.engine.evaluation_states().next().unwrap().policy;
    let counts = |fleet: &mut ShadowCluster| {
        let counts = numbers(fleet).counts_of(policy).cloned().unwrap_or_default();
        (counts.owner_disagreeing, counts.disagreeing, counts.owned.values().sum::<u64>())
    };
    assert_eq!(counts(&mut fleet), (1, 0, 1), "its pod is pending");
    fleet.apply(&database("a", 2, &theirs("False")));
    assert_eq!(counts(&mut fleet), (0, 0, 1));
}

#[test]
fn a_parent_that_another_release_rules_is_known_as_left_to_it_until_it_goes() {
    let mut fleet = databases(&[database("a", 1, &Value::Null), pod("a-0", "Database/a", 1, "Pending")]);
    let policy = fleet.core.engine.evaluation_states().next().unwrap().policy;
    let left = |fleet: &mut ShadowCluster| {
        let (count, named) = numbers(fleet).left_by(policy);
        let named: Vec<_> = named.map(|(name, by)| (name.to_owned(), by.clone())).collect();
        assert_eq!(count, named.len());
        (named, fleet.core.engine.evaluation_states().count())
    };
    assert_eq!(left(&mut fleet), (vec![], 1));
    let kind = fleet.kinds.iter().find(|(_, kind)| kind == "Database").unwrap().0;
    let own = fleet.core.reflector.interest(kind).unwrap();
    let other: RulingPolicy = RulingPolicy::Other("old of release ns/x".into());
    let rule = ElsewhereRule {
        selector: LabelMatcher::default(),
        namespace_selector: None,
        namespaces: Vec::new(),
        types: vec!["Ready".into()],
        policy: "old of release ns/x".into(),
        outranks: vec![policy],
    };
    fleet.core.reflector.set_interest(Interest { elsewhere: vec![rule], ..(*own).clone() });
    fleet.apply(&database("a", 2, &Value::Null));
    assert_eq!(left(&mut fleet), (vec![("shop/a".to_owned(), other)], 0));
    fleet.core.reflector.delete_object("a", 3);
    assert_eq!(left(&mut fleet), (vec![], 0));
    fleet.core.reflector.set_interest((*own).clone());
    fleet.apply(&database("b", 4, &Value::Null));
    assert_eq!(left(&mut fleet), (vec![], 1));
}
