//! The objects that every subject judges: parents of one kind, which own children of another.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::CustomResourceExt;
use rustc_hash::FxHashMap;
use sandbox::{FaultAction, InjectedFault, SandboxOptions, SandboxServer};
use serde_json::{Map, Value, json};

use super::fleet::{FleetShape, SHARD_LABEL};
use crate::families::{
    CHILD_API_VERSION, NAMESPACE_COUNT, namespace, open_crd, status_of, widget, write_kubeconfig,
};

/// Address of all parents.
pub(crate) const WIDGET_PATH: &str = "/apis/example.com/v1/widgets";
/// Address of all children.
pub(crate) const PART_PATH: &str = "/apis/example.com/v1/parts";
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
        WidgetCluster::serve_shape(&FleetShape::of(parents, children), is_unready).await
    }

    /// Serves parents and children of this shape. The last child of those parents is not ready.
    pub(crate) async fn serve_shape(
        shape: &FleetShape,
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
        for policy in &shape.policies {
            cluster.create(policy.clone())?;
        }
        // The last is Rollcall's own, in which it keeps what its policies wrote.
        for name in (0..NAMESPACE_COUNT).map(namespace).chain(["rollcall-system".to_owned()]) {
            cluster
                .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))?;
        }
        cluster.create_fleet(shape, is_unready)?;
        Ok(cluster)
    }

    /// Creates one parent and one child as a client does, and the others as copies of what the server made of these: a
    /// million would take it minutes.
    fn create_fleet(&self, shape: &FleetShape, is_unready: impl Fn(usize) -> bool) -> anyhow::Result<()> {
        if shape.parents == 0 {
            return Ok(());
        }
        let owner_form = self.create(labelled_widget())?;
        let mut child_form = self.create(part(&owner_form, shape.settings))?;
        if shape.settings < 2
            && let Some(metadata) = child_form["metadata"].as_object_mut()
        {
            // Half of what there is of so small a child.
            metadata.remove("managedFields");
        }
        for parent in 0..shape.parents {
            let owner = owner_copy(&owner_form, parent, parent % shape.policies.len().max(1));
            let mut family = vec![owner.clone()];
            for child in 0..shape.children {
                let ready = child + 1 < shape.children || !is_unready(parent);
                family.push(child_copy(&child_form, &owner, (parent, child), ready));
            }
            self.restore(family)?;
        }
        Ok(())
    }

    fn create(&self, object: Value) -> anyhow::Result<Value> {
        let now = self.server.now();
        let created = self.server.lock_store().create_with_status(now, object);
        Ok((*created.map_err(|refusal| anyhow!("{refusal:?}"))?).clone())
    }

    fn restore(&self, objects: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
        let (now, mut store) = (self.server.now(), self.server.lock_store());
        for object in objects {
            store.restore_object(now, object).map_err(|refusal| anyhow!("{refusal:?}"))?;
        }
        Ok(())
    }

    /// Commits all these changes of children's statuses at once, each by parent, child, whether it is ready, and a number
    /// that differs from the last.
    pub(crate) fn commit_changes(
        &self,
        changes: impl IntoIterator<Item = (usize, usize, bool, usize)>,
    ) -> anyhow::Result<()> {
        let (now, mut store) = (self.server.now(), self.server.lock_store());
        for (parent, child, ready, number) in changes {
            let (within, name) = (namespace(parent), part_name(parent, child));
            let held =
                store.get(CHILD_API_VERSION, "Part", &within, &name).context("there is no such child")?;
            let mut changed = (*held).clone();
            changed["status"] = part_status(ready);
            changed["status"]["beat"] = json!(number);
            store.restore_object(now, changed).map_err(|refusal| anyhow!("{refusal:?}"))?;
        }
        Ok(())
    }

    /// Restarts the server: its connections end, requests fail for so long, and it has no history of before.
    pub(crate) fn restart_server(&self, outage: Duration) -> anyhow::Result<()> {
        let refusal = self.server.faults().add(InjectedFault::new(FaultAction::Drop));
        self.server.end_watches();
        thread::sleep(outage);
        // A watch that has seen the newest revision could be resumed: now none has.
        self.create(json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "generateName": "restart-", "namespace": "default" } }))?;
        {
            let mut store = self.server.lock_store();
            let newest = store.revision();
            store.compact(newest);
        }
        refusal.lift();
        Ok(())
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
        let unready = self.unready_owners();
        let parents = self.server.lock_store().list_objects(CHILD_API_VERSION, "Widget", "");
        let is_wrong = |parent: &Value| {
            let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
            let expected = if unready.get(uid) == Some(&false) { "True" } else { "False" };
            status_of(parent) != expected
        };
        parents.iter().filter(|parent| is_wrong(parent)).count()
    }

    /// Number of parents with a child that is not ready, counted one by one.
    pub(crate) fn unready_parents(&self) -> usize {
        self.unready_owners().values().filter(|is_unready| **is_unready).count()
    }

    /// Whether a child is not ready, by the UID of its parent.
    fn unready_owners(&self) -> FxHashMap<String, bool> {
        let mut unready: FxHashMap<String, bool> = FxHashMap::default();
        for child in self.server.lock_store().list_objects(CHILD_API_VERSION, "Part", "") {
            let owner = child["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
            *unready.entry(owner.to_owned()).or_default() |= status_of(&child) != "True";
        }
        unready
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

/// A parent with the label by which policies select some of them.
fn labelled_widget() -> Value {
    let mut parent = widget(0);
    parent["metadata"]["labels"] = json!({ SHARD_LABEL: "0" });
    parent
}

/// A child with so many settings of 65 bytes: 40 of them are as many fields as a small Pod has.
fn part(owner: &Value, settings: usize) -> Value {
    let setting = |number: usize| (format!("setting-{number:02}"), json!("value ".repeat(8)));
    let settings: Map<String, Value> = (0..settings).map(setting).collect();
    json!({
        "apiVersion": CHILD_API_VERSION, "kind": "Part",
        "metadata": {
            "name": part_name(0, 0), "namespace": namespace(0),
            "labels": { "app": "web", "part-of": "widget-0" },
            "ownerReferences": [{ "apiVersion": CHILD_API_VERSION, "kind": "Widget",
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true }],
        },
        "spec": { "settings": settings },
        "status": part_status(true),
    })
}

fn owner_copy(form: &Value, parent: usize, shard: usize) -> Value {
    let mut copy = form.clone();
    let metadata = &mut copy["metadata"];
    metadata["name"] = json!(format!("widget-{parent}"));
    metadata["namespace"] = json!(namespace(parent));
    metadata["labels"] = json!({ SHARD_LABEL: shard.to_string() });
    if parent > 0 {
        metadata["uid"] = json!(format!("{parent:08x}-0000-4000-8000-000000000000"));
    }
    copy
}

fn child_copy(form: &Value, owner: &Value, (parent, child): (usize, usize), ready: bool) -> Value {
    let mut copy = form.clone();
    let metadata = &mut copy["metadata"];
    metadata["name"] = json!(part_name(parent, child));
    metadata["namespace"] = json!(namespace(parent));
    metadata["labels"]["part-of"] = owner["metadata"]["name"].clone();
    metadata["ownerReferences"][0]["name"] = owner["metadata"]["name"].clone();
    metadata["ownerReferences"][0]["uid"] = owner["metadata"]["uid"].clone();
    if (parent, child) != (0, 0) {
        metadata["uid"] = json!(format!("{parent:08x}-0000-4000-8001-{child:012x}"));
    }
    copy["status"] = part_status(ready);
    copy
}
