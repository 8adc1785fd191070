//! A real control plane on loopback: etcd, API server, and, if a test needs a running cluster, the controllers, the
//! scheduler and kwok in the role of the kubelets.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use http::Method;
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use crate::caller::ApiCaller;
use crate::certificates;
use crate::component_args::{api_server_args, manager_args, scheduler_args};
use crate::etcd::EtcdServer;
use crate::kubelet::{self, ForwardedPort};
use crate::places;
use crate::process::{LoggedProcess, relaxed_collector};

/// Token of the only user with all rights.
const ADMIN: &str = "admin-of-a-cluster-that-lives-on-loopback";
/// Longest time until the control plane must be ready. Measured: 5 to 6 s on two idle cores.
const CONTROL_PLANE_START_TIMEOUT: Duration = Duration::from_secs(180);

/// Running servers with one etcd; they stop when this is dropped, or with the process.
pub struct ControlPlane {
    folder: PathBuf,
    url: String,
    parts: ClusterParts,
    /// Rollcall's own kinds are installed.
    pub(crate) crds: OnceCell<()>,
    /// Separate from the others because a test may kill them.
    api_server: Mutex<LoggedProcess>,
    /// What the API server stores in.
    pub etcd: EtcdServer,
    others: Vec<LoggedProcess>,
    kubelets: Option<Arc<Mutex<LoggedProcess>>>,
    forwarded: ForwardedPort,
}

/// Parts of a cluster that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterParts {
    /// etcd, the API server and the controller that aggregates ClusterRoles: all other objects stay as they are written.
    Storage,
    /// With controllers, scheduler and kubelets: pods run.
    Everything,
}

static SHARED: OnceCell<Arc<ControlPlane>> = OnceCell::const_new();

/// Returns `true` for the control plane that all tests of this process share.
pub(crate) fn is_shared(plane: &Arc<ControlPlane>) -> bool {
    SHARED.get().is_some_and(|shared| Arc::ptr_eq(shared, plane))
}

/// Returns the control plane shared by all tests of one process; each test has a namespace and an API group in it.
pub async fn shared() -> Result<Arc<ControlPlane>> {
    let start = async || Ok(Arc::new(ControlPlane::start(ClusterParts::Everything).await?));
    SHARED.get_or_try_init(start).await.cloned()
}

impl ControlPlane {
    /// Starts the parts and returns when they are ready.
    pub async fn start(parts: ClusterParts) -> Result<Self> {
        Self::start_with_room(parts, None).await
    }

