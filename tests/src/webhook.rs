//! A real admission webhook, which the API server calls for every write of the status of a tenant's parents.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::certificates::self_signed;
use crate::control_plane::free_ports;
use crate::process::LoggedProcess;
use crate::tenant::TestTenant;

/// The webhook; killed when dropped.
pub struct AdmissionWebhook {
    _process: LoggedProcess,
    mode: PathBuf,
}

/// What it does with Rollcall's writes.
#[derive(Clone, Copy, Debug)]
pub enum WebhookMode {
    /// It lets them pass.
    Allow,
    /// It denies them with 403.
    Deny,
    /// It answers 500.
    Fail,
    /// It does not answer.
    Hang,
    /// It takes the conditions away.
    Strip,
    /// It puts another reason into `Ready`.
    Reason,
}

impl WebhookMode {
    const fn as_str(self) -> &'static str {
        match self {
            WebhookMode::Allow => "allow",
            WebhookMode::Deny => "deny",
            WebhookMode::Fail => "fail",
            WebhookMode::Hang => "hang",
            WebhookMode::Strip => "strip",
            WebhookMode::Reason => "reason",
        }
    }
}

impl AdmissionWebhook {
    /// Starts a webhook that lets everything pass, and has the API server call it. One that does not answer for 2 s has failed, and so
    /// has the write.
    pub async fn start(tenant: &TestTenant) -> Result<Self> {
        let port = free_ports(1)?[0];
        let (certificate, key) = self_signed(&tenant.folder, "webhook")?;
        let mode = tenant.folder.join("webhook-mode");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("webhook/serve.py");
        let paths = [&script, &PathBuf::from(port.to_string()), &certificate, &key, &mode];
        let args = paths.map(|path| path.display().to_string());
        let log = tenant.folder.join("webhook.log");
        let process = LoggedProcess::start("webhook", Path::new("python3"), &args, &[], &log)?;
        let webhook = AdmissionWebhook { _process: process, mode };
        webhook.set(WebhookMode::Allow)?;
        let is_ready = || fs::read_to_string(&log).is_ok_and(|text| text.contains("ready"));
        let ready = async {
            while !is_ready() {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TEST_TIMEOUT, ready).await.map_err(|_| anyhow!("the webhook does not start"))?;
        let authority = STANDARD.encode(fs::read(certificate)?);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": tenant.name },
            "webhooks": [{
                "name": "status.webhook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Fail", "timeoutSeconds": 2,
                "clientConfig": { "url": format!("https://127.0.0.1:{port}/"), "caBundle": authority },
                "rules": [{ "apiGroups": [tenant.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*/status"] }],
            }],
        });
        tenant.admin.create(&configuration).await?;
        Ok(webhook)
    }

    /// From now on it does this.
    pub fn set(&self, mode: WebhookMode) -> Result<()> {
        let next = self.mode.with_extension("next");
        fs::write(&next, mode.as_str())?;
        fs::rename(next, &self.mode)?;
        Ok(())
    }
}
