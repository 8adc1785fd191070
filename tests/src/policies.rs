//! Policies of a tenant.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::TEST_TIMEOUT;
use crate::kind::ObjectAddress;
use crate::places;
use crate::rollcall_command::rollcall_of;
use crate::tenant::{TENANT_LABEL, TestTenant};

/// A tenant's policies, which no other tenant's Rollcall follows.
pub trait TenantPolicies {
    /// Creates a policy for `parent`, a kind of this tenant; `spec` has the other fields. The object's name contains the
    /// tenant's, because policies are cluster-scoped.
    fn policy(&self, name: &str, parent: &str, spec: Value) -> impl Future<Output = Result<Value>> + Send;

    /// Returns the policy's manifest without creating it.
    fn policy_manifest(&self, name: &str, parent: &str, spec: Value) -> Value;

    /// Name of a policy of this tenant in the cluster.
    fn policy_name(&self, name: &str) -> String;

    /// Returns a kind of this tenant as a policy lists it in `children`.
    fn child(&self, kind: &str) -> Value;

    /// Returns all policies of this tenant from the cluster.
    fn policies(&self) -> impl Future<Output = Result<Vec<Value>>> + Send;

    /// Writes these policies to a file; returns its path.
    fn policies_file(&self, policies: &[Value]) -> Result<PathBuf>;
}

impl TenantPolicies for TestTenant {
    async fn policy(&self, name: &str, parent: &str, spec: Value) -> Result<Value> {
        install_crds(self).await?;
        self.admin.create(&self.policy_manifest(name, parent, spec)).await
    }

    fn policy_manifest(&self, name: &str, parent: &str, mut spec: Value) -> Value {
        let kind = self.kind(parent);
        spec["parent"]["group"] = json!(kind.group());
        spec["parent"]["kind"] = json!(kind.kind);
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
            "metadata": { "name": self.policy_name(name), "labels": { TENANT_LABEL: self.name } },
            "spec": spec,
        })
    }

    fn policy_name(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    fn child(&self, kind: &str) -> Value {
        let kind = self.kind(kind);
        json!({ "kind": { "group": kind.group(), "kind": kind.kind } })
    }

    async fn policies(&self) -> Result<Vec<Value>> {
        let query = format!("labelSelector={TENANT_LABEL}={}", self.name);
        Ok(self.admin.list(&self.kind("ReadinessPolicy"), "", &query).await?.0)
    }

    fn policies_file(&self, policies: &[Value]) -> Result<PathBuf> {
        let file = self.folder.join("policies.yaml");
        let text: Vec<String> = policies.iter().map(|policy| format!("---\n{policy}\n")).collect();
        fs::write(&file, text.concat())?;
        Ok(file)
    }
}

/// Installs the output of `rollcall crd`, once for all tenants of a control plane, and waits until the kinds are served.
pub(crate) async fn install_crds(tenant: &TestTenant) -> Result<()> {
    install_crds_of(tenant, &places::rollcall()?).await
}

/// The same, of this binary; where they are installed already, nothing is done.
pub async fn install_crds_of(tenant: &TestTenant, program: &Path) -> Result<()> {
    tenant.plane.crds.get_or_try_init(|| apply_crds(tenant, program)).await?;
    Ok(())
}

/// Applies the output of `rollcall crd` of this binary, and waits until the kinds are served.
pub async fn apply_crds(tenant: &TestTenant, program: &Path) -> Result<()> {
    let file = tenant.folder.join("crds.yaml");
    fs::write(&file, rollcall_of(program, &["crd"])?)?;
    let file = file.to_string_lossy();
    // Of two versions the one that is applied last has its way.
    tenant.plane.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file])?;
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
