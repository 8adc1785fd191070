//! The built binary, run as a user would: with a kubeconfig, and with exactly the rights that it prints itself.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use tokio::time::{sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::control_plane::free_ports;
use crate::places;
use crate::plain_http::{HttpAnswer, get};
use crate::policies::install_crds;
use crate::process::LoggedProcess;
use crate::rights::{ACCOUNT, TenantRights};
use crate::tenant::{TENANT_LABEL, TestTenant};

/// A running `rollcall run`; killed when dropped.
pub struct RollcallProcess {
    process: LoggedProcess,
    address: String,
}

/// A tenant's own Rollcall.
pub trait TenantRollcall {
    /// Writes a kubeconfig of the tenant's service account, for the server itself or a gate before it.
    fn kubeconfig(&self, url: &str) -> impl Future<Output = Result<PathBuf>> + Send;

    /// Grants the rights, starts Rollcall for this tenant's policies, and waits until it is ready.
    fn rollcall(&self, options: &[&str]) -> impl Future<Output = Result<RollcallProcess>> + Send;

    /// Starts Rollcall with its current rights, for any server address, and does not wait.
    fn rollcall_at(
        &self,
        url: &str,
        options: &[&str],
    ) -> impl Future<Output = Result<RollcallProcess>> + Send;

    /// Like [`TenantRollcall::rollcall_at`], with these environment variables.
    fn rollcall_in(
        &self,
        url: &str,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> impl Future<Output = Result<RollcallProcess>> + Send;

    /// Like [`TenantRollcall::rollcall_at`], with a kubeconfig that is there.
    fn rollcall_with(
        &self,
        kubeconfig: &Path,
        options: &[&str],
    ) -> impl Future<Output = Result<RollcallProcess>> + Send;

    /// Like [`TenantRollcall::rollcall_in`], with this binary.
    fn rollcall_of(
        &self,
        program: &Path,
        url: &str,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> impl Future<Output = Result<RollcallProcess>> + Send;
}

impl TenantRollcall for TestTenant {
    async fn kubeconfig(&self, url: &str) -> Result<PathBuf> {
        let token = self.plane.token_of(&self.name, ACCOUNT).await?;
        let file = self.folder.join("rollcall.kubeconfig");
        self.plane.kubeconfig_for(&file, url, &token, &self.name)?;
        Ok(file)
    }

    async fn rollcall(&self, options: &[&str]) -> Result<RollcallProcess> {
        install_crds(self).await?;
        self.grant().await?;
        let running = self.rollcall_at(self.plane.url(), options).await?;
        running.until_ready().await?;
        Ok(running)
    }

    async fn rollcall_at(&self, url: &str, options: &[&str]) -> Result<RollcallProcess> {
        self.rollcall_in(url, options, &[]).await
    }

    async fn rollcall_in(
        &self,
        url: &str,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<RollcallProcess> {
        self.rollcall_of(&places::rollcall()?, url, options, variables).await
    }

    async fn rollcall_with(&self, kubeconfig: &Path, options: &[&str]) -> Result<RollcallProcess> {
        start_rollcall(self, &places::rollcall()?, kubeconfig, options, &[])
    }

    async fn rollcall_of(
        &self,
        program: &Path,
        url: &str,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<RollcallProcess> {
        start_rollcall(self, program, &self.kubeconfig(url).await?, options, variables)
    }
}

fn start_rollcall(
    tenant: &TestTenant,
    program: &Path,
    kubeconfig: &Path,
    options: &[&str],
    variables: &[(&str, &str)],
) -> Result<RollcallProcess> {
    let given = options.iter().find_map(|option| option.strip_prefix("--listen="));
    let listen = given.map_or(format!("127.0.0.1:{}", free_ports(1)?[0]), str::to_owned);
    // A listener on all addresses is reached on loopback.
    let address = listen.replace("0.0.0.0", "127.0.0.1");
    let mut args = vec![
        "run".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--listen={listen}"),
        "--log-format=json".to_owned(),
    ];
    if !options.iter().any(|option| option.starts_with("--policy-selector=")) {
        args.push(format!("--policy-selector={TENANT_LABEL}={}", tenant.name));
    }
    if !options.iter().any(|option| option.starts_with("--records-namespace=")) {
        args.push(format!("--records-namespace={}", tenant.name));
    }
    let others = options.iter().filter(|option| !option.starts_with("--listen="));
    args.extend(others.map(|&option| option.to_owned()));
    let log = tenant.folder.join("rollcall.log");
    let own = [("RUST_BACKTRACE", "1")];
    let variables = own.iter().chain(variables);
    let env: Vec<_> = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let process = LoggedProcess::start("rollcall", program, &args, &env, &log)?;
    if let Ok(mut logs) = tenant.logs.lock()
        && !logs.contains(&log)
    {
        logs.push(log);
    }
    Ok(RollcallProcess { process, address })
}

impl RollcallProcess {
    /// Waits until `/readyz` answers 200.
    pub async fn until_ready(&self) -> Result<()> {
        let answered = async {
            loop {
                match self.http("/readyz").await {
                    Ok(HttpAnswer { code: 200, .. }) => return,
                    _ => sleep(Duration::from_millis(10)).await,
                }
            }
        };
        if timeout(TEST_TIMEOUT, answered).await.is_err() {
            let said = self.http("/readyz").await.map_or_else(|error| error.to_string(), |last| last.body);
            bail!("rollcall is not ready after {TEST_TIMEOUT:?}: {said}\n{}", self.process.tail(40));
        }
        Ok(())
    }

    /// Address of the listener: host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends a GET.
    pub async fn http(&self, path: &str) -> Result<HttpAnswer> {
        self.http_as(path, "").await
    }

    /// Sends a GET with a token, or with none.
    pub async fn http_as(&self, path: &str, token: &str) -> Result<HttpAnswer> {
        get(&self.address, path, token).await
    }

    /// Returns the sum over all series of `metric` whose labels contain each of `labels` (as `name="value"`).
    pub async fn metric(&self, metric: &str, labels: &[&str]) -> Result<f64> {
        let text = self.http("/metrics").await?.body;
        let of_metric = |line: &&str| {
            let rest = line.strip_prefix(metric);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|want| line.contains(want))
        };
        let values: Vec<f64> =
            text.lines().filter(of_metric).filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        ensure!(!values.is_empty(), "no series {metric} {labels:?} in:\n{text}");
        Ok(values.iter().sum())
    }

    /// Waits until a metric's sum satisfies `enough`.
    pub async fn until_metric(
        &self,
        metric: &str,
        labels: &[&str],
        enough: impl Fn(f64) -> bool,
    ) -> Result<f64> {
        let reached = async {
            loop {
                if let Ok(value) = self.metric(metric, labels).await
                    && enough(value)
                {
                    return value;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, reached).await;
        end.map_err(|_| anyhow!("{metric} {labels:?} did not get there\n{}", self.process.tail(40)))
    }

    /// Waits until Rollcall has printed `words`.
    pub async fn until_printed(&self, words: &str) -> Result<()> {
        self.until_printed_after(0, words).await
    }

    /// Waits until Rollcall has printed `words` behind so many bytes of [`Self::output`].
    pub async fn until_printed_after(&self, bytes: usize, words: &str) -> Result<()> {
        let printed = async {
            while !self.process.output().get(bytes..).is_some_and(|text| text.contains(words)) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, printed).await;
        end.map_err(|_| anyhow!("{words:?} was not printed\n{}", self.process.tail(40)))
    }

    /// Returns all output of Rollcall and its predecessors in this tenant.
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Sends SIGTERM; returns the exit status.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.terminate()?;
        self.process.end(Duration::from_secs(20)).await
    }

    /// Sends SIGSTOP.
    pub fn pause(&self) -> Result<()> {
        self.process.pause()
    }

    /// Sends SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.process.resume()
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Starts Rollcall again with the same options, and waits until it is ready.
    pub async fn again(&mut self) -> Result<()> {
        self.process.again()?;
        self.until_ready().await
    }

    /// Starts Rollcall again with the same options, and does not wait.
    pub fn again_at_once(&mut self) -> Result<()> {
        self.process.again()
    }

    /// Returns `true` if the process is running.
    pub fn runs(&mut self) -> Result<bool> {
        Ok(self.process.ended()?.is_none())
    }
}

impl Drop for RollcallProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.process.tail(60));
        }
    }
}
