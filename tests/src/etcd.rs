//! The etcd under an API server, and what may happen to it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::places;
use crate::plain_http::post;
use crate::process::{LoggedProcess, relaxed_collector};

/// A running etcd; stops when it is dropped.
pub struct EtcdServer {
    process: Mutex<LoggedProcess>,
    /// Host and port for clients.
    address: String,
}

impl EtcdServer {
    /// Starts it with its data in a folder, and with room for so many bytes, or for what it takes by default.
    pub(crate) fn start(folder: &Path, client: u16, peer: u16, room: Option<u64>) -> Result<Self> {
        let address = format!("127.0.0.1:{client}");
        let mut args = etcd_args(folder, &address, &format!("http://127.0.0.1:{peer}"));
        args.extend(room.map(|bytes| format!("--quota-backend-bytes={bytes}")));
        let log = folder.join("etcd.log");
        let process =
            LoggedProcess::start("etcd", &places::program("etcd")?, &args, &relaxed_collector(), &log)?;
        Ok(Self { process: Mutex::new(process), address })
    }

    /// Sends SIGSTOP: whatever is asked is not answered.
    pub fn pause(&self) -> Result<()> {
        self.process()?.pause()
    }

    /// Sends SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.process()?.resume()
    }

    /// Sends SIGKILL and waits for the process.
    pub fn kill(&self) -> Result<()> {
        self.process()?.kill()
    }

    /// Starts it again with the data that it has.
    pub fn again(&self) -> Result<()> {
        self.process()?.again()
    }

    /// Number of bytes that it has stored, of those that it has room for.
    pub async fn stored_bytes(&self) -> Result<u64> {
        let status = self.ask("/v3/maintenance/status", &json!({})).await?;
        let bytes = status["dbSize"].as_str().context("a status without a size")?;
        bytes.parse().with_context(|| format!("no size: {bytes}"))
    }

    /// Gives back the room of what was deleted or overwritten, and ends the alarm that there is none: what an administrator
    /// does about a full disk.
    pub async fn free_space(&self) -> Result<()> {
        let status = self.ask("/v3/maintenance/status", &json!({})).await?;
        let revision = &status["header"]["revision"];
        self.ask("/v3/kv/compaction", &json!({ "revision": revision, "physical": true })).await?;
        self.ask("/v3/maintenance/defragment", &json!({})).await?;
        let alarm =
            json!({ "action": "DEACTIVATE", "memberID": status["header"]["member_id"], "alarm": "NOSPACE" });
        self.ask("/v3/maintenance/alarm", &alarm).await?;
        Ok(())
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = post(&self.address, path, &body.to_string()).await?;
        ensure!(answer.code == 200, "etcd answered {} to {path}: {}", answer.code, answer.body);
        serde_json::from_str(&answer.body)
            .with_context(|| format!("etcd answered to {path}: {}", answer.body))
    }

    fn process(&self) -> Result<MutexGuard<'_, LoggedProcess>> {
        self.process.lock().map_err(|_| anyhow!("poisoned"))
    }
}

fn etcd_args(folder: &Path, client: &str, peer: &str) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://{client}"),
        format!("--advertise-client-urls=http://{client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing here outlives the tests.
        "--unsafe-no-fsync".to_owned(),
    ]
}
