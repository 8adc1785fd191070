//! Parents over parents, one of which rests on what cannot be observed.

use aggregator::{HandledEvidence, KindId, KindState, PolicyId};
use readiness::Level::{self, Failed, Progressing, Ready};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::object::ParentState;
use crate::{group, groups, policy};

const LOWS: KindId = KindId(2);
const MIDS: KindId = KindId(3);
const DISKS: KindId = KindId(4);
const OVER_LOWS: PolicyId = PolicyId(2);
const OVER_LEAVES: PolicyId = PolicyId(3);

/// `top` over `mid` over `low` over a leaf at this level; `top` has a ready disk of its own.
fn four_levels(leaf: Level) -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, groups(vec![group(MIDS), group(DISKS)]));
    w.policy(OVER_LOWS, groups(vec![group(LOWS)]));
    w.policy(OVER_LEAVES, policy());
    w.sync();
    w.parent("top");
    for (name, kind, of, by, policy) in
        [("mid", MIDS, "top", POLICY, OVER_LOWS), ("low", LOWS, "mid", OVER_LOWS, OVER_LEAVES)]
    {
        w.create(name, kind, Progressing, |object| {
            let evidence = HandledEvidence::Handled;
            object.parent = Some(ParentState { policies: vec![policy], evidence, ..ParentState::default() });
            object.owners = vec![(by, 0, of.to_owned())];
        });
    }
    w.create("leaf", CHILDREN, leaf, |leaf| leaf.owners = vec![(OVER_LEAVES, 0, "low".to_owned())]);
    w.create("disk", DISKS, Ready, |disk| disk.owners = vec![(POLICY, 1, "top".to_owned())]);
    w
}

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
