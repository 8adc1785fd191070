//! Parents over parents, of which several change in one turn.

use std::time::Duration;

use aggregator::{Availability, EnginePolicy, HandledEvidence, KindId, PolicyId};
use readiness::Level::{self, Progressing, Ready};
use readiness::rollup::ParentReason;

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::object::ParentState;
use crate::{group, groups, policy};

pub(crate) const LOWS: KindId = KindId(2);
pub(crate) const MIDS: KindId = KindId(3);
pub(crate) const DISKS: KindId = KindId(4);
pub(crate) const OVER_LOWS: PolicyId = PolicyId(2);
pub(crate) const OVER_LEAVES: PolicyId = PolicyId(3);

/// `top` over `mid` over `low` over a leaf at this level; `top` has a ready disk of its own.
pub(crate) fn four_levels(leaf: Level) -> EngineHarness {
    four_levels_under(groups(vec![group(MIDS), group(DISKS)]), leaf)
}

/// The same where the policy of `top` is this one.
fn four_levels_under(policy_of_top: EnginePolicy, leaf: Level) -> EngineHarness {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy_of_top);
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

/// One child of `top` becomes ready, and what is two levels below the other is ready no more, in this order, all at once.
const ORDERS: [[&str; 2]; 2] = [["disk", "leaf"], ["leaf", "disk"]];

fn turn_about(w: &mut EngineHarness, order: [&str; 2]) {
    for name in order {
        w.turn(name, if name == "disk" { Ready } else { Progressing });
    }
}

#[test]
fn what_becomes_ready_while_something_below_ceases_to_be_does_not_begin_a_deadline_anew() {
    for order in ORDERS {
        let deadline = Some(Duration::from_mins(2));
        let top = EnginePolicy { deadline, ..groups(vec![group(MIDS), group(DISKS)]) };
        let mut w = four_levels_under(top, Ready);
        w.turn("disk", Progressing);
        w.run(90_000);
        assert_eq!(w.says("top"), "ChildrenProgressing");
        turn_about(&mut w, order);
        w.run(60_000);
        assert_eq!(w.says("top"), "DeadlineExceeded!", "{order:?}: it was never ready");
        w.turn("leaf", Ready);
        w.run(20_000);
        assert_eq!(w.says("top"), "AllChildrenReady");
    }
}

#[test]
fn nor_does_it_make_a_true_that_could_be_kept() {
    for order in ORDERS {
        let top = EnginePolicy {
            availability: Availability::Tolerant,
            grace: Duration::from_mins(1),
            // What a parent is told would keep it from that.
            shadow: true,
            ..groups(vec![group(MIDS), group(DISKS)])
        };
        let mut w = four_levels_under(top, Ready);
        w.turn("disk", Progressing);
        w.run(90_000);
        turn_about(&mut w, order);
        w.run(200);
        assert_eq!(w.reason("top"), Some(ParentReason::ChildrenProgressing), "{order:?}");
    }
}
