//! The CustomResourceDefinitions that `rollcall crd` prints and `deploy/` carries.

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::json;

/// Every CRD of `rollcall.dev`, as one YAML stream.
pub fn yaml() -> anyhow::Result<String> {
    let crds = [defaulted(api::ReadinessPolicy::crd())?, api::ReadinessRecord::crd()];
    let documents =
        crds.iter().map(|crd| Ok(format!("---\n{}\n", crate::policies::to_yaml(crd)?.trim_end())));
    documents.collect()
}

/// With the defaults that are asked of others: whoever waits for a policy to be Ready must not be done before it was seen.
fn defaulted(mut crd: CustomResourceDefinition) -> anyhow::Result<CustomResourceDefinition> {
    let first = json!([{
        "type": "Ready", "status": "Unknown", "reason": "Pending", "message": "Waiting for Rollcall",
        "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 0,
    }]);
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let properties = schema.and_then(|schema| schema.properties.as_mut());
        let status = properties.and_then(|p| p.get_mut("status")).context("a policy has a status")?;
        status.default = serde_json::from_value(json!({}))?;
        for (name, default) in [("conditions", &first), ("observedGeneration", &json!(0))] {
            let field = status.properties.as_mut().and_then(|p| p.get_mut(name));
            field.context("its status is known")?.default = serde_json::from_value(default.clone())?;
        }
    }
    Ok(crd)
}
