//! An in-memory cluster with at least one Shop, and a kubeconfig for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kube::CustomResourceExt;
use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};

/// Where records, and what else is kept, are.
pub(crate) const OWN_NAMESPACE: &str = "rollcall";

/// A running cluster.
pub(crate) struct LiveCluster {
    pub(crate) server: SandboxServer,
    folder: PathBuf,
}

impl LiveCluster {
    /// Starts a cluster with the CRDs of Shop and Database. The name keeps its files apart from those of other tests.
    pub(crate) async fn start(name: &str) -> LiveCluster {
        LiveCluster::start_with(name, SandboxOptions::default()).await
    }

    /// The same, on a server with these options.
    pub(crate) async fn start_with(name: &str, options: SandboxOptions) -> LiveCluster {
        let server = SandboxServer::start(options).await.unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let cluster = LiveCluster { server, folder };
        for kind in ["Shop", "Database"] {
            cluster.create(&crd(kind));
        }
        let user = json!({ "token": "t" });
        cluster.kubeconfig("kubeconfig", &user);
        let policies = [policy("Shop", "example.com", "Database"), policy("Database", "", "Pod")];
        let policies = policies.map(|policy| policy.to_string()).join("\n---\n");
        std::fs::write(cluster.folder.join("policies.yaml"), policies).unwrap();
        cluster
    }

    /// A parent as it stands.
    pub(crate) fn parent(&self, kind: &str, name: &str) -> Value {
        let store = self.server.lock_store();
        (*store.get("example.com/v1", kind, "default", name).unwrap()).clone()
    }

    /// Number of Databases that say this of `Ready`.
    pub(crate) fn count_told(&self, status: &str) -> usize {
        let databases = self.server.lock_store().list_objects("example.com/v1", "Database", "");
        databases.iter().filter(|database| condition(database, "Ready")["status"] == status).count()
    }

    /// Creates Rollcall's own namespace and definitions.
    pub(crate) fn install(&self) {
        self.create(
            &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OWN_NAMESPACE } }),
        );
        for crd in [api::ReadinessPolicy::crd(), api::ReadinessGroup::crd(), api::ReadinessRecord::crd()] {
            self.create(&serde_json::to_value(crd).unwrap());
        }
    }

    pub(crate) fn create(&self, object: &Value) -> Value {
        let now = self.server.now();
        (*self.server.lock_store().create_with_status(now, object.clone()).unwrap()).clone()
    }

    /// Creates an object owned by another.
    pub(crate) fn below(&self, owner: &Value, object: Value) -> Value {
        self.create(&owned(owner, object))
    }

    pub(crate) fn file(&self, name: &str, value: &Value) -> String {
        self.text_file(name, &value.to_string())
    }

    pub(crate) fn text_file(&self, name: &str, text: &str) -> String {
        let file = self.folder.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }

    /// Writes a kubeconfig for a user of this cluster.
    pub(crate) fn kubeconfig(&self, name: &str, user: &Value) -> String {
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": self.server.url() } }],
            "users": [{ "name": "it", "user": user }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
        });
        self.file(name, &text)
    }

    /// Returns a command that runs the binary against this cluster with its policies; not yet started.
    pub(crate) fn rollcall(&self, args: &[&str]) -> Command {
        let mut command = self.bare();
        command.args(args).arg("-f").arg(self.folder.join("policies.yaml"));
        command
    }

    /// Like [`LiveCluster::rollcall`], without a subcommand and without policies.
    pub(crate) fn bare(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rollcall"));
        command.arg("--kubeconfig").arg(self.folder.join("kubeconfig"));
        command.env_remove("KUBECONFIG").env_remove("NO_COLOR").env_remove("TERM").env("HOME", "/nowhere");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end; returns exit code, standard output and standard error.
    pub(crate) async fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        done(self.rollcall(args)).await
    }
}

/// Runs a command to its end while the cluster keeps serving.
pub(crate) async fn done(mut command: Command) -> (Option<i32>, String, String) {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let Output { status, stdout, stderr } = output;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A condition of an object; null where it has none.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == kind)).cloned().unwrap_or_default()
}

pub(crate) fn crd(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

/// A definition of Rollcall's own, as far as it is looked for; it admits everything.
pub(crate) fn own_definition(kind: &str) -> Value {
    let text = crd(kind).to_string().replace("example.com", "rollcall.dev").replace("policys", "policies");
    let mut definition: Value = serde_json::from_str(&text).unwrap();
    definition["spec"]["versions"][0]["name"] = json!("v1alpha1");
    if kind == "ReadinessPolicy" {
        definition["spec"]["scope"] = json!("Cluster");
    }
    definition
}

pub(crate) fn policy(kind: &str, group: &str, child: &str) -> Value {
    json!({
        "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy", "metadata": { "name": kind.to_lowercase() },
        "spec": {
            "parent": { "group": "example.com", "kind": kind },
            "children": [{ "kind": { "group": group, "kind": child } }],
            "settle": "0s",
        },
    })
}

/// Returns a custom resource whose operator has observed its generation.
pub(crate) fn custom(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "name": name },
        "status": { "observedGeneration": 1 } })
}

/// Returns a pod that is running and ready, or waits for a reason.
pub(crate) fn pod(name: &str, waits: Option<(&str, &str)>) -> Value {
    let ready = waits.is_none();
    let state = match waits {
        None => json!({ "running": { "startedAt": "2026-01-01T00:00:01Z" } }),
        Some((reason, message)) => json!({ "waiting": { "reason": reason, "message": message } }),
    };
    let status = if ready { "True" } else { "False" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web" }, "annotations": { "note": "x".repeat(200) } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/web:1" }] },
        "status": {
            "phase": "Running",
            "conditions": [
                { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                { "type": "ContainersReady", "status": status, "lastTransitionTime": "2026-01-01T00:00:02Z" },
                { "type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:02Z" },
            ],
            "containerStatuses": [{ "name": "main", "ready": ready, "started": ready, "restartCount": 0,
                "image": "example.com/web:1", "imageID": "", "state": state }],
        },
    })
}

/// Returns the object with an ownerReference to `owner`.
pub(crate) fn owned(owner: &Value, mut object: Value) -> Value {
    let meta = &owner["metadata"];
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
        "controller": true,
    }]);
    object
}