    /// Like [`ControlPlane::start`], with an etcd that has room for so many bytes.
    pub async fn start_with_room(parts: ClusterParts, room: Option<u64>) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = places::run_folder()?.join(format!("plane-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir_all(&folder)?;
        // Held first, so that it is not among the ports that are free for a moment.
        let forwarded = ForwardedPort::hold()?;
        let listen = free_ports(6)?;
        let url = format!("https://127.0.0.1:{}", listen[0]);
        let start = |name: &str, args: Vec<String>| {
            LoggedProcess::start(
                name,
                &places::program(name)?,
                &args,
                &relaxed_collector(),
                &folder.join(format!("{name}.log")),
            )
        };
        prepare(&folder, &url)?;
        let etcd = EtcdServer::start(&folder, listen[1], listen[2], room)?;
        let api_server = Mutex::new(start("kube-apiserver", api_server_args(&folder, listen[0], listen[1]))?);
        let mut plane = Self {
            folder: folder.clone(),
            url,
            parts,
            crds: OnceCell::new(),
            api_server,
            etcd,
            others: Vec::new(),
            kubelets: None,
            forwarded,
        };
        plane.until_ready().await?;
        plane.others.push(start(
            "kube-controller-manager",
            manager_args(&folder, listen[3], parts == ClusterParts::Everything),
        )?);
        if parts == ClusterParts::Everything {
            plane.others.push(start("kube-scheduler", scheduler_args(&folder, listen[4]))?);
            let kwok = start("kwok", kubelet::args(&folder, listen[5], &plane.forwarded)?)?;
            plane.kubelets = Some(kubelet::keep_running(kwok));
            plane.admin().await?.create(&node("node-1")).await?;
        }
        Ok(plane)
    }

    /// URL of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Running parts of the cluster.
    pub fn parts(&self) -> ClusterParts {
        self.parts
    }

    /// Port on this machine to which `kubectl port-forward` leads, for every pod and port; the caller listens on it in
    /// place of the containers.
    pub fn forwarded(&self) -> Result<u16> {
        self.forwarded.take()
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// A client with the administrator's identity.
    pub async fn admin(&self) -> Result<ApiCaller> {
        ApiCaller::from_kubeconfig(&self.kubeconfig()).await
    }

    /// Writes a kubeconfig with another token, namespace or address (that of a gate before the API server).
    pub fn kubeconfig_for(&self, file: &Path, url: &str, token: &str, namespace: &str) -> Result<()> {
        write_kubeconfig(file, url, &self.folder, token, namespace)
    }

    /// Writes a kubeconfig with a client certificate of this cluster, valid until the given time (as
    /// `20260102030405Z`).
    pub fn kubeconfig_by_certificate(&self, file: &Path, name: &str, until: &str) -> Result<()> {
        let (certificate, key) = certificates::client(&self.folder, name, until)?;
        self.kubeconfig_as(file, &json!({ "client-certificate": certificate, "client-key": key }))
    }

    /// Writes a kubeconfig with this user entry.
    pub fn kubeconfig_as(&self, file: &Path, user: &serde_json::Value) -> Result<()> {
        self.kubeconfig_for(file, &self.url, "", "default")?;
        let mut text: serde_json::Value = serde_json::from_slice(&fs::read(file)?)?;
        text["users"][0]["user"] = user.clone();
        Ok(fs::write(file, text.to_string())?)
    }

    /// Replaces the certificate of the API server, and waits until it shows the new one to new clients.
    pub async fn replace_certificate(&self) -> Result<()> {
        certificates::replace_serving(&self.folder)?;
        // The administrator's kubeconfig trusts the new one alone.
        self.until_ready().await
    }

    /// Waits until the API server is ready.
    pub async fn until_ready(&self) -> Result<()> {
        let answered = async {
            loop {
                if let Some(status) = self.api_server()?.ended()? {
                    bail!("the API server ended: {status}");
                }
                // Without its certificate a client cannot connect yet.
                if let Ok(admin) = self.admin().await
                    && admin
                        .client()
                        .request_text(http::Request::get("/readyz").body(Vec::new())?)
                        .await
                        .is_ok()
                {
                    return Ok(());
                }
                sleep(Duration::from_millis(100)).await;
            }
        };
        let ended = timeout(CONTROL_PLANE_START_TIMEOUT, answered).await;
        let ready = ended
            .unwrap_or_else(|_| bail!("the API server is not ready after {CONTROL_PLANE_START_TIMEOUT:?}"));
        ready.map_err(|error| match self.api_server() {
            Ok(server) => error.context(server.tail(30)),
            Err(_) => error,
        })
    }

    /// Kills the API server with SIGKILL, as the loss of its machine would, and starts it again on the same port.
    pub async fn restart_api_server(&self) -> Result<()> {
        self.api_server()?.kill()?;
        self.api_server()?.again()?;
        self.until_ready().await
    }

    /// Keeps a copy of all that etcd has, for [`restore`](Self::restore).
    pub async fn back_up(&self) -> Result<()> {
        self.stop()?;
        copy_folder(&self.folder.join("etcd"), &self.folder.join("backup"))?;
        self.start_again().await
    }

    /// Kills API server and etcd.
    pub fn stop(&self) -> Result<()> {
        self.api_server()?.kill()?;
        self.etcd.kill()
    }

    /// Starts what was stopped with the copy: all that was written since is gone, and revisions are counted from there.
    pub async fn restore(&self) -> Result<()> {
        let data = self.folder.join("etcd");
        fs::remove_dir_all(&data)?;
        copy_folder(&self.folder.join("backup"), &data)?;
        self.start_again().await
    }

    async fn start_again(&self) -> Result<()> {
        self.etcd.again()?;
        self.api_server()?.again()?;
        self.until_ready().await
    }

    /// Removes what etcd stored, which takes 128 MB from its first write on. The logs stay.
    fn remove_data(&self) {
        for data in ["etcd", "backup"] {
            // Where it cannot be removed, the next run does it.
            _ = fs::remove_dir_all(self.folder.join(data));
        }
    }

    fn api_server(&self) -> Result<MutexGuard<'_, LoggedProcess>> {
        self.api_server.lock().map_err(|_| anyhow!("poisoned"))
    }

    /// Runs kubectl as the administrator; returns its output if it succeeds.
    pub fn kubectl(&self, args: &[&str]) -> Result<String> {
        let output = self.kubectl_command()?.args(args).output().context("failed to run kubectl")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {errors}", args.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Returns a kubectl command of the administrator, not yet started.
    pub fn kubectl_command(&self) -> Result<Command> {
        let mut command = Command::new(places::program("kubectl")?);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        Ok(command)
    }

    /// Requests a token of a service account.
    pub async fn token_of(&self, namespace: &str, service_account: &str) -> Result<String> {
        self.request_token(namespace, service_account, &serde_json::Value::Null).await
    }

    /// Requests a token of a service account that is valid for as long as this Secret of its namespace is there.
    pub async fn token_bound_to(
        &self,
        namespace: &str,
        service_account: &str,
        secret: &serde_json::Value,
    ) -> Result<String> {
        let metadata = &secret["metadata"];
        let bound = json!({
            "apiVersion": "v1", "kind": "Secret", "name": metadata["name"], "uid": metadata["uid"],
        });
        self.request_token(namespace, service_account, &bound).await
    }

    async fn request_token(
        &self,
        namespace: &str,
        service_account: &str,
        bound: &serde_json::Value,
    ) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
        let expectation = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": 7200, "audiences": ["https://kubernetes.default.svc"],
                "boundObjectRef": bound,
            },
        });
        let answer = self
            .admin()
            .await?
            .send(Method::POST, &path, "application/json", serde_json::to_vec(&expectation)?)
            .await
            .context("failed to request a token")?;
        Ok(answer["status"]["token"].as_str().context("a TokenRequest without a token")?.to_owned())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        _ = self.stop();
        self.remove_data();
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    // etcd takes no folder that others may look into.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?.path();
        let copy = to.join(entry.file_name().context("a file without a name")?);
        if entry.is_dir() { copy_folder(&entry, &copy)? } else { _ = fs::copy(&entry, &copy)? }
    }
    Ok(())
}

