//! Implementations of the commands.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use controller::args::{ClusterArgs, RunArgs};
use policy::crd as crds;
use policy::{CompiledPolicy, PolicySettings, parse_selector, read_file};

use crate::check::{self, CheckArgs};
use crate::demo::{self, DemoArgs};
use crate::install::{self, InstallArgs};
use crate::limits::STUCK_AFTER;
use crate::live::{self, DoctorArgs, ExplainArgs, HistoryArgs, PlanArgs, SuggestArgs, TreeArgs, WaitArgs};
use crate::telemetry;

type CommandResult = anyhow::Result<ExitCode>;

/// `rollcall release`.
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// Release the parents of the policies in these files. Default: every policy in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only the policies with these names.
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// Only policies whose labels match this selector.
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) policy_selector: String,
    /// Only parents in these namespaces.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// Take this Lease from the running service first and hold it for five minutes, so that nothing is written again.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) lease: Option<String>,
    /// Also delete the ReadinessRecords in this namespace: the outcomes of deleted Jobs are then lost. With a selection
    /// of policies, only the records of their parent kinds.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) records: Option<String>,
}

/// Runs a future to its end on a new runtime. Tasks still running then end with the process.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("failed to start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

pub(crate) fn print_stdout(text: &str) -> anyhow::Result<()> {
    crate::text::write_stdout(text).map(drop).context("failed to write to standard output")
}

pub(crate) fn run_demo(args: DemoArgs) -> CommandResult {
    block_on(demo::play_demo(args))
}

pub(crate) fn run_service(cluster: &ClusterArgs, args: RunArgs) -> CommandResult {
    telemetry::start_logging(&args.log, args.log_format)?;
    block_on(controller::run_service(cluster, args))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_crds() -> CommandResult {
    print_stdout(&crds::crds_yaml()?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn print_installation(cluster: &ClusterArgs, args: &InstallArgs) -> CommandResult {
    block_on(install::print_installation(cluster, args))
}

pub(crate) fn check_policies(args: &CheckArgs) -> CommandResult {
    check::run_check(args)
}

pub(crate) fn show_tree(cluster: &ClusterArgs, args: &TreeArgs) -> CommandResult {
    block_on(live::print_tree(cluster, args))
}

pub(crate) fn explain_objects(cluster: &ClusterArgs, args: &ExplainArgs) -> CommandResult {
    block_on(live::explain_targets(cluster, args))
}

pub(crate) fn plan_policies(cluster: &ClusterArgs, args: &PlanArgs) -> CommandResult {
    block_on(live::plan_policies(cluster, args))
}

pub(crate) fn suggest_policies(cluster: &ClusterArgs, args: &SuggestArgs) -> CommandResult {
    block_on(live::suggest_policies(cluster, args))
}

pub(crate) fn run_doctor(cluster: &ClusterArgs, args: &DoctorArgs) -> CommandResult {
    block_on(live::diagnose_cluster(cluster, args))
}

pub(crate) fn show_history(cluster: &ClusterArgs, args: &HistoryArgs) -> CommandResult {
    block_on(live::print_history(cluster, args))
}

pub(crate) fn wait_for_ready(cluster: &ClusterArgs, args: &WaitArgs) -> CommandResult {
    block_on(live::run_wait(cluster, args))
}

pub(crate) fn release_parents(cluster: &ClusterArgs, args: &ReleaseArgs) -> CommandResult {
    telemetry::start_logging("info", None)?;
    let (released, records) = block_on(async {
        let (client, _) = live::connect_cluster(cluster).await?;
        let mut found = Vec::new();
        for file in &args.files {
            found.extend(read_file(file)?);
        }
        if args.files.is_empty() {
            found = controller::release::list_policies(&client).await?;
        }
        let chosen = parse_selector(&args.policy_selector)?;
        found.retain(|f| chosen.matches(&f.labels));
        found.retain(|f| args.policies.is_empty() || args.policies.contains(&f.name));
        let compiled: Vec<CompiledPolicy> = found
            .iter()
            .filter_map(|f| f.compile_spec(&PolicySettings::with_stuck_after(STUCK_AFTER)).ok())
            .collect();
        if let Some(lease) = &args.lease {
            let (namespace, name) = lease
                .split_once('/')
                .context("--lease must be NAMESPACE/NAME, such as rollcall-system/rollcall")?;
            controller::lease::take_lease(&client, namespace, name).await?;
        }
        let released = controller::release::release_parents(&client, &compiled, &args.namespaces).await?;
        let everything = args.policies.is_empty() && args.policy_selector.is_empty() && args.files.is_empty();
        let of = (!everything).then_some(&*compiled);
        let records = match &args.records {
            Some(namespace) => Some(controller::release::delete_records(&client, namespace, of).await?),
            None => None,
        };
        Ok((released, records))
    })?;
    let mut failed = released.failed;
    let mut said = format!("released {} parents, {failed} failed\n", released.released);
    if let Some((deleted, kept)) = records {
        _ = writeln!(said, "deleted {deleted} records, {kept} failed");
        failed += kept;
    }
    print_stdout(&said)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}
