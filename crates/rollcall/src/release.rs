//! `rollcall release`: removes what Rollcall wrote on the parents of policies.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use controller::args::ClusterArgs;
use policy::{FoundPolicy, PolicySettings, WrittenPolicy, parse_selector, read_file};

use crate::limits::STUCK_AFTER;
use crate::live::connect_cluster;
use crate::telemetry;
use crate::text::{print_error_line, print_stdout};

/// `rollcall release`.
#[derive(Args, Debug)]
#[command(
    after_help = "Where the spec of a policy is refused, what was accepted last says what it wrote. Where no such spec is known, what its \
                  spec names is released, and the policy counts as failed.\n\nExit codes: 0 all are released; 1 a parent could not \
                  be released, or it is not known of a policy what it wrote, or ReadinessGroups may not be read; 2 a policy is not there, or the cluster or a file could \
                  not be read."
)]
pub(crate) struct ReleaseArgs {
    /// Release the parents of the policies in these files, and the ReadinessGroups in them: one that names no namespace is that of
    /// the kubeconfig's namespace, or those of `--namespaces`. Default: every policy in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only the policies with these names.
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// Only policies and ReadinessGroups whose labels match this selector.
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) policy_selector: String,
    /// Only parents in these namespaces.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// Take this Lease from the running service first and hold it for five minutes, so that nothing is written again.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) lease: Option<String>,
    /// Also delete the ReadinessRecords in this namespace: the outcomes of deleted Jobs are then lost. With a selection of policies or
    /// namespaces, only the records of their parents, whatever labels these have.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) records: Option<String>,
}

pub(crate) async fn release_conditions(
    cluster: &ClusterArgs,
    args: &ReleaseArgs,
) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect_cluster(cluster).await?;
    telemetry::start_logging("info", None)?;
    let ChosenPolicies { policies: mut chosen, unread_groups } = choose_policies(&client, args).await?;
    if args.namespaces.is_empty() {
        let groups = chosen.iter_mut().filter_map(|(_, written)| written.only.as_mut());
        groups.for_each(|group| _ = group.namespace.get_or_insert_with(|| namespace.as_str().into()));
    }
    let unknown: Vec<_> =
        chosen.iter().filter_map(|(name, written)| Some((name, written.unknown.as_ref()?))).collect();
    for (name, why) in &unknown {
        print_error_line(&format!(
            "policy {name} is refused, and no spec of it that was accepted is known: {why}; correct or delete it, and release again"
        ));
    }
    if let Some(why) = &unread_groups {
        print_error_line(&format!("ReadinessGroups could not be read, and what stands on them stays: {why}"));
    }
    if let Some(lease) = &args.lease {
        let (namespace, name) = lease
            .split_once('/')
            .context("--lease must be NAMESPACE/NAME, such as rollcall-system/rollcall")?;
        controller::lease::take_lease(&client, namespace, name).await?;
    }
    let written: Vec<WrittenPolicy> = chosen.iter().map(|(_, written)| written.clone()).collect();
    let released = controller::release::release_parents(&client, &written, &args.namespaces).await?;
    let everything = args.policies.is_empty() && args.policy_selector.is_empty() && args.files.is_empty();
    // Records of parents that are not released are still of use.
    let of = (!everything || unread_groups.is_some()).then_some(&*written);
    let mut failed = released.failed + unknown.len() + usize::from(unread_groups.is_some());
    let mut said = format!("released {} parents, {} failed\n", released.released, released.failed);
    if let Some(namespace) = &args.records {
        let (deleted, kept) =
            controller::release::delete_records(&client, namespace, of, &args.namespaces).await?;
        _ = writeln!(said, "deleted {deleted} records, {kept} failed");
        failed += kept;
    }
    if released.left > 0 {
        let more = released.left.saturating_sub(released.left_on.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        _ = writeln!(
            said,
            "left a condition of a policy's type on {} parents, because it is not in Rollcall's words, and a list that is not a map \
             does not say who wrote it: {}{more}",
            released.left,
            released.left_on.join(", ")
        );
    }
    if !unknown.is_empty() {
        _ = writeln!(said, "{} policies are refused: what they wrote is not known", unknown.len());
    }
    print_stdout(&said)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// The policies that the arguments choose.
struct ChosenPolicies {
    policies: Vec<(String, WrittenPolicy)>,
    /// Why ReadinessGroups could not be read that may be among them.
    unread_groups: Option<String>,
}

/// The policies that the arguments choose, of the files or else of the cluster.
async fn choose_policies(client: &kube::Client, args: &ReleaseArgs) -> anyhow::Result<ChosenPolicies> {
    let selector = parse_selector(&args.policy_selector)?;
    let mut found: Vec<FoundPolicy> = Vec::new();
    let mut unread_groups = None;
    for file in &args.files {
        found.extend(read_file(file)?);
    }
    found.retain(|policy| selector.matches(&policy.labels));
    if args.files.is_empty() {
        let read = controller::release::list_selected_policies(client, &selector).await?;
        found = read.policies;
        unread_groups = read.unread_groups.filter(|_| args.policies.is_empty());
    }
    for name in &args.policies {
        let place = if args.files.is_empty() { "cluster" } else { "files" };
        let labels = match args.policy_selector.as_str() {
            "" => String::new(),
            selector => format!(" with the labels {selector}"),
        };
        ensure!(
            found.iter().any(|policy| policy.name == *name),
            "there is no policy {name} in the {place}{labels}"
        );
    }
    found.retain(|policy| args.policies.is_empty() || args.policies.contains(&policy.name));
    let settings = PolicySettings::with_stuck_after(STUCK_AFTER);
    let written = found.into_iter().map(|policy| (WrittenPolicy::of(&policy, &settings), policy.name));
    Ok(ChosenPolicies { policies: written.map(|(written, name)| (name, written)).collect(), unread_groups })
}
