//! Memory of a child, ready or not, and of a parent: the reflector's row and the engine's node, edges and tallies.
//!
//! Counts every byte that the allocator handed out and did not get back, so figures of different machines agree.

use std::alloc::System;
use std::time::Duration;

use aggregator::{ChildGroup, Engine, EnginePolicy, GroupRole, KindId, KindState, PolicyId, Quorum};
use cap::Cap;
use readiness::{StuckLimits, Time};
use timer::{DebounceConfig, Seed};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, OutcomeRetention, ParentRule,
};
use watcher::reflector::Reflector;
use watcher::{ParentObject, ReflectorObject};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const NOW: Time = Time(1_800_000_000_000);
const PODS: KindId = KindId(1);
const WIDGETS: KindId = KindId(2);
const POLICY: PolicyId = PolicyId(0);
const LIMITS: StuckLimits = StuckLimits {
    pending: Duration::from_mins(10),
    progress: Duration::from_mins(10),
    terminating: Duration::from_mins(10),
};
/// Number of children per parent.
const FAMILY: usize = 20;

fn main() {
    for children in [10_000, 100_000] {
        let (ready, parent, _) = measure(children, "True", true);
        let (unready, ..) = measure(children, "False", true);
        let (alone, _, estimated) = measure(children, "True", false);
        print(&format!("ready child, {children} of them"), ready, 256);
        print("  the reflector's part", alone, 256);
        print("  as it estimates that itself", estimated, 256);
        print(&format!("child that is not ready, {children} of them"), unready, 1_024);
        print(&format!("parent, {} of them", children / FAMILY), parent, 512);
    }
}

fn number(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn print(what: &str, bytes: usize, budget: usize) {
    println!("{what:44} {bytes:5} B   {:4.2} of {budget} B", number(bytes) / number(budget));
}

/// Returns bytes per child and per parent, and per child by the reflector's own account.
fn measure(children: usize, ready: &str, with_engine: bool) -> (usize, usize, usize) {
    let reflector = Reflector::new(|| ());
    let mut engine = with_engine.then(engine);
    let start = ALLOCATOR.allocated();
    let parents = children / FAMILY;
    reflector.set_interest(parents_interest());
    reflector.set_interest(children_interest());
    for number in 0..parents {
        feed(&reflector, &parents_interest(), &widget(number));
    }
    take_in(&reflector, engine.as_mut());
    let (between, held) = (ALLOCATOR.allocated(), reflector.held_bytes());
    for number in 0..children {
        feed(&reflector, &children_interest(), &pod(number, ready));
    }
    take_in(&reflector, engine.as_mut());
    let end = ALLOCATOR.allocated();
    let estimated = (reflector.held_bytes() - held) / children;
    ((end - between) / children, (between - start) / parents, estimated)
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

fn engine() -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_mins(10), Seed(1));
    let group = ChildGroup { kind: PODS, role: GroupRole::Critical, min: 1, max: None, quorum: Quorum::All };
    let policy = EnginePolicy {
        groups: vec![group],
        min: 0,
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
        acceptance: aggregator::Acceptance::Accepted,
    };
    engine.set_policy(NOW, POLICY, Some(policy));
    engine.set_kind_state(NOW, PODS, KindState::Synced);
    engine.set_kind_state(NOW, WIDGETS, KindState::Synced);
    engine
}

fn feed(reflector: &Reflector, interest: &Interest, text: &str) {
    let object: ParentObject = serde_json::from_str(text).expect("valid JSON");
    let whole = (!interest.parent.is_empty()).then(|| object.raw_text()).flatten();
    reflector.apply_object(interest.id, object.as_child(), whole);
}

fn children_interest() -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() };
    Interest {
        assessment_rules: vec![AssessmentRule { limits: LIMITS, rule: None, remembers_outcome: false }],
        child: vec![ChildRule {
            policy: POLICY,
            group: 0,
            rule_index: 0,
            find,
            allowed: AllowedNamespaces::default(),
            ignore: None,
            retention: OutcomeRetention::Forget,
        }],
        ..Interest::for_kind(PODS, "", "Pod")
    }
}

fn parents_interest() -> Interest {
    let rule = ParentRule::for_policy(POLICY);
    Interest { parent: vec![rule], ..Interest::for_kind(WIDGETS, "example.com", "Widget") }
}

fn widget(number: usize) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"widget-{number}","namespace":"shop",
        "uid":"00000000-0000-4000-8000-{number:012x}","resourceVersion":"{version}","generation":1}},"spec":{{"size":1}},
        "status":{{"conditions":[{{"type":"Ready","status":"False","reason":"ChildrenProgressing","observedGeneration":1,
        "lastTransitionTime":"2026-08-14T09:12:33Z","message":"1 of {FAMILY} not ready: Pod web-1 progressing"}}]}}}}"#,
        version = number + 1,
    )
}

fn pod(number: usize, ready: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-7d9f8c6b5d-{number:05}","namespace":"shop",
        "uid":"11111111-0000-4000-8000-{number:012x}","resourceVersion":"{version}","generation":1,
        "creationTimestamp":"2026-08-14T09:12:33Z","ownerReferences":[{{"apiVersion":"example.com/v1","kind":"Widget",
        "name":"w","uid":"00000000-0000-4000-8000-{parent:012x}","controller":true}}]}},
        "spec":{{"restartPolicy":"Always","containers":[{{"name":"web"}}]}},"status":{{"phase":"Running",
        "conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#,
        version = number + 1,
        parent = number / FAMILY,
    )
}
