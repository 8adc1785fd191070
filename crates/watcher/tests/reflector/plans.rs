//! One plan at a time: what was asked for, read or listed under an older plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use readiness::{Level, RuleKind};
use watcher::plan::Interest;
use watcher::reflector::{ApplyOutcome, RefinedCause, Reflector};
use watcher::{ParentObject, ReflectorObject};

use crate::objects::{PODS, apply, apply_listed, level, owned, pod, uid};

/// By other rules: such a Pod is no ready Deployment.
fn newer() -> Interest {
    Interest { judge: RuleKind::from_group_kind("apps", "Deployment"), ..owned() }
}

fn reflector() -> Reflector {
    let reflector = Reflector::new(|| ());
    reflector.set_interest(owned());
    reflector
}

fn answered(reflector: &Reflector, version: u32) -> ApplyOutcome {
    let object: ParentObject = serde_json::from_str(&pod(1, version, "True").to_string()).unwrap();
    reflector.apply_object(PODS, object.as_child(), None)
}

#[test]
fn what_was_asked_for_under_an_older_plan_is_judged_by_the_one_that_holds() {
    let reflector = reflector();
    answered(&reflector, 5);
    assert_eq!(level(&reflector, 1), Some(Level::Ready));
    reflector.set_interest(newer());
    let pass = reflector.begin_list(PODS, None);
    apply_listed(&reflector, &pass, &pod(1, 5, "True"));
    reflector.finish_list(&pass);
    assert_ne!(level(&reflector, 1), Some(Level::Ready));
    // The answer to a write, or a live read, that was sent before the plan changed: of the same version.
    assert_eq!(answered(&reflector, 5), ApplyOutcome::Same);
    assert_ne!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn between_two_plans_nothing_is_taken_in() {
    let reflector = reflector();
    answered(&reflector, 5);
    reflector.remove_interest(PODS);
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Refused);
    assert_eq!(level(&reflector, 1), Some(Level::Ready), "what stood stands");
    reflector.set_interest(newer());
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Moved(5));
    assert_ne!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn a_page_of_an_older_plans_list_is_refused_and_its_end_sweeps_nothing() {
    let reflector = reflector();
    answered(&reflector, 5);
    let older = reflector.begin_list(PODS, None);
    reflector.set_interest(newer());
    assert_eq!(apply_listed(&reflector, &older, &pod(2, 6, "True")), ApplyOutcome::Refused);
    assert_eq!(reflector.finish_list(&older), None);
    assert!(level(&reflector, 1).is_some() && level(&reflector, 2).is_none());
    let broken_off = reflector.begin_list(PODS, None);
    let newest = reflector.begin_list(PODS, None);
    assert_eq!(reflector.finish_list(&broken_off), None, "it was begun anew");
    assert_eq!(reflector.finish_list(&newest), Some(1));
}

#[test]
fn what_was_read_of_an_object_for_a_plan_that_needed_less_of_it_is_refused() {
    let reflector = reflector();
    answered(&reflector, 5);
    reflector.set_interest(Interest { release: vec!["Ready".into()], ..owned() });
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Refused);
    assert_eq!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn what_was_found_through_an_older_plans_lenses_explains_nothing() {
    let reflector = reflector();
    apply(&reflector, &owned(), &pod(1, 5, "False"));
    let (older, id) = (reflector.interest(PODS).unwrap(), reflector.find_object(&uid(1)).unwrap());
    let stuck = readiness::Verdict::new(Level::Stuck, readiness::Reason::NoSignal);
    let found = || vec![Some(RefinedCause { name: "Pod a".into(), assessment: stuck.clone().into() })];
    reflector.set_interest(newer());
    assert_eq!(reflector.refine(id, &older, found()), ApplyOutcome::Refused);
    let current = reflector.interest(PODS).unwrap();
    assert!(matches!(reflector.refine(id, &current, found()), ApplyOutcome::Moved(_)));
}

#[test]
fn a_row_by_an_older_plan_is_never_put_over_one_by_a_newer_however_they_race() {
    for _ in 0..50 {
        let reflector = Arc::new(reflector());
        let (late, stop) = (reflector.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let answers = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                answered(&late, 5);
            }
        });
        for plan in [newer(), owned(), newer(), owned(), newer()] {
            reflector.set_interest(plan);
            answered(&reflector, 5);
        }
        let by_newest = level(&reflector, 1);
        stop.store(true, Ordering::Relaxed);
        answers.join().unwrap();
        assert_ne!(by_newest, Some(Level::Ready));
        assert_ne!(level(&reflector, 1), Some(Level::Ready));
    }
}

