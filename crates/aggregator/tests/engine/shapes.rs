//! Shapes of ownership: cycles, self-ownership, many levels, several links to one parent.

use std::time::Duration;

use aggregator::{PolicyId, SelectorId};
use readiness::Level::{Failed, Progressing, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{EngineHarness, POLICY};
use crate::policy;

/// Returns owner references that make `name` a child of each of `owners`.
fn own(w: &mut EngineHarness, name: &str, owners: &[&str]) {
    w.change(name, |it| it.owners = owners.iter().map(|owner| (POLICY, 0, (*owner).to_owned())).collect());
}

#[test]
fn five_levels_are_told_in_one_debounce() {
    let mut w = EngineHarness::with(policy());
    let names = ["one", "two", "three", "four", "five"];
    for (at, name) in names.iter().enumerate() {
        w.parent(name);
        own(&mut w, name, &names[at.saturating_sub(1)..at]);
    }
    w.child("leaf", "five", Ready);
    w.run(60_000);
    w.server.delay = Duration::ZERO;
    w.turn("leaf", Failed);
    w.run(500);
    w.turn("leaf", Progressing);
    let at = w.millis() + 100;
    w.run(100);
    for name in names {
        assert_eq!(w.told(name).last().unwrap(), &(at, "ChildrenProgressing".to_owned()));
    }
}

#[test]
fn who_owns_itself_is_not_its_own_child() {
    let mut w = well();
    own(&mut w, "db", &["db"]);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.engine.reader().cyclic_edge_count(w.id("db"), POLICY), 1);
    w.turn("web", Failed);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenFailed");
    own(&mut w, "db", &[]);
    assert_eq!(w.engine.reader().cyclic_edge_count(w.id("db"), POLICY), 0);
}

/// `a` and `b` own each other; each has a ready child of its own.
fn ring(first: &str, second: &str) -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    for name in [first, second] {
        w.parent(name);
        w.child(&format!("of-{name}"), name, Ready);
    }
    own(&mut w, first, &[second]);
    own(&mut w, second, &[first]);
    w.run(20_000);
    w
}

#[test]
fn no_edge_of_a_cycle_counts_whichever_was_seen_first() {
    for (first, second) in [("a", "b"), ("b", "a")] {
        let mut w = ring(first, second);
        w.turn("of-a", Failed);
        w.run(20_000);
        assert_eq!((w.says("a"), w.says("b")), ("ChildrenFailed".into(), "AllChildrenReady".into()));
        for name in ["a", "b"] {
            assert_eq!(w.engine.reader().cyclic_edge_count(w.id(name), POLICY), 1, "{name}");
        }
        let before = w.server.log.len();
        w.restart(&[second, first]);
        w.run(20_000);
        assert_eq!(w.server.log.len(), before);
    }
}

#[test]
fn what_is_left_of_a_cycle_that_is_broken_counts_again() {
    let mut w = ring("a", "b");
    w.turn("of-a", Failed);
    own(&mut w, "b", &[]);
    w.run(20_000);
    assert_eq!((w.says("a"), w.says("b")), ("ChildrenFailed".into(), "ChildrenFailed".into()));
    assert_eq!(w.engine.reader().cyclic_edge_count(w.id("b"), POLICY), 0);
    own(&mut w, "b", &["a"]);
    w.run(20_000);
    assert_eq!(w.says("b"), "AllChildrenReady");
}

#[test]
fn a_recount_finds_nothing_wrong_with_edges_that_do_not_count() {
    let mut w = ring("one", "two");
    let kinds = [crate::harness::PARENTS].into();
    assert_eq!(w.engine.recount_kinds(w.now, &kinds), aggregator::RecountResult::default());
    assert!(w.engine.reader().cyclic_edge_count(w.id("one"), POLICY) > 0);
}

