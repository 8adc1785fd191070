//! The objects that every subject judges: parents of one kind, which own children of another.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use kube::CustomResourceExt;
use rustc_hash::FxHashMap;
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Map, Value, json};

use crate::families::{
    CHILD_API_VERSION, NAMESPACE_COUNT, namespace, open_crd, status_of, widget, widget_policy,
    write_kubeconfig,
};

/// Address of all parents.
pub(crate) const WIDGET_PATH: &str = "/apis/example.com/v1/widgets";
/// One parent of this many has a child that is not ready from the start.
pub(crate) const UNREADY_INTERVAL: usize = 10;

/// A server with parents and children, all of which are custom resources: they are JSON for every client on every server.
pub(crate) struct WidgetCluster {
    pub(crate) server: Arc<SandboxServer>,
    pub(crate) kubeconfig: PathBuf,
}

impl WidgetCluster {
    /// Serves this number of parents with this number of children each. The last child of those parents is not ready.
    pub(crate) async fn serve(
        parents: usize,
        children: usize,
        is_unready: impl Fn(usize) -> bool,
    ) -> anyhow::Result<WidgetCluster> {
        let server = Arc::new(SandboxServer::start(SandboxOptions::default()).await?);
        let kubeconfig = std::env::temp_dir().join(format!("bench-{}.json", server.addr().port()));
        write_kubeconfig(&kubeconfig, &server.url())?;
        let cluster = WidgetCluster { server, kubeconfig };
        cluster.create(serde_json::to_value(api::ReadinessPolicy::crd())?)?;
        cluster.create(serde_json::to_value(api::ReadinessGroup::crd())?)?;
        cluster.create(open_crd("Widget"))?;
        cluster.create(open_crd("Part"))?;
        cluster.create(widget_policy())?;
        // The last is Rollcall's own, in which it keeps what its policies wrote.
        for name in (0..NAMESPACE_COUNT).map(namespace).chain(["rollcall-system".to_owned()]) {
            cluster
                .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))?;
        }
        for parent in 0..parents {
            let owner = cluster.create(widget(parent))?;
            for child in 0..children {
                let ready = child + 1 < children || !is_unready(parent);
                cluster.create(part(&owner, parent, child, ready))?;
            }
        }
        Ok(cluster)
    }

    fn create(&self, object: Value) -> anyhow::Result<Value> {
        let now = self.server.now();
        let created = self.server.lock_store().create_with_status(now, object);
        Ok((*created.map_err(|refusal| anyhow!("{refusal:?}"))?).clone())
    }

    /// Turns a child.
    pub(crate) fn turn(&self, parent: usize, child: usize, ready: bool) -> anyhow::Result<()> {
        let (now, patch) = (self.server.now(), json!({ "status": part_status(ready) }));
        let (within, name) = (namespace(parent), part_name(parent, child));
        let mut store = self.server.lock_store();
        let turned = store.patch_status(now, CHILD_API_VERSION, "Part", &within, &name, &patch);
        turned.map(drop).map_err(|refusal| anyhow!("{refusal:?}"))
    }

    /// Bytes of a child as a client is sent it.
    pub(crate) fn child_bytes(&self) -> anyhow::Result<usize> {
        let held = self.server.lock_store().get(CHILD_API_VERSION, "Part", &namespace(0), &part_name(0, 0));
        Ok(held.context("there is no child")?.to_string().len())
    }

    /// Number of parents whose answer is not what their children, counted one by one, amount to.
    pub(crate) fn wrong_answers(&self) -> usize {
        let store = self.server.lock_store();
        let mut unready: FxHashMap<String, bool> = FxHashMap::default();
        for child in store.list_objects(CHILD_API_VERSION, "Part", "") {
            let owner = child["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
            *unready.entry(owner.to_owned()).or_default() |= status_of(&child) != "True";
        }
        let parents = store.list_objects(CHILD_API_VERSION, "Widget", "");
        let is_wrong = |parent: &Value| {
            let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
            let expected = if unready.get(uid) == Some(&false) { "True" } else { "False" };
            status_of(parent) != expected
        };
        parents.iter().filter(|parent| is_wrong(parent)).count()
    }
}

impl Drop for WidgetCluster {
    fn drop(&mut self) {
        std::fs::remove_file(&self.kubeconfig).ok();
    }
}

fn part_name(parent: usize, child: usize) -> String {
    format!("widget-{parent}-part-{child}")
}

fn part_status(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let condition = |kind: &str, status: &str| {
        json!({ "type": kind, "status": status, "reason": "AsMade", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    json!({ "observedGeneration": 1, "conditions": [condition("Synced", "True"), condition("Ready", status)] })
}

/// A child of about 4 kB, with as many fields as a small Pod.
fn part(owner: &Value, parent: usize, child: usize, ready: bool) -> Value {
    let setting = |number: usize| (format!("setting-{number:02}"), json!("value ".repeat(8)));
    let settings: Map<String, Value> = (0..40).map(setting).collect();
    json!({
        "apiVersion": CHILD_API_VERSION, "kind": "Part",
        "metadata": {
            "name": part_name(parent, child), "namespace": namespace(parent),
            "labels": { "app": "web", "part-of": format!("widget-{parent}") },
            "ownerReferences": [{ "apiVersion": CHILD_API_VERSION, "kind": "Widget",
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true }],
        },
        "spec": { "settings": settings },
        "status": part_status(ready),
    })
}
