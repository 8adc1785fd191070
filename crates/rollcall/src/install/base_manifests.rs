//! The base of `deploy/kustomize`, as kustomize builds it: in a namespace, with the image that is asked for.

use policy::rbac::{DEFAULT_NAMESPACE, POLICY_ANNOTATION};
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

/// Gives what two installations would otherwise share, and take from each other, a name of its own outside of Rollcall's usual
/// namespace: the roles of the base, and bindings in the cluster and in the namespaces of others. The roles of policies are those
/// that `rollcall rbac` prints, the same for all.
pub(super) fn name_apart(manifest: &mut Value, namespace: &str) {
    let is_of = |kind: &str| manifest["kind"] == kind;
    let is_of_base = manifest["metadata"]["annotations"][POLICY_ANNOTATION].is_null();
    let is_elsewhere = manifest["metadata"]["namespace"].as_str().is_some_and(|of| of != namespace);
    let is_cluster_binding = is_of("ClusterRoleBinding");
    let is_shared =
        is_cluster_binding || (is_of("ClusterRole") && is_of_base) || (is_of("RoleBinding") && is_elsewhere);
    if namespace == DEFAULT_NAMESPACE || !is_shared {
        return;
    }
    // No namespace has a dot.
    let apart = |name: &Value| json!(format!("{}.{namespace}", name.as_str().unwrap_or_default()));
    manifest["metadata"]["name"] = apart(&manifest["metadata"]["name"]);
    if is_cluster_binding {
        manifest["roleRef"]["name"] = apart(&manifest["roleRef"]["name"]);
    }
}