#[test]
fn a_long_ring_comes_to_rest() {
    let mut w = EngineHarness::with(policy());
    let names: Vec<String> = (0..200).map(|at| format!("p{at}")).collect();
    for name in &names {
        w.parent(name);
    }
    for (at, name) in names.iter().enumerate() {
        own(&mut w, name, &[&names[(at + 1) % names.len()]]);
    }
    w.child("leaf", "p0", Ready);
    w.run(20_000);
    assert_eq!((w.says("p0"), w.says("p100")), ("AllChildrenReady".into(), "ChildrenMissing".into()));
    let before = w.server.log.len();
    w.run(60_000);
    assert_eq!(w.server.log.len(), before);
}

/// Number of children of `parent` that lie on a cycle with it, by following every path.
fn children_on_cycles(owners: &[Vec<usize>], parent: usize) -> u32 {
    let leads_to = |from: usize, to: usize| {
        let (mut reached, mut open) = (vec![false; owners.len()], vec![from]);
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                open.extend(&owners[at]);
            }
        }
        reached[to]
    };
    let children =
        (0..owners.len()).filter(|child| owners[*child].contains(&parent) && leads_to(parent, *child));
    u32::try_from(children.count()).unwrap()
}

#[test]
fn the_edges_on_cycles_are_those_that_lead_back_however_owners_come_and_go() {
    let mut dice = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |n: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        usize::try_from(dice % n as u64).unwrap()
    };
    let names: Vec<String> = (0..7).map(|at| format!("p{at}")).collect();
    for _ in 0..20 {
        let mut w = EngineHarness::with(policy());
        for name in &names {
            w.parent(name);
        }
        let mut owners = vec![Vec::new(); names.len()];
        for _ in 0..60 {
            let at = below(names.len());
            let mut chosen: Vec<usize> = (0..below(4)).map(|_| below(names.len())).collect();
            chosen.sort_unstable();
            chosen.dedup();
            own(&mut w, &names[at], &chosen.iter().map(|owner| &*names[*owner]).collect::<Vec<_>>());
            owners[at] = chosen;
            for (parent, name) in names.iter().enumerate() {
                let cyclic = w.engine.reader().cyclic_edge_count(w.id(name), POLICY);
                assert_eq!(cyclic, children_on_cycles(&owners, parent), "{name} of {owners:?}");
            }
        }
    }
}

/// With a search from every edge of every parent for each edge that is added, this would not end.
#[test]
fn hundreds_of_parents_that_all_own_each_other_come_to_rest() {
    let mut w = EngineHarness::with(policy());
    let names: Vec<String> = (0..150).map(|at| format!("p{at}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    for name in &names {
        w.parent(name);
    }
    for name in &names {
        own(&mut w, name, &all);
    }
    w.child("leaf", "p0", Failed);
    w.run(5_000);
    assert_eq!((w.says("p0"), w.says("p100")), ("ChildrenFailed".into(), "ChildrenMissing".into()));
    assert_eq!(w.engine.reader().cyclic_edge_count(w.id("p7"), POLICY), 150);
    own(&mut w, "p0", &["p1"]);
    w.run(5_000);
    own(&mut w, "p1", &[]);
    w.run(5_000);
    assert_eq!((w.says("p1"), w.says("p100")), ("ChildrenFailed".into(), "ChildrenMissing".into()));
}

#[test]
fn a_child_with_two_owners_counts_for_both() {
    let mut w = well();
    w.parent("cache");
    own(&mut w, "web", &["db", "cache"]);
    w.turn("web", Failed);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says("cache")), ("ChildrenFailed".into(), "ChildrenFailed".into()));
}

#[test]
fn a_child_that_changes_hands_counts_for_its_new_owner_alone() {
    let mut w = well();
    w.parent("cache");
    w.turn("web", Failed);
    own(&mut w, "web", &["cache"]);
    w.run(20_000);
    assert_eq!((w.says("db"), w.says("cache")), ("ChildrenMissing".into(), "ChildrenFailed".into()));
}

