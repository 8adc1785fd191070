//! The CustomResourceDefinitions that `rollcall crd` prints and `deploy/` carries.

use kube::CustomResourceExt;

/// Every CRD of `rollcall.dev`, as one YAML stream.
pub fn yaml() -> anyhow::Result<String> {
    Ok(format!("---\n{}\n", crate::policies::to_yaml(&api::ReadinessPolicy::crd())?.trim_end()))
}
