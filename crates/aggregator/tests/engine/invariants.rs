//! One test for each invariant, under its name.

use std::time::Duration;

use aggregator::{HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{Failed, Missing, Progressing, Ready, Stuck, Suspended, Terminating, Unknown};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::server::WriteFate;
use crate::{group, groups, policy};

/// Checks that `db` is never reported ready after this.
fn never_ready(what: &str, mut w: EngineHarness) {
    w.run(30 * 60_000);
    assert!(!w.words("db").contains(&"AllChildrenReady".to_owned()), "{what}: {:?}", w.told("db"));
}

#[test]
fn no_false_ready() {
    let with = |evidence, levels: &[readiness::Level]| {
        let mut w = EngineHarness::with(policy());
        w.parent_so("db", |p| p.evidence = evidence);
        for (at, level) in levels.iter().enumerate() {
            w.child(&format!("web-{at}"), "db", *level);
        }
        w
    };
    never_ready("its operator has not handled it", with(HandledEvidence::NotYet, &[Ready]));
    for level in [Failed, Missing, Progressing, Stuck, Terminating, Unknown] {
        never_ready("a child is not ready", with(HandledEvidence::Handled, &[Ready, level]));
    }
    never_ready("all are suspended", with(HandledEvidence::Handled, &[Suspended]));
    never_ready("there are none", with(HandledEvidence::Handled, &[]));
    for state in [KindState::Listing, KindState::Forbidden, KindState::Stale] {
        let mut w = with(HandledEvidence::Handled, &[Ready]);
        w.kind(CHILDREN, state);
        never_ready("children cannot be seen", w);
    }
    let mut w = with(HandledEvidence::Silent, &[Ready]);
    for _ in 0..1_000 {
        w.run(4_000);
        w.change("web-0", |web| web.generation += 1);
    }
    assert_eq!(w.words("db"), ["ChildrenPending"], "its operator is still at it");
}

#[test]
fn only_our_own_entries() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(PolicyId(2), groups(vec![group(KindId(2))]));
    w.sync();
    w.parent_so("db", |p| p.policies.push(PolicyId(2)));
    w.child("web", "db", Ready);
    w.run(20_000);
    let held = |w: &EngineHarness| w.objects["db"].parent.as_ref().unwrap().status[&PolicyId(2)].clone();
    let before = held(&w);
    for level in [Failed, Ready, Progressing, Ready] {
        w.turn("web", level);
        w.run(20_000);
        assert_eq!(held(&w), before, "what is said for another policy is not touched");
    }
    let touched = w.server.log.iter().filter(|written| written.parent != "db");
    assert_eq!(touched.count(), 0, "nor is what is no parent");
}

#[test]
fn identity_is_the_uid() {
    let mut w = well();
    w.server.delay = Duration::from_secs(2);
    w.turn("web", Failed);
    w.run(1_000);
    w.remove("db");
    w.remove("web");
    w.parent_so("db", |p| p.evidence = HandledEvidence::Silent);
    w.child("web", "db", Ready);
    let (uid, before) = (w.objects["db"].uid, w.server.log.len());
    w.run(60_000);
    let news = &w.server.log[before..];
    assert!(news.iter().all(|written| written.uid == uid));
    assert_eq!(w.words("db")[before..], ["ChildrenPending", "ChildrenSettling", "AllChildrenReady"]);
    assert!(news[1].at - news[0].at >= 3_000, "what its predecessor was told is no evidence");
}

#[test]
fn the_pass_costs_what_is_not_ready() {
    let mut w = EngineHarness::with(policy());
    for at in 0..200 {
        w.parent(&format!("db-{at}"));
        w.child(&format!("web-{at}"), &format!("db-{at}"), Ready);
    }
    w.turn("web-7", Failed);
    w.run(60_000);
    w.passes.clear();
    w.run(3 * 60_000);
    assert!(w.passes.len() >= 5 && w.passes.iter().all(|(_, name)| name == "db-7"), "{:?}", w.passes);
    assert_eq!(w.engine.unready_parent_count(), 1);
    let (children, kinds) = w.engine.resync_targets(w.id("db-7"));
    assert_eq!((children, kinds), (vec![w.id("web-7")], vec![]));
    w.turn("web-7", Ready);
    w.run(60_000);
    assert_eq!(w.engine.next_deadline(), None, "nothing is due where all is ready");
}

#[test]
fn blindness_is_not_readiness() {
    let mut w = well();
    w.kind(CHILDREN, KindState::Stale);
    w.run(10);
    assert_eq!(w.says("db"), "WatchStale");
    w.respecify("db", HandledEvidence::Handled);
    w.run(20_000);
    assert_eq!(w.says("db"), "WatchStale");
    w.kind(CHILDREN, KindState::Listing);
    w.run(20_000);
    assert_eq!(w.says("db"), "WatchStale", "until everything was seen again");
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn bounded() {
    let mut w = well();
    w.server.fates = vec![WriteFate::Retry(Duration::ZERO); 1_000];
    w.turn("web", Failed);
    w.run(60_000);
    assert!(
        w.server.fates.len() > 900,
        "a server that refuses at once is not asked at once: {}",
        w.server.fates.len()
    );
    let mut w = well();
    for round in 0..10_000 {
        w.turn("web", [Failed, Progressing][round % 2]);
    }
    w.run(0);
    assert_eq!(w.server.flights.len(), 1, "one write at a time to one parent");
    assert_eq!(w.engine.counted_children().count(), 1);
}
