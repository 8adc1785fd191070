//! A test's own corner of the shared control plane: a namespace, an API group, a folder, a policy selector.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::caller::{Caller, Seen, code_of};
use crate::control_plane::{ControlPlane, Parts, shared};
use crate::crd::Crd;
use crate::kind::{Address, Kind};
use crate::places;
use crate::rollcall::rollcall;
use crate::wish::{Wish, says, there};

/// How long a test waits for what must happen; a hundred times what it takes when nothing else runs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The label by which a scene's own Rollcall finds its policies among those of other tests.
pub const SCENE: &str = "scene";

/// Where one test plays.
pub struct Scene {
    /// The namespace, also the value of the scene's label.
    pub name: String,
    /// The API group of its custom kinds.
    pub group: String,
    /// The control plane that it shares.
    pub plane: Arc<ControlPlane>,
    /// The administrator, who plays operators and users.
    pub admin: Caller,
    /// For files of this test.
    pub folder: PathBuf,
    pub(crate) logs: Mutex<Vec<PathBuf>>,
}

impl Scene {
    /// Sets a new scene on the control plane that all tests share.
    pub async fn set(word: &str) -> Result<Self> {
        Self::set_on(shared().await?, word).await
    }

    /// Sets a new scene on a control plane of its own.
    pub async fn set_on(plane: Arc<ControlPlane>, word: &str) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{word}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = places::run_folder()?.join(&name);
        fs::create_dir_all(&folder)?;
        let group = format!("{name}.example.com");
        let admin = plane.admin().await?;
        admin
            .create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .await?;
        let scene = Self { name, group, plane, admin, folder, logs: Mutex::new(Vec::new()) };
        if scene.plane.parts() == Parts::Everything {
            // Without it no pod is admitted.
            scene.until("ServiceAccount/default", there()).await?;
        }
        Ok(scene)
    }

    /// Installs a custom kind of this scene and waits until the server serves it.
    pub async fn crd(&self, crd: &Crd) -> Result<()> {
        self.define(&crd.manifest(&self.group)).await
    }

    /// The same with the defaults that `rollcall crd-defaults` gives it.
    pub async fn crd_with_defaults(&self, crd: &Crd) -> Result<()> {
        let file = self.folder.join("plain-crd.json");
        fs::write(&file, crd.manifest(&self.group).to_string())?;
        let patched = rollcall(&["crd-defaults", "--format", "crd", "-f", &file.to_string_lossy()])?;
        self.define(&serde_saphyr::from_str(&patched)?).await
    }

    /// The same of a whole manifest.
    pub async fn define(&self, manifest: &Value) -> Result<()> {
        self.admin.create(manifest).await?;
        // Rights are printed for it too.
        let mut file = fs::File::options().create(true).append(true).open(self.crds_file())?;
        writeln!(file, "---\n{manifest}")?;
        self.until_at(&Address::of(manifest)?, &says("Established", "True")).await?;
        // Established says that it will be served; the first list says that it is.
        let kind = self.kind(manifest["spec"]["names"]["kind"].as_str().context("a CRD without a kind")?);
        let served = async {
            while self.admin.list(&kind, &self.name, "limit=1").await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, served).await.map_err(|_| anyhow!("{} is not served", kind.kind))
    }

    /// A kind by its short word: one of Kubernetes' own, else one of this scene.
    pub fn kind(&self, word: &str) -> Kind {
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
            "ReadinessPolicy" | "ReadinessRecord" => "rollcall.dev/v1alpha1",
            _ => return Kind::new(&format!("{}/v1", self.group), word),
        };
        Kind::new(api_version, word)
    }

    /// `Kind/name` in this scene's namespace, or in the cluster for kinds that live there.
    pub fn address(&self, place: &str) -> Result<Address> {
        let (word, name) = place.split_once('/').with_context(|| format!("{place} is not Kind/name"))?;
        let kind = self.kind(word);
        let namespace = if kind.is_cluster_scoped() { String::new() } else { self.name.clone() };
        Ok(Address { kind, namespace, name: name.to_owned() })
    }

    /// An object of one of this scene's kinds, not yet created.
    pub fn custom(&self, kind: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": { "name": name }, "spec": { "size": 1 },
        })
    }

    /// Creates an object in this scene's namespace.
    pub async fn create(&self, mut object: Value) -> Result<Value> {
        if !Kind::of(&object)?.is_cluster_scoped() && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(self.name);
        }
        self.admin.create(&object).await
    }

    /// The object as it is now.
    pub async fn get(&self, place: &str) -> Result<Value> {
        self.admin.get(&self.address(place)?).await?.with_context(|| format!("there is no {place}"))
    }

    /// A merge patch by the administrator.
    pub async fn change(&self, place: &str, patch: Value) -> Result<Value> {
        self.admin.merge(&self.address(place)?, "", &patch).await
    }

    /// A merge patch on the status subresource by the administrator.
    pub async fn change_status(&self, place: &str, patch: Value) -> Result<Value> {
        self.admin.merge(&self.address(place)?, "/status", &json!({ "status": patch })).await
    }

    /// Deletes it, and its dependents in the background.
    pub async fn delete(&self, place: &str) -> Result<()> {
        self.admin.delete(&self.address(place)?).await
    }

    /// Gives the pods of the workload `app` another part to play; none means: become well.
    pub async fn play(&self, app: &str, part: Option<&str>) -> Result<()> {
        // Where a parent already says what it lacks, the controllers may still be about to create it.
        self.until_pods(app, 1).await?;
        let query = format!("labelSelector=app={app}");
        let (pods, _) = self.admin.list(&self.kind("Pod"), &self.name, &query).await?;
        for pod in pods {
            let patch = json!({ "metadata": { "labels": { "play": part } } });
            self.admin.merge(&Address::of(&pod)?, "", &patch).await?;
        }
        Ok(())
    }

    /// Waits until there are `count` pods of the workload `app`.
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
        timeout(PATIENCE, enough).await.map_err(|_| anyhow!("fewer than {count} pods of {app}"))?
    }

    /// Waits by a watch until the wish holds for `Kind/name`; what it waited for is returned.
    pub async fn until(&self, place: &str, wish: Wish) -> Result<Value> {
        self.until_at(&self.address(place)?, &wish).await
    }

    /// The same for any address.
    pub async fn until_at(&self, address: &Address, wish: &Wish) -> Result<Value> {
        let last: Mutex<Value> = Mutex::default();
        if let Ok(result) = timeout(PATIENCE, self.follow(address, wish, &last)).await {
            return result.with_context(|| format!("while waiting for {address}: {}", wish.words));
        }
        let last = last.lock().map_err(|_| anyhow!("poisoned"))?.take();
        bail!(
            "{address} is not {} after {PATIENCE:?}; last seen: {:#}\n{}",
            wish.words,
            trimmed(last),
            self.log_tails()
        )
    }

    async fn follow(&self, address: &Address, wish: &Wish, last: &Mutex<Value>) -> Result<Value> {
        let query = format!("fieldSelector=metadata.name={}", address.name);
        let note = |object: Option<&Value>| {
            if let Ok(mut last) = last.lock() {
                *last = object.cloned().unwrap_or_default();
            }
            wish.holds(object)
        };
        loop {
            let (items, version) = match self.admin.list(&address.kind, &address.namespace, &query).await {
                // The server has just taken up a changed CRD.
                Err(error) if code_of(&error) == Some(429) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
                listed => listed?,
            };
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
                    Seen::There(object) if note(Some(&object)) => return Ok(object),
                    Seen::Gone(object) if note(None) => return Ok(object),
                    Seen::There(_) | Seen::Gone(_) | Seen::Bookmark(_) => {}
                }
            }
        }
    }

    /// The last lines that this scene's programs printed.
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

/// Without what only fills the screen.
fn trimmed(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}
