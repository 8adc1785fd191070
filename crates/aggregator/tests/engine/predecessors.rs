//! What a predecessor, the process before or the policy before an edit, had under way, and what lands late of it.

use std::time::Duration;

use aggregator::{EnginePolicy, HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{Progressing, Ready, Unknown};

use crate::ask::HarnessQueries as _;
use crate::conditions::ParentEntry;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::{group, groups, policy};

#[test]
fn what_a_predecessor_had_under_way_counts_like_what_stood_on_the_parent_before() {
    for (level, last) in [(Progressing, "ChildrenProgressing"), (Unknown, "ChildrenUnknown")] {
        let mut w = EngineHarness::with(policy());
        w.parent("db");
        w.child("web", "db", level);
        w.run(30);
        let first = w.objects["db"].parent.as_ref().unwrap().status.clone();
        assert_eq!(w.says("db"), "ChildrenPending");
        w.run(60_000);
        assert_eq!(w.says("db"), last);
        // The next process sees the last answer of this one when it has observed the parent already, and waits for a list.
        let parent = w.objects.get_mut("db").unwrap().parent.as_mut().unwrap();
        let said = std::mem::replace(&mut parent.status, first);
        w.kinds.insert(CHILDREN, KindState::Listing);
        w.restart(&[]);
        w.run(10_000);
        w.change_parent("db", |db| db.status = said);
        w.turn("web", Ready);
        w.run(10_000);
        let before = w.server.log.len();
        w.kind(CHILDREN, KindState::Synced);
        w.run(60_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        let after = w.server.log[before..].iter().map(|written| written.after[&POLICY].brief());
        assert_eq!(after.collect::<Vec<_>>(), ["AllChildrenReady"], "it was handled long ago");
    }
}

#[test]
fn what_a_predecessor_had_under_way_counts_until_something_of_this_process_own_stands() {
    for (evidence, is_hold) in [(HandledEvidence::Silent, false), (HandledEvidence::Handled, true)] {
        let hold = Duration::from_secs(if is_hold { 10 } else { 0 });
        let mut w = EngineHarness::with(EnginePolicy { hold, ..policy() });
        w.parent_so("db", |db| db.evidence = evidence);
        w.child("web", "db", Ready);
        w.run(30);
        let first = w.objects["db"].parent.as_ref().unwrap().status.clone();
        w.run(60_000);
        let parent = w.objects.get_mut("db").unwrap().parent.as_mut().unwrap();
        let said = std::mem::replace(&mut parent.status, first);
        assert_eq!(said[&POLICY].brief(), "AllChildrenReady");
        let before = w.server.log.len();
        // The next process has all lists, and what it says first is under way, when the last write of this one arrives.
        w.server.delay = Duration::from_millis(300);
        w.restart(&[]);
        w.run(100);
        w.change_parent("db", |db| db.status = said);
        w.run(60_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
        assert!(w.server.log[before..].is_empty(), "{evidence:?}: {:?}", &w.server.log[before..]);
    }
}

/// When a new policy is known to the loop, beside what its predecessor had under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    BeforeItLands,
    AfterItHasLanded,
}

#[test]
fn what_a_policy_before_an_edit_had_under_way_counts_until_something_of_the_new_one_stands() {
    for known in [Known::BeforeItLands, Known::AfterItHasLanded] {
        let (edited, slower) = (PolicyId(2), EnginePolicy { settle: Duration::from_secs(30), ..policy() });
        let mut w = EngineHarness::with(policy());
        w.parent_so("db", |db| db.evidence = HandledEvidence::Silent);
        w.child("web", "db", Ready);
        w.server.delay = Duration::from_secs(2);
        // True is under way when the policy is replaced by one that has seen nothing yet.
        let is_under_way = |w: &EngineHarness| {
            w.server.flights.iter().any(|flight| flight.wanted[&POLICY].brief() == "AllChildrenReady")
        };
        while !is_under_way(&w) {
            w.run(10);
        }
        let before = w.server.log.len();
        w.forget(POLICY);
        if known == Known::BeforeItLands {
            w.policy(edited, slower.clone());
        }
        w.change("web", |web| web.owners = vec![(edited, 0, "db".to_owned())]);
        w.change_parent("db", |db| {
            db.policies = vec![edited];
            let said = db.status.remove(&POLICY);
            db.status.extend(said.map(|said| (edited, said)));
        });
        w.sync();
        w.run(500);
        // The condition that is written is the same.
        for status in w.server.flights.iter_mut().flat_map(|flight| [&mut flight.before, &mut flight.wanted])
        {
            let said = status.remove(&POLICY);
            status.extend(said.map(|said| (edited, said)));
        }
        if known == Known::AfterItHasLanded {
            w.run(5_000);
            w.policy(edited, slower.clone());
        }
        w.run(60_000);
        let words = w.server.log[before..].iter();
        let words = words.map(|written| written.after.values().map(ParentEntry::brief).collect());
        assert_eq!(words.collect::<Vec<String>>(), ["AllChildrenReady"], "{known:?}");
    }
}

#[test]
fn an_answer_that_somebody_puts_in_place_of_what_this_process_wrote_is_not_taken_over() {
    let mut w = EngineHarness::with(EnginePolicy { settle: Duration::from_secs(30), ..policy() });
    w.parent_so("db", |db| db.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    w.run(60_000);
    let said = w.objects["db"].parent.as_ref().unwrap().status.clone();
    assert_eq!(said[&POLICY].brief(), "AllChildrenReady");
    w.respecify("db", HandledEvidence::Silent);
    w.run(5_000);
    assert_eq!(w.says("db"), "ChildrenPending");
    let about = w.objects["db"].parent.as_ref().unwrap().status[&POLICY].about;
    w.change_parent("db", |db| {
        db.status = said;
        db.status.values_mut().for_each(|entry| entry.about = about);
    });
    w.run(5_000);
    assert_eq!(w.says("db"), "ChildrenPending");
}

#[test]
fn what_stood_before_a_list_and_is_not_in_it_is_not_taken_over() {
    let mut w = EngineHarness::with(policy());
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    // The policy was deleted and is there again. What its former entry said was read before the entry was removed.
    w.kind(PARENTS, KindState::Listing);
    w.restart(&[]);
    w.change_parent("db", |db| db.status.clear());
    let before = w.server.log.len();
    w.child("late", "db", Ready);
    w.kind(PARENTS, KindState::Synced);
    w.run(60_000);
    let after = w.server.log[before..].iter().map(|written| written.after[&POLICY].brief());
    assert_eq!(after.collect::<Vec<_>>(), ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]);
}

#[test]
fn what_this_process_wrote_is_not_taken_over_where_a_predecessor_wrote_beside_it() {
    let (other, disks) = (PolicyId(2), KindId(2));
    let mut w = EngineHarness::with(EnginePolicy { settle: Duration::from_secs(30), ..policy() });
    w.policy(other, EnginePolicy { kinds: vec![PARENTS, disks], ..groups(vec![group(disks)]) });
    w.sync();
    w.parent_so("db", |db| db.policies = vec![POLICY, other]);
    w.child("web", "db", Ready);
    w.create("disk", disks, Ready, |disk| disk.owners = vec![(other, 0, "db".to_owned())]);
    w.run(30);
    let first = w.objects["db"].parent.as_ref().unwrap().status.clone();
    w.run(60_000);
    let parent = w.objects.get_mut("db").unwrap().parent.as_mut().unwrap();
    let said = std::mem::replace(&mut parent.status, first);
    assert!(said.values().all(|entry| entry.brief() == "AllChildrenReady"), "{said:?}");
    let judged =
        |w: &EngineHarness| w.engine.answer_of(w.id("db"), POLICY).map(|answer| answer.reason.as_str());
    // The next process says so of one policy, and awaits the list of the other.
    w.kinds.insert(disks, KindState::Listing);
    w.server.delay = Duration::from_secs(20);
    w.restart(&[]);
    w.run(1_000);
    assert_eq!((judged(&w), w.server.flights.len()), (Some("AllChildrenReady"), 1));
    w.child("late", "db", Progressing);
    w.run(1_000);
    w.turn("late", Ready);
    w.run(1_000);
    assert_eq!(judged(&w), Some("ChildrenSettling"));
    // Its write arrives, after one of its predecessor about the other policy.
    w.change_parent("db", |db| db.status = said);
    w.run(1_000);
    assert_eq!(judged(&w), Some("ChildrenSettling"), "late has just appeared");
    w.run(60_000);
    assert_eq!(judged(&w), Some("AllChildrenReady"));
}
