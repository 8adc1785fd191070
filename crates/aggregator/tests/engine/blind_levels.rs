//! Parents over parents, one of which rests on what cannot be observed.

use aggregator::{KindState, PolicyId};
use readiness::Level::{Failed, Progressing, Ready};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::CHILDREN;
use crate::levels::{LOWS, MIDS, OVER_LEAVES, four_levels};
use crate::policy;

#[test]
fn a_parent_that_has_to_wait_for_what_is_below_it_makes_nothing_ready_above() {
    let mut w = four_levels(Ready);
    w.run(20_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
    // After a restart the leaves are not listed, and what is in the middle is seen late.
    let mid = w.objects.remove("mid").unwrap();
    w.kind(CHILDREN, KindState::Listing);
    w.kind(MIDS, KindState::Forbidden);
    w.restart(&[]);
    w.run(20_000);
    assert_eq!(w.says("top"), "KindNotVisible");
    w.objects.insert("mid".to_owned(), mid);
    w.observe("mid");
    w.kind(MIDS, KindState::Synced);
    w.run(60_000);
    assert_ne!(w.says("top"), "AllChildrenReady", "{:?}", w.words("top"));
    w.kind(CHILDREN, KindState::Synced);
    w.run(20_000);
    assert_eq!(w.says("top"), "AllChildrenReady");
}

#[test]
fn who_is_blind_waits_for_nobody_below_and_holds_up_nobody_above() {
    let mut w = four_levels(Progressing);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenProgressing");
    // The policy over the leaves is another one from now on, and its parents cannot be listed for it: they are seen as before.
    w.engine.set_policy(w.now, OVER_LEAVES, None);
    w.policy(PolicyId(4), policy());
    w.kind(CHILDREN, KindState::Listing);
    w.kind(LOWS, KindState::Listing);
    w.kind(LOWS, KindState::Forbidden);
    w.turn("disk", Failed);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenFailed");
}
