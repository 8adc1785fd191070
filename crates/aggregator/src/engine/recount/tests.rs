use std::collections::BTreeSet;
use std::time::Duration;

use readiness::rollup::{ChildWeight, LevelTally, ParentReason};
use readiness::{Level, Time};
use timer::{DebounceConfig, Seed};

use super::*;
use crate::answer_view::AnswerView;
use crate::engine::Engine;
use crate::engine::scheduler::EvaluationScheduler;
use crate::evaluation::{ChildCounts, UnreadyEntry, UnreadySet};
use crate::ids::{KindId, PolicyId};
use crate::types::{
    Acceptance, ChildGroup, ChildLink, EnginePolicy, GroupRole, KindState, LinkTarget, ObjectView,
    ParentView, SpecMark,
};

const PARENTS: KindId = KindId(0);
const CHILDREN: KindId = KindId(1);
const POLICY: PolicyId = PolicyId(1);
const PARENT: ObjectId = ObjectId(0);
const NOW: Time = Time(1_000);

fn link() -> ChildLink {
    ChildLink::new(POLICY, 0, 0, LinkTarget::Object(PARENT))
}

fn weight(child: u32) -> [ChildWeight; 1] {
    let level = if child == 3 { Level::Progressing } else { Level::Ready };
    [ChildWeight::of(level)]
}

fn view<'a>(weights: &'a [ChildWeight], links: &'a [ChildLink]) -> ObjectView<'a> {
    ObjectView {
        kind: CHILDREN,
        weights,
        spec_mark: SpecMark { generation: 1, wanted_by_operator: 1 },
        created: NOW,
        name: 7,
        links,
        recheck: None,
        lent_selectors: &[],
        parent: None,
    }
}

/// A policy with so many groups of children.
fn policy(groups: usize) -> EnginePolicy {
    let quorum = crate::types::Quorum::All;
    let group = ChildGroup {
        kind: CHILDREN,
        role: GroupRole::Critical,
        min: 1,
        max: None,
        quorum,
        is_prerequisite: false,
    };
    EnginePolicy {
        groups: vec![group; groups],
        min: 0,
        joint: Vec::new(),
        kinds: vec![PARENTS, CHILDREN],
        debounce: DebounceConfig { quiet: Duration::ZERO, cap: Duration::ZERO },
        settle: Duration::ZERO,
        hold: Duration::ZERO,
        availability: crate::Availability::Strict,
        grace: Duration::ZERO,
        pending: Duration::from_secs(600),
        deadline: None,
        shadow: false,
        expects_names: false,
        requires_proof: false,
        acceptance: Acceptance::Accepted,
    }
}

fn observe_parent(engine: &mut Engine, id: ObjectId) {
    let answers = [AnswerView { policy: POLICY, ..AnswerView::default() }].into();
    let parent = ParentView { generation: 1, answers, ..ParentView::default() };
    let weights = weight(0);
    let shown = ObjectView { kind: PARENTS, parent: Some(&parent), ..view(&weights, &[]) };
    engine.observe_object(NOW, id, Some(&shown));
}

/// A parent with so many children, of which the third is not ready.
fn observed(children: u32) -> Engine {
    observed_under(policy(1), children)
}

fn observed_under(policy: EnginePolicy, children: u32) -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_secs(600), Seed(1));
    engine.set_policy(NOW, POLICY, Some(policy));
    observe_parent(&mut engine, PARENT);
    for child in 1..=children {
        engine.observe_object(NOW, ObjectId(child), Some(&view(&weight(child), &[link()])));
    }
    for kind in [PARENTS, CHILDREN] {
        engine.set_kind_state(NOW, kind, KindState::Synced);
    }
    engine
}

fn is_observed(engine: &Engine, child: u32) -> bool {
    engine.is_observed_as(ObjectId(child), Some(&view(&weight(child), &[link()])))
}

fn recount(engine: &mut Engine) -> RecountResult {
    engine.recount_kinds(NOW, &BTreeSet::from([CHILDREN]))
}

fn count(engine: &Engine) -> u32 {
    engine.group_tally(PARENT, POLICY, 0).total_count()
}

#[test]
fn what_is_right_is_left_alone() {
    let mut engine = observed(20);
    assert_eq!(recount(&mut engine), RecountResult::default());
    assert!((1..=20).all(|child| is_observed(&engine, child)));
}

