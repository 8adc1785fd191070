//! A test's own part of the shared control plane: a namespace, an API group, a folder, a policy selector.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::TEST_TIMEOUT;
use crate::caller::{ApiCaller, WatchedChange};
use crate::control_plane::{ClusterParts, ControlPlane, is_shared, shared};
use crate::crd::CrdBuilder;
use crate::expectation::{StateExpectation, says, there};
use crate::kind::{ManifestKind, ObjectAddress};
use crate::leftovers::{Leftovers, remove_behind};
use crate::places;
use crate::rollcall_command::rollcall;

/// Label by which a tenant's Rollcall selects its policies among those of other tests.
pub const TENANT_LABEL: &str = "tenant";

/// Environment of one test.
pub struct TestTenant {
    /// The namespace, also the value of the tenant's label.
    pub name: String,
    /// API group of its custom kinds.
    pub group: String,
    /// The shared control plane.
    pub plane: Arc<ControlPlane>,
    /// The administrator, in the role of operators and users.
    pub admin: ApiCaller,
    /// Folder for files of this test.
    pub folder: PathBuf,
    pub(crate) logs: Mutex<Vec<PathBuf>>,
}

impl Drop for TestTenant {
    fn drop(&mut self) {
        // A control plane of its own goes with it.
        if is_shared(&self.plane) {
            remove_behind(Leftovers {
                kubeconfig: self.plane.kubeconfig(),
                policies: format!("{TENANT_LABEL}={}", self.name),
                definitions: self.crds_file(),
            });
        }
    }
}

impl TestTenant {
    /// Creates a tenant on the control plane that all tests share.
    pub async fn start(word: &str) -> Result<Self> {
        Self::start_on(shared().await?, word).await
    }

    /// Creates a tenant on the given control plane.
    pub async fn start_on(plane: Arc<ControlPlane>, word: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{word}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = places::run_folder()?.join(&name);
        fs::create_dir_all(&folder)?;
        let group = format!("{name}.example.com");
        let admin = plane.admin().await?;
        admin
            .create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .await?;
        let tenant = Self { name, group, plane, admin, folder, logs: Mutex::new(Vec::new()) };
        if tenant.plane.parts() == ClusterParts::Everything {
            // Without it no pod is admitted.
            tenant.until("ServiceAccount/default", there()).await?;
        }
        Ok(tenant)
    }

    /// Installs a custom kind of this tenant and waits until the server serves it.
    pub async fn crd(&self, crd: &CrdBuilder) -> Result<()> {
        self.define(&crd.manifest(&self.group)).await
    }

    /// Like [`TestTenant::crd`], with the defaults of `rollcall crd-defaults`.
    pub async fn crd_with_defaults(&self, crd: &CrdBuilder) -> Result<()> {
        let file = self.folder.join("plain-crd.json");
        fs::write(&file, crd.manifest(&self.group).to_string())?;
        let patched = rollcall(&["crd-defaults", "--format", "crd", "-f", &file.to_string_lossy()])?;
        self.define(&serde_saphyr::from_str(&patched)?).await
    }

    /// Like [`TestTenant::crd`], from a whole manifest.
    pub async fn define(&self, manifest: &Value) -> Result<()> {
        self.admin.create(manifest).await?;
        // `rollcall rbac` reads this file too.
        let mut file = fs::File::options().create(true).append(true).open(self.crds_file())?;
        writeln!(file, "---\n{manifest}")?;
        self.until_at(&ObjectAddress::of(manifest)?, &says("Established", "True")).await?;
        // Established means that the kind will be served; the first successful list proves that it is.
        let spec = &manifest["spec"];
        let word = |value: &Value| {
            value.as_str().map(str::to_owned).context("a CRD without a group, version or kind")
        };
        let api_version = format!("{}/{}", word(&spec["group"])?, word(&spec["versions"][0]["name"])?);
        self.until_served(&ManifestKind::new(&api_version, &word(&spec["names"]["kind"])?)).await
    }

    /// Waits until the server serves a kind.
    pub(crate) async fn until_served(&self, kind: &ManifestKind) -> Result<()> {
        let served = async {
            while self.admin.list(kind, &self.name, "limit=1").await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TEST_TIMEOUT, served).await.map_err(|_| anyhow!("{} is not served", kind.kind))
    }

