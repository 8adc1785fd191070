//! `rollcall rbac --check`: which of the rights the API server does not grant.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use controller::access_review::{ReviewSubject, review_access};
use controller::args::ClusterArgs;
use futures::{StreamExt, stream};
use policy::CompiledPolicy;
use policy::rbac::{
    AccessNeed, DEFAULT_NAME, PolicyRights, RoleSubject, access_needs, grant_rights, inventory_rights,
    namespace_needs, own_rights, policy_rights, role_flags,
};

use super::args::{CheckedIdentity, RbacArgs};
use super::policies::RbacPolicies;
use crate::live::connect_cluster;
use crate::text::{print_error_line, sanitize_text, write_stdout};

/// Maximum number of concurrent reviews.
const MAX_CONCURRENT_REVIEWS: usize = 8;

/// A right, and who needs it: `None` for Rollcall itself.
struct CheckedRight {
    need: AccessNeed,
    policies: Vec<Option<String>>,
}

pub(super) async fn check_rights(
    cluster: &ClusterArgs,
    args: &RbacArgs,
    whose: CheckedIdentity,
) -> anyhow::Result<ExitCode> {
    let (client, _) = connect_cluster(cluster).await?;
    let everything = !args.names_policies();
    let mut found = RbacPolicies::from_files(&args.files)?;
    found.fill_in_kinds(&client).await?;
    if everything || args.all || !args.policies.is_empty() {
        found.add_policies_of_cluster(&client, &args.policies).await?;
    }
    found.resolve_kinds(&client).await?;
    let subject = match whose {
        CheckedIdentity::ServiceAccount => {
            ReviewSubject::ServiceAccount(args.namespace.clone(), args.service_account.clone())
        }
        CheckedIdentity::Own => ReviewSubject::Own,
    };
    let rights = rights_to_check(args, &found, everything)?;
    let checked = rights.len();
    let lacking = lacking_rights(&client, &subject, rights).await?;
    for right in &lacking {
        write_stdout(&format!("{}\n", sanitize_text(&right.to_line())))?;
    }
    let invalid = found.report_invalid();
    print_error_line(&format!("{subject}: {checked} rights checked, {} lack", lacking.len()));
    if !lacking.is_empty() {
        print_error_line(&format!("grant them with `{}`", granting_command(args, &lacking)));
    }
    Ok(ExitCode::from(u8::from(invalid || !lacking.is_empty())))
}

/// Returns the rights that these policies need and the subject lacks, one line each.
pub(crate) async fn lacking_policy_rights(
    client: &kube::Client,
    subject: ReviewSubject,
    records_namespace: &str,
    policies: Vec<(String, CompiledPolicy)>,
) -> anyhow::Result<Vec<String>> {
    let mut found = RbacPolicies { valid: policies, ..RbacPolicies::default() };
    found.resolve_kinds(client).await?;
    let mut rights = RightsByNeed::default();
    for (name, compiled) in &found.valid {
        let of_policy = policy_rights(compiled, &found.crds);
        rights.add_needs(Some(name), access_needs(&of_policy, &[], records_namespace));
    }
    let lacking = lacking_rights(client, &subject, rights.0.into_values().collect()).await?;
    Ok(lacking.iter().map(CheckedRight::to_line).collect())
}

/// Every right once, with all that need it.
#[derive(Default)]
struct RightsByNeed(BTreeMap<String, CheckedRight>);

impl RightsByNeed {
    fn add_needs(&mut self, policy: Option<&str>, needs: impl IntoIterator<Item = AccessNeed>) {
        for need in needs {
            let right = self.0.entry(need.to_string());
            let right = right.or_insert_with(|| CheckedRight { need, policies: Vec::new() });
            right.policies.push(policy.map(str::to_owned));
        }
    }
}

/// The rights that the arguments ask for.
fn rights_to_check(args: &RbacArgs, found: &RbacPolicies, own: bool) -> anyhow::Result<Vec<CheckedRight>> {
    let mut rights = RightsByNeed::default();
    let (kinds, leases) = own_rights(&args.lease_name);
    if own {
        rights.add_needs(None, namespace_needs(&leases, &args.namespace));
    }
    let mut add = |policy: Option<&str>, all: &PolicyRights| {
        rights.add_needs(policy, access_needs(all, &args.namespaces, args.records_namespace()));
    };
    // In namespaces policies come from a file, and no right in the cluster is needed.
    if own && args.namespaces.is_empty() {
        let records = inventory_rights(&args.lease_name);
        add(None, &PolicyRights { kinds, records, libraries: Vec::new() });
    }
    let grant_roles = args.grant_roles()?;
    if !grant_roles.is_empty() {
        let kinds = grant_rights(&grant_roles, &args.role_options().subject);
        add(None, &PolicyRights { kinds, ..PolicyRights::default() });
    }
    for (name, compiled) in &found.valid {
        add(Some(name), &policy_rights(compiled, &found.crds));
    }
    Ok(rights.0.into_values().collect())
}

async fn lacking_rights(
    client: &kube::Client,
    subject: &ReviewSubject,
    rights: Vec<CheckedRight>,
) -> anyhow::Result<Vec<CheckedRight>> {
    let reviews = rights.into_iter().map(|right| async move {
        let allowed = review_access(client, subject, &right.need).await;
        (right, allowed)
    });
    let mut reviews = stream::iter(reviews).buffered(MAX_CONCURRENT_REVIEWS);
    let mut lacking = Vec::new();
    while let Some((right, allowed)) = reviews.next().await {
        let allowed = allowed.map_err(|why| anyhow!("{why}"));
        if !allowed.with_context(|| format!("failed to review `{}`", right.need))? {
            lacking.push(right);
        }
    }
    Ok(lacking)
}

/// What grants these rights: the roles of the policies that need them, and those of Rollcall itself.
fn granting_command(args: &RbacArgs, lacking: &[CheckedRight]) -> String {
    let account = RoleSubject { namespace: args.namespace.clone(), name: args.service_account.clone() };
    let mut flags = role_flags(&account, args.records_namespace(), &args.aggregate_to);
    if !args.namespaces.is_empty() {
        _ = write!(flags, " --namespaces {}", args.namespaces.join(","));
    }
    let grants = args.grant_roles().unwrap_or_default().join(",");
    let mut own_flags = flags.clone();
    if args.lease_name != DEFAULT_NAME {
        _ = write!(own_flags, " --lease-name {}", args.lease_name);
    }
    if !grants.is_empty() {
        _ = write!(own_flags, " --grant-roles {grants}");
    }
    let needed = |own: bool| lacking.iter().any(|r| r.policies.iter().any(|policy| policy.is_none() == own));
    let files: String =
        args.files.iter().flat_map(|file| [" -f ".to_owned(), file.display().to_string()]).collect();
    let of_policies = match (files.is_empty(), args.policies.is_empty()) {
        (false, _) => files,
        (true, false) => format!(" {}", args.policies.join(" ")),
        (true, true) => " --all".to_owned(),
    };
    let own = needed(true).then(|| format!("rollcall rbac{own_flags} | kubectl apply -f -"));
    let policies = needed(false).then(|| format!("rollcall rbac{of_policies}{flags} | kubectl apply -f -"));
    own.into_iter().chain(policies).collect::<Vec<_>>().join("; ")
}

impl CheckedRight {
    fn to_line(&self) -> String {
        let whom = self.policies.iter().map(|policy| match policy {
            Some(name) => format!("policy {name}"),
            None => "Rollcall itself".to_owned(),
        });
        format!("lacks {}: {} ({})", self.need, self.need.purpose, whom.collect::<Vec<_>>().join(", "))
    }
}
