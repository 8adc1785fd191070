//! Rights of a tenant's Rollcall: exactly those that it prints itself.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::policies::TenantPolicies;
use crate::rollcall_command::rollcall;
use crate::tenant::TestTenant;

/// Name of every tenant's service account.
pub(crate) const ACCOUNT: &str = "rollcall";

/// The rights of a tenant's Rollcall.
pub trait TenantRights {
    /// Grants exactly what `rollcall rbac` prints for the tenant's policies.
    fn grant(&self) -> impl Future<Output = Result<()>> + Send;

    /// Grants exactly what `rollcall rbac` prints for the tenant's policies where the service keeps its records in this namespace.
    fn grant_with_records_in(&self, namespace: &str) -> impl Future<Output = Result<()>> + Send;

    /// Grants exactly what `rollcall rbac` prints for these policies.
    fn grant_for(&self, policies: &[Value]) -> Result<()>;

    /// Applies the output of `rollcall rbac`, for itself and with these options, for the tenant's own service account.
    /// Only the names are changed: every tenant has its own roles in the shared cluster. Returns when the server has
    /// aggregated them.
    fn apply_rights(&self, options: &[&str]) -> Result<()>;
}

impl TenantRights for TestTenant {
    async fn grant(&self) -> Result<()> {
        let policies = self.policies().await?;
        self.grant_for(&policies)
    }

    async fn grant_with_records_in(&self, namespace: &str) -> Result<()> {
        let options = file_options(self, &self.policies().await?)?;
        let records = format!("--records-namespace={namespace}");
        self.apply_rights(&options.iter().chain([&records]).map(String::as_str).collect::<Vec<_>>())
    }

    fn grant_for(&self, policies: &[Value]) -> Result<()> {
        let options = file_options(self, policies)?;
        self.apply_rights(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn apply_rights(&self, options: &[&str]) -> Result<()> {
        let own =
            ["rbac", "--namespace", &self.name, "--service-account", ACCOUNT, "--aggregate-to", &self.name];
        let of_both = ["--namespaces", "--grant-roles", "--records-namespace"];
        let scope = options.iter().filter(|option| of_both.iter().any(|flag| option.starts_with(flag)));
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
        until_aggregated(self, &list["items"])
    }
}

/// Options of `rollcall rbac` for these policies, with the CRDs of the tenant's kinds.
fn file_options(tenant: &TestTenant, policies: &[Value]) -> Result<Vec<String>> {
    let mut options = vec!["-f".to_owned(), tenant.policies_file(policies)?.display().to_string()];
    let crds = tenant.crds_file();
    if crds.exists() {
        options.extend(["-f".to_owned(), crds.display().to_string()]);
    }
    Ok(options)
}

/// Waits until the rules of these ClusterRoles are in the one that aggregates them.
fn until_aggregated(tenant: &TestTenant, objects: &Value) -> Result<()> {
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
            serde_json::from_str(&tenant.plane.kubectl(&["get", "clusterrole", name, "-o", "json"])?)?;
        let has = live["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        if rules.iter().all(|rule| has.contains(rule)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("{name} has not been aggregated")
}
