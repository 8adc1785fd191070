//! ReadinessGroups of a tenant.

use anyhow::Result;
use serde_json::{Value, json};

use crate::policies::install_crds;
use crate::rights::TenantRights as _;
use crate::rollcall::{RollcallProcess, TenantRollcall as _};
use crate::tenant::{TENANT_LABEL, TestTenant};

/// A tenant's groups, which no other tenant's Rollcall looks after.
pub trait TenantGroups {
    /// Returns a group's manifest; `spec` is whole.
    fn group_manifest(&self, name: &str, spec: Value) -> Value;

    /// Creates a group.
    fn readiness_group(&self, name: &str, spec: Value) -> impl Future<Output = Result<Value>> + Send;

    /// Starts Rollcall with the rights that `rollcall rbac` prints for these groups.
    fn rollcall_for_groups(&self, groups: &[Value]) -> impl Future<Output = Result<RollcallProcess>> + Send;
}

impl TenantGroups for TestTenant {
    fn group_manifest(&self, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
            "metadata": { "name": name, "labels": { TENANT_LABEL: self.name } }, "spec": spec,
        })
    }

    async fn readiness_group(&self, name: &str, spec: Value) -> Result<Value> {
        install_crds(self).await?;
        self.create(self.group_manifest(name, spec)).await
    }

    async fn rollcall_for_groups(&self, groups: &[Value]) -> Result<RollcallProcess> {
        install_crds(self).await?;
        self.grant_for(groups)?;
        let running = self.rollcall_at(self.plane.url(), &[]).await?;
        running.until_ready().await?;
        Ok(running)
    }
}
