//! Parents that are children of parents.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use kube::CustomResourceExt;
use rustc_hash::FxHashMap;
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};

use crate::compare::session::writes_to;
use crate::families::{CHILD_API_VERSION, open_crd, status_of, widget_policy, write_kubeconfig};

/// Address of the roots.
pub(crate) const ROOT_PATH: &str = "/apis/example.com/v1/tier0s";
const NAMESPACE: &str = "team-0";
/// Kind at the bottom.
const LEAF_KIND: &str = "Part";

/// Trees of parents, all of the same form: each object is owned by one of the level above.
pub(crate) struct CascadeCluster {
    pub(crate) server: Arc<SandboxServer>,
    pub(crate) kubeconfig: PathBuf,
    /// Levels of parents; the leaves are below.
    depth: usize,
}

/// Form of the trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CascadeShape {
    pub(crate) roots: usize,
    /// Levels of parents.
    pub(crate) depth: usize,
    /// Children of a root, and of each first child below.
    pub(crate) fan_out: usize,
    /// Whether the children beside the first are parents of one leaf each; otherwise only the first is a parent.
    pub(crate) is_full: bool,
}

impl CascadeCluster {
    /// Serves trees of this form, all ready.
    pub(crate) async fn serve(shape: CascadeShape) -> anyhow::Result<CascadeCluster> {
        let server = Arc::new(SandboxServer::start(SandboxOptions::default()).await?);
        let kubeconfig = std::env::temp_dir().join(format!("bench-{}.json", server.addr().port()));
        write_kubeconfig(&kubeconfig, &server.url())?;
        let cluster = CascadeCluster { server, kubeconfig, depth: shape.depth };
        cluster.create(serde_json::to_value(api::ReadinessPolicy::crd())?)?;
        cluster.create(serde_json::to_value(api::ReadinessGroup::crd())?)?;
        for level in 0..=shape.depth {
            cluster.create(open_crd(&cluster.kind(level)))?;
        }
        for level in 0..shape.depth {
            cluster.create(cluster.policy(level, shape.is_full))?;
        }
        for name in [NAMESPACE, "rollcall-system"] {
            cluster
                .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))?;
        }
        for root in 0..shape.roots {
            let made = cluster.create(cluster.object(0, &root.to_string(), None))?;
            cluster.create_below(shape, &made, 1, shape.fan_out)?;
        }
        Ok(cluster)
    }

    /// Creates so many children of an object, which is above this level, and what is below them.
    fn create_below(
        &self,
        shape: CascadeShape,
        owner: &Value,
        level: usize,
        number: usize,
    ) -> anyhow::Result<()> {
        for child in 0..number {
            // The first child of each level is on the way of what turns.
            let owner_name = owner["metadata"]["name"].as_str().unwrap_or_default();
            let name = format!("{owner_name}-{child}");
            let is_leaf = level == self.depth || (child > 0 && !shape.is_full);
            let kind_level = if is_leaf { self.depth } else { level };
            let made = self.create(self.object(kind_level, &name, Some(owner)))?;
            if !is_leaf {
                let below = if child == 0 && !shape.is_full { shape.fan_out } else { 1 };
                self.create_below(shape, &made, level + 1, below)?;
            }
        }
        Ok(())
    }

    fn kind(&self, level: usize) -> String {
        if level == self.depth { LEAF_KIND.to_owned() } else { format!("Tier{level}") }
    }

    /// The policy of a level. A kind of children that has none would keep every parent from being ready.
    fn policy(&self, level: usize, is_full: bool) -> Value {
        let mut policy = widget_policy();
        policy["metadata"]["name"] = json!(format!("tier{level}"));
        policy["spec"]["parent"]["kind"] = json!(self.kind(level));
        let mut kinds = vec![self.kind(level + 1)];
        if !is_full && level + 1 < self.depth {
            kinds.push(LEAF_KIND.to_owned());
        }
        let children = kinds.iter().map(|kind| json!({ "kind": { "group": "example.com", "kind": kind } }));
        policy["spec"]["children"] = children.collect();
        policy
    }

    fn object(&self, level: usize, name: &str, owner: Option<&Value>) -> Value {
        let mut object = json!({
            "apiVersion": CHILD_API_VERSION, "kind": self.kind(level),
            "metadata": { "name": format!("o-{}", name.trim_start_matches("o-")), "namespace": NAMESPACE },
            "spec": { "size": 1 }, "status": { "observedGeneration": 1 },
        });
        if level == self.depth {
            object["status"] = leaf_status(true);
        }
        if let Some(owner) = owner {
            object["metadata"]["ownerReferences"] = json!([{ "apiVersion": CHILD_API_VERSION,
                "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                "controller": true }]);
        }
        object
    }

    fn create(&self, object: Value) -> anyhow::Result<Value> {
        let now = self.server.now();
        let created = self.server.lock_store().create_with_status(now, object);
        Ok((*created.map_err(|refusal| anyhow!("{refusal:?}"))?).clone())
    }

    /// Turns the first leaf of a root.
    pub(crate) fn turn(&self, root: usize, ready: bool) -> anyhow::Result<()> {
        let name = format!("o-{root}{}", "-0".repeat(self.depth));
        let (now, patch) = (self.server.now(), json!({ "status": leaf_status(ready) }));
        let mut store = self.server.lock_store();
        let turned = store.patch_status(now, CHILD_API_VERSION, LEAF_KIND, NAMESPACE, &name, &patch);
        turned.map(drop).map_err(|refusal| anyhow!("{refusal:?}"))
    }

    /// Writes to parents of every level.
    pub(crate) fn writes(&self) -> f64 {
        (0..self.depth).map(|level| writes_to(&self.server, &format!("tier{level}s"))).sum()
    }

    /// Number of parents, of all levels, whose answer is not what the leaves below, counted one by one, amount to.
    pub(crate) fn wrong_answers(&self) -> usize {
        let store = self.server.lock_store();
        // Whether something below is not ready, by the owner's uid; from the leaves upwards.
        let mut unready: FxHashMap<String, bool> = FxHashMap::default();
        let mut wrong = 0;
        for level in (0..=self.depth).rev() {
            for object in store.list_objects(CHILD_API_VERSION, &self.kind(level), "") {
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                let is_ready = if level == self.depth {
                    status_of(&object) == "True"
                } else {
                    unready.get(uid) == Some(&false)
                };
                wrong += usize::from((status_of(&object) == "True") != is_ready);
                let owner = object["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default();
                *unready.entry(owner.to_owned()).or_default() |= !is_ready;
            }
        }
        wrong
    }
}

impl Drop for CascadeCluster {
    fn drop(&mut self) {
        std::fs::remove_file(&self.kubeconfig).ok();
    }
}

fn leaf_status(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({ "observedGeneration": 1, "conditions": [{ "type": "Ready", "status": status, "reason": "AsMade",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
}
