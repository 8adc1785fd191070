//! Minimum, maximum, expected names and quorum.

use aggregator::{ChildGroup, EnginePolicy, GroupRole, JointCount, Quorum};
use readiness::Level::{self, Failed, Progressing, Ready, Suspended};

use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, POLICY};
use crate::{group, groups, policy};

/// Returns the settled answer of a parent under `policy` with children at these levels.
fn said(policy: EnginePolicy, children: &[Level]) -> String {
    let mut w = EngineHarness::with(policy);
    w.parent("db");
    for (at, level) in children.iter().enumerate() {
        w.child(&format!("web-{at}"), "db", *level);
    }
    w.run(60_000);
    w.says("db")
}

fn one(group: ChildGroup) -> EnginePolicy {
    groups(vec![group])
}

#[test]
fn no_children_at_all_is_never_ready() {
    assert_eq!(said(policy(), &[]), "ChildrenMissing");
    for quorum in [Quorum::All, Quorum::Count(0), Quorum::Percent(0), Quorum::Percent(80)] {
        assert_eq!(said(one(ChildGroup { min: 0, quorum, ..group(CHILDREN) }), &[]), "ChildrenMissing");
    }
    assert_eq!(said(groups(vec![]), &[]), "ChildrenMissing");
    let optional = ChildGroup { role: GroupRole::Optional, min: 0, ..group(CHILDREN) };
    assert_eq!(said(one(optional), &[Ready]), "ChildrenMissing", "optional ones do not count");
}

#[test]
fn what_is_only_awaited_makes_up_for_no_child() {
    const EXTRAS: aggregator::KindId = aggregator::KindId(2);
    let own = ChildGroup { min: 0, ..group(CHILDREN) };
    let awaited = ChildGroup { min: 0, is_prerequisite: true, ..group(EXTRAS) };
    let answer = |min: u32, own_level: Option<Level>, before: Level| {
        let mut w = EngineHarness::with(EnginePolicy { min, ..groups(vec![own.clone(), awaited.clone()]) });
        w.parent("db");
        w.create("base", EXTRAS, before, |base| base.owners = vec![(POLICY, 1, "db".to_owned())]);
        if let Some(level) = own_level {
            w.child("web", "db", level);
        }
        w.run(60_000);
        w.says("db")
    };
    for min in [0, 1] {
        assert_eq!(answer(min, None, Ready), "ChildrenMissing");
        assert_eq!(answer(min, None, Progressing), "ChildrenMissing");
        assert_eq!(answer(min, Some(Ready), Ready), "AllChildrenReady");
        assert_eq!(answer(min, Some(Ready), Progressing), "ChildrenProgressing");
        assert_eq!(answer(min, Some(Suspended), Ready), "ChildrenSuspended", "it is not beside a ready one");
    }
    assert_eq!(answer(2, Some(Ready), Ready), "ChildrenMissing");
}

#[test]
fn fewer_than_the_least_are_missing_and_more_than_the_most_too_many() {
    let some = |count| vec![Ready; count];
    let few = || one(ChildGroup { min: 2, max: Some(3), ..group(CHILDREN) });
    for (count, reason) in
        [(1, "ChildrenMissing"), (2, "AllChildrenReady"), (3, "AllChildrenReady"), (4, "TooManyChildren")]
    {
        assert_eq!(said(few(), &some(count)), reason, "{count}");
    }
    assert_eq!(
        said(EnginePolicy { min: 3, ..policy() }, &some(2)),
        "ChildrenMissing",
        "in all groups together"
    );
    assert_eq!(
        said(one(ChildGroup { min: 0, max: Some(0), ..group(CHILDREN) }), &some(1)),
        "TooManyChildren"
    );
}

