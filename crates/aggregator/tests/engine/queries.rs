//! What the driver, the metrics and the page ask of the engine.

use std::time::Duration;

use aggregator::{
    ChildGroup, ChildOf, EnginePolicy, EvaluationCounts, GroupRole, HandledEvidence, KindId, KindState,
    ObjectId, PolicyId, Quorum,
};
use readiness::Level::{Failed, Progressing, Ready, Unknown};
use readiness::rollup::ChildWeight;

use crate::answers::well;
use crate::ask::HarnessQueries as _;
use crate::driver::EngineDriver as _;
use crate::harness::{CHILDREN, EngineHarness, PARENTS, POLICY};
use crate::server::WriteFate;
use crate::{conditions, group, groups, policy};

const OTHER: PolicyId = PolicyId(2);
const EXTRAS: KindId = KindId(2);

/// `db` with a critical child, an optional one, and names expected of both groups.
fn two_groups() -> EngineHarness {
    let children = ChildGroup { min: 2, quorum: Quorum::Count(3), ..group(CHILDREN) };
    let extras =
        ChildGroup { role: GroupRole::Optional, quorum: Quorum::Percent(50), min: 0, ..group(EXTRAS) };
    let mut w = EngineHarness::with(EnginePolicy { expects_names: true, ..groups(vec![children, extras]) });
    w.parent("db");
    w.child("web", "db", Failed);
    w.create("extra", EXTRAS, Unknown, |extra| extra.owners = vec![(POLICY, 1, "db".to_owned())]);
    w.run(20_000);
    w
}

fn present(w: &EngineHarness, kind: KindId) -> Vec<(KindId, ObjectId)> {
    w.engine.present_objects(&[kind].into())
}

#[test]
fn a_parent_is_known_by_its_policies_its_generation_and_its_children() {
    let mut w = two_groups();
    let (db, web, extra) = (w.id("db"), w.id("web"), w.id("extra"));
    assert!(w.engine.is_parent(db) && !w.engine.is_parent(web));
    assert!(w.engine.reader().has_owners(web) && !w.engine.reader().has_owners(db));
    assert_eq!(w.engine.parent_generation(db), Some(1));
    assert_eq!(w.engine.parent_generation(web), None);
    w.respecify("db", HandledEvidence::Handled);
    assert_eq!(w.engine.parent_generation(db), Some(2));

    let (groups, parent) = ([(web, 0, GroupRole::Critical), (extra, 1, GroupRole::Optional)], db);
    let counted = groups.map(|(child, group, role)| ChildOf {
        child,
        parent,
        policy: POLICY,
        group,
        rule_index: 0,
        role,
    });
    assert_eq!(w.engine.counted_children().collect::<Vec<_>>(), counted);
    assert_eq!(w.engine.reader().counted_parents(web), [(db, POLICY)]);
    assert_eq!(w.engine.reader().counted_parents(db), []);
    assert_eq!(w.engine.group_role(POLICY, 0), Some(GroupRole::Critical));
    assert_eq!(w.engine.group_role(POLICY, 1), Some(GroupRole::Optional));
    assert_eq!((w.engine.group_role(POLICY, 2), w.engine.group_role(OTHER, 0)), (None, None));
    assert_eq!(present(&w, CHILDREN), [(CHILDREN, web)]);
    assert_eq!(present(&w, PARENTS), [(PARENTS, db)]);
    w.remove("web");
    assert_eq!(present(&w, CHILDREN), []);
}

#[test]
fn a_parent_that_only_a_child_names_is_one_for_as_long_as_it_is_named() {
    let mut w = well();
    w.child("orphan", "ghost", Ready);
    let ghost = w.place("ghost");
    assert!(w.engine.is_parent(ghost));
    w.change("orphan", |orphan| orphan.owners.clear());
    assert!(!w.engine.is_parent(ghost));
}

