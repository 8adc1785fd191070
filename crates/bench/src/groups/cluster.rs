//! ReadinessGroups and their members, and ordinary parents with as many children.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::ValueEnum;
use kube::CustomResourceExt;
use rustc_hash::FxHashMap;
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};

use crate::families::{CHILD_API_VERSION, open_crd, status_of, widget_policy, write_kubeconfig};

/// Namespace of all objects: a group finds its members in its own.
const NAMESPACE: &str = "team";

/// How children are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MemberSearch {
    /// By owner references to an ordinary parent.
    Owners,
    /// By labels, each group by a value of its own.
    Labels,
    /// By the annotations of a Helm release.
    Helm,
    /// By the tracking annotation of an Application of Argo CD.
    Application,
    /// By a list of names.
    Objects,
    /// By one label: all groups select the same members.
    Shared,
}

impl MemberSearch {
    /// Plural of the kind of the parents.
    pub(crate) fn parent_plural(self) -> &'static str {
        if self == MemberSearch::Owners { "widgets" } else { "readinessgroups" }
    }

    fn parent_kind(self) -> (&'static str, &'static str) {
        match self {
            MemberSearch::Owners => (CHILD_API_VERSION, "Widget"),
            _ => ("rollcall.dev/v1alpha1", "ReadinessGroup"),
        }
    }

    /// Address of all parents.
    pub(crate) fn parent_path(self) -> String {
        format!("/apis/{}/{}", self.parent_kind().0, self.parent_plural())
    }
}

/// A server with parents of one sort and small custom resources as their children, all of which are ready.
pub(crate) struct GroupCluster {
    pub(crate) server: Arc<SandboxServer>,
    pub(crate) kubeconfig: PathBuf,
    search: MemberSearch,
}

impl GroupCluster {
    /// Serves this number of parents with this number of children each.
    pub(crate) async fn serve(
        search: MemberSearch,
        parents: usize,
        children: usize,
    ) -> anyhow::Result<GroupCluster> {
        let server = Arc::new(SandboxServer::start(SandboxOptions::default()).await?);
        let kubeconfig = std::env::temp_dir().join(format!("bench-{}.json", server.addr().port()));
        write_kubeconfig(&kubeconfig, &server.url())?;
        let cluster = GroupCluster { server, kubeconfig, search };
        cluster.create(serde_json::to_value(api::ReadinessPolicy::crd())?)?;
        cluster.create(serde_json::to_value(api::ReadinessGroup::crd())?)?;
        cluster.create(open_crd("Widget"))?;
        cluster.create(open_crd("Part"))?;
        for name in [NAMESPACE, "rollcall-system"] {
            cluster
                .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))?;
        }
        if search == MemberSearch::Owners {
            cluster.create(widget_policy())?;
        }
        for number in 0..parents {
            let parent = cluster.create(parent(search, number, children))?;
            if search != MemberSearch::Shared || number == 0 {
                for child in 0..children {
                    cluster.create(part(search, &parent, number, child))?;
                }
            }
        }
        Ok(cluster)
    }

    fn create(&self, object: Value) -> anyhow::Result<Value> {
        let now = self.server.now();
        let created = self.server.lock_store().create_with_status(now, object);
        Ok((*created.map_err(|refusal| anyhow!("{refusal:?}"))?).clone())
    }

    /// Turns the first child of a parent.
    pub(crate) fn turn(&self, number: usize, ready: bool) -> anyhow::Result<()> {
        let (now, patch) = (self.server.now(), json!({ "status": part_status(ready) }));
        let mut store = self.server.lock_store();
        let name = part_name(number, 0);
        let turned = store.patch_status(now, CHILD_API_VERSION, "Part", NAMESPACE, &name, &patch);
        turned.map(drop).map_err(|refusal| anyhow!("{refusal:?}"))
    }

    /// Number of parents whose answer is not what their children, counted one by one, amount to.
    pub(crate) fn wrong_answers(&self) -> usize {
        let store = self.server.lock_store();
        let mut unready: FxHashMap<String, bool> = FxHashMap::default();
        for part in store.list_objects(CHILD_API_VERSION, "Part", "") {
            let family = part["metadata"]["labels"]["part-of"].as_str().unwrap_or_default();
            *unready.entry(family.to_owned()).or_default() |= status_of(&part) != "True";
        }
        let (api_version, kind) = self.search.parent_kind();
        let is_wrong = |parent: &Value| {
            let own = parent["metadata"]["name"].as_str().unwrap_or_default();
            let family = if self.search == MemberSearch::Shared { "widget-0" } else { own };
            let expected = if unready.get(family) == Some(&false) { "True" } else { "False" };
            status_of(parent) != expected
        };
        let parents = store.list_objects(api_version, kind, "");
        parents.iter().filter(|parent| is_wrong(parent)).count()
    }
}

impl Drop for GroupCluster {
    fn drop(&mut self) {
        std::fs::remove_file(&self.kubeconfig).ok();
    }
}

fn parent_name(number: usize) -> String {
    format!("widget-{number}")
}

fn part_name(parent: usize, child: usize) -> String {
    format!("widget-{parent}-part-{child}")
}

fn parent(search: MemberSearch, number: usize, children: usize) -> Value {
    let name = parent_name(number);
    let mut member = json!({ "kinds": [{ "group": "example.com", "kind": "Part" }] });
    match search {
        MemberSearch::Owners => {}
        MemberSearch::Labels => member["labels"] = json!({ "part-of": name }),
        MemberSearch::Shared => member["labels"] = json!({ "part-of": parent_name(0) }),
        MemberSearch::Helm => member["helmRelease"] = json!(name),
        MemberSearch::Application => member["application"] = json!(name),
        MemberSearch::Objects => {
            let object = |child| json!({ "apiVersion": CHILD_API_VERSION, "kind": "Part", "name": part_name(number, child) });
            member = json!({ "objects": (0..children).map(object).collect::<Vec<_>>() });
        }
    }
    let (api_version, kind) = search.parent_kind();
    let mut made = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "members": [member], "settle": "0s" },
    });
    if search == MemberSearch::Owners {
        made["spec"] = json!({ "size": 1 });
        made["status"] = json!({ "observedGeneration": 1 });
    }
    made
}

fn part_status(ready: bool) -> Value {
    json!({ "observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": if ready { "True" } else { "False" }, "reason": "AsMade", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] })
}

/// A small child; every parent finds it in its own way.
fn part(search: MemberSearch, owner: &Value, parent: usize, child: usize) -> Value {
    let (family, name) = (parent_name(parent), part_name(parent, child));
    let mut part = json!({
        "apiVersion": CHILD_API_VERSION, "kind": "Part",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": "web", "part-of": family } },
        "spec": { "size": 1 },
        "status": part_status(true),
    });
    let metadata = &mut part["metadata"];
    match search {
        MemberSearch::Owners => {
            metadata["ownerReferences"] = json!([{ "apiVersion": CHILD_API_VERSION, "kind": "Widget",
                "name": family, "uid": owner["metadata"]["uid"], "controller": true }]);
        }
        MemberSearch::Helm => {
            metadata["annotations"] = json!({ "meta.helm.sh/release-name": family,
                "meta.helm.sh/release-namespace": NAMESPACE });
        }
        MemberSearch::Application => {
            metadata["annotations"] = json!({ "argocd.argoproj.io/tracking-id":
                format!("{family}:example.com/Part:{NAMESPACE}/{name}") });
        }
        MemberSearch::Labels | MemberSearch::Objects | MemberSearch::Shared => {}
    }
    part
}
