//! The CustomResourceDefinitions that `rollcall crd` prints and `deploy/` carries.

use kube::CustomResourceExt;

/// Every CRD of `rollcall.dev`, as one YAML stream.
pub fn yaml() -> anyhow::Result<String> {
    let mut out = String::new();
    for crd in [api::ReadinessPolicy::crd()] {
        out.push_str("---\n");
        out.push_str(&crate::policies::to_yaml(&crd)?);
    }
    Ok(out)
}