#[test]
fn a_child_that_is_found_in_two_ways_has_its_parent_once() {
    let mut w = EngineHarness::empty();
    w.policy(POLICY, policy());
    w.policy(OTHER, groups(vec![group(CHILDREN), ChildGroup { min: 0, ..group(CHILDREN) }]));
    w.sync();
    w.parent_so("db", |db| db.policies = vec![OTHER, POLICY]);
    w.child("web", "db", Ready);
    w.change("web", |web| {
        web.owners =
            vec![(OTHER, 1, "db".to_owned()), (POLICY, 0, "db".to_owned()), (OTHER, 0, "db".to_owned())];
    });
    w.run(20_000);
    assert_eq!(w.engine.reader().counted_parents(w.id("web")), [(w.id("db"), POLICY), (w.id("db"), OTHER)]);
    assert_eq!(w.engine.policies_of(w.id("db")).collect::<Vec<_>>(), [POLICY, OTHER]);
    let written: Vec<_> =
        w.engine.answers_to_write(w.id("db")).into_iter().map(|(policy, _)| policy).collect();
    assert_eq!(written, [POLICY, OTHER]);
}

#[test]
fn as_many_are_expected_as_the_minimum_or_the_quorum_asks_for() {
    let w = two_groups();
    let expected = |policy, group| w.engine.expected(w.id("db"), policy, group);
    assert_eq!(
        (expected(POLICY, 0), expected(POLICY, 1)),
        (3, 1),
        "three by a quorum, one for any percentage"
    );
    assert_eq!((expected(POLICY, 2), expected(OTHER, 0)), (0, 0));
    assert_eq!(w.engine.expected(w.id("web"), POLICY, 0), 0);
}

#[test]
fn a_name_is_there_in_the_group_of_the_child_that_bears_it() {
    let mut w = two_groups();
    let has = |w: &EngineHarness, group, name| {
        w.engine.reader().has_named_child(w.id("db"), POLICY, group, conditions::hash(name))
    };
    assert!(has(&w, 0, "web") && has(&w, 1, "extra"));
    assert!(!has(&w, 1, "web") && !has(&w, 0, "db"));
    w.change("web", |web| web.owners.clear());
    assert!(!has(&w, 0, "web"));
}

#[test]
fn unready_children_are_listed_by_role_with_group_and_kind() {
    let w = two_groups();
    let listed = |role| {
        let of = w.engine.unready_children(w.id("db"), POLICY, role);
        of.map(|child| (child.child, child.group, child.kind, child.rule_index, child.rule_changed))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(GroupRole::Critical), [(w.id("web"), 0, CHILDREN, 0, false)]);
    assert_eq!(listed(GroupRole::Optional), [(w.id("extra"), 1, EXTRAS, 0, false)]);
    assert_eq!(w.engine.group_tally(w.id("db"), POLICY, 1).count_at(Unknown), 1);
    assert_eq!(w.engine.group_tally(w.id("db"), OTHER, 0).total_count(), 0);
}

#[test]
fn an_unready_child_is_listed_with_the_rule_of_the_policy_that_asks() {
    let mut w = EngineHarness::with(policy());
    w.policy(OTHER, policy());
    w.rule_indices.insert(OTHER, 1);
    w.parent_so("db", |db| db.policies = vec![POLICY, OTHER]);
    w.create("web", CHILDREN, Progressing, |web| {
        web.owners = [POLICY, OTHER].map(|policy| (policy, 0, "db".to_owned())).to_vec();
        web.weights = [Failed, Progressing].map(ChildWeight::of).to_vec();
    });
    w.run(20_000);
    for (policy, rule_index, level) in [(POLICY, 0, Failed), (OTHER, 1, Progressing)] {
        let children = w.engine.unready_children(w.id("db"), policy, GroupRole::Critical);
        let listed: Vec<_> = children.map(|child| (child.rule_index, child.weight.level())).collect();
        assert_eq!(listed, [(rule_index, level)], "{policy:?}");
    }
}

#[test]
fn a_child_whose_rule_has_changed_is_listed_as_such() {
    let mut w = two_groups();
    w.kind(EXTRAS, KindState::Listing);
    w.engine.withdraw_changed_rule(w.now, POLICY, EXTRAS);
    let changed = |w: &EngineHarness, role| {
        w.engine
            .unready_children(w.id("db"), POLICY, role)
            .map(|child| child.rule_changed)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (changed(&w, GroupRole::Critical), changed(&w, GroupRole::Optional)),
        (vec![false], vec![true])
    );
    w.kind(EXTRAS, KindState::Synced);
    assert_eq!(changed(&w, GroupRole::Optional), [false]);
}

