//! Operators in real Kopf, run as their users do: the shipped example, and small faulty ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::policies::TenantPolicies as _;
use crate::process::LoggedProcess;
use crate::tenant::TestTenant;
use crate::{TEST_TIMEOUT, places};

/// A running `kopf run`; killed when dropped.
pub struct KopfOperator {
    process: LoggedProcess,
}

/// Version of Kopf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KopfVersion {
    /// The current version.
    Current,
    /// The last version that writes `metadata.finalizers` as a whole list.
    Before144,
}

impl KopfVersion {
    fn program(self) -> Result<PathBuf> {
        places::program(match self {
            KopfVersion::Current => "kopf",
            KopfVersion::Before144 => "kopf-before-1.44",
        })
    }
}

/// `deploy/examples/kopf`, in a tenant's own API group.
pub struct KopfExample {
    /// Path of the operator's script.
    pub script: PathBuf,
    /// Kubeconfig of the operator.
    pub kubeconfig: PathBuf,
    /// Argo CD's configuration.
    pub argocd: PathBuf,
}

/// A tenant's operators in Kopf.
pub trait TenantKopf {
    /// Installs the shipped module for this tenant's scripts, by the very `pip` of this Kopf. Returns the folder that it is in.
    fn pip_install_module(&self, kopf: KopfVersion) -> Result<PathBuf>;

    /// Starts an operator. `env` is added to the environment of its identity.
    fn operator(
        &self,
        name: &str,
        kopf: KopfVersion,
        script: &Path,
        kubeconfig: &Path,
        env: &[(&str, &str)],
    ) -> Result<KopfOperator>;

    /// Starts a script of the test as the administrator. `GROUP` in it is replaced by the tenant's API group.
    fn script(&self, name: &str, kopf: KopfVersion, text: &str, env: &[(&str, &str)])
    -> Result<KopfOperator>;

    /// Installs the example: all objects of its kustomization except its Deployment, which runs here as a process. Only
    /// names of cluster-scoped objects are changed, to names of the tenant's own.
    fn kopf_example(&self) -> impl Future<Output = Result<KopfExample>> + Send;
}

impl TenantKopf for TestTenant {
    fn pip_install_module(&self, kopf: KopfVersion) -> Result<PathBuf> {
        let python = kopf.program()?.canonicalize()?.with_file_name("python");
        // Building writes beside the source.
        let (source, target) = (self.folder.join("rollcall-kopf"), self.folder.join("installed"));
        fs::create_dir_all(&source)?;
        for file in ["pyproject.toml", "rollcall_kopf.py"] {
            fs::copy(places::repository().join("deploy/examples/kopf").join(file), source.join(file))?;
        }
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        pip.args(["--no-build-isolation", "--no-deps", "--target"]).arg(&target).arg(&source);
        let output = pip.env("HOME", &self.folder).output().context("pip")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(target)
    }

    fn operator(
        &self,
        name: &str,
        kopf: KopfVersion,
        script: &Path,
        kubeconfig: &Path,
        env: &[(&str, &str)],
    ) -> Result<KopfOperator> {
        let program = kopf.program()?;
        let args =
            ["run", "--namespace", &self.name, "--standalone", &script.to_string_lossy()].map(str::to_owned);
        let mut all = vec![
            ("KUBECONFIG".to_owned(), kubeconfig.display().to_string()),
            // The operator must not use the account that runs the tests.
            ("HOME".to_owned(), self.folder.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
        ];
        all.extend(env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let log = self.folder.join(format!("{name}.log"));
        let process = LoggedProcess::start(name, &program, &args, &all, &log)?;
        self.logs.lock().map_err(|_| anyhow!("poisoned"))?.push(log);
        Ok(KopfOperator { process })
    }

    fn script(
        &self,
        name: &str,
        kopf: KopfVersion,
        text: &str,
        env: &[(&str, &str)],
    ) -> Result<KopfOperator> {
        let file = self.folder.join(format!("{name}.py"));
        fs::write(&file, text.replace("GROUP", &self.group))?;
        self.operator(name, kopf, &file, &self.plane.kubeconfig(), env)
    }

    async fn kopf_example(&self) -> Result<KopfExample> {
        let source = places::repository().join("deploy/examples/kopf");
        let built = self.plane.kubectl(&["kustomize", &source.to_string_lossy()])?;
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&in_group_of(self, &built)).context("no YAML")?;
        for object in objects {
            match object["kind"].as_str().unwrap_or_default() {
                "CustomResourceDefinition" => self.define(&object).await?,
                "ReadinessPolicy" => {
                    let (name, mut spec) = (object["metadata"]["name"].clone(), object["spec"].clone());
                    let parent = spec["parent"]["kind"].take();
                    self.policy(name.as_str().unwrap_or("?"), parent.as_str().unwrap_or("?"), spec).await?;
                }
                "Namespace" => {}
                "Deployment" => would_be_taken(self, &object)?,
                _ => _ = self.admin.create(&object).await?,
            }
        }
        let script = self.folder.join("shop_operator.py");
        fs::write(&script, in_group_of(self, &fs::read_to_string(source.join("shop_operator.py"))?))?;
        fs::copy(source.join("rollcall_kopf.py"), self.folder.join("rollcall_kopf.py"))?;
        let kubeconfig = self.folder.join("operator.kubeconfig");
        let token = self.plane.token_of(&self.name, &format!("{}-operator", self.name)).await?;
        self.plane.kubeconfig_for(&kubeconfig, self.plane.url(), &token, &self.name)?;
        let argocd = self.folder.join("argocd-cm.yaml");
        fs::write(&argocd, in_group_of(self, &fs::read_to_string(source.join("argocd-cm.yaml"))?))?;
        Ok(KopfExample { script, kubeconfig, argocd })
    }
}

fn would_be_taken(tenant: &TestTenant, object: &Value) -> Result<()> {
    let file = tenant.folder.join("operator.json");
    fs::write(&file, object.to_string())?;
    let file = file.to_string_lossy();
    tenant.plane.kubectl(&["apply", "--dry-run=server", "--validate=strict", "-f", &file])?;
    Ok(())
}

/// Names of a text from the example, as they are in this tenant.
fn in_group_of(tenant: &TestTenant, text: &str) -> String {
    let text = text.replace("shop.example.com", &tenant.group);
    text.replace("shop-operator", &format!("{}-operator", tenant.name)).replace("shop-system", &tenant.name)
}

impl KopfOperator {
    /// Waits until the operator has logged `words` this many times.
    pub async fn until_logged(&self, words: &str, times: usize) -> Result<()> {
        let logged = async {
            while self.logged(words) < times {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let end = timeout(TEST_TIMEOUT, logged).await;
        end.map_err(|_| anyhow!("{words:?} was not logged {times} times\n{}", self.process.tail(40)))
    }

    /// Number of times that the operator and its predecessors in this tenant have logged `words`.
    pub fn logged(&self, words: &str) -> usize {
        self.process.output().matches(words).count()
    }

    /// Fails if Kopf ever logged an inconsistency between written and read state, or a traceback.
    pub fn never_stumbled(&self) -> Result<()> {
        let log = self.process.output();
        for word in ["inconsistenc", "Traceback"] {
            let line = log.lines().find(|line| line.contains(word));
            ensure!(line.is_none(), "the operator logged {line:?}\n{}", self.process.tail(60));
        }
        Ok(())
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn stop(&mut self) -> Result<()> {
        self.process.terminate()?;
        self.process.end(Duration::from_secs(30)).await?;
        Ok(())
    }

    /// Starts the operator again.
    pub fn again(&mut self) -> Result<()> {
        self.process.again()
    }
}
