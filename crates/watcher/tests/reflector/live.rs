//! Live reads beside lists: what a list does not have is gone, whatever a read brought before it was answered.

use std::thread;

use readiness::Level;
use serde_json::Value;
use watcher::reflector::{ApplyOutcome, ReadStart, Reflector};
use watcher::{ParentObject, ReflectorObject};

use crate::objects::{NOW, PODS, apply, apply_listed, judge_by, level, owned, pod, uid};

fn listed(objects: &[Value]) -> Reflector {
    let reflector = Reflector::new(|| ());
    judge_by(&reflector, &owned());
    list(&reflector, objects);
    reflector
}

fn list(reflector: &Reflector, objects: &[Value]) -> Option<usize> {
    let pass = reflector.begin_list(PODS, None);
    for object in objects {
        apply_listed(reflector, &pass, object);
    }
    reflector.finish_list(&pass)
}

fn read_live(reflector: &Reflector, start: ReadStart, object: &Value) -> ApplyOutcome {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    reflector.apply_live(PODS, start, object.as_child(), None).0
}

#[test]
fn what_was_deleted_between_a_read_and_the_answer_of_the_list_beside_it_does_not_stay() {
    let reflector = listed(&[]);
    let pass = reflector.begin_list(PODS, None);
    let during = reflector.start_read();
    assert_eq!(read_live(&reflector, during, &pod(1, 5, "True")), ApplyOutcome::Refused);
    assert_eq!(reflector.finish_list(&pass), Some(0));
    assert_eq!(level(&reflector, 1), None);
    assert_eq!(read_live(&reflector, during, &pod(1, 5, "True")), ApplyOutcome::Refused, "nor afterwards");
    assert_eq!(level(&reflector, 1), None);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 5, "True")), ApplyOutcome::Moved(0), "the watch knows");
}

#[test]
fn a_read_that_began_before_a_list_and_is_answered_after_it_brings_nothing_that_the_list_does_not_have() {
    let reflector = listed(&[pod(2, 3, "True")]);
    let before = reflector.start_read();
    assert_eq!(list(&reflector, &[pod(2, 3, "True")]), Some(0));
    assert_eq!(read_live(&reflector, before, &pod(1, 5, "True")), ApplyOutcome::Refused);
    assert_eq!(
        read_live(&reflector, before, &pod(2, 6, "False")),
        ApplyOutcome::Moved(3),
        "this one is held"
    );
    let after = reflector.start_read();
    assert_eq!(read_live(&reflector, after, &pod(1, 5, "True")), ApplyOutcome::Moved(0));
}

#[test]
fn a_newer_version_that_was_read_beside_a_list_does_not_keep_an_object_that_the_list_lacks() {
    let reflector = listed(&[pod(1, 5, "True")]);
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(read_live(&reflector, reflector.start_read(), &pod(1, 6, "False")), ApplyOutcome::Moved(5));
    assert_eq!(level(&reflector, 1), Some(Level::Progressing), "it is news all the same");
    assert_eq!(reflector.finish_list(&pass), Some(1));
    assert_eq!(level(&reflector, 1), None);
}

#[test]
fn a_newer_version_that_was_read_beside_a_list_stands_where_the_list_has_an_older_one() {
    let reflector = listed(&[pod(1, 5, "True"), pod(2, 5, "True")]);
    let pass = reflector.begin_list(PODS, None);
    let during = reflector.start_read();
    // One page before the read, one after it.
    apply_listed(&reflector, &pass, &pod(1, 5, "True"));
    for n in [1, 2] {
        assert_eq!(read_live(&reflector, during, &pod(n, 7, "False")), ApplyOutcome::Moved(5));
    }
    assert_eq!(apply_listed(&reflector, &pass, &pod(2, 5, "True")), ApplyOutcome::Stale);
    assert_eq!(reflector.finish_list(&pass), Some(0));
    assert_eq!([1, 2].map(|n| level(&reflector, n)), [Some(Level::Progressing); 2]);
    assert_eq!(list(&reflector, &[pod(1, 7, "False")]), Some(1), "the next list tells of both");
}

#[test]
fn a_list_that_breaks_off_leaves_what_was_read_beside_it_to_the_next() {
    let reflector = listed(&[pod(1, 5, "True")]);
    reflector.begin_list(PODS, None);
    read_live(&reflector, reflector.start_read(), &pod(1, 6, "False"));
    assert_eq!(list(&reflector, &[pod(1, 6, "False")]), Some(0));
    reflector.begin_list(PODS, None);
    read_live(&reflector, reflector.start_read(), &pod(1, 7, "True"));
    assert_eq!(list(&reflector, &[]), Some(1));
    assert_eq!(level(&reflector, 1), None);
}

#[test]
fn a_live_read_that_races_with_the_item_of_a_list_leaves_the_newer_version_whoever_is_first() {
    let reflector = listed(&[]);
    for round in 0..3_000_u32 {
        let version = 10 * round + 10;
        list(&reflector, &[pod(1, version, "True")]);
        let pass = reflector.begin_list(PODS, None);
        let start = reflector.start_read();
        thread::scope(|scope| {
            scope.spawn(|| apply_listed(&reflector, &pass, &pod(1, version + 1, "True")));
            scope.spawn(|| read_live(&reflector, start, &pod(1, version + 2, "False")));
        });
        assert_eq!(reflector.finish_list(&pass), Some(0), "round {round}");
        assert_eq!(level(&reflector, 1), Some(Level::Progressing), "round {round}");
    }
}

#[test]
fn what_is_in_a_namespace_that_no_list_covers_is_taken_from_no_live_read() {
    let reflector = Reflector::new(|| ());
    judge_by(&reflector, &owned());
    let pass = reflector.begin_list(PODS, Some("bank"));
    reflector.finish_list(&pass);
    let start = reflector.start_read();
    assert_eq!(read_live(&reflector, start, &pod(1, 5, "True")), ApplyOutcome::Refused, "it is in shop");
    let mut elsewhere = pod(2, 5, "True");
    elsewhere["metadata"]["namespace"] = serde_json::json!("bank");
    assert_eq!(read_live(&reflector, start, &elsewhere), ApplyOutcome::Moved(0));
}

#[test]
fn a_place_that_was_taken_for_a_row_which_is_not_put_is_given_back() {
    let reflector = listed(&[]);
    let start = reflector.start_read();
    for n in 1..50 {
        thread::scope(|scope| {
            scope.spawn(|| list(&reflector, &[]));
            scope.spawn(|| read_live(&reflector, start, &pod(n, 5, "True")));
        });
    }
    list(&reflector, &[]);
    for id in reflector.take_dirty(10_000) {
        reflector.with_view(id, NOW, |view| assert!(view.is_none()));
        reflector.recycle_slot(id);
    }
    assert_eq!(reflector.len(), 0);
}

#[test]
fn a_list_of_one_kind_settles_no_deletion_of_another() {
    let reflector = listed(&[pod(1, 5, "True")]);
    let id = reflector.find_object(&uid(1)).unwrap();
    let awaited = reflector.apply_live_absence(id, 5).unwrap();
    let other = reflector.begin_list(aggregator::KindId(77), None);
    reflector.finish_list(&other);
    assert!(reflector.is_still_awaited(&awaited));
    list(&reflector, &[]);
    assert!(!reflector.is_still_awaited(&awaited));
}
