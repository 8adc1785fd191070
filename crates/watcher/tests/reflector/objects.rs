//! Pods that a widget owns, the rules that find them, and what is held of them.

use std::time::Duration;

use aggregator::{KindId, PolicyId};
use readiness::{Level, Limits, Time};
use serde_json::{Value, json};
use watcher::plan::{After, ChildRule, Find, Interest, LabelRule, Lens, ParentRule, Selector};
use watcher::reflector::{Applied, Reflector};
use watcher::{Feed, Parent};

pub(crate) const NOW: Time = Time(1_800_000_000_000);
pub(crate) const PODS: KindId = KindId(1);
pub(crate) const WIDGETS: KindId = KindId(2);
pub(crate) const POLICY: PolicyId = PolicyId(7);

fn limits() -> Limits {
    Limits { pending: Duration::from_mins(10), terminating: Duration::from_mins(10) }
}

pub(crate) fn children(find: Find, ignore: Option<Selector>) -> Interest {
    let child = vec![ChildRule { policy: POLICY, group: 0, lens: 0, find, ignore, after: After::Forget }];
    let lenses = vec![Lens { limits: limits(), rule: None, remembers: false }];
    Interest { lenses, child, ..Interest::of(PODS, "", "Pod") }
}

pub(crate) fn owned() -> Interest {
    children(Find::Owner { group: "example.com".into(), kind: "Widget".into() }, None)
}

pub(crate) fn parents(labels: Vec<LabelRule>) -> Interest {
    let rule = ParentRule { labels, ..ParentRule::of(POLICY) };
    Interest { parent: vec![rule], ..Interest::of(WIDGETS, "example.com", "Widget") }
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

pub(crate) fn apply(reflector: &Reflector, interest: &Interest, object: &Value) -> Applied {
    let object: Parent = serde_json::from_str(&object.to_string()).unwrap();
    let text = (!interest.parent.is_empty()).then(|| object.text()).flatten();
    reflector.apply(interest, object.child(), text)
}

pub(crate) fn level(reflector: &Reflector, n: u32) -> Option<Level> {
    reflector.read(reflector.find(&uid(n))?, |row| row.assessment.at(NOW).level)
}
