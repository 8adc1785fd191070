//! kwok in the role of the kubelets: it runs pods by its stages, and gives `kubectl port-forward` a target.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::places;
use crate::process::LoggedProcess;

/// The port to which every forwarded port of every pod leads; a test may listen on it in place of the containers.
pub(crate) struct ForwardedPort(Mutex<Option<TcpListener>>);

impl ForwardedPort {
    /// Reserves a port until the test listens on it.
    pub(crate) fn hold() -> Result<Self> {
        Ok(Self(Mutex::new(Some(TcpListener::bind(("127.0.0.1", 0))?))))
    }

    /// Releases the port to a listener of the test.
    pub(crate) fn take(&self) -> Result<u16> {
        let held = self.0.lock().map_err(|_| anyhow!("poisoned"))?.take();
        Ok(held.context("the port was taken before")?.local_addr()?.port())
    }

    fn port(&self) -> Result<u16> {
        let held = self.0.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(held.as_ref().context("the port was taken before")?.local_addr()?.port())
    }
}

/// How often it is looked whether kwok still runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Starts kwok again whenever it ends, for as long as the caller holds on to it: it has workers that write one map, and on a busy
/// machine two of them may meet there in its first seconds.
pub(crate) fn keep_running(kwok: LoggedProcess) -> Arc<Mutex<LoggedProcess>> {
    let kwok = Arc::new(Mutex::new(kwok));
    let held = Arc::downgrade(&kwok);
    thread::spawn(move || {
        while let Some(kwok) = held.upgrade() {
            if let Ok(mut kwok) = kwok.lock()
                && let Ok(Some(_)) = kwok.ended()
            {
                // Otherwise the next look tries it.
                _ = kwok.again();
            }
            drop(kwok);
            thread::sleep(LOOK_INTERVAL);
        }
    });
    kwok
}

/// Arguments of kwok listening on this port, which its nodes report as their kubelet's.
pub(crate) fn args(folder: &Path, port: u16, forwarded: &ForwardedPort) -> Result<Vec<String>> {
    let config = folder.join("forward.yaml");
    let target = serde_json::json!({
        "apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterPortForward",
        "metadata": { "name": "every-pod" },
        "spec": { "forwards": [{ "target": { "address": "127.0.0.1", "port": forwarded.port()? } }] },
    });
    fs::write(&config, target.to_string())?;
    Ok(vec![
        format!("--kubeconfig={}", folder.join("admin.kubeconfig").display()),
        "--manage-all-nodes=true".to_owned(),
        format!("--config={}", places::control_plane_source().join("stages.yaml").display()),
        format!("--config={}", config.display()),
        format!("--server-address=127.0.0.1:{port}"),
        "--node-ip=127.0.0.1".to_owned(),
        format!("--node-port={port}"),
    ])
}
