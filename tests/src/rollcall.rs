//! The built binary, run as a user would: with a kubeconfig, and with exactly the rights that it prints itself.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::control_plane::free_ports;
use crate::http_get::{HttpAnswer, get};
use crate::kind::ObjectAddress;
use crate::places;
use crate::process::LoggedProcess;
use crate::tenant::{TENANT_LABEL, TEST_TIMEOUT, TestTenant};

/// Name of every tenant's service account.
const ACCOUNT: &str = "rollcall";

/// A running `rollcall run`; killed when dropped.
pub struct RollcallProcess {
    process: LoggedProcess,
    address: String,
}

impl TestTenant {
    /// Creates a policy for `parent`, a kind of this tenant; `spec` has the other fields. The object's name contains the
    /// tenant's, because policies are cluster-scoped.
    pub async fn policy(&self, name: &str, parent: &str, spec: Value) -> Result<Value> {
        install_crds(self).await?;
        self.admin.create(&self.policy_manifest(name, parent, spec)).await
    }

    /// Returns the policy's manifest without creating it.
    pub fn policy_manifest(&self, name: &str, parent: &str, mut spec: Value) -> Value {
        let kind = self.kind(parent);
        spec["parent"]["group"] = json!(kind.group());
        spec["parent"]["kind"] = json!(kind.kind);
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": self.policy_name(name), "labels": { TENANT_LABEL: self.name } },
            "spec": spec,
        })
    }

    /// Name of a policy of this tenant in the cluster.
    pub fn policy_name(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Returns a kind of this tenant as a policy lists it in `children`.
    pub fn child(&self, kind: &str) -> Value {
        let kind = self.kind(kind);
        json!({ "kind": { "group": kind.group(), "kind": kind.kind } })
    }

    /// Returns all policies of this tenant from the cluster.
    pub async fn policies(&self) -> Result<Vec<Value>> {
        let query = format!("labelSelector={TENANT_LABEL}={}", self.name);
        Ok(self.admin.list(&self.kind("ReadinessPolicy"), "", &query).await?.0)
    }

    /// Grants exactly what `rollcall rbac` prints for the tenant's policies.
    pub async fn grant(&self) -> Result<()> {
        let policies = self.policies().await?;
        self.grant_for(&policies)
    }

    /// Grants exactly what `rollcall rbac` prints for these policies.
    pub fn grant_for(&self, policies: &[Value]) -> Result<()> {
        let file = self.policies_file(policies)?;
        let crds = self.crds_file();
        let mut options = vec!["-f".to_owned(), file.display().to_string()];
        if crds.exists() {
            options.extend(["-f".to_owned(), crds.display().to_string()]);
        }
        self.apply_rights(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Path of a file with the CRDs installed in this tenant.
    pub(crate) fn crds_file(&self) -> PathBuf {
        self.folder.join("own-crds.yaml")
    }

    /// Writes these policies to a file; returns its path.
    pub fn policies_file(&self, policies: &[Value]) -> Result<PathBuf> {
        let file = self.folder.join("policies.yaml");
        let text: Vec<String> = policies.iter().map(|policy| format!("---\n{policy}\n")).collect();
        fs::write(&file, text.concat())?;
        Ok(file)
    }

    /// Applies the output of `rollcall rbac`, for itself and with these options, for the tenant's own service account.
    /// Only the names are changed: every tenant has its own roles in the shared cluster. Returns when the server has
    /// aggregated them.
    pub fn apply_rights(&self, options: &[&str]) -> Result<()> {
        let own =
            ["rbac", "--namespace", &self.name, "--service-account", ACCOUNT, "--aggregate-to", &self.name];
        let scope = options
            .iter()
            .filter(|option| option.starts_with("--namespaces") || option.starts_with("--grant-roles"));
        let mut printed = rollcall(&own.iter().chain(scope).copied().collect::<Vec<_>>())?;
        if options.contains(&"-f") {
            printed += &rollcall(&[&own[..], options].concat())?;
        }
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(&printed).context("rbac prints no YAML")?;
        ensure!(!objects.is_empty(), "rbac printed nothing");
        for object in &mut objects {
            for name in ["/metadata/name", "/roleRef/name"] {
                if let Some(name) = object.pointer_mut(name) {
                    *name = json!(format!("{}-{}", self.name, name.as_str().unwrap_or_default()));
                }
            }
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": ACCOUNT, "namespace": self.name },
        }));
        let file = self.folder.join("rights.json");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        fs::write(&file, serde_json::to_vec_pretty(&list)?)?;
        // Without the schema of everything that is installed, which a busy server takes long to put together.
        self.plane.kubectl(&["apply", "--validate=false", "-f", &file.to_string_lossy()])?;
        self.until_aggregated(&list["items"])
    }

    /// Waits until the rules of these ClusterRoles are in the one that aggregates them.
    fn until_aggregated(&self, objects: &Value) -> Result<()> {
        let objects = objects.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(aggregated) = objects.iter().find(|object| !object["aggregationRule"].is_null()) else {
            return Ok(());
        };
        let name = aggregated["metadata"]["name"].as_str().context("a role without a name")?;
        let roles = objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let rules: Vec<&Value> = roles.filter_map(|role| role["rules"].as_array()).flatten().collect();
        // Not by a clock: each question takes some tens of milliseconds.
        for _ in 0..1_000 {
            let live: Value =
                serde_json::from_str(&self.plane.kubectl(&["get", "clusterrole", name, "-o", "json"])?)?;
            let has = live["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
            if rules.iter().all(|rule| has.contains(rule)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("{name} has not been aggregated")
    }

    /// Writes a kubeconfig of the tenant's service account, for the server itself or a gate before it.
    pub async fn kubeconfig(&self, url: &str) -> Result<PathBuf> {
        let token = self.plane.token_of(&self.name, ACCOUNT).await?;
        let file = self.folder.join("rollcall.kubeconfig");
        self.plane.kubeconfig_for(&file, url, &token, &self.name)?;
        Ok(file)
    }

    /// Grants the rights, starts Rollcall for this tenant's policies, and waits until it is ready.
    pub async fn rollcall(&self, options: &[&str]) -> Result<RollcallProcess> {
        install_crds(self).await?;
        self.grant().await?;
        let running = self.rollcall_at(self.plane.url(), options).await?;
        running.until_ready().await?;
        Ok(running)
    }

    /// Starts Rollcall with its current rights, for any server address, and does not wait.
    pub async fn rollcall_at(&self, url: &str, options: &[&str]) -> Result<RollcallProcess> {
        self.rollcall_in(url, options, &[]).await
    }

    /// Like [`TestTenant::rollcall_at`], with these environment variables.
    pub async fn rollcall_in(
        &self,
        url: &str,
        options: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<RollcallProcess> {
        let kubeconfig = self.kubeconfig(url).await?;
        let given = options.iter().find_map(|option| option.strip_prefix("--listen="));
        let listen = given.map_or(format!("127.0.0.1:{}", free_ports(1)?[0]), str::to_owned);
        // A listener on all addresses is reached on loopback.
        let address = listen.replace("0.0.0.0", "127.0.0.1");
        let mut args = vec![
            "run".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--listen={listen}"),
            format!("--policy-selector={TENANT_LABEL}={}", self.name),
            "--log-format=json".to_owned(),
        ];
        if !options.iter().any(|option| option.starts_with("--records-namespace=")) {
            args.push(format!("--records-namespace={}", self.name));
        }
        let others = options.iter().filter(|option| !option.starts_with("--listen="));
        args.extend(others.map(|&option| option.to_owned()));
        let log = self.folder.join("rollcall.log");
        let own = [("RUST_BACKTRACE", "1")];
        let variables = own.iter().chain(variables);
        let env: Vec<_> = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let process = LoggedProcess::start("rollcall", &places::rollcall()?, &args, &env, &log)?;
        if let Ok(mut logs) = self.logs.lock()
            && !logs.contains(&log)
        {
            logs.push(log);
        }
        Ok(RollcallProcess { process, address })
    }
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
    pub async fn until_metric(&self, metric: &str, labels: &[&str], enough: fn(f64) -> bool) -> Result<f64> {
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
        let printed = async {
            while !self.process.output().contains(words) {
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

/// Runs a short command of the binary; returns its output if it succeeds.
pub fn rollcall(args: &[&str]) -> Result<String> {
    let output = Command::new(places::rollcall()?).args(args).stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rollcall {}: {}\n{errors}", args.join(" "), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs the output of `rollcall crd`, once for all tenants of a control plane, and waits until the kinds are served.
async fn install_crds(tenant: &TestTenant) -> Result<()> {
    tenant.plane.crds.get_or_try_init(|| install(tenant)).await?;
    Ok(())
}

async fn install(tenant: &TestTenant) -> Result<()> {
    let file = tenant.folder.join("crds.yaml");
    fs::write(&file, rollcall(&["crd"])?)?;
    let file = file.to_string_lossy();
    tenant.plane.kubectl(&["apply", "--server-side", "-f", &file])?;
    tenant.plane.kubectl(&["wait", "--for=condition=Established", "-f", &file, "--timeout=60s"])?;
    let kind = tenant.kind("ReadinessPolicy");
    let served = async {
        while tenant.admin.list(&kind, "", "limit=1").await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TEST_TIMEOUT, served).await.context("ReadinessPolicy is not served")
}

/// Returns the address of a policy.
pub fn policy_address(tenant: &TestTenant, name: &str) -> Result<ObjectAddress> {
    tenant.address(&format!("ReadinessPolicy/{}", tenant.policy_name(name)))
}