#[test]
fn an_object_that_was_falsely_buried_comes_back_when_its_kind_is_listed_again() {
    let reflector = reflector();
    let early = reflector.begin_list(PODS, None);
    answered(&reflector, 5);
    let id = reflector.find_object(&uid(1)).unwrap();
    assert!(reflector.apply_live_absence(id, 4).is_none(), "it has moved since");
    assert!(reflector.apply_live_absence(id, 5).is_some());
    assert_eq!(answered(&reflector, 5), ApplyOutcome::Stale, "known when it was not found");
    assert_eq!(
        apply_listed(&reflector, &early, &pod(1, 5, "True")),
        ApplyOutcome::Stale,
        "a list from before"
    );
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(apply_listed(&reflector, &pass, &pod(1, 5, "True")), ApplyOutcome::Moved(0));
    assert_eq!(reflector.finish_list(&pass), Some(0));
    assert_eq!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn a_live_read_that_began_after_another_had_not_found_it_brings_an_object_back() {
    let reflector = reflector();
    let pass = reflector.begin_list(PODS, None);
    reflector.finish_list(&pass);
    answered(&reflector, 5);
    let early = reflector.start_read();
    assert!(reflector.apply_live_absence(reflector.find_object(&uid(1)).unwrap(), 5).is_some());
    let late = reflector.start_read();
    let object: ParentObject = serde_json::from_str(&pod(1, 5, "True").to_string()).unwrap();
    let found = |start| reflector.apply_live(PODS, start, object.as_child(), None).0;
    assert_eq!(found(early), ApplyOutcome::Stale, "it may have been answered before");
    assert_eq!(found(late), ApplyOutcome::Moved(0));
    assert_eq!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn a_newer_version_of_an_object_that_was_not_found_brings_it_back() {
    let reflector = reflector();
    answered(&reflector, 5);
    reflector.apply_live_absence(reflector.find_object(&uid(1)).unwrap(), 5);
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Moved(0));
}

#[test]
fn no_list_that_began_before_a_deletion_brings_back_what_it_took_away() {
    let reflector = reflector();
    answered(&reflector, 5);
    let pass = reflector.begin_list(PODS, None);
    reflector.delete_object(&uid(1), 7);
    assert_eq!(apply_listed(&reflector, &pass, &pod(1, 5, "True")), ApplyOutcome::Stale);
}

#[test]
fn what_a_restored_server_lists_holds_though_its_versions_are_older_than_what_was_known() {
    let reflector = reflector();
    answered(&reflector, 50);
    apply(&reflector, &owned(), &pod(2, 51, "True"));
    reflector.delete_object(&uid(2), 52);
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(apply_listed(&reflector, &pass, &pod(1, 30, "False")), ApplyOutcome::Moved(0));
    assert_eq!(apply_listed(&reflector, &pass, &pod(2, 31, "True")), ApplyOutcome::Moved(0));
    assert_eq!(reflector.finish_list(&pass), Some(0), "none of them is gone");
    assert_eq!([1, 2].map(|n| level(&reflector, n)), [Some(Level::Progressing), Some(Level::Ready)]);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 32, "True")), ApplyOutcome::Moved(30));
    assert_eq!(level(&reflector, 1), Some(Level::Ready));
}

#[test]
fn what_is_older_than_what_a_list_showed_stays_no_news_of_an_object_that_counts_no_more() {
    let reflector = reflector();
    answered(&reflector, 5);
    let mut orphan = pod(1, 9, "True");
    orphan["metadata"]["ownerReferences"] = serde_json::json!([]);
    assert_eq!(apply(&reflector, &owned(), &orphan), ApplyOutcome::Unwanted);
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(apply_listed(&reflector, &pass, &orphan), ApplyOutcome::Unwanted);
    assert_eq!(reflector.finish_list(&pass), Some(0));
    assert_eq!(answered(&reflector, 5), ApplyOutcome::Stale);
}

#[test]
fn what_was_read_since_a_list_began_is_not_overtaken_by_it() {
    let reflector = reflector();
    answered(&reflector, 5);
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(apply(&reflector, &owned(), &pod(1, 9, "False")), ApplyOutcome::Moved(5));
    assert_eq!(apply_listed(&reflector, &pass, &pod(1, 7, "True")), ApplyOutcome::Stale);
    assert_eq!(reflector.finish_list(&pass), Some(0));
    assert_eq!(level(&reflector, 1), Some(Level::Progressing));
}

#[test]
fn what_was_not_in_a_list_comes_back_by_a_newer_version_and_not_by_the_one_that_was_held() {
    let reflector = reflector();
    answered(&reflector, 5);
    let pass = reflector.begin_list(PODS, None);
    assert_eq!(reflector.finish_list(&pass), Some(1));
    assert_eq!(answered(&reflector, 5), ApplyOutcome::Stale);
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Moved(0));
}

#[test]
fn an_end_of_which_no_version_is_known_takes_what_is_held_and_nothing_newer() {
    let reflector = reflector();
    answered(&reflector, 5);
    reflector.delete_object(&uid(1), 0);
    assert_eq!(level(&reflector, 1), None);
    assert_eq!(answered(&reflector, 5), ApplyOutcome::Stale);
    assert_eq!(answered(&reflector, 6), ApplyOutcome::Moved(0));
}