#[test]
fn an_edge_that_was_lost_is_found_and_counts_again() {
    let mut engine = observed(3);
    let edge = *engine.scheduler.graph.edges_of(ObjectId(2)).iter().next().unwrap();
    let EvaluationScheduler { graph, .. } = &mut engine.scheduler;
    graph.detach_edge(ObjectId(2), edge);
    assert!(is_observed(&engine, 2), "the object alone does not tell");
    assert_eq!(recount(&mut engine).children, [(CHILDREN, ObjectId(2))]);
    assert_eq!(count(&engine), 3);
    assert_eq!(recount(&mut engine), RecountResult::default());
}

#[test]
fn a_count_that_is_wrong_is_put_right_and_its_parent_evaluated_again() {
    let mut engine = observed(3);
    let mut drafts = Vec::new();
    engine.poll(NOW, &mut drafts);
    let evaluation = engine.scheduler.graph.find_evaluation_for(PARENT, POLICY).unwrap();
    engine.scheduler.graph.evaluation_mut(evaluation).unwrap().children.groups = Box::default();
    assert_eq!(engine.reader().find_miscounted(), Some((PARENT, POLICY)));
    assert_eq!(recount(&mut engine).parents, [PARENT]);
    assert_eq!((count(&engine), engine.reader().find_miscounted()), (3, None));
    assert!(engine.next_deadline().is_some(), "it is evaluated again");
    assert_eq!(recount(&mut engine), RecountResult::default());
}

#[test]
fn an_unready_child_that_was_forgotten_is_named_again() {
    let mut engine = observed(3);
    let evaluation = engine.scheduler.graph.find_evaluation_for(PARENT, POLICY).unwrap();
    engine.scheduler.graph.evaluation_mut(evaluation).unwrap().children.unready = UnreadySet::default();
    assert_eq!(recount(&mut engine).parents, [PARENT]);
    let held = engine.scheduler.graph.find_evaluation(evaluation).unwrap();
    assert_eq!(held.children.unready.iter().count(), 1);
}

#[test]
fn an_object_that_was_not_observed_as_it_is_shown_is_told_from_one_that_was() {
    let engine = observed(3);
    assert!(!engine.is_observed_as(ObjectId(3), None), "it is gone");
    assert!(engine.is_observed_as(ObjectId(9), None), "it never was");
    let ready = [ChildWeight::of(Level::Ready)];
    assert!(!engine.is_observed_as(ObjectId(3), Some(&view(&ready, &[link()]))), "the first is not ready");
    assert!(!engine.is_observed_as(ObjectId(2), Some(&view(&ready, &[]))), "it counts for nobody any more");
    assert_eq!(engine.present_objects(&BTreeSet::from([CHILDREN])).len(), 3);
}

#[test]
fn a_ready_child_among_the_unready_ones_is_found_and_forgotten() {
    let mut engine = observed(3);
    assert!(engine.reader().are_unready_children_consistent());
    let evaluation = engine.scheduler.graph.find_evaluation_for(PARENT, POLICY).unwrap();
    let weight = ChildWeight::of(Level::Ready);
    let entry = UnreadyEntry { weight, group: 0, kind: CHILDREN, child: ObjectId(1) };
    engine.scheduler.graph.evaluation_mut(evaluation).unwrap().children.unready.insert(entry);
    assert!(!engine.reader().are_unready_children_consistent());
    assert_eq!(recount(&mut engine).parents, [PARENT]);
    assert!(engine.reader().are_unready_children_consistent());
}

/// Another parent than [`PARENT`].
const OTHER: ObjectId = ObjectId(8);
/// A child of all groups of both parents, by a rule of its own in each.
const SHARED: ObjectId = ObjectId(2);
/// Its level in each group.
const RIGHT: [Level; 3] = [Level::Ready, Level::Progressing, Level::Unknown];

fn observe_shared(engine: &mut Engine, levels: [Level; 3]) {
    let to = |parent, group| ChildLink::new(POLICY, group, u16::from(group), LinkTarget::Object(parent));
    let links = [0, 1, 2].map(|group| [to(OTHER, group), to(PARENT, group)]).concat();
    engine.observe_object(NOW, SHARED, Some(&view(&levels.map(ChildWeight::of), &links)));
}

