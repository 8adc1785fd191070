//! Parents that own children, as custom resources on the real API server.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use acceptance::caller::{ApiCaller, WatchedChange};
use acceptance::control_plane::ControlPlane;
use acceptance::crd::CrdBuilder;
use acceptance::kind::{ManifestKind, ObjectAddress};
use anyhow::{Context, Result, ensure};
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

const GROUP: &str = "example.com";
const API_VERSION: &str = "example.com/v1";
const NAMESPACES: usize = 10;
/// Requests in flight while the objects are created.
const CREATORS: usize = 32;

/// The objects, and an administrator's client.
#[derive(Clone)]
pub(crate) struct Widgets {
    admin: ApiCaller,
}

impl Widgets {
    /// Creates this number of parents with this number of children each, all of which are ready.
    pub(crate) async fn create(plane: &ControlPlane, parents: usize, children: usize) -> Result<Widgets> {
        let widgets = Widgets { admin: plane.admin().await? };
        for kind in ["Widget", "Part"] {
            widgets.admin.create(&CrdBuilder::new(kind).shapeless().manifest(GROUP)).await?;
            widgets.until_served(&ManifestKind::new(API_VERSION, kind)).await;
        }
        for name in (0..NAMESPACES).map(namespace).chain(["rollcall-system".to_owned()]) {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            widgets.admin.create(&namespace).await?;
        }
        let families = (0..parents).map(|parent| widgets.create_family(parent, children));
        stream::iter(families).buffer_unordered(CREATORS).try_collect::<Vec<()>>().await?;
        Ok(widgets)
    }

    async fn until_served(&self, kind: &ManifestKind) {
        while self.admin.list(kind, "", "limit=1").await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn create_family(&self, parent: usize, children: usize) -> Result<()> {
        let owner = self.create_with_status(&widget(parent)).await?;
        for child in 0..children {
            self.create_with_status(&part(&owner, parent, child)).await?;
        }
        Ok(())
    }

    async fn create_with_status(&self, object: &Value) -> Result<Value> {
        let created = self.admin.create(object).await?;
        let status = json!({ "status": object["status"] });
        self.admin.merge(&ObjectAddress::of(object)?, "/status", &status).await?;
        Ok(created)
    }

    /// Installs what `rollcall run` of this program needs.
    pub(crate) async fn prepare_rollcall(&self, plane: &ControlPlane, program: &Path) -> Result<()> {
        let crds = Command::new(program).arg("crd").output().context("rollcall crd")?;
        ensure!(crds.status.success(), "rollcall crd failed");
        let file = plane.kubeconfig().with_file_name("crds.yaml");
        std::fs::write(&file, crds.stdout)?;
        plane.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()])?;
        self.until_served(&ManifestKind::new("rollcall.dev/v1alpha1", "ReadinessPolicy")).await;
        let policy = json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": "widgets" },
            "spec": {
                "parent": { "group": "example.com", "kind": "Widget" },
                "children": [{ "kind": { "group": "example.com", "kind": "Part" } }],
                "settle": "0s",
            },
        });
        self.admin.create(&policy).await?;
        Ok(())
    }

    /// Follows the parents from now on.
    pub(crate) async fn watch_parents(&self) -> Result<impl Stream<Item = Result<WatchedChange>> + use<>> {
        let kind = ManifestKind::new(API_VERSION, "Widget");
        let (_, from) = self.admin.list(&kind, "", "limit=1").await?;
        self.admin.watch(&kind, "", "", from).await
    }

    /// Turns the first child of a parent.
    pub(crate) async fn turn(&self, parent: usize, ready: bool) -> Result<()> {
        let address = ObjectAddress {
            kind: ManifestKind::new(API_VERSION, "Part"),
            namespace: namespace(parent),
            name: part_name(parent, 0),
        };
        self.admin.merge(&address, "/status", &json!({ "status": part_status(ready) })).await?;
        Ok(())
    }

    /// Number of parents whose answer is not what their children, counted one by one, amount to.
    pub(crate) async fn wrong_answers(&self) -> Result<usize> {
        let (parts, _) = self.admin.list(&ManifestKind::new(API_VERSION, "Part"), "", "").await?;
        let (parents, _) = self.admin.list(&ManifestKind::new(API_VERSION, "Widget"), "", "").await?;
        let mut all_ready: BTreeMap<&str, bool> = BTreeMap::new();
        for part in &parts {
            let owner = part["metadata"]["ownerReferences"][0]["uid"].as_str().context("an owner")?;
            *all_ready.entry(owner).or_insert(true) &= status_of(part) == "True";
        }
        let is_wrong = |parent: &&Value| {
            let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
            status_of(parent) != if all_ready.get(uid) == Some(&true) { "True" } else { "False" }
        };
        Ok(parents.iter().filter(is_wrong).count())
    }
}

/// Status of the condition `Ready` of an object.
pub(crate) fn status_of(object: &Value) -> &str {
    let conditions = object["status"]["conditions"].as_array();
    let ready = conditions.and_then(|all| all.iter().find(|entry| entry["type"] == "Ready"));
    ready.and_then(|entry| entry["status"].as_str()).unwrap_or_default()
}

/// Number of a parent by its name.
pub(crate) fn parent_number(parent: &Value) -> Option<usize> {
    parent["metadata"]["name"].as_str()?.rsplit('-').next()?.parse().ok()
}

fn namespace(parent: usize) -> String {
    format!("team-{}", parent % NAMESPACES)
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

fn widget(number: usize) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Widget",
        "metadata": { "name": format!("widget-{number}"), "namespace": namespace(number) },
        "spec": { "size": 1 },
        "status": { "observedGeneration": 1 },
    })
}

/// A child of about 4 kB, with as many fields as a small Pod.
fn part(owner: &Value, parent: usize, child: usize) -> Value {
    let setting = |number: usize| (format!("setting-{number:02}"), json!("value ".repeat(8)));
    let settings: Map<String, Value> = (0..40).map(setting).collect();
    json!({
        "apiVersion": API_VERSION, "kind": "Part",
        "metadata": {
            "name": part_name(parent, child), "namespace": namespace(parent),
            "labels": { "app": "web", "part-of": format!("widget-{parent}") },
            "ownerReferences": [{ "apiVersion": API_VERSION, "kind": "Widget",
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true }],
        },
        "spec": { "settings": settings },
        "status": part_status(true),
    })
}
