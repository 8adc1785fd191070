//! Memory of a child, ready or not, and of a parent: the reflector's row and the engine's node, edges and tallies.
//!
//! Counts every byte that the allocator handed out and did not get back, so figures of different machines agree.

use std::alloc::System;
use std::time::Duration;

use aggregator::{
    ChildGroup, Engine, EnginePolicy, GroupRole, KindId, KindState, PolicyId, Quorum, RecountResult,
};
use cap::Cap;
use readiness::{StuckLimits, Time};
use timer::{DebounceConfig, Seed};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
    ParentRule,
};
use watcher::reflector::Reflector;
use watcher::{ParentObject, ReflectorObject};

#[global_allocator]
pub(crate) static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const NOW: Time = Time(1_800_000_000_000);
const PODS: KindId = KindId(1);
const WIDGETS: KindId = KindId(2);
const POLICIES: [PolicyId; 2] = [PolicyId(0), PolicyId(1)];
/// Condition of each policy.
const CONDITIONS: [&str; 2] = ["Ready", "StorageReady"];
const LIMITS: StuckLimits = StuckLimits {
    pending: Duration::from_mins(10),
    progress: Duration::from_mins(10),
    terminating: Duration::from_mins(10),
};
/// What stands on the parents, and who writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentShape {
    /// One policy, and its condition alone.
    Plain,
    /// One policy, whose condition stands beside three of an operator, with messages.
    Neighbours,
    /// Two policies, each with a condition of its own.
    TwoPolicies,
}

impl ParentShape {
    fn policies(self) -> &'static [PolicyId] {
        if self == ParentShape::TwoPolicies { &POLICIES } else { &POLICIES[..1] }
    }
}

/// A cluster of parents with children.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredCluster {
    pub(crate) children: usize,
    /// Number of children of each parent.
    pub(crate) family: usize,
    /// How many of them are not ready.
    pub(crate) unready: usize,
    /// Without an engine it is the reflector alone that is measured.
    pub(crate) has_engine: bool,
    pub(crate) shape: ParentShape,
}

/// What a cluster takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredBytes {
    pub(crate) total: usize,
    pub(crate) per_child: usize,
    /// The same by the reflector's own account.
    pub(crate) estimated_total: usize,
    pub(crate) estimated_per_child: usize,
}

/// Measures a parent with its tallies of its children, and without these: what a cluster takes more whose as many children have
/// twice as many parents. Returns it with the reflector's own account.
///
/// Tables grow by doubling, so that one size says what the next step costs rather than what a parent does. This is the mean over
/// sizes that spread evenly between a size and its double.
pub(crate) fn measure_parent(cluster: MeasuredCluster) -> (usize, usize) {
    let (mut held, mut estimated, mut parents) = (0, 0, 0);
    for eighth in 8..16 {
        let few = MeasuredCluster { children: cluster.children * eighth / 8, ..cluster };
        let many = MeasuredCluster { family: few.family / 2, ..few };
        // Each of the parents that are more has unready children of its own.
        let more_unready = MeasuredCluster { unready: 2 * few.unready, ..few };
        let (many, children) = (measure(many), measure(more_unready));
        held += many.total - children.total;
        estimated += many.estimated_total - children.estimated_total;
        parents += few.children / few.family;
    }
    (held / parents, estimated / parents)
}

/// Measures a cluster at rest.
pub(crate) fn measure(cluster: MeasuredCluster) -> MeasuredBytes {
    let MeasuredCluster { children, family, unready, has_engine, shape } = cluster;
    let reflector = Reflector::new(|| ());
    let mut engine = has_engine.then(|| engine(shape));
    let start = ALLOCATOR.allocated();
    let parents = children / family;
    reflector.set_interest(parents_interest(shape));
    reflector.set_interest(children_interest(shape));
    for number in 0..parents {
        feed(&reflector, &parents_interest(shape), &widget(number, unready == 0, shape));
    }
    take_in(&reflector, engine.as_mut());
    let (between, held) = (ALLOCATOR.allocated(), reflector.held_bytes());
    for number in 0..children {
        feed(
            &reflector,
            &children_interest(shape),
            &pod(number, number / family, number % family >= unready),
        );
    }
    take_in(&reflector, engine.as_mut());
    engine.as_mut().map(let_ready_parents_rest);
    let end = ALLOCATOR.allocated();
    MeasuredBytes {
        total: end - start,
        per_child: (end - between) / children,
        estimated_total: reflector.held_bytes(),
        estimated_per_child: (reflector.held_bytes() - held) / children,
    }
}

/// Builds a cluster of parents with one child each and lets the engine count all of it again. Returns what the cluster takes,
/// and the most that was ever taken.
pub(crate) fn measure_recount(parents: usize) -> (usize, usize) {
    let reflector = Reflector::new(|| ());
    let shape = ParentShape::Plain;
    let mut engine = engine(shape);
    let start = ALLOCATOR.allocated();
    reflector.set_interest(parents_interest(shape));
    reflector.set_interest(children_interest(shape));
    for number in 0..parents {
        feed(&reflector, &parents_interest(shape), &widget(number, true, shape));
        feed(&reflector, &children_interest(shape), &pod(number, number, true));
        take_in(&reflector, Some(&mut engine));
    }
    let held = ALLOCATOR.allocated() - start;
    assert_eq!(engine.recount_kinds(NOW, &[PODS].into()), RecountResult::default());
    (held, ALLOCATOR.max_allocated() - start)
}