    /// Path of a file with the CRDs installed in this tenant.
    pub(crate) fn crds_file(&self) -> PathBuf {
        self.folder.join("own-crds.yaml")
    }

    /// Returns a kind by name: a built-in one, or else one of this tenant.
    pub fn kind(&self, word: &str) -> ManifestKind {
        let api_version = match word {
            "ConfigMap"
            | "Event"
            | "Namespace"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "Pod"
            | "Secret"
            | "Service"
            | "ServiceAccount" => "v1",
            "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet" => "apps/v1",
            "CronJob" | "Job" => "batch/v1",
            "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding" => "rbac.authorization.k8s.io/v1",
            "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
            "Lease" => "coordination.k8s.io/v1",
            "ReadinessGroup" | "ReadinessPolicy" | "ReadinessRecord" => "rollcall.dev/v1alpha1",
            "ResourceGraphDefinition" => "kro.run/v1alpha1",
            _ => return ManifestKind::new(&format!("{}/v1", self.group), word),
        };
        ManifestKind::new(api_version, word)
    }

    /// Parses `Kind/name`: an object in this tenant's namespace, or a cluster-scoped one.
    pub fn address(&self, place: &str) -> Result<ObjectAddress> {
        let (word, name) = place.split_once('/').with_context(|| format!("{place} is not Kind/name"))?;
        let kind = self.kind(word);
        let namespace = if kind.is_cluster_scoped() { String::new() } else { self.name.clone() };
        Ok(ObjectAddress { kind, namespace, name: name.to_owned() })
    }

