//! CustomResourceDefinitions as printed by `rollcall crd` and shipped in `deploy/`.

use anyhow::Context;
use api::GROUP_ADMISSION_RULES;
use api::admission::{ADMISSION_RULES, AdmissionRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};
use watcher::status::AWAITS_ROLLCALL;

/// Every CRD of `rollcall.dev`, as one YAML stream.
pub fn crds_yaml() -> anyhow::Result<String> {
    let crds = [group_crd()?, policy_crd()?, serde_json::to_value(api::ReadinessRecord::crd())?];
    let documents = crds.iter().map(|crd| Ok(format!("---\n{}\n", crate::yaml::to_yaml(crd)?.trim_end())));
    documents.collect()
}

/// Schema of a policy's spec, with the rules that its values must keep.
pub(crate) fn policy_spec_schema() -> anyhow::Result<Value> {
    let spec = policy_crd()?.pointer_mut(SPEC_SCHEMA).map(Value::take);
    spec.context("a policy has a spec")
}

/// Schema of a group's spec, with the rules that its values must keep.
pub(crate) fn group_spec_schema() -> anyhow::Result<Value> {
    let spec = group_crd()?.pointer_mut(SPEC_SCHEMA).map(Value::take);
    spec.context("a group has a spec")
}

fn policy_crd() -> anyhow::Result<Value> {
    let crd = with_status_defaults(api::ReadinessPolicy::crd(), "Pending")?;
    with_admission_rules(serde_json::to_value(crd)?, ADMISSION_RULES)
}

fn group_crd() -> anyhow::Result<Value> {
    let crd = with_status_defaults(api::ReadinessGroup::crd(), "ChildrenPending")?;
    with_admission_rules(serde_json::to_value(crd)?, GROUP_ADMISSION_RULES)
}

/// Where the schema of the spec is in the CRD.
const SPEC_SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

fn with_admission_rules(mut crd: Value, rules: &[AdmissionRule]) -> anyhow::Result<Value> {
    for rule in rules {
        let field = crd.pointer_mut(&schema_path(rule)).with_context(|| format!("no field {}", rule.at))?;
        let mut validation = json!({ "rule": rule.rule, "message": rule.message });
        if let Some(blamed) = rule.field {
            validation["fieldPath"] = json!(blamed);
        }
        match &mut field["x-kubernetes-validations"] {
            Value::Array(validations) => validations.push(validation),
            none => *none = json!([validation]),
        }
    }
    Ok(crd)
}

/// Path of the schema of a rule's field in the CRD.
fn schema_path(rule: &AdmissionRule) -> String {
    let mut path = SPEC_SCHEMA.to_owned();
    for step in rule.at.split('.') {
        let name = step.trim_end_matches("[*]");
        path.extend(["/properties/", name]);
        path.extend(step.ends_with("[*]").then_some("/items"));
    }
    path
}

/// Adds default conditions to the status, so that waiting for an object to be Ready does not succeed before it was observed.
fn with_status_defaults(
    mut crd: CustomResourceDefinition,
    reason: &str,
) -> anyhow::Result<CustomResourceDefinition> {
    let first = json!([{
        "type": "Ready", "status": "Unknown", "reason": reason, "message": AWAITS_ROLLCALL,
        "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 0,
    }]);
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let properties = schema.and_then(|schema| schema.properties.as_mut());
        let status = properties.and_then(|p| p.get_mut("status")).context("it has a status")?;
        status.default = serde_json::from_value(json!({}))?;
        for (name, default) in [("conditions", &first), ("observedGeneration", &json!(0))] {
            let field = status.properties.as_mut().and_then(|p| p.get_mut(name));
            field.context("its status is known")?.default = serde_json::from_value(default.clone())?;
        }
    }
    Ok(crd)
}
