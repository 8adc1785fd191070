//! A True is kept only where the parent says it: not one that was not told yet, was taken back, or was tampered with.

use std::time::Duration;

use aggregator::EnginePolicy;
use readiness::Level::{Failed, Progressing, Ready};
use readiness::rollup::{ChildWeight, ConditionStatus, ParentReason};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::POLICY;
use crate::object::ParentState;
use crate::policy;
use crate::steady::{AVAILABLE, ready_with, tolerant, weigh};

#[test]
fn who_takes_over_says_no_true_again_that_the_leader_has_taken_back() {
    for policy in [EnginePolicy { grace: Duration::from_secs(30), ..policy() }, tolerant()] {
        let mut w = ready_with(policy);
        weigh(&mut w, "web", AVAILABLE);
        w.run(20_000);
        w.standby = true;
        w.restart(&[]);
        w.run(10_000);
        // The leader began to count earlier.
        let now = w.now;
        w.change_parent("db", |db| {
            let entry = db.status.get_mut(&POLICY).unwrap();
            (entry.reason, entry.since) = (ParentReason::ChildrenProgressing, now);
        });
        w.run(2_000);
        w.stand_by(false);
        w.run(2_000);
        assert_eq!(w.says("db"), "ChildrenProgressing");
        weigh(&mut w, "web", ChildWeight::of(Ready));
        w.run(20_000);
        assert_eq!(w.says("db"), "AllChildrenReady");
    }
}

#[test]
fn a_true_that_was_not_told_yet_is_not_kept() {
    let graceful = EnginePolicy { grace: Duration::from_secs(60), ..policy() };
    for (policy, weight) in [(tolerant(), AVAILABLE), (graceful, ChildWeight::of(Progressing))] {
        for moment in (0..1_000).step_by(20) {
            let mut w = ready_with(policy.clone());
            // Two writes are as many as a second has: the True after them has to wait, and is judged meanwhile.
            for (then, lasts) in [(Failed, 10_000), (Ready, 300), (Failed, 200)] {
                weigh(&mut w, "web", ChildWeight::of(then));
                w.run(lasts);
            }
            weigh(&mut w, "web", ChildWeight::of(Ready));
            w.run(moment);
            let is_told = w.says("db") == "AllChildrenReady";
            weigh(&mut w, "web", weight);
            // What is under way lands.
            w.run(10);
            let before = w.server.log.len();
            w.run(3_000);
            let told = w.server.log[before..].iter().map(|write| write.after[&POLICY].reason);
            let turns = told.into_iter().any(|reason| reason == ParentReason::AllChildrenReady);
            assert!(!turns || is_told, "{moment} ms");
        }
    }
}

#[test]
fn a_true_that_somebody_took_away_or_turned_is_not_said_anew_of_children_that_are_not_ready() {
    let graceful = EnginePolicy { grace: Duration::from_secs(60), ..policy() };
    let take_away = |db: &mut ParentState| drop(db.status.remove(&POLICY));
    let turn = |db: &mut ParentState| {
        db.status.get_mut(&POLICY).unwrap().turned = Some(ConditionStatus::False);
    };
    for (policy, weight) in [(tolerant(), AVAILABLE), (graceful, ChildWeight::of(Progressing))] {
        for tamper in [take_away as fn(&mut ParentState), turn] {
            for is_first in [true, false] {
                let mut w = ready_with(policy.clone());
                if is_first {
                    w.change_parent("db", tamper);
                }
                weigh(&mut w, "web", weight);
                if !is_first {
                    w.run(2_000);
                    assert_eq!(w.says("db"), "AllChildrenReady", "it stands, and is kept");
                    w.change_parent("db", tamper);
                }
                w.run(10_000);
                assert_eq!(w.says("db"), "ChildrenProgressing", "tampered with first: {is_first}");
                weigh(&mut w, "web", ChildWeight::of(Ready));
                w.run(20_000);
                assert_eq!(w.says("db"), "AllChildrenReady");
            }
        }
    }
}
