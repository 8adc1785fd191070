//! A real S3-compatible server on loopback, over a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::control_plane::free_ports;
use crate::places;
use crate::process::LoggedProcess;
use crate::tenant::TestTenant;

/// The existing bucket.
pub const BUCKET: &str = "rollcall";
const KEY: &str = "rollcall-key";
const SECRET: &str = "rollcall-secret";

/// The server; killed when dropped.
pub struct ObjectStore {
    process: LoggedProcess,
    address: String,
    folder: PathBuf,
}

impl ObjectStore {
    /// Starts the server with an empty bucket.
    pub async fn start(tenant: &TestTenant) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_ports(1)?[0]);
        let (folder, aside) = (tenant.folder.join("s3"), tenant.folder.join("aside"));
        fs::create_dir_all(folder.join(BUCKET))?;
        fs::create_dir_all(&aside)?;
        // Some file systems that tests run on have no extended attributes.
        let args = ["--port", &address, "--quiet", "posix", "--sidecar"].map(str::to_owned);
        let folders = [&aside, &folder].map(|path| path.display().to_string());
        let args: Vec<_> = args.into_iter().chain(folders).collect();
        let env = [("ROOT_ACCESS_KEY", KEY), ("ROOT_SECRET_KEY", SECRET)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let log = tenant.folder.join("s3.log");
        let process = LoggedProcess::start("versitygw", &places::program("versitygw")?, &args, &env, &log)?;
        let store = Self { process, address, folder: folder.join(BUCKET) };
        store.until_it_answers().await?;
        Ok(store)
    }

    /// Environment variables of its clients.
    pub fn environment(&self) -> Vec<(String, String)> {
        let word = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        vec![
            word("AWS_ACCESS_KEY_ID", KEY),
            word("AWS_SECRET_ACCESS_KEY", SECRET),
            word("AWS_REGION", "us-east-1"),
            word("AWS_ENDPOINT_URL", &format!("http://{}", self.address)),
            word("AWS_ALLOW_HTTP", "true"),
        ]
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts the server again over the same folder.
    pub async fn again(&mut self) -> Result<()> {
        self.process.again()?;
        self.until_it_answers().await
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> Result<Vec<String>> {
        files(&self.folder)
    }

    async fn until_it_answers(&self) -> Result<()> {
        let answered = async {
            while TcpStream::connect(&self.address).await.is_err() {
                sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, answered).await;
        end.map_err(|_| anyhow!("versitygw does not answer\n{}", self.process.tail(20)))
    }
}

/// Returns the files below a folder, as relative paths.
pub fn files(folder: &Path) -> Result<Vec<String>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path().strip_prefix(folder)?.display().to_string());
            }
        }
    }
    found.sort();
    Ok(found)
}
