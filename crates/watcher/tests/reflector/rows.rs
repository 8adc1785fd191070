//! Rows: creation, changes and removal.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use readiness::Level;
use serde_json::{Value, json};
use watcher::reflector::{ApplyOutcome, Reflector};
use watcher::{ParentObject, ReflectorObject};

use crate::objects::{NOW, PODS, apply, apply_listed, judge_by, level, owned, pod, uid};

#[test]
fn an_object_that_no_parent_owns_gets_no_row() {
    let reflector = Reflector::new(|| ());
    let mut stray = pod(1, 5, "True");
    stray["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid(9)}]);
    assert_eq!(apply(&reflector, &owned(), &stray), ApplyOutcome::Unwanted);
    assert!(reflector.is_empty() && reflector.take_dirty(9).is_empty());
    assert_eq!(apply(&reflector, &owned(), &pod(1, 6, "True")), ApplyOutcome::Moved(0));
    assert_eq!(apply(&reflector, &owned(), &stray_again(&stray)), ApplyOutcome::Unwanted);
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
    assert_eq!(apply(&reflector, &owned(), &pod(1, 5, "True")), ApplyOutcome::Moved(0));
    let mut chatter = pod(1, 6, "True");
    chatter["metadata"]["annotations"] = json!({"touched": "again"});
    assert_eq!(apply(&reflector, &owned(), &chatter), ApplyOutcome::Same);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 7, "False")), ApplyOutcome::Moved(6));
    assert_eq!(reflector.take_dirty(9).len(), 1, "the set coalesces");
    assert_eq!(woken.load(Ordering::Relaxed), 1, "one wake for what nobody has taken yet");
}

#[test]
fn nothing_older_than_what_is_held_is_applied() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 50, "False"));
    assert_eq!(apply(&reflector, &owned(), &pod(1, 49, "True")), ApplyOutcome::Stale);
    assert_ne!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn a_live_read_that_a_deletion_overtook_brings_nothing_back() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 50, "True"));
    reflector.delete_object(&uid(1), 60);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 50, "True")), ApplyOutcome::Stale);
    assert_eq!(level(&reflector, 1), None);
}

#[test]
fn what_comes_late_does_not_bring_back_an_object_that_is_not_owned_any_more() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "False"));
    let mut disowned = pod(1, 9, "True");
    disowned["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(apply(&reflector, &owned(), &disowned), ApplyOutcome::Unwanted);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 5, "False")), ApplyOutcome::Stale);
    assert_eq!(level(&reflector, 1), None);
    assert!(
        matches!(apply(&reflector, &owned(), &pod(1, 9, "True")), ApplyOutcome::Moved(_)),
        "by other rules"
    );
    apply(&reflector, &owned(), &disowned);
    assert!(
        matches!(apply(&reflector, &owned(), &pod(1, 11, "True")), ApplyOutcome::Moved(_)),
        "owned again"
    );
}

#[test]
fn identity_is_the_uid_and_not_the_name() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "True"));
    let mut again = pod(1, 6, "False");
    again["metadata"]["uid"] = json!(uid(2));
    apply(&reflector, &owned(), &again);
    assert_ne!(reflector.find_object(&uid(1)), reflector.find_object(&uid(2)));
    reflector.delete_object(&uid(1), 7);
    assert_eq!(level(&reflector, 1), None);
    assert!(level(&reflector, 2).is_some(), "deleting the old one does not touch the new one");
}

#[test]
fn a_relist_is_mark_and_sweep_within_its_scope() {
    let reflector = Reflector::new(|| ());
    judge_by(&reflector, &owned());
    reflector.begin_list(PODS, Some("shop"));
    for n in 1..=3 {
        apply(&reflector, &owned(), &pod(n, n, "True"));
    }
    let mut elsewhere = pod(4, 4, "True");
    elsewhere["metadata"]["namespace"] = json!("bank");
    let bank = reflector.begin_list(PODS, Some("bank"));
    apply_listed(&reflector, &bank, &elsewhere);
    assert_eq!(reflector.finish_list(&bank), Some(0));

    reflector.begin_list(PODS, Some("shop"));
    apply(&reflector, &owned(), &pod(2, 9, "True"));
    // The list breaks off and begins again: nothing is deleted before one is complete.
    let shop = reflector.begin_list(PODS, Some("shop"));
    assert!(level(&reflector, 1).is_some());
    apply_listed(&reflector, &shop, &pod(1, 10, "True"));
    assert_eq!(reflector.finish_list(&shop), Some(2));
    assert_eq!([1, 2, 3, 4].map(|n| level(&reflector, n).is_some()), [true, false, false, true]);
}

#[test]
fn a_place_is_used_again_only_after_the_engine_let_go() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "True"));
    let owner = reflector.find_object(&uid(1_000)).expect("the owner has a place before it is seen");
    reflector.delete_object(&uid(1), 6);
    let dirty = reflector.take_dirty(9);
    assert!(dirty.contains(&owner), "the owner that nobody refers to any more is let go as well");
    assert!(reflector.find_object(&uid(1)).is_some(), "until the engine has heard of it");
    for id in dirty {
        assert!(reflector.with_view(id, NOW, |view| view.is_none()));
        reflector.recycle_slot(id);
    }
    assert!(reflector.is_empty());
}

#[test]
fn what_a_live_read_knew_first_is_awaited_from_the_watch() {
    let reflector = Reflector::new(|| ());
    apply(&reflector, &owned(), &pod(1, 5, "False"));
    let live = |version: u32| {
        let object: ParentObject = serde_json::from_str(&pod(1, version, "True").to_string()).unwrap();
        reflector.apply_live(PODS, reflector.start_read(), object.as_child(), None)
    };
    let (applied, awaited) = live(8);
    assert_eq!(applied, ApplyOutcome::Moved(5));
    let awaited = awaited.expect("it was news");
    apply(&reflector, &owned(), &pod(1, 8, "True"));
    assert!(!reflector.give_up_awaiting(&awaited), "the watch brought it too");
    apply(&reflector, &owned(), &pod(1, 9, "False"));
    let (_, awaited) = live(12);
    assert!(reflector.give_up_awaiting(&awaited.expect("news again")), "drift");
}

#[test]
fn memory_grows_with_rows_and_what_hangs_on_them_and_is_given_back() {
    let reflector = Reflector::new(|| ());
    assert_eq!(reflector.held_bytes(), 0);
    let fill = |version: u32, ready: &str| {
        for number in 1..=1_000 {
            apply(&reflector, &owned(), &pod(number, version, ready));
        }
        for id in reflector.take_dirty(usize::MAX) {
            reflector.date_unready(id, NOW);
        }
        reflector.held_bytes()
    };
    let ready = fill(5, "True");
    let each = ready / reflector.len();
    assert!((100..=256).contains(&each), "{each} bytes a child that is ready");
    let unready = fill(6, "False");
    assert!(unready > ready + 1_000 * 24, "{unready}: since when it has not been ready is kept too");
    assert_eq!(fill(7, "True"), ready, "what hung on it is gone");
    for number in 1..=1_000 {
        reflector.delete_object(&uid(number), 60);
    }
    for id in reflector.take_dirty(usize::MAX) {
        reflector.recycle_slot(id);
    }
    assert_eq!(reflector.held_bytes(), 0);
    assert!(reflector.is_empty());
}
