//! Pods that a widget owns, the rules that find them, and their stored data.

use std::time::Duration;

use aggregator::{KindId, PolicyId};
use readiness::{Level, StuckLimits, Time};
use serde_json::{Value, json};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, LabelMatcher, LabelRule,
    NamespaceScope, OutcomeRetention, ParentRule,
};
use watcher::reflector::{ApplyOutcome, ListPass, Reflector};
use watcher::{ParentObject, ReflectorObject};

pub(crate) const NOW: Time = Time(1_800_000_000_000);
pub(crate) const PODS: KindId = KindId(1);
pub(crate) const WIDGETS: KindId = KindId(2);
pub(crate) const POLICY: PolicyId = PolicyId(7);

fn limits() -> StuckLimits {
    StuckLimits { pending: Duration::from_mins(10), ..StuckLimits::default() }
}

pub(crate) fn children(find: FindChildrenBy, ignore: Option<LabelMatcher>) -> Interest {
    let child = vec![ChildRule {
        policy: POLICY,
        group: 0,
        rule_index: 0,
        find,
        allowed: AllowedNamespaces::default(),
        ignore,
        made_by_none_of: [].into(),
        scope: NamespaceScope::default(),
        retention: OutcomeRetention::Forget,
    }];
    let lenses = vec![AssessmentRule { limits: limits(), rule: None, remembers_outcome: false }];
    Interest { assessment_rules: lenses, child, ..Interest::for_kind(PODS, "", "Pod") }
}

pub(crate) fn owned() -> Interest {
    children(FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() }, None)
}

pub(crate) fn parents(labels: Vec<LabelRule>) -> Interest {
    let rule = ParentRule { labels, ..ParentRule::for_policy(POLICY) };
    Interest { parent: vec![rule], ..Interest::for_kind(WIDGETS, "example.com", "Widget") }
}

pub(crate) fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

pub(crate) fn pod(n: u32, version: u32, ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{n}"), "namespace": "shop", "uid": uid(n), "resourceVersion": version.to_string(),
            "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid(1_000)}]},
        "spec": {"restartPolicy": "Always"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    })
}

pub(crate) fn widget(version: u32, generation: u32, status: &Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": uid(1_000), "resourceVersion": version.to_string(),
            "generation": generation},
        "spec": {"size": 1}, "status": status
    })
}

pub(crate) fn apply(reflector: &Reflector, interest: &Interest, object: &Value) -> ApplyOutcome {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    let text = (!interest.parent.is_empty()).then(|| object.raw_text()).flatten();
    judge_by(reflector, interest);
    reflector.apply_object(interest.id, object.as_child(), text)
}

/// The interest of a kind, where it is another one than before.
pub(crate) fn judge_by(reflector: &Reflector, interest: &Interest) {
    let held = reflector.interest(interest.id);
    if held.is_none_or(|held| format!("{held:?}") != format!("{interest:?}")) {
        reflector.set_interest(interest.clone());
    }
}

/// The same, in a list.
pub(crate) fn apply_listed(reflector: &Reflector, pass: &ListPass, object: &Value) -> ApplyOutcome {
    let object: ParentObject = serde_json::from_str(&object.to_string()).unwrap();
    reflector.apply_listed(pass, object.as_child(), object.raw_text())
}

pub(crate) fn level(reflector: &Reflector, n: u32) -> Option<Level> {
    reflector.read_row(reflector.find_object(&uid(n))?, |row| row.assessment.verdict_at(NOW).level)
}
