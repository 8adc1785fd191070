//! The base of `deploy/kustomize`, as kustomize builds it: in a namespace, with the image that is asked for.

use serde_json::{Value, json};

/// Manifests of the base that come before the rights of policies.
const FIRST: [&str; 2] = [
    include_str!("../../../../deploy/kustomize/namespace.yaml"),
    include_str!("../../../../deploy/kustomize/rbac.yaml"),
];
/// Manifests of what runs.
const WORKLOAD: [&str; 4] = [
    include_str!("../../../../deploy/kustomize/deployment.yaml"),
    include_str!("../../../../deploy/kustomize/disruption.yaml"),
    include_str!("../../../../deploy/kustomize/service.yaml"),
    include_str!("../../../../deploy/kustomize/network.yaml"),
];
/// Kinds of the base that are in no namespace.
const CLUSTER_KINDS: [&str; 4] =
    ["Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"];

/// What differs between installations.
pub(super) struct BaseOptions<'a> {
    pub(super) namespace: &'a str,
    /// The namespace is Rollcall's own: it is made, and goes with it.
    pub(super) creates_namespace: bool,
    pub(super) image: &'a str,
}

/// The namespace where it is Rollcall's own, the CRDs, and Rollcall's own rights.
pub(super) fn definitions(options: &BaseOptions<'_>) -> anyhow::Result<Vec<Value>> {
    let mut texts = FIRST.to_vec();
    let crds = policy::crd::crds_yaml()?;
    texts.insert(1, &crds);
    adapt(&texts, options)
}

/// The Deployment, and what belongs to it.
pub(super) fn workload(options: &BaseOptions<'_>) -> anyhow::Result<Vec<Value>> {
    adapt(&WORKLOAD, options)
}

fn adapt(texts: &[&str], options: &BaseOptions<'_>) -> anyhow::Result<Vec<Value>> {
    let mut manifests = Vec::new();
    for text in texts {
        manifests
            .extend(serde_saphyr::from_multiple::<Value>(text)?.into_iter().filter(|one| !one.is_null()));
    }
    manifests.retain(|manifest| options.creates_namespace || manifest["kind"] != "Namespace");
    for manifest in &mut manifests {
        let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
        manifest["metadata"]["labels"]["app.kubernetes.io/name"] = json!("rollcall");
        if kind == "Namespace" {
            manifest["metadata"]["name"] = json!(options.namespace);
        } else if !CLUSTER_KINDS.contains(&kind.as_str()) {
            manifest["metadata"]["namespace"] = json!(options.namespace);
        }
        for subject in manifest.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
            subject["namespace"] = json!(options.namespace);
        }
        if kind == "Deployment" {
            let template = &mut manifest["spec"]["template"];
            template["metadata"]["labels"]["app.kubernetes.io/name"] = json!("rollcall");
            template["spec"]["containers"][0]["image"] = json!(options.image);
        }
    }
    Ok(manifests)
}