#[test]
fn a_resync_reads_unready_children_and_the_kinds_of_those_that_are_missing() {
    let least = |min, kind| ChildGroup { min, ..group(kind) };
    let targets = |groups: Vec<ChildGroup>, names: bool, children: &[(&str, KindId, u8)]| {
        let mut w = EngineHarness::with(EnginePolicy { expects_names: names, ..crate::groups(groups) });
        w.parent("db");
        for (name, kind, group) in children {
            let level = if *name == "well" { Ready } else { Failed };
            w.create(name, *kind, level, |child| child.owners = vec![(POLICY, *group, "db".to_owned())]);
        }
        w.run(20_000);
        let (found, kinds) = w.engine.resync_targets(w.id("db"));
        (found.into_iter().map(|id| w.name(id).unwrap()).collect::<Vec<_>>(), kinds)
    };
    let both = |few, more| vec![least(few, CHILDREN), least(more, EXTRAS)];
    let (well, ill) = (("well", CHILDREN, 0), ("ill", CHILDREN, 0));
    assert_eq!(targets(both(1, 0), false, &[well, ill]), (vec!["ill".to_owned()], vec![]));
    assert_eq!(targets(both(1, 1), false, &[well]), (vec![], vec![EXTRAS]), "one is missing");
    assert_eq!(targets(both(3, 1), false, &[well, ill]).1, [CHILDREN, EXTRAS], "too few, and none");
    assert_eq!(targets(both(2, 0), false, &[well, ill]).1, [], "as many as are asked for");
    assert_eq!(targets(both(0, 0), false, &[]).1, [CHILDREN, EXTRAS], "none at all");
    assert_eq!(targets(both(1, 0), true, &[well]).1, [CHILDREN, EXTRAS], "one of them may lack a name");
    let optional = ChildGroup { role: GroupRole::Optional, ..least(1, EXTRAS) };
    assert_eq!(
        targets(vec![least(1, CHILDREN), optional], false, &[well]).1,
        [],
        "optional ones are not missed"
    );
}

#[test]
fn a_parent_is_handled_once_its_operator_has_said_so() {
    let mut w = well();
    let handled = |w: &EngineHarness| w.engine.is_handled(w.id("db"), POLICY);
    assert!(
        handled(&w) && !w.engine.is_handled(w.id("db"), OTHER) && !w.engine.is_handled(w.id("web"), POLICY)
    );
    w.respecify("db", HandledEvidence::NotYet);
    w.run(20_000);
    assert!(!handled(&w));
    w.change_parent("db", |p| p.evidence = HandledEvidence::Handled);
    w.run(20_000);
    assert!(handled(&w));
}

#[test]
fn a_kind_is_being_listed_until_it_is_said_to_be_otherwise() {
    let mut w = EngineHarness::empty();
    assert_eq!(w.engine.kind_state(CHILDREN), KindState::Listing);
    assert!(!w.engine.is_open(POLICY));
    w.policy(POLICY, policy());
    for state in [KindState::Synced, KindState::Absent, KindState::Forbidden, KindState::Stale] {
        w.kind(PARENTS, KindState::Synced);
        w.kind(CHILDREN, state);
        assert_eq!((w.engine.kind_state(CHILDREN), w.engine.is_open(POLICY)), (state, true));
    }
    w.kind(CHILDREN, KindState::Listing);
    assert!(!w.engine.is_open(POLICY));
    assert_eq!(w.engine.kind_state(KindId(9)), KindState::Listing);
}

#[test]
fn a_policy_that_is_gone_or_in_shadow_writes_nothing() {
    let mut w = well();
    assert!(!w.engine.is_shadow(POLICY) && w.engine.is_shadow(OTHER));
    w.policy(POLICY, EnginePolicy { shadow: true, ..policy() });
    assert!(w.engine.is_shadow(POLICY));
}

#[test]
fn evaluations_are_counted_and_those_that_changed_the_answer_too() {
    let mut w = well();
    let counts = w.engine.take_counts();
    assert!(counts.evaluations > counts.changed_answers && counts.changed_answers >= 2, "{counts:?}");
    assert_eq!(w.engine.take_counts(), EvaluationCounts::default(), "they are taken");
    w.run(60_000);
    assert_eq!(w.engine.take_counts(), EvaluationCounts::default(), "nothing happens");
    w.turn("web", Failed);
    w.run(10);
    assert_eq!(w.engine.take_counts().changed_answers, 1);
    w.observe("web");
    w.run(5_000);
    let counts = w.engine.take_counts();
    assert!(counts.evaluations > 0 && counts.changed_answers == 0, "{counts:?}");
}

