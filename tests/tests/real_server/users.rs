//! Users of the cluster with few rights, as whom kubectl speaks.

use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const RBAC: &str = "rbac.authorization.k8s.io";
/// What the server says to somebody who may do something, but not give rights away that they have not.
pub(crate) const WITHHELD: &str = "attempting to grant RBAC permissions not currently held";

/// A user that nobody authenticates: the administrator speaks as them.
pub(crate) struct TestUser<'t> {
    tenant: &'t TestTenant,
    /// Of this tenant alone, like the names of their roles.
    name: String,
}

impl<'t> TestUser<'t> {
    /// A user who has these rules of a ClusterRole, and no others.
    pub(crate) async fn create(tenant: &'t TestTenant, word: &str, rules: &[Value]) -> Result<TestUser<'t>> {
        let user = TestUser { tenant, name: format!("{}-{word}", tenant.name) };
        user.grant("own", rules).await?;
        Ok(user)
    }

    /// Grants the user more.
    pub(crate) async fn grant(&self, word: &str, rules: &[Value]) -> Result<()> {
        let name = format!("{}-{word}", self.name);
        let role = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": { "name": name }, "rules": rules });
        let binding = json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": RBAC, "kind": "User", "name": self.name }] });
        for object in [role, binding] {
            self.tenant.admin.create(&object).await?;
        }
        Ok(())
    }

    /// Runs kubectl as this user; returns what it prints, and what it complains of where it fails.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Result<std::result::Result<String, String>> {
        let output = self.tenant.plane.kubectl_command()?.args(args).args(["--as", &self.name]).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(match output.status.code() {
            Some(0) => Ok(text(&output.stdout)),
            _ => Err(text(&output.stderr)),
        })
    }

    /// Does the same until it succeeds: the server takes up what is granted a moment later.
    pub(crate) async fn until_done(&self, args: &[&str]) -> Result<String> {
        self.until_answered(args, Result::is_ok).await?.map_err(anyhow::Error::msg)
    }

    /// Does the same until the server refuses it because the user has not all that would be granted.
    pub(crate) async fn until_withheld(&self, args: &[&str]) -> Result<()> {
        let is_final = |answer: &std::result::Result<String, String>| match answer {
            Ok(_) => true,
            Err(complaint) => complaint.contains(WITHHELD),
        };
        match self.until_answered(args, is_final).await? {
            Ok(printed) => bail!("{} may do it: {printed}", self.name),
            Err(_) => Ok(()),
        }
    }

    async fn until_answered(
        &self,
        args: &[&str],
        is_final: impl Fn(&std::result::Result<String, String>) -> bool,
    ) -> Result<std::result::Result<String, String>> {
        let mut last = None;
        let answered = async {
            loop {
                let answer = self.kubectl(args)?;
                if is_final(&answer) {
                    return anyhow::Ok(answer);
                }
                last = Some(answer);
                sleep(Duration::from_millis(50)).await;
            }
        };
        let answered = timeout(TEST_TIMEOUT, answered).await;
        answered.with_context(|| format!("kubectl {args:?} as {}: {last:?}", self.name))?
    }
}
