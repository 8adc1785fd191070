//! The real controller of kro: it turns a ResourceGraphDefinition into a kind, and keeps the objects of each instance.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::control_plane::free_ports;
use crate::expectation::says;
use crate::kind::ObjectAddress;
use crate::plain_http::get;
use crate::process::{LoggedProcess, relaxed_collector};
use crate::tenant::TestTenant;
use crate::{TEST_TIMEOUT, places};

/// The controller; killed when dropped. It sees all of a cluster: the tenant has one of its own.
pub struct KroController {
    process: LoggedProcess,
    metrics: String,
}

impl KroController {
    /// Installs the kinds of kro and starts the controller, with all rights, as its chart grants them by default.
    pub async fn start(tenant: &TestTenant) -> Result<Self> {
        for (file, name) in [
            ("resourcegraphdefinitions.yaml", "resourcegraphdefinitions.kro.run"),
            ("graphrevisions.yaml", "graphrevisions.internal.kro.run"),
        ] {
            tenant.plane.kubectl(&["create", "-f", &places::program(file)?.to_string_lossy()])?;
            tenant.until(&format!("CustomResourceDefinition/{name}"), says("Established", "True")).await?;
        }
        let [metrics, health] = free_ports(2)?[..] else { return Err(anyhow!("no two ports")) };
        let [metrics, health] = [metrics, health].map(|port| format!("127.0.0.1:{port}"));
        let args = [
            format!("--metrics-bind-address={metrics}"),
            format!("--health-probe-bind-address={health}"),
            "--leader-elect=false".to_owned(),
            // How often it looks again while it waits; by default every 3 s.
            "--instance-requeue-interval=200ms".to_owned(),
        ];
        let mut env = relaxed_collector().to_vec();
        env.push(("KUBECONFIG".to_owned(), tenant.plane.kubeconfig().display().to_string()));
        env.push(("HOME".to_owned(), tenant.folder.display().to_string()));
        let log = tenant.folder.join("kro.log");
        let process = LoggedProcess::start("kro", &places::program("kro")?, &args, &env, &log)?;
        tenant.logs.lock().map_err(|_| anyhow!("poisoned"))?.push(log);
        let kro = Self { process, metrics };
        kro.until("it is not ready", async || Ok(get(&health, "/readyz", "").await?.code == 200)).await?;
        Ok(kro)
    }

    /// Creates a graph, and waits until its instances can be created.
    pub async fn define(&self, tenant: &TestTenant, graph: &Value) -> Result<()> {
        tenant.admin.create(graph).await?;
        tenant.until_at(&ObjectAddress::of(graph)?, &says("Ready", "True")).await?;
        let kind = graph["spec"]["schema"]["kind"].as_str().context("a graph without a kind")?;
        tenant.until_served(&tenant.kind(kind)).await
    }

    /// Waits until kro has looked at its only instance from now on, and has written what it makes of it. It must be waiting for
    /// something: it looks again and again then.
    pub async fn until_looked(&self) -> Result<()> {
        // The next one that ends may have begun before.
        let enough = self.looks().await? + 2.0;
        self.until("it does not look again", async || Ok(self.looks().await? >= enough)).await
    }

    /// How many times it has come to an end with an instance.
    async fn looks(&self) -> Result<f64> {
        let text = get(&self.metrics, "/metrics", "").await?.body;
        let of_instances = text.lines().filter(|line| line.starts_with("instance_reconcile_total{"));
        Ok(of_instances.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    async fn until(&self, otherwise: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let held = async {
            // Before it listens there is no answer.
            while !holds().await.unwrap_or(false) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, held).await;
        end.map_err(|_| anyhow!("kro: {otherwise}\n{}", self.process.tail(40)))
    }
}

/// A graph whose instances are of a kind of the tenant's, with a `spec.size`.
pub fn graph(tenant: &TestTenant, kind: &str, resources: &[Value]) -> Value {
    json!({
        "apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition",
        "metadata": { "name": format!("{}-{}", tenant.name, kind.to_lowercase()) },
        "spec": {
            "schema": {
                "group": tenant.group, "apiVersion": "v1", "kind": kind, "spec": { "size": "integer | default=1" },
            },
            "resources": resources,
        },
    })
}
