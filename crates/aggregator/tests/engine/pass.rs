//! The resync: unready parents are read again, and no others.

use readiness::Level::{Failed, Progressing, Ready};

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::{group, groups, policy};

/// Times of the resyncs of `name`, in seconds since `from`.
fn passes(w: &EngineHarness, name: &str, from: i64) -> Vec<i64> {
    let of = w.passes.iter().filter(|(at, parent)| parent == name && *at >= from);
    of.map(|(at, _)| (at - from) / 1_000).collect()
}

#[test]
fn a_parent_that_is_ready_is_never_passed() {
    let mut w = well();
    w.run(60 * 60_000);
    assert_eq!(passes(&w, "db", 20_000), [0_i64; 0]);
    assert_eq!(w.engine.unready_parent_count(), 0);
}

#[test]
fn a_parent_that_is_not_ready_is_passed_every_half_minute_ten_times_and_then_as_often_as_the_audit() {
    let mut w = well();
    let from = w.millis();
    w.turn("web", Failed);
    w.run(40 * 60_000);
    let times = passes(&w, "db", from);
    assert!(times[0] <= 30, "{times:?}");
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps[..9], [30; 9], "{times:?}");
    assert!(gaps[9..].iter().all(|gap| *gap == 600), "{times:?}");
}

#[test]
fn patience_begins_anew_where_something_moved() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(30 * 60_000);
    let from = w.millis();
    w.turn("web", Progressing);
    w.run(4 * 60_000);
    let times = passes(&w, "db", from);
    assert!(times[0] <= 30 && times.len() >= 7, "{times:?}");
}

#[test]
fn a_parent_that_becomes_ready_is_passed_no_more_and_one_that_fails_again_is() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(5_000);
    let from = w.millis();
    w.turn("web", Ready);
    w.run(20 * 60_000);
    assert_eq!(passes(&w, "db", from), [0_i64; 0]);
    let from = w.millis();
    w.turn("web", Failed);
    w.run(60_000);
    assert!(!passes(&w, "db", from).is_empty());
}

#[test]
fn a_parent_that_is_gone_or_going_is_passed_no_more() {
    let mut w = well();
    w.turn("web", Failed);
    w.run(5_000);
    let from = w.millis();
    w.change_parent("db", |p| p.deleting = true);
    w.run(5 * 60_000);
    assert_eq!(passes(&w, "db", from), [0_i64; 0]);
    let mut w = well();
    w.turn("web", Failed);
    w.run(5_000);
    w.remove("db");
    w.run(5 * 60_000);
    assert!(w.passes.is_empty(), "{:?}", w.passes);
}

#[test]
fn a_pass_reads_the_children_that_hold_the_parent_back_and_no_others() {
    let mut w = well();
    for at in 0..50 {
        w.child(&format!("fine-{at}"), "db", Ready);
    }
    w.child("bad", "db", Failed);
    w.child("slow", "db", Progressing);
    w.run(20_000);
    let (children, kinds) = w.engine.resync_targets(w.id("db"));
    let mut names: Vec<_> = children.into_iter().filter_map(|id| w.name(id)).collect();
    names.sort();
    assert_eq!(names, ["bad", "slow"]);
    assert!(kinds.is_empty());
}

#[test]
fn a_pass_lists_a_kind_of_which_a_child_is_expected_but_unseen() {
    let extras = aggregator::KindId(2);
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), group(extras)]));
    w.parent("db");
    w.child("web", "db", Ready);
    w.run(20_000);
    assert_eq!(w.engine.resync_targets(w.id("db")), (vec![], vec![extras]));
    w.create("disk", extras, Ready, |disk| disk.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(20_000);
    assert_eq!(w.engine.resync_targets(w.id("db")), (vec![], vec![]));
}

#[test]
fn passes_of_many_are_spread_over_the_interval() {
    let mut w = EngineHarness::with(policy());
    for at in 0..60 {
        w.parent(&format!("db-{at}"));
        w.child(&format!("web-{at}"), &format!("db-{at}"), Failed);
    }
    w.run(35_000);
    let first: std::collections::BTreeMap<_, _> =
        w.passes.iter().rev().map(|(at, name)| (name.clone(), *at)).collect();
    assert_eq!(first.len(), 60);
    let mut times: Vec<_> = first.into_values().collect();
    times.sort_unstable();
    assert!(times.windows(20).all(|some| some[19] - some[0] > 2_000), "{times:?}");
}

#[test]
fn a_pass_lists_a_kind_of_which_fewer_children_are_there_than_a_parent_or_a_quorum_asks_for() {
    use aggregator::{ChildGroup, Quorum};
    for (counts, quorum) in [(vec![(0, 2)], Quorum::All), (vec![], Quorum::Count(2))] {
        let mut w = EngineHarness::with(groups(vec![ChildGroup { quorum, ..group(CHILDREN) }]));
        w.parent_so("db", |db| db.counts.clone_from(&counts));
        w.child("web", "db", Ready);
        w.run(20_000);
        assert_eq!(w.says("db"), "ChildrenMissing");
        assert_eq!(w.engine.resync_targets(w.id("db")), (vec![], vec![CHILDREN]), "{quorum:?}");
    }
}