fn shared() -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_secs(600), Seed(1));
    engine.set_policy(NOW, POLICY, Some(policy(3)));
    for parent in [PARENT, OTHER] {
        observe_parent(&mut engine, parent);
    }
    observe_shared(&mut engine, RIGHT);
    engine
}

/// Tallies of all groups of both parents.
fn tallies(engine: &Engine) -> Vec<LevelTally> {
    [PARENT, OTHER]
        .into_iter()
        .flat_map(|parent| [0, 1, 2].map(|group| engine.group_tally(parent, POLICY, group)))
        .collect()
}

#[test]
fn a_wrong_weight_in_one_group_of_one_parent_is_put_right_and_moves_no_other() {
    for parent in [PARENT, OTHER] {
        for (group, right) in (0..).zip(RIGHT) {
            let mut engine = shared();
            let before = tallies(&engine);
            let graph = &mut engine.scheduler.graph;
            let evaluation = graph.find_evaluation_for(parent, POLICY).unwrap();
            let (was, wrong) = (ChildWeight::of(right), ChildWeight::of(Level::Failed));
            let entry = UnreadyEntry { weight: was, group, kind: CHILDREN, child: SHARED };
            graph.evaluation_mut(evaluation).unwrap().children.reweigh_child(entry, wrong);
            let edges = graph.node_mut(SHARED).edges.as_mut_slice();
            let edge = edges.iter_mut().find(|edge| edge.evaluation == evaluation && edge.group == group);
            edge.unwrap().weight = wrong;

            assert_eq!(recount(&mut engine).parents, [parent]);
            assert_eq!(tallies(&engine), before);
            // From then on each change is counted as if nothing had been wrong.
            observe_shared(&mut engine, [Level::Stuck, Level::Unknown, Level::Ready]);
            observe_shared(&mut engine, RIGHT);
            assert_eq!(tallies(&engine), before);
            assert_eq!(recount(&mut engine), RecountResult::default());
        }
    }
}

#[test]
fn an_edge_that_was_lost_is_found_beside_those_to_the_same_parent_and_from_the_same_group() {
    for at in 0..6 {
        let mut engine = shared();
        let before = tallies(&engine);
        let edge = engine.scheduler.graph.edges_of(SHARED).as_slice()[at];
        let EvaluationScheduler { graph, .. } = &mut engine.scheduler;
        graph.detach_edge(SHARED, edge);
        assert_ne!(tallies(&engine), before);
        assert_eq!(recount(&mut engine).children, [(CHILDREN, SHARED)]);
        assert_eq!(tallies(&engine), before);
    }
}

/// Lets time pass until nothing is due; the answer about [`PARENT`] then.
fn settled_answer(engine: &mut Engine, now: &mut Time) -> (ParentReason, u32, u32) {
    let mut drafts = Vec::new();
    for _ in 0..50 {
        engine.poll(*now, &mut drafts);
        let Some(next) = engine.next_deadline().filter(|at| *at < *now + Duration::from_secs(20)) else {
            break;
        };
        *now = next.max(*now);
    }
    let answer = engine.answer_of(PARENT, POLICY).unwrap();
    (answer.reason, answer.ready, answer.total)
}

/// Another child turns, and turns back: whatever is held of the others now counts.
fn turn_child(engine: &mut Engine, child: u32, now: &mut Time) -> (ParentReason, u32, u32) {
    let failed = [ChildWeight::of(Level::Failed)];
    engine.observe_object(*now, ObjectId(child), Some(&view(&failed, &[link()])));
    settled_answer(engine, now);
    engine.observe_object(*now, ObjectId(child), Some(&view(&weight(child), &[link()])));
    settled_answer(engine, now)
}

fn children_of(engine: &mut Engine) -> &mut ChildCounts {
    let graph = &mut engine.scheduler.graph;
    let evaluation = graph.find_evaluation_for(PARENT, POLICY).unwrap();
    &mut graph.evaluation_mut(evaluation).unwrap().children
}