#[test]
fn what_groups_expect_together_is_counted_over_them_and_over_no_other_one() {
    const EXTRAS: aggregator::KindId = aggregator::KindId(2);
    const OTHERS: aggregator::KindId = aggregator::KindId(3);
    let any = |kind| ChildGroup { min: 0, ..group(kind) };
    let joint = JointCount { groups: 0..2, min: 2, max: Some(3) };
    let answer = |children: u32, extras: u32, others: u32| {
        let all = groups(vec![any(CHILDREN), any(EXTRAS), any(OTHERS)]);
        let mut w = EngineHarness::with(EnginePolicy { joint: vec![joint.clone()], ..all });
        w.parent("db");
        for (of, (kind, count)) in (0..).zip([(CHILDREN, children), (EXTRAS, extras), (OTHERS, others)]) {
            for n in 0..count {
                w.create(&format!("{of}-{n}"), kind, Ready, |child| {
                    child.owners = vec![(POLICY, of, "db".to_owned())];
                });
            }
        }
        w.run(60_000);
        w.says("db")
    };
    assert_eq!(answer(0, 0, 5), "ChildrenMissing");
    assert_eq!(answer(1, 0, 5), "ChildrenMissing");
    assert_eq!(answer(1, 1, 0), "AllChildrenReady");
    assert_eq!(answer(0, 2, 5), "AllChildrenReady");
    assert_eq!(answer(2, 2, 0), "TooManyChildren");
}

#[test]
fn minima_whose_sum_is_beyond_any_number_of_children_are_still_missing() {
    // One short of two here and 2^32 - 1 short there: together 2^32, which would wrap to none missing.
    let groups = groups(vec![
        ChildGroup { min: 2, ..group(CHILDREN) },
        ChildGroup { min: u32::MAX, ..group(CHILDREN) },
    ]);
    assert_eq!(said(groups, &[Ready]), "ChildrenMissing");
}

#[test]
fn a_minimum_that_is_computed_from_the_parent_replaces_that_of_its_group_alone() {
    let extras = ChildGroup { min: 0, ..group(aggregator::KindId(2)) };
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), extras]));
    w.parent_so("db", |db| db.counts = vec![(1, 2)]);
    w.child("web", "db", Ready);
    let extra = |w: &mut EngineHarness, name: &str| {
        w.create(name, aggregator::KindId(2), Ready, |extra| {
            extra.owners = vec![(POLICY, 1, "db".to_owned())];
        });
        w.run(60_000);
    };
    extra(&mut w, "first");
    assert_eq!(w.says("db"), "ChildrenMissing");
    let expected = |group| w.engine.expected(w.id("db"), POLICY, group);
    assert_eq!((expected(0), expected(1)), (1, 2));
    extra(&mut w, "second");
    assert_eq!(w.says("db"), "AllChildrenReady");
}

