//! `rollcall rbac`: prints the rights that Rollcall and its policies need, or asks the API server which of them lack.

mod args;
mod policies;
mod review;

use std::process::ExitCode;

use controller::args::ClusterArgs;
use policy::rbac::{grant_manifests, manifests_yaml, own_manifests, policy_manifests, policy_rights};

use crate::text::print_stdout;
pub(crate) use args::{RbacArgs, object_name};
pub(crate) use policies::RbacPolicies;
pub(crate) use review::lacking_policy_rights;

pub(crate) async fn run_rbac(cluster: &ClusterArgs, args: &RbacArgs) -> anyhow::Result<ExitCode> {
    if let Some(whose) = args.check {
        return review::check_rights(cluster, args, whose).await;
    }
    let options = args.role_options();
    let (mut manifests, mut code) = (Vec::new(), ExitCode::SUCCESS);
    if args.names_policies() {
        let found = RbacPolicies::read(cluster, args).await?;
        code = ExitCode::from(u8::from(found.report_invalid()));
        for (name, compiled) in &found.valid {
            manifests.extend(policy_manifests(name, &policy_rights(compiled, &found.crds), &options));
        }
    } else {
        manifests = own_manifests(&options);
    }
    let grant_roles = args.grant_roles()?;
    if !grant_roles.is_empty() {
        manifests.extend(grant_manifests(&grant_roles, &options));
    }
    print_stdout(&manifests_yaml(&manifests)?)?;
    Ok(code)
}