#[test]
fn whatever_was_corrupted_the_answer_is_wrong_until_the_recount_and_right_again_after_it() {
    type Corrupt = fn(&mut Engine);
    let corruptions: [(&str, Corrupt, RecountResult); 4] = [
        (
            "the edge of the child that is not ready",
            |engine| {
                let edge = *engine.scheduler.graph.edges_of(ObjectId(3)).iter().next().unwrap();
                let EvaluationScheduler { graph, .. } = &mut engine.scheduler;
                graph.detach_edge(ObjectId(3), edge);
            },
            RecountResult { children: vec![(CHILDREN, ObjectId(3))], parents: vec![] },
        ),
        (
            "the tally, and with it what is not ready",
            |engine| {
                let mut tally = LevelTally::default();
                (0..3).for_each(|_| tally.add_child(ChildWeight::of(Level::Ready)));
                let children = children_of(engine);
                children.groups = [(0, tally)].into_iter().collect();
                children.unready = UnreadySet::default();
            },
            RecountResult { children: vec![], parents: vec![PARENT] },
        ),
        (
            "the tally, one child too few",
            |engine| {
                let mut tally = LevelTally::default();
                (0..2).for_each(|_| tally.add_child(ChildWeight::of(Level::Ready)));
                children_of(engine).groups = [(0, tally)].into_iter().collect();
            },
            RecountResult { children: vec![], parents: vec![PARENT] },
        ),
        (
            "the set of those that are not ready, and the weight of the edge",
            |engine| {
                let graph = &mut engine.scheduler.graph;
                let evaluation = graph.find_evaluation_for(PARENT, POLICY).unwrap();
                let (was, wrong) = (weight(3)[0], ChildWeight::of(Level::Ready));
                let entry = UnreadyEntry { weight: was, group: 0, kind: CHILDREN, child: ObjectId(3) };
                graph.evaluation_mut(evaluation).unwrap().children.reweigh_child(entry, wrong);
                graph.node_mut(ObjectId(3)).edges.as_mut_slice()[0].weight = wrong;
            },
            RecountResult { children: vec![], parents: vec![PARENT] },
        ),
    ];
    for (what, corrupt, found) in corruptions {
        // Nobody answers writes here.
        let mut engine = observed_under(EnginePolicy { shadow: true, ..policy(1) }, 3);
        let mut now = NOW;
        let right = (ParentReason::ChildrenProgressing, 2, 3);
        assert_eq!(settled_answer(&mut engine, &mut now), right, "{what}");
        corrupt(&mut engine);
        let wrong = turn_child(&mut engine, 1, &mut now);
        assert_ne!(wrong, right, "{what}: nothing else finds it");
        assert_eq!(engine.recount_kinds(now, &[CHILDREN].into()), found, "{what}");
        assert_eq!(settled_answer(&mut engine, &mut now), right, "{what}");
        assert_eq!(turn_child(&mut engine, 1, &mut now), right, "{what}: and stays so");
        assert_eq!(engine.recount_kinds(now, &[CHILDREN].into()), RecountResult::default(), "{what}");
    }
}

#[test]
fn a_wrong_sum_of_a_policy_is_found_once_and_put_right() {
    let mut engine = observed(3);
    engine.poll(NOW, &mut Vec::new());
    engine.take_changed_parents();
    let before = engine.reader().policy_sums(POLICY).cloned();
    assert!(before.is_some());
    assert_eq!(engine.correct_sums(), [], "nothing is wrong");
    for policy in [POLICY, PolicyId(9)] {
        engine.scheduler.graph.spoil_sums(policy);
    }
    assert_ne!(engine.reader().policy_sums(POLICY), before.as_ref());
    assert_eq!(engine.correct_sums(), [POLICY, PolicyId(9)]);
    assert_eq!(engine.reader().policy_sums(POLICY), before.as_ref());
    assert_eq!(engine.reader().policy_sums(PolicyId(9)), None, "it has no parents");
    assert_eq!(engine.correct_sums(), []);
}

#[test]
fn what_has_changed_and_is_not_summed_yet_is_no_wrong_sum() {
    let mut engine = observed(2);
    engine.poll(NOW, &mut Vec::new());
    engine.take_changed_parents();
    engine.observe_object(NOW, ObjectId(3), Some(&view(&weight(3), &[link()])));
    assert_eq!(engine.correct_sums(), []);
    engine.take_changed_parents();
    assert_eq!(engine.correct_sums(), []);
    assert_eq!(engine.reader().policy_sums(POLICY), engine.reader().recount_sums().get(&POLICY));
}