#[test]
fn what_is_missing_for_longer_than_its_limit_is_stalled() {
    let mut w = EngineHarness::with(policy());
    w.parent("db");
    w.run(9 * 60_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
    w.child("web", "db", Progressing);
    w.run(1_000);
    w.remove("web");
    w.run(9 * 60_000);
    assert_eq!(w.says("db"), "ChildrenMissing", "the limit begins anew");
    w.run(2 * 60_000);
    assert_eq!(w.says("db"), "ChildrenMissing!");
}

#[test]
fn expected_names_must_be_there_and_be_in_their_group() {
    let mut w = EngineHarness::with(EnginePolicy {
        expects_names: true,
        ..one(ChildGroup { min: 0, ..group(CHILDREN) })
    });
    w.parent_so("db", |p| {
        p.expects = ["web", "api"].map(|name| (POLICY, 0, name.to_owned())).to_vec();
    });
    w.child("web", "db", Ready);
    w.child("other", "db", Ready);
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
    w.child("api", "db", Ready);
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    w.remove("web");
    w.run(60_000);
    assert_eq!(w.says("db"), "ChildrenMissing");
}

#[test]
fn a_quorum_forgives_those_beyond_it() {
    let of = |quorum| one(ChildGroup { quorum, ..group(CHILDREN) });
    for (quorum, children, reason) in [
        (Quorum::All, &[Ready, Failed][..], "ChildrenFailed"),
        (Quorum::Count(1), &[Ready, Failed], "AllChildrenReady"),
        (Quorum::Count(2), &[Ready, Failed], "ChildrenFailed"),
        (Quorum::Count(2), &[Ready], "ChildrenMissing"),
        (Quorum::Percent(50), &[Ready, Progressing], "AllChildrenReady"),
        (Quorum::Percent(51), &[Ready, Progressing], "ChildrenProgressing"),
        (Quorum::Percent(80), &[Ready, Ready, Ready, Ready, Failed], "AllChildrenReady"),
        (Quorum::Percent(80), &[Ready, Ready, Ready, Failed], "ChildrenFailed"),
        (Quorum::Percent(100), &[Ready, Ready], "AllChildrenReady"),
    ] {
        assert_eq!(said(of(quorum), children), reason, "{quorum:?} of {children:?}");
    }
}

#[test]
fn a_quorum_over_zero_is_no_quorum() {
    let of = |quorum| one(ChildGroup { min: 0, quorum, ..group(CHILDREN) });
    for quorum in [Quorum::Count(0), Quorum::Percent(0)] {
        assert_eq!(said(of(quorum), &[Failed]), "ChildrenFailed", "{quorum:?}");
        assert_eq!(said(of(quorum), &[Progressing, Ready]), "ChildrenProgressing", "{quorum:?}");
    }
    assert_eq!(said(of(Quorum::Percent(60)), &[Suspended]), "ChildrenSuspended");
}

#[test]
fn suspended_ones_do_not_count_towards_a_quorum() {
    let half = || one(ChildGroup { quorum: Quorum::Percent(50), ..group(CHILDREN) });
    assert_eq!(said(half(), &[Ready, Progressing, Suspended, Suspended]), "AllChildrenReady");
    assert_eq!(said(policy(), &[Suspended, Ready]), "AllChildrenReady");
    assert_eq!(said(policy(), &[Suspended, Suspended]), "ChildrenSuspended");
}

#[test]
fn optional_children_are_tallied_and_never_turn_their_parent() {
    let beside = ChildGroup { role: GroupRole::Optional, min: 0, ..group(aggregator::KindId(2)) };
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), beside]));
    w.parent("db");
    w.child("web", "db", Ready);
    w.create("extra", aggregator::KindId(2), Failed, |extra| {
        extra.owners = vec![(POLICY, 1, "db".to_owned())];
    });
    w.run(60_000);
    assert_eq!(w.says("db"), "AllChildrenReady");
    assert_eq!(w.engine.group_tally(w.id("db"), POLICY, 1).count_at(Failed), 1);
    assert_eq!(w.engine.unready_children(w.id("db"), POLICY, GroupRole::Optional).count(), 1);
    assert_eq!(w.engine.unready_children(w.id("db"), POLICY, GroupRole::Critical).count(), 0);
}

/// Two groups: one with a quorum and these children, one without and those.
fn beside(quorum: Quorum, some: &[Level], others: &[Level]) -> String {
    let first = ChildGroup { quorum, min: 0, ..group(CHILDREN) };
    let mut w = EngineHarness::with(groups(vec![first, ChildGroup { min: 0, ..group(CHILDREN) }]));
    w.parent("db");
    for (at, children) in [(0, some), (1, others)] {
        for (n, level) in children.iter().enumerate() {
            let owner = (POLICY, at, "db".to_owned());
            w.create(&format!("{at}-{n}"), CHILDREN, *level, |object| object.owners = vec![owner]);
        }
    }
    w.run(10_000);
    w.says("db")
}

#[test]
fn suspended_children_are_neutral_beside_a_group_that_has_its_quorum() {
    for quorum in [Quorum::Percent(50), Quorum::Count(1), Quorum::All] {
        assert_eq!(beside(quorum, &[Ready, Ready], &[Suspended]), "AllChildrenReady", "{quorum:?}");
        assert_eq!(beside(quorum, &[Suspended], &[Ready]), "AllChildrenReady", "{quorum:?}");
    }
    assert_eq!(beside(Quorum::Percent(50), &[Ready, Suspended], &[Progressing]), "ChildrenProgressing");
    assert_eq!(beside(Quorum::Percent(50), &[Suspended], &[Suspended]), "ChildrenSuspended");
}

#[test]
fn a_quorum_of_nothing_is_never_ready_also_beside_others_that_are() {
    for (quorum, expected) in [
        (Quorum::Percent(50), "ChildrenMissing"),
        (Quorum::Count(1), "ChildrenMissing"),
        (Quorum::All, "AllChildrenReady"),
    ] {
        assert_eq!(beside(quorum, &[], &[Ready]), expected, "{quorum:?}");
    }
}
