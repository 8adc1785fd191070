//! A cluster of parents with children, all ready.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use kube::CustomResourceExt;
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};

pub(crate) const CHILD_API_VERSION: &str = "example.com/v1";
pub(crate) const NAMESPACE_COUNT: usize = 10;

/// What the parents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentSort {
    /// Custom resources that own their children.
    Owners,
    /// ReadinessGroups that select them by a label.
    Groups,
}

impl ParentSort {
    fn kind(self) -> (&'static str, &'static str) {
        match self {
            ParentSort::Owners => (CHILD_API_VERSION, "Widget"),
            ParentSort::Groups => ("rollcall.dev/v1alpha1", "ReadinessGroup"),
        }
    }
}

/// Parents of one sort, each with pods.
pub(crate) struct Families {
    pub(crate) server: SandboxServer,
    pub(crate) kubeconfig: PathBuf,
    parents: usize,
    sort: ParentSort,
}

impl Families {
    /// Serves this number of parents, with this number of children each, and what Rollcall needs to judge them.
    pub(crate) async fn serve(sort: ParentSort, parents: usize, children: usize) -> anyhow::Result<Families> {
        let server = SandboxServer::start(SandboxOptions::default()).await?;
        let kubeconfig = std::env::temp_dir().join(format!("bench-{}.json", server.addr().port()));
        write_kubeconfig(&kubeconfig, &server.url())?;
        let families = Families { server, kubeconfig, parents, sort };
        families.create(serde_json::to_value(api::ReadinessPolicy::crd())?)?;
        families.create(serde_json::to_value(api::ReadinessGroup::crd())?)?;
        families.create(open_crd("Widget"))?;
        if sort == ParentSort::Owners {
            families.create(policy(0))?;
        }
        for number in 0..NAMESPACE_COUNT {
            families.create(
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace(number) } }),
            )?;
        }
        for parent in 0..parents {
            let made =
                families.create(if sort == ParentSort::Owners { widget(parent) } else { group(parent) })?;
            for child in 0..children {
                let owner = (sort == ParentSort::Owners).then_some(&made);
                families.create(pod(owner, parent, child))?;
            }
        }
        Ok(families)
    }

    fn create(&self, object: Value) -> anyhow::Result<Value> {
        let now = self.server.now();
        let created = self.server.lock_store().create_with_status(now, object);
        Ok((*created.map_err(|refusal| anyhow!("{refusal:?}"))?).clone())
    }

    /// Number of parents whose condition `Ready` has this status.
    pub(crate) fn saying(&self, status: &str) -> usize {
        let store = self.server.lock_store();
        let (api_version, kind) = self.sort.kind();
        let parents = store.list_objects(api_version, kind, "");
        parents.iter().filter(|parent| status_of(parent) == status).count()
    }

    /// Whether all parents are told True.
    pub(crate) fn all_ready(&self) -> bool {
        self.saying("True") == self.parents
    }

    /// Status of the condition `Ready` of one parent.
    pub(crate) fn answer(&self, parent: usize) -> String {
        let (api_version, kind) = self.sort.kind();
        let name = format!("widget-{parent}");
        let held = self.server.lock_store().get(api_version, kind, &namespace(parent), &name);
        held.map(|widget| status_of(&widget).to_owned()).unwrap_or_default()
    }

    /// Turns the first child of a parent.
    pub(crate) fn turn(&self, parent: usize, ready: bool) -> anyhow::Result<()> {
        let now = self.server.now();
        let name = format!("widget-{parent}-pod-0");
        let patch = json!({ "status": pod_status(ready) });
        let turned =
            self.server.lock_store().patch_status(now, "v1", "Pod", &namespace(parent), &name, &patch);
        turned.map(drop).map_err(|refusal| anyhow!("{refusal:?}"))
    }

    /// Gives the policy's children another rule that says the same; returns the policy's new generation.
    pub(crate) fn edit_rule(&self, number: usize) -> anyhow::Result<i64> {
        let now = self.server.now();
        let patch = json!({ "spec": policy(number)["spec"] });
        let mut store = self.server.lock_store();
        let edited =
            store.patch_object(now, "rollcall.dev/v1alpha1", "ReadinessPolicy", "", "widgets", &patch);
        let edited = edited.map_err(|refusal| anyhow!("{refusal:?}"))?;
        edited["metadata"]["generation"].as_i64().context("a policy has a generation")
    }

    /// Generation of the policy that is in force, by its status.
    pub(crate) fn accepted_generation(&self) -> i64 {
        let held = self.server.lock_store().get("rollcall.dev/v1alpha1", "ReadinessPolicy", "", "widgets");
        held.and_then(|policy| policy["status"]["acceptedGeneration"].as_i64()).unwrap_or_default()
    }
}

