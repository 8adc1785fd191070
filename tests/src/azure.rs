//! Azure's object store: its emulator, on loopback.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::{sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::control_plane::free_ports;
use crate::object_store::BUCKET;
use crate::process::LoggedProcess;
use crate::tenant::TestTenant;

/// The emulator; killed when dropped.
pub struct AzureEmulator {
    process: LoggedProcess,
    /// URL of the existing container, as Rollcall takes it.
    pub url: String,
    environment: Vec<(String, String)>,
}

impl AzureEmulator {
    /// Starts Azurite over a folder; `installed` is the folder into which `tests/azure` was installed.
    pub async fn start(tenant: &TestTenant, installed: &Path) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
        let (_, port) = address.split_once(':').unwrap_or_default();
        let folder = tenant.folder.join("azure");
        let program = installed.join("check.mjs");
        let args =
            [&program, Path::new(port), &folder, Path::new(BUCKET)].map(|arg| arg.display().to_string());
        let log = tenant.folder.join("azure.log");
        let process = LoggedProcess::start("azurite", Path::new("node"), &args, &[], &log)?;
        let word = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment = vec![
            word("AZURE_STORAGE_USE_EMULATOR", "true"),
            word("AZURITE_BLOB_STORAGE_URL", &format!("http://{address}")),
            word("AZURE_ALLOW_HTTP", "true"),
        ];
        let azure = AzureEmulator { process, url: format!("az://{BUCKET}/clusters/one"), environment };
        let ready = async {
            while !azure.process.output().lines().any(|line| line == "ready") {
                sleep(Duration::from_millis(50)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, ready).await;
        end.map_err(|_| anyhow!("azurite does not answer\n{}", azure.process.tail(20)))?;
        Ok(azure)
    }

    /// Environment variables of its clients.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}