#[test]
fn what_waits_for_quiet_is_counted_until_it_is_evaluated() {
    let mut w = well();
    assert_eq!(w.engine.debounced_count(), 0);
    w.turn("web", Progressing);
    w.run(10);
    w.child("api", "db", Ready);
    assert_eq!(w.engine.debounced_count(), 1);
    w.run(5_000);
    assert_eq!(w.engine.debounced_count(), 0);
}

#[test]
fn a_parent_whose_writes_fail_is_written_after_others() {
    let mut w = well();
    let failures = |w: &EngineHarness| w.engine.write_failures(w.id("db"));
    assert_eq!((failures(&w), w.engine.write_failures(w.id("web"))), (0, 0));
    w.server.fates = vec![WriteFate::Retry(Duration::from_secs(5))];
    w.turn("web", Failed);
    w.run(1_000);
    assert_eq!(failures(&w), 1);
    w.run(60_000);
    assert_eq!(failures(&w), 0);
    assert_eq!(w.says("db"), "ChildrenFailed");
}

#[test]
fn a_third_overwrite_in_a_row_is_one_of_many() {
    let mut w = well();
    assert!(!w.engine.is_repeatedly_overwritten(w.id("web")));
    for overwrites in 1..=3 {
        assert!(!w.engine.is_repeatedly_overwritten(w.id("db")), "{overwrites}");
        w.change_parent("db", |p| p.status.get_mut(&POLICY).unwrap().stalled ^= true);
        w.run(10_000);
    }
    assert!(w.engine.is_repeatedly_overwritten(w.id("db")));
}

#[test]
fn the_text_about_a_child_or_a_parent_may_change_by_itself() {
    for changed in ["web", "db"] {
        let mut w = well();
        w.turn("web", Failed);
        w.run(60_000);
        w.engine.take_counts();
        w.engine.mark_text_changed(w.id(changed), w.now);
        w.run(1_000);
        assert_eq!(
            w.engine.take_counts(),
            EvaluationCounts { evaluations: 1, changed_answers: 0, saved_flips: 0 },
            "{changed}"
        );
    }
}

#[test]
fn a_draft_is_none_any_more_once_its_answer_is_in_doubt() {
    let mut w = well();
    let db = w.id("db");
    w.observe("web");
    w.run(10);
    assert!(w.engine.confirm_draft(db, w.now));
    w.turn("web", Progressing);
    // Debounced, and known not to be ready any more.
    assert!(!w.engine.confirm_draft(db, w.now));
    assert_eq!(w.engine.next_deadline(), Some(w.now), "it is made again at once");

    let mut w = well();
    let next = w.engine.next_deadline();
    assert!(!w.engine.confirm_draft(w.id("web"), w.now), "no parent");
    assert_eq!(w.engine.next_deadline(), next);
}

#[test]
fn an_unready_child_is_listed_by_the_rule_of_its_group() {
    let mut w = EngineHarness::with(groups(vec![group(CHILDREN), group(CHILDREN)]));
    w.parent("db");
    w.child("web", "db", Ready);
    let (db, web) = (w.id("db"), w.id("web"));
    let target = aggregator::LinkTarget::Object(db);
    let links = [0, 1].map(|group| aggregator::ChildLink::new(POLICY, group, u16::from(group), target));
    let weights = [Failed, Unknown].map(crate::harness::weight);
    let kind = CHILDREN;
    let view = aggregator::ObjectView {
        kind,
        weights: &weights,
        links: &links,
        ..aggregator::ObjectView::default()
    };
    w.engine.observe_object(w.now, web, Some(&view));
    let unready = w.engine.unready_children(db, POLICY, GroupRole::Critical);
    let listed: Vec<_> = unready.map(|child| (child.weight.level(), child.group, child.rule_index)).collect();
    assert_eq!(listed, [(Failed, 0, 0), (Unknown, 1, 1)]);
}