    /// Returns a manifest of one of this tenant's kinds.
    pub fn custom(&self, kind: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": { "name": name }, "spec": { "size": 1 },
        })
    }

    /// Creates an object in this tenant's namespace.
    pub async fn create(&self, mut object: Value) -> Result<Value> {
        if !ManifestKind::of(&object)?.is_cluster_scoped() && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(self.name);
        }
        self.admin.create(&object).await
    }

    /// Returns the current object.
    pub async fn get(&self, place: &str) -> Result<Value> {
        self.admin.get(&self.address(place)?).await?.with_context(|| format!("there is no {place}"))
    }

    /// Sends a merge patch as the administrator.
    pub async fn change(&self, place: &str, patch: Value) -> Result<Value> {
        self.admin.merge(&self.address(place)?, "", &patch).await
    }

    /// Sends a merge patch on the status subresource as the administrator.
    pub async fn change_status(&self, place: &str, patch: Value) -> Result<Value> {
        self.admin.merge(&self.address(place)?, "/status", &json!({ "status": patch })).await
    }

    /// Deletes an object, and its dependents in the background.
    pub async fn delete(&self, place: &str) -> Result<()> {
        self.admin.delete(&self.address(place)?).await
    }

    /// Changes the behaviour of one pod of the workload `app`.
    pub async fn play_one(&self, app: &str, part: &str) -> Result<()> {
        self.play_first(app, Some(part), 1).await
    }

    /// Changes the behaviour of the pods of the workload `app`; `None` lets them become ready.
    pub async fn play(&self, app: &str, part: Option<&str>) -> Result<()> {
        self.play_first(app, part, usize::MAX).await
    }

    /// Changes the behaviour of so many pods of the workload `app`, at most.
    pub async fn play_first(&self, app: &str, part: Option<&str>, count: usize) -> Result<()> {
        // A parent may already report missing children while the controllers are about to create them.
        self.until_pods(app, 1).await?;
        let query = format!("labelSelector=app={app}");
        let (pods, _) = self.admin.list(&self.kind("Pod"), &self.name, &query).await?;
        for pod in pods.into_iter().take(count) {
            let patch = json!({ "metadata": { "labels": { "play": part } } });
            self.admin.merge(&ObjectAddress::of(&pod)?, "", &patch).await?;
        }
        Ok(())
    }

    /// Waits until the workload `app` has `count` pods.
    pub async fn until_pods(&self, app: &str, count: usize) -> Result<()> {
        let query = format!("labelSelector=app={app}");
        let enough = async {
            loop {
                let (pods, _) = self.admin.list(&self.kind("Pod"), &self.name, &query).await?;
                if pods.len() >= count {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(TEST_TIMEOUT, enough).await.map_err(|_| anyhow!("fewer than {count} pods of {app}"))?
    }

    /// Waits by a watch until the expectation holds for `Kind/name`; returns the object.
    pub async fn until(&self, place: &str, expectation: StateExpectation) -> Result<Value> {
        self.until_at(&self.address(place)?, &expectation).await
    }

    /// Waits until a query finds an object of this kind; an empty namespace means all namespaces.
    pub async fn until_listed(&self, word: &str, namespace: &str, query: &str) -> Result<Value> {
        self.until_found(&self.kind(word), namespace, query, |objects| objects.into_iter().next()).await
    }

    /// Waits until `find` finds what it looks for among the objects of this kind that a query finds; an empty namespace means
    /// all namespaces.
    pub async fn until_found<T>(
        &self,
        kind: &ManifestKind,
        namespace: &str,
        query: &str,
        mut find: impl FnMut(Vec<Value>) -> Option<T>,
    ) -> Result<T> {
        let found = async {
            loop {
                if let Some(found) = find(self.admin.list(kind, namespace, query).await?.0) {
                    return Ok(found);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, found).await;
        let (kind, tails) = (&kind.kind, || self.log_tails());
        end.map_err(|_| anyhow!("no such {kind} is found ({query}) after {TEST_TIMEOUT:?}\n{}", tails()))?
    }

    /// Like [`TestTenant::until`], for any address.
    pub async fn until_at(&self, address: &ObjectAddress, expectation: &StateExpectation) -> Result<Value> {
        let last: Mutex<Value> = Mutex::default();
        if let Ok(result) = timeout(TEST_TIMEOUT, self.follow(address, expectation, &last)).await {
            return result.with_context(|| format!("while waiting for {address}: {}", expectation.words));
        }
        let last = last.lock().map_err(|_| anyhow!("poisoned"))?.take();
        bail!(
            "{address} is not {} after {TEST_TIMEOUT:?}; last seen: {:#}\n{}",
            expectation.words,
            trimmed(last),
            self.log_tails()
        )
    }

    /// Does something to the cluster, and waits until it shows in the object: of all states since then the first is returned.
    pub async fn until_after<T>(
        &self,
        act: impl Future<Output = Result<T>>,
        address: &ObjectAddress,
        expectation: StateExpectation,
    ) -> Result<Value> {
        let watched = Arc::new(Notify::new());
        let expectation = expectation.noting(watched.clone());
        let acts = async {
            watched.notified().await;
            act.await
        };
        let (found, done) = tokio::join!(self.until_at(address, &expectation), acts);
        done?;
        found
    }

    async fn follow(
        &self,
        address: &ObjectAddress,
        expectation: &StateExpectation,
        last: &Mutex<Value>,
    ) -> Result<Value> {
        let query = format!("fieldSelector=metadata.name={}", address.name);
        let note = |object: Option<&Value>| {
            if let Ok(mut last) = last.lock() {
                *last = object.cloned().unwrap_or_default();
            }
            expectation.holds(object)
        };
        loop {
            let (items, version) = self.admin.list(&address.kind, &address.namespace, &query).await?;
            if note(items.first()) {
                return Ok(items.into_iter().next().unwrap_or_default());
            }
            let Ok(events) = self.admin.watch(&address.kind, &address.namespace, &query, version).await
            else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchedChange::There(object) if note(Some(&object)) => return Ok(object),
                    WatchedChange::Gone(object) if note(None) => return Ok(object),
                    WatchedChange::There(_) | WatchedChange::Gone(_) | WatchedChange::Bookmark(_) => {}
                }
            }
        }
    }

    /// Returns the last lines of output of this tenant's programs.
    pub fn log_tails(&self) -> String {
        let logs = self.logs.lock().map(|logs| logs.clone()).unwrap_or_default();
        let tail = |file: &PathBuf| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let from = lines.len().saturating_sub(40);
            format!("── {} ──\n{}\n", file.display(), lines[from..].join("\n"))
        };
        logs.iter().map(tail).collect()
    }
}

/// Returns an object without fields that are irrelevant in a failure message.
fn trimmed(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}