/// Ports that no system gives to connections, and that no listener asks for: between those of services and the ephemeral ones,
/// which begin at 32768 on Linux.
const OWN_PORTS: std::ops::Range<u32> = 12_000..32_000;
/// How many ports this process has tried.
static TRIED_PORTS: AtomicU32 = AtomicU32::new(0);

/// Returns ports that are free, and that nobody else is given: no connection, no listener on port 0, and no caller of this
/// function in this process. Other processes begin elsewhere.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    let first = std::process::id().wrapping_mul(601);
    let mut ports = Vec::new();
    for _ in OWN_PORTS {
        if ports.len() == count {
            return Ok(ports);
        }
        let tried = TRIED_PORTS.fetch_add(1, Ordering::Relaxed);
        let port = OWN_PORTS.start + first.wrapping_add(tried) % (OWN_PORTS.end - OWN_PORTS.start);
        let port = u16::try_from(port).context("no port")?;
        if is_free(port)? {
            ports.push(port);
        }
    }
    bail!("no port is free on loopback");
}

/// Returns `true` if somebody may listen on `port` of loopback. The socket that asks never listens: a program that another
/// thread is starting holds a copy of it until it is executed, and a copy that listens would keep the port taken.
fn is_free(port: u16) -> Result<bool> {
    let asked = TcpSocket::new_v4()?;
    asked.set_reuseaddr(true)?;
    Ok(asked.bind((Ipv4Addr::LOCALHOST, port).into()).is_ok())
}

fn prepare(folder: &Path, url: &str) -> Result<()> {
    fs::write(folder.join("tokens.csv"), format!("{ADMIN},admin,admin,\"system:masters\"\n"))?;
    let key = folder.join("service-accounts.key");
    let made = Command::new("openssl")
        .args(["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out"])
        .arg(&key)
        .output()
        .context("failed to run openssl")?;
    ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    certificates::authority(folder)?;
    write_kubeconfig(&folder.join("admin.kubeconfig"), url, folder, ADMIN, "default")
}

fn write_kubeconfig(file: &Path, url: &str, folder: &Path, token: &str, namespace: &str) -> Result<()> {
    let ca = folder.join("certificates/apiserver.crt");
    let mut cluster = json!({ "server": url });
    if url.starts_with("https") {
        cluster["certificate-authority"] = json!(ca);
    }
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{ "name": "it", "cluster": cluster }],
        "users": [{ "name": "it", "user": { "token": token } }],
        "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it", "namespace": namespace } }],
    });
    Ok(fs::write(file, serde_json::to_vec_pretty(&text)?)?)
}

fn node(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
    })
}
