//! Real Helm with a chart of one object.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::tenant::TestTenant;
use crate::{TEST_TIMEOUT, places};

/// A chart in a tenant's folder; its value `size` becomes `spec.size` of its object.
pub struct HelmChart {
    folder: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

/// A running Helm command; killed when dropped.
pub struct HelmCommand {
    child: Option<Child>,
    words: String,
}

impl HelmChart {
    /// Returns a chart with `object`.
    pub fn new(tenant: &TestTenant, mut object: Value) -> Result<Self> {
        object["metadata"]["name"] = Value::from("{{ .Release.Name }}");
        object["spec"]["size"] = Value::from("SIZE");
        HelmChart::of_template(tenant, &object.to_string().replace("\"SIZE\"", "{{ .Values.size }}"))
    }

    /// Returns a chart with one template of this text.
    pub fn of_template(tenant: &TestTenant, text: &str) -> Result<Self> {
        let folder = tenant.folder.join("chart");
        fs::create_dir_all(folder.join("templates"))?;
        fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: chart\nversion: 0.1.0\n")?;
        fs::write(folder.join("values.yaml"), "size: 1\n")?;
        fs::write(folder.join("templates/object.yaml"), text)?;
        let (home, kubeconfig) = (tenant.folder.join("helm"), tenant.plane.kubeconfig());
        Ok(Self { folder, home, kubeconfig, namespace: tenant.name.clone() })
    }

    /// Starts `helm install|upgrade RELEASE CHART --wait …`.
    pub fn begin(&self, verb: &str, release: &str, options: &[&str]) -> Result<HelmCommand> {
        let mut command = Command::new(places::program("helm")?);
        command
            .arg(verb)
            .arg(release)
            .arg(&self.folder)
            .args(["--wait", "-n", &self.namespace])
            .args(options);
        command.arg("--kubeconfig").arg(&self.kubeconfig).env("HOME", &self.home);
        let words = format!("helm {verb} {release}");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Ok(HelmCommand { child: Some(child.context("failed to run helm")?), words })
    }
}

impl HelmCommand {
    /// Starts any other command that waits.
    pub fn on(mut command: Command) -> Result<Self> {
        let words = format!("{command:?}");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        Ok(HelmCommand { child: Some(child), words })
    }

    /// Fails if the command has ended.
    pub fn still_waits(&mut self, because: &str) -> Result<()> {
        let ended = self.child.as_mut().context("it ended")?.try_wait()?;
        ensure!(ended.is_none(), "{} ended ({ended:?}) although {because}", self.words);
        Ok(())
    }

    /// Waits until the command ends; returns its output.
    pub async fn end(mut self) -> Result<Output> {
        let ended = async {
            while self.child.as_mut().context("it ended")?.try_wait()?.is_none() {
                sleep(Duration::from_millis(10)).await;
            }
            Ok(self.child.take().context("it ended")?.wait_with_output()?)
        };
        timeout(2 * TEST_TIMEOUT, ended).await.map_err(|_| anyhow!("it does not end"))?
    }

    /// Waits until the command ends; fails unless it succeeded.
    pub async fn succeeds(self) -> Result<()> {
        let words = self.words.clone();
        let output = self.end().await?;
        ensure!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

impl Drop for HelmCommand {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A child that is already gone is fine.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