/// `db` selects by labels that `web` carries.
fn selected() -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    w.parent_so("db", |p| p.selects = vec![(POLICY, SelectorId(7))]);
    w.create("web", crate::harness::CHILDREN, Ready, |web| web.labels = vec![(POLICY, 0, SelectorId(7))]);
    w.run(20_000);
    w
}

#[test]
fn a_child_is_found_by_its_labels_and_lost_with_them() {
    let mut w = selected();
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.change("web", |web| web.labels.clear());
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
    w.change("web", |web| web.labels = vec![(POLICY, 0, SelectorId(8))]);
    w.change_parent("db", |p| p.selects = vec![(POLICY, SelectorId(8))]);
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn a_child_that_is_found_in_two_ways_counts_once_and_until_both_have_ended() {
    let mut w = selected();
    own(&mut w, "web", &["db"]);
    w.run(20_000);
    assert_eq!(w.engine.group_tally(w.id("db"), POLICY, 0).total_count(), 1);
    w.change("web", |web| web.labels.clear());
    w.run(20_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    own(&mut w, "web", &[]);
    w.run(20_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
}

/// `set` is owned by `db` and lends selectors; `claim-7` and `claim-8` carry labels. The objects appear in any order.
fn claimed(order: &[&str]) -> EngineHarness {
    let mut w = EngineHarness::with(policy());
    for name in order {
        match *name {
            "db" => w.parent("db"),
            "set" => w.create("set", crate::harness::CHILDREN, Ready, |set| {
                set.owners = vec![(POLICY, 0, "db".to_owned())];
                set.lends = vec![(POLICY, SelectorId(7))];
            }),
            claim => {
                let selector = SelectorId(claim.rsplit('-').next().unwrap().parse().unwrap());
                w.create(claim, crate::harness::CHILDREN, Ready, |c| c.labels = vec![(POLICY, 0, selector)]);
            }
        }
    }
    w.run(20_000);
    w
}

fn total(w: &mut EngineHarness) -> u32 {
    let db = w.id("db");
    w.engine.group_tally(db, POLICY, 0).total_count()
}

#[test]
fn what_a_child_lends_its_parent_selects_by_in_whichever_order_they_are_seen() {
    let all = ["db", "set", "claim-7", "claim-8"];
    for turn in 0..4 {
        let mut order = all;
        order.rotate_left(turn);
        for order in [order, [order[0], order[2], order[1], order[3]]] {
            let mut w = claimed(&order);
            assert_eq!(total(&mut w), 2, "{order:?}");
            w.turn("claim-7", Failed);
            w.turn("claim-8", Failed);
            w.run(20_000);
            assert_eq!(w.says("db"), "ChildrenFailed", "{order:?}");
        }
    }
}

#[test]
fn what_is_lent_is_lost_with_the_lender_its_owner_and_what_it_lends() {
    let mut w = claimed(&["db", "set", "claim-7", "claim-8"]);
    w.change("set", |set| set.lends = vec![(POLICY, SelectorId(8))]);
    w.turn("claim-7", Failed);
    w.run(20_000);
    assert_eq!((total(&mut w), w.says("db")), (2, "AllChildrenReady".into()), "claim-8 instead of claim-7");
    w.change("set", |set| set.owners.clear());
    w.run(20_000);
    assert_eq!((total(&mut w), w.says("db")), (0, "ChildrenMissing".into()));
    w.change("set", |set| set.owners = vec![(POLICY, 0, "db".to_owned())]);
    w.run(20_000);
    assert_eq!(total(&mut w), 2);
    w.remove("set");
    w.run(20_000);
    assert_eq!(total(&mut w), 0);
}

#[test]
fn what_two_lend_is_lost_with_the_second_of_them() {
    let mut w = claimed(&["db", "set", "claim-7"]);
    w.create("twin", crate::harness::CHILDREN, Ready, |twin| {
        twin.owners = vec![(POLICY, 0, "db".to_owned())];
        twin.lends = vec![(POLICY, SelectorId(7))];
    });
    w.run(20_000);
    assert_eq!(total(&mut w), 3);
    w.remove("set");
    w.run(20_000);
    assert_eq!(total(&mut w), 2);
    w.remove("twin");
    w.run(20_000);
    assert_eq!(total(&mut w), 0);
}

#[test]
fn children_may_be_seen_long_before_their_parent() {
    let mut w = EngineHarness::with(policy());
    for at in 0..50 {
        w.child(&format!("web-{at}"), "db", Ready);
    }
    w.run(60_000);
    w.parent("db");
    w.run(1_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.engine.group_tally(w.id("db"), POLICY, 0).total_count(), 50);
}

#[test]
fn a_parent_that_is_a_child_counts_with_what_is_known_of_it_not_with_what_it_says() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    w.parent("mid");
    own(&mut w, "mid", &["top"]);
    w.child("leaf", "mid", Ready);
    w.run(20_000);
    // Another client writes a false failure to its condition.
    w.server.fates = vec![crate::server::WriteFate::Retry(Duration::from_mins(1))];
    w.change_parent("mid", |p| {
        p.status.get_mut(&POLICY).unwrap().reason = readiness::rollup::ParentReason::ChildrenFailed;
    });
    let before = w.told("top").len();
    w.run(20_000);
    assert_eq!((w.says("mid"), w.says("top")), ("ChildrenFailed".into(), "AllChildrenReady".into()));
    assert_eq!(w.told("top").len(), before);
}

#[test]
fn a_parent_that_is_being_deleted_counts_as_that_whatever_its_children_are() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    w.parent("mid");
    own(&mut w, "mid", &["top"]);
    w.child("leaf", "mid", Ready);
    w.run(20_000);
    w.turn("mid", readiness::Level::Terminating);
    w.change_parent("mid", |p| p.deleting = true);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenTerminating");
    w.turn("mid", readiness::Level::Stuck);
    w.run(20_000);
    assert_eq!(w.says("top"), "ChildrenStuck!");
}

#[test]
fn a_parent_that_calls_itself_terminating_or_stuck_counts_with_what_is_known_of_it() {
    let mut w = EngineHarness::with(policy());
    w.parent("top");
    w.parent("mid");
    own(&mut w, "mid", &["top"]);
    w.child("leaf", "mid", Ready);
    w.run(20_000);
    // Its status says so, and some of that may be an entry of ours: it is not being deleted.
    for level in [readiness::Level::Terminating, readiness::Level::Stuck] {
        w.turn("mid", level);
        w.run(20_000);
        assert_eq!(w.says("top"), "AllChildrenReady", "{level:?}");
    }
    w.turn("leaf", readiness::Level::Terminating);
    w.run(20_000);
    assert_eq!((w.says("mid"), w.says("top")), ("ChildrenTerminating".into(), "ChildrenProgressing".into()));
}

#[test]
fn edges_are_told_with_their_role() {
    let w = well();
    let edges: Vec<_> =
        w.engine.counted_children().map(|e| (w.name(e.child), w.name(e.parent), e.policy)).collect();
    assert_eq!(edges, [(Some("web".into()), Some("db".into()), PolicyId(1))]);
}

#[test]
fn a_child_on_a_ring_bears_its_name_once_the_ring_is_open() {
    let mut w = EngineHarness::with(aggregator::EnginePolicy { expects_names: true, ..policy() });
    w.parent("a");
    w.parent("b");
    own(&mut w, "a", &["b"]);
    own(&mut w, "b", &["a"]);
    let is_named = |w: &EngineHarness| {
        w.engine.reader().has_named_child(w.id("a"), POLICY, 0, crate::conditions::hash("b"))
    };
    assert!(!is_named(&w), "what is on a ring does not count");
    own(&mut w, "a", &[]);
    assert!(is_named(&w));
    own(&mut w, "a", &["b"]);
    assert!(!is_named(&w));
}