fn take_in(reflector: &Reflector, engine: Option<&mut Engine>) {
    let mut engine = engine;
    loop {
        let moved = reflector.take_dirty(256);
        if moved.is_empty() {
            break;
        }
        for id in moved {
            if let Some(engine) = engine.as_deref_mut() {
                reflector.date_unready(id, NOW);
                reflector.with_view(id, NOW, |view| engine.observe_object(NOW, id, view));
            }
        }
    }
    if let Some(engine) = engine {
        engine.poll(Time(NOW.0 + 60_000), &mut Vec::new());
    }
}

/// A parent that has become ready leaves the resync when its next one is due.
fn let_ready_parents_rest(engine: &mut Engine) {
    let later = Time(NOW.0 + 600_000);
    engine.poll(later, &mut Vec::new());
    while engine.take_due_resync(later).is_some() {}
}

fn engine(shape: ParentShape) -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_mins(10), Seed(1));
    let group = ChildGroup {
        kind: PODS,
        role: GroupRole::Critical,
        min: 1,
        max: None,
        quorum: Quorum::All,
        is_prerequisite: false,
    };
    let policy = EnginePolicy {
        groups: vec![group],
        min: 0,
        joint: Vec::new(),
        kinds: vec![WIDGETS, PODS],
        debounce: DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::from_secs(5),
        hold: Duration::ZERO,
        availability: aggregator::Availability::Strict,
        grace: Duration::ZERO,
        pending: LIMITS.pending,
        deadline: None,
        shadow: false,
        expects_names: false,
        requires_proof: false,
        acceptance: aggregator::Acceptance::Accepted,
    };
    for id in shape.policies() {
        engine.set_policy(NOW, *id, Some(policy.clone()));
    }
    engine.set_kind_state(NOW, PODS, KindState::Synced);
    engine.set_kind_state(NOW, WIDGETS, KindState::Synced);
    engine
}

fn feed(reflector: &Reflector, interest: &Interest, text: &str) {
    let object: ParentObject = serde_json::from_str(text).expect("valid JSON");
    let whole = (!interest.parent.is_empty()).then(|| object.raw_text()).flatten();
    reflector.apply_object(interest.id, object.as_child(), whole);
}

fn children_interest(shape: ParentShape) -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() };
    let rule = |policy: &PolicyId| ChildRule {
        policy: *policy,
        group: 0,
        rule_index: 0,
        find: find.clone(),
        allowed: AllowedNamespaces::default(),
        ignore: None,
        made_by_none_of: [].into(),
        scope: NamespaceScope::default(),
        retention: OutcomeRetention::Forget,
    };
    Interest {
        assessment_rules: vec![AssessmentRule { limits: LIMITS, rule: None, remembers_outcome: false }],
        child: shape.policies().iter().map(rule).collect(),
        ..Interest::for_kind(PODS, "", "Pod")
    }
}

fn parents_interest(shape: ParentShape) -> Interest {
    let rules = shape.policies().iter().zip(CONDITIONS);
    let rule = |(policy, condition): (&PolicyId, &str)| ParentRule {
        condition: condition.into(),
        ..ParentRule::for_policy(*policy)
    };
    Interest { parent: rules.map(rule).collect(), ..Interest::for_kind(WIDGETS, "example.com", "Widget") }
}

/// Conditions as an operator writes them.
fn foreign_conditions() -> String {
    let entry = |kind: &str| {
        let message = "the last backup was taken at 2026-08-14T09:12:33Z and is complete ".repeat(3);
        format!(
            r#"{{"type":"{kind}","status":"True","reason":"AsExpected","observedGeneration":1,
            "lastTransitionTime":"2026-08-14T09:12:33Z","message":"{message}"}},"#
        )
    };
    ["Available", "BackedUp", "Upgradeable"].map(entry).concat()
}

fn widget(number: usize, is_ready: bool, shape: ParentShape) -> String {
    let (ready, reason, message) = if is_ready {
        ("True", "AllChildrenReady", "20 of 20 ready; optional")
    } else {
        ("False", "ChildrenProgressing", "1 of 20 not ready: Pod web-1 progressing")
    };
    let own = |kind: &&str| {
        format!(
            r#"{{"type":"{kind}","status":"{ready}","reason":"{reason}","observedGeneration":1,
            "lastTransitionTime":"2026-08-14T09:12:33Z","message":"{message}"}}"#
        )
    };
    let own = CONDITIONS[..shape.policies().len()].iter().map(own).collect::<Vec<_>>().join(",");
    let foreign = if shape == ParentShape::Neighbours { foreign_conditions() } else { String::new() };
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"widget-{number}","namespace":"shop",
        "uid":"00000000-0000-4000-8000-{number:012x}","resourceVersion":"{version}","generation":1}},"spec":{{"size":1}},
        "status":{{"conditions":[{foreign}{own}]}}}}"#,
        version = number + 1,
    )
}

fn pod(number: usize, parent: usize, is_ready: bool) -> String {
    let ready = if is_ready { "True" } else { "False" };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-7d9f8c6b5d-{number:05}","namespace":"shop",
        "uid":"11111111-0000-4000-8000-{number:012x}","resourceVersion":"{version}","generation":1,
        "creationTimestamp":"2026-08-14T09:12:33Z","ownerReferences":[{{"apiVersion":"example.com/v1","kind":"Widget",
        "name":"w","uid":"00000000-0000-4000-8000-{parent:012x}","controller":true}}]}},
        "spec":{{"restartPolicy":"Always","containers":[{{"name":"web"}}]}},"status":{{"phase":"Running",
        "conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#,
        version = number + 1,
    )
}
