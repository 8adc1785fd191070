//! All that suggested policies call for, in one folder: their rights, and what others need to read their answers.

use std::path::Path;

use policy::rbac::{
    CrdNames, DEFAULT_NAMESPACE, RoleOptions, manifests_yaml, policy_manifests, policy_rights,
};

use super::definitions::defines;
use super::suggested_policy::{PolicySuggestion, compile_suggestions};
use super::suggestion_run::SuggestionRun;
use crate::generate::{argocd_health, crd_defaults_component};
use crate::text::{print_error_line, write_file};

/// Writes the policies and all that they call for into this folder; says which file is for what.
pub(super) fn write_folder(run: &SuggestionRun, (policies, folder): (&str, &Path)) -> anyhow::Result<()> {
    let SuggestionRun { suggestions, served, definitions: crds, .. } = run;
    let mut names = CrdNames::from_crds(crds);
    for api in served {
        // A definition that could be read knows whether there is a subresource.
        if !crds.iter().any(|crd| defines(crd, api)) {
            names.add_kind(&api.group, &api.kind, &api.plural, true);
        }
    }
    // Of a policy in shadow mode nobody reads anything: what is to be read once it writes is of use now.
    let mut writing = suggestions.clone();
    writing.iter_mut().for_each(PolicySuggestion::let_write);
    let compiled = compile_suggestions(&writing)?;
    let (roles, mut rights) = (RoleOptions::in_namespace(DEFAULT_NAMESPACE), String::new());
    for (found, policy) in &compiled {
        let manifests = policy_manifests(&found.name, &policy_rights(policy, &names), &roles);
        rights.push_str(&manifests_yaml(&manifests)?);
    }
    let write = |name: &str, text: &str, what: &str| {
        let file = folder.join(name);
        write_file(&file, text)?;
        print_error_line(&format!("{}: {what}", file.display()));
        anyhow::Ok(())
    };
    write("policies.yaml", policies, "the policies: kubectl apply -f")?;
    if !rights.is_empty() {
        write("rights.yaml", &rights, "what Rollcall needs for them: kubectl apply -f")?;
    }
    if let Some(component) = crd_defaults_component(crds.clone()) {
        let what = "defaults, for the repository that owns the CRDs: a component of kustomize";
        write("crd-defaults/kustomization.yaml", &component, what)?;
    }
    if let Some(health) = argocd_health(compiled)? {
        let what = "health for Argo CD: kubectl patch configmap argocd-cm -n argocd --patch-file";
        write("argocd-cm.yaml", &health, what)?;
    }
    Ok(())
}