impl Drop for Families {
    fn drop(&mut self) {
        std::fs::remove_file(&self.kubeconfig).ok();
    }
}

pub(crate) fn status_of(widget: &Value) -> &str {
    let conditions = widget["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|entry| entry["type"] == "Ready"));
    ready.and_then(|entry| entry["status"].as_str()).unwrap_or_default()
}

pub(crate) fn namespace(parent: usize) -> String {
    format!("team-{}", parent % NAMESPACE_COUNT)
}

pub(crate) fn write_kubeconfig(path: &Path, url: &str) -> anyhow::Result<()> {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": { "server": url } }],
        "users": [{ "name": "it", "user": { "token": "t" } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
    });
    std::fs::write(path, text.to_string()).with_context(|| format!("writing {}", path.display()))
}

/// Definition of a kind of `example.com/v1` that takes every spec and every status.
pub(crate) fn open_crd(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

fn policy(rule: usize) -> Value {
    let mut children = json!([{ "kind": { "kind": "Pod" } }]);
    if rule > 0 {
        let current = format!(
            "self.status.phase == 'Running' && self.metadata.name != 'no-{rule}' && \
            self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"
        );
        children[0]["ready"] = json!({ "cel": { "current": current } });
    }
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "widgets" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Widget" }, "children": children, "settle": "0s",
        },
    })
}

/// A parent as its operator leaves it: with a condition of its own.
pub(crate) fn widget(number: usize) -> Value {
    json!({
        "apiVersion": CHILD_API_VERSION, "kind": "Widget",
        "metadata": { "name": format!("widget-{number}"), "namespace": namespace(number) },
        "spec": { "size": 1, "text": "x".repeat(400) },
        "status": { "observedGeneration": 1 },
    })
}

fn pod_status(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({
        "phase": "Running",
        "conditions": [
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            { "type": "ContainersReady", "status": status, "lastTransitionTime": "2026-01-01T00:00:02Z" },
            { "type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:02Z" },
        ],
        "containerStatuses": [{ "name": "main", "ready": ready, "started": ready, "restartCount": 0,
            "image": "example.com/web:1", "imageID": "", "state": { "running": { "startedAt": "2026-01-01T00:00:01Z" } } }],
    })
}

fn group(number: usize) -> Value {
    let name = format!("widget-{number}");
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
        "metadata": { "name": name, "namespace": namespace(number) },
        "spec": { "members": [{ "kinds": [{ "kind": "Pod" }], "labels": { "part-of": name } }], "settle": "0s" },
    })
}

fn pod(owner: Option<&Value>, parent: usize, child: usize) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("widget-{parent}-pod-{child}"), "namespace": namespace(parent),
            "labels": { "app": "web", "part-of": format!("widget-{parent}") },
            "annotations": { "note": "x".repeat(400) },
        },
        "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] },
        "status": pod_status(true),
    });
    if let Some(owner) = owner {
        let metadata = &owner["metadata"];
        pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": CHILD_API_VERSION, "kind": "Widget",
            "name": metadata["name"], "uid": metadata["uid"], "controller": true }]);
    }
    pod
}

/// Widgets over Parts, without a time to settle.
pub(crate) fn widget_policy() -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "widgets" },
        "spec": {
            "parent": { "group": "example.com", "kind": "Widget" },
            "children": [{ "kind": { "group": "example.com", "kind": "Part" } }],
            "settle": "0s",
        },
    })
}
