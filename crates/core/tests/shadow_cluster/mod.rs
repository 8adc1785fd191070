//! A cluster under policies in shadow mode: its core, and objects as a server shows them.

use std::sync::Arc;
use std::time::Duration;

use aggregator::KindId;
use policy::offline::load_objects;
use policy::{IdRegistry, PolicyInUse, Released, UnreadLibraries, build_plan, compile};
use readiness::Time;
use rollcall_core::Core;
use serde_json::{Value, json};
use watcher::ParentObject;
use watcher::reflector::Reflector;

/// An object of the example's group, or a Pod; its owner is given as `Kind/name`, and its uid is its name.
pub(crate) fn object(
    kind: &str,
    name: &str,
    owner: Option<&str>,
    version: u64,
    status: &Value,
) -> ParentObject {
    let api = if kind == "Pod" { "v1" } else { "example.com/v1" };
    let owners = owner.map(|owner| {
        let (kind, name) = owner.split_once('/').unwrap();
        json!([{ "apiVersion": "example.com/v1", "kind": kind, "name": name, "uid": name }])
    });
    let value = json!({ "apiVersion": api, "kind": kind, "status": status, "metadata": {
        "name": name, "namespace": "shop", "uid": name, "generation": 1, "resourceVersion": version.to_string(),
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners } });
    serde_json::from_str(&value.to_string()).unwrap()
}

/// A Pod in this phase.
pub(crate) fn pod(name: &str, owner: &str, version: u64, phase: &str) -> ParentObject {
    object("Pod", name, Some(owner), version, &json!({ "phase": phase }))
}

/// A cluster under policies in shadow mode.
pub(crate) struct ShadowCluster {
    pub(crate) core: Core,
    pub(crate) kinds: Vec<(KindId, String)>,
    pub(crate) now: Time,
}

impl ShadowCluster {
    /// Policies are given by the kind of their parents, and the group and kind of the children.
    pub(crate) fn begin(policies: &[(&str, (&str, &str))], objects: &[ParentObject]) -> ShadowCluster {
        ShadowCluster::begin_in_mode("shadow", policies, objects)
    }

    /// The same in another mode; nothing that is written then is answered.
    pub(crate) fn begin_in_mode(
        mode: &str,
        policies: &[(&str, (&str, &str))],
        objects: &[ParentObject],
    ) -> ShadowCluster {
        let mut registry = IdRegistry::default();
        let mut policy = |(parent, (group, child)): &(&str, (&str, &str))| {
            let spec = json!({
                "parent": { "group": "example.com", "kind": parent }, "settle": "0s", "mode": mode,
                "children": [{ "kind": { "group": group, "kind": child } }],
            });
            let compiled = compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
            let (id, name) = (registry.new_policy_id(), (*parent).to_owned());
            PolicyInUse { id, name, compiled, acceptance: aggregator::Acceptance::Accepted }
        };
        let policies: Vec<_> = policies.iter().map(&mut policy).collect();
        let plan = build_plan(&policies, &Released::new(), &mut registry, &UnreadLibraries);
        let mut core =
            Core::new(Arc::new(Reflector::new(|| ())), Duration::ZERO, Duration::ZERO, timer::Seed(0));
        let now = Time(1_800_000_000_000);
        load_objects(&mut core, &plan, &objects.iter().collect::<Vec<_>>(), now);
        let kinds = plan.kinds.iter().map(|(id, kind)| (*id, kind.key.1.clone())).collect();
        let mut cluster = ShadowCluster { core, kinds, now };
        cluster.turn();
        cluster
    }

    /// Runs for five seconds.
    fn turn(&mut self) {
        for _ in 0..20 {
            self.core.run_turn(self.now);
            self.now = self.now + Duration::from_millis(250);
        }
    }

    /// Shows an object, and runs for five seconds.
    pub(crate) fn apply(&mut self, object: &ParentObject) {
        let kind = self.kinds.iter().find(|(_, kind)| *kind == *object.child.meta.kind).unwrap().0;
        self.core.reflector.apply_object(kind, &object.child, Some(&object.text));
        self.turn();
    }
}
