use aggregator::PolicyId;
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
};
use watcher::wire::ChildObject;

use super::*;
use crate::MetadataComparison;

const KIND: KindId = KindId(3);

fn interest() -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Database".into() };
    Interest {
        assessment_rules: vec![AssessmentRule {
            limits: readiness::StuckLimits::default(),
            rule: None,
            remembers_outcome: false,
        }],
        child: vec![ChildRule {
            policy: PolicyId(1),
            group: 0,
            rule_index: 0,
            find,
            allowed: AllowedNamespaces::default(),
            ignore: None,
            made_by_none_of: [].into(),
            scope: NamespaceScope::default(),
            retention: OutcomeRetention::Forget,
        }],
        ..Interest::for_kind(KIND, "apps", "Deployment")
    }
}

fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-0000000000{n:02}")
}

fn deployment(n: u32, version: u32) -> ChildObject {
    let owner = serde_json::json!([{"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99)}]);
    let object = serde_json::json!({"metadata": {"namespace": "shop", "name": "web", "uid": uid(n),
        "resourceVersion": version.to_string(), "ownerReferences": owner}});
    serde_json::from_str(&object.to_string()).unwrap()
}

fn shown(n: u32, version: u32) -> (Reflector, Option<KnownObject>) {
    let reflector = Reflector::new(|| ());
    reflector.set_interest(interest());
    let pass = reflector.begin_list(KIND, None);
    reflector.finish_list(&pass);
    reflector.apply_object(KIND, &deployment(n, version), None);
    let known = held_objects(&reflector, KIND, None).pop().map(|held| held.known);
    assert!(known.is_some(), "nothing is held");
    (reflector, known)
}

fn holds(reflector: &Reflector, n: u32) -> bool {
    reflector.find_object(&uid(n)).is_some_and(|id| reflector.read_row(id, |_| ()).is_some())
}

#[test]
fn where_another_one_bears_the_name_the_one_that_was_expected_is_gone() {
    let (reflector, known) = shown(1, 5);
    let start = reflector.start_read();
    assert_eq!(apply_live_read(&reflector, KIND, start, known, Some(&deployment(2, 8))).len(), 2);
    assert!(!holds(&reflector, 1) && holds(&reflector, 2));
}

#[test]
fn a_version_older_than_was_known_shows_that_the_history_has_gone_back_and_is_not_applied() {
    let (reflector, known) = shown(1, 5);
    let start = reflector.start_read();
    let lags = apply_live_read(&reflector, KIND, start, known, Some(&deployment(1, 3)));
    assert!(matches!(&lags[..], [lag] if lag.went_back() && reflector.is_still_awaited(&lag.awaited)));
    let version = |reflector: &Reflector| {
        let id = reflector.find_object(&uid(1)).unwrap();
        reflector.read_row(id, |row| row.version)
    };
    assert_eq!(version(&reflector), Some(5));
    // What was observed since the read was ordered is newer than its answer, and nothing is wrong.
    reflector.apply_object(KIND, &deployment(1, 6), None);
    assert!(apply_live_read(&reflector, KIND, start, known, Some(&deployment(1, 5))).is_empty());
}

#[test]
fn a_list_with_an_older_version_than_was_held_before_it_began_calls_for_a_read() {
    let (reflector, _) = shown(1, 5);
    let begun = MetadataComparison::begin(&reflector, KIND, None);
    reflector.apply_object(KIND, &deployment(1, 9), None);
    let now = KnownObject::of(&reflector, &uid(1));
    let reads = |version| {
        let mut comparison = begun.clone();
        comparison.compare_page(&reflector, &[deployment(1, version).meta]);
        comparison.into_outdated(9).reads
    };
    assert!(reads(5).is_empty() && reads(7).is_empty(), "it may be overtaken");
    assert!(matches!(&reads(4)[..], [read] if read.expected_object(&reflector) == now));
}

#[test]
fn an_answer_that_was_overtaken_takes_nobody_away() {
    let (reflector, known) = shown(1, 5);
    reflector.apply_object(KIND, &deployment(1, 6), None);
    let start = reflector.start_read();
    assert!(apply_live_read::<ChildObject>(&reflector, KIND, start, known, None).is_empty());
    assert!(holds(&reflector, 1));
    let (reflector, known) = shown(1, 5);
    let start = reflector.start_read();
    assert_eq!(apply_live_read::<ChildObject>(&reflector, KIND, start, known, None).len(), 1);
    assert!(!holds(&reflector, 1));
}

#[test]
fn an_object_that_changes_has_the_same_read_and_its_version_is_that_of_the_sending() {
    let (reflector, before) = shown(1, 5);
    let read = |reflector: &Reflector| held_objects(reflector, KIND, None).pop().unwrap().into_read();
    let ordered = read(&reflector);
    assert_eq!(ordered.expected_object(&reflector), before);
    reflector.apply_object(KIND, &deployment(1, 6), None);
    assert_eq!(ordered, read(&reflector));
    let now = KnownObject::of(&reflector, &uid(1));
    assert!(now.is_some() && now != before && ordered.expected_object(&reflector) == now);
}

#[test]
fn an_id_that_belongs_to_another_object_by_now_is_not_taken_for_the_one_that_was_expected() {
    let (reflector, known) = shown(1, 5);
    let ordered = held_objects(&reflector, KIND, None).pop().unwrap().into_read();
    reflector.delete_object(&uid(1), 0);
    assert!(ordered.is_obsolete(&reflector), "its deletion was observed");
    let LiveRead::One { kind, namespace, expected, .. } = ordered else { panic!("a read of one") };
    let other =
        |name: &str| LiveRead::One { kind, namespace: namespace.clone(), name: name.to_owned(), expected };
    reflector.apply_object(KIND, &deployment(1, 7), None);
    assert!(known.is_some_and(|known| reflector.find_object(&uid(1)) == Some(known.id)));
    assert!(other("web").expected_object(&reflector).is_some() && !other("web").is_obsolete(&reflector));
    assert!(other("db").expected_object(&reflector).is_none() && other("db").is_obsolete(&reflector));
}

#[test]
fn what_a_complete_list_lacks_is_read() {
    let (reflector, _) = shown(1, 5);
    let held = || held_objects(&reflector, KIND, Some("shop"));
    assert!(unlisted_reads(&reflector, held(), &[deployment(1, 5)], 9).is_empty());
    let reads = unlisted_reads::<ChildObject>(&reflector, held(), &[], 9);
    assert!(matches!(&reads[..], [LiveRead::One { name, .. }] if name == "web"));
    assert!(unlisted_reads::<ChildObject>(&reflector, held(), &[], 0).is_empty());
}

#[test]
fn what_is_held_has_another_digest_after_each_change() {
    let (reflector, _) = shown(1, 5);
    let digest = || MetadataComparison::begin(&reflector, KIND, Some("shop")).held_digest();
    let first = digest();
    assert_eq!(first, digest());
    reflector.apply_object(KIND, &deployment(1, 6), None);
    let second = digest();
    reflector.apply_object(KIND, &deployment(2, 6), None);
    let third = digest();
    reflector.delete_object(&uid(2), 7);
    assert!(first != second && second != third && third != first);
    assert_eq!(digest(), second);
}

#[test]
fn pages_are_compared_one_by_one_and_a_list_that_begins_again_is_as_new() {
    let (reflector, _) = shown(1, 5);
    reflector.apply_object(KIND, &deployment(2, 5), None);
    let mut comparison = MetadataComparison::begin(&reflector, KIND, None);
    comparison.compare_page(&reflector, &[deployment(1, 9).meta]);
    comparison.restart();
    comparison.compare_page(&reflector, &[deployment(1, 5).meta]);
    comparison.compare_page(&reflector, &[deployment(3, 5).meta]);
    assert_eq!(comparison.listed_count(), 2);
    let outdated = comparison.clone().into_outdated(9);
    assert!(outdated.are_all && outdated.reads.len() == 2, "one is new and one is gone: {outdated:?}");
    let most = comparison.into_outdated(0);
    assert!(!most.are_all && most.reads.is_empty());
}
