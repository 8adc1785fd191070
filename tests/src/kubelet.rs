//! What kwok plays in place of kubelets: pods run by its stages, and `kubectl port-forward` leads somewhere.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};

use crate::places;

/// The port on which somebody may stand in for the containers: that of every pod, whatever its number, leads to it.
pub(crate) struct Forwarded(Mutex<Option<TcpListener>>);

impl Forwarded {
    /// Holds a port, so that nobody else is given it before the one who stands in is there.
    pub(crate) fn hold() -> Result<Self> {
        Ok(Self(Mutex::new(Some(TcpListener::bind(("127.0.0.1", 0))?))))
    }

    /// Lets go of the port, for whoever listens there from now on.
    pub(crate) fn take(&self) -> Result<u16> {
        let held = self.0.lock().map_err(|_| anyhow!("poisoned"))?.take();
        Ok(held.context("the port was taken before")?.local_addr()?.port())
    }

    fn port(&self) -> Result<u16> {
        let held = self.0.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(held.as_ref().context("the port was taken before")?.local_addr()?.port())
    }
}

/// The arguments of kwok that listens on this port, which its nodes give as their kubelet's.
pub(crate) fn args(folder: &Path, port: u16, forwarded: &Forwarded) -> Result<Vec<String>> {
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
