//! Implementations of the commands.

use std::process::ExitCode;

use anyhow::Context;
use controller::args::{ClusterArgs, RunArgs};
use policy::crd as crds;
use tokio::runtime::Builder;

use crate::check::{self, CheckArgs};
use crate::demo::{self, DemoArgs};
use crate::install::{self, InstallArgs};
use crate::live::{self, DoctorArgs, ExplainArgs, HistoryArgs, PlanArgs, SuggestArgs, TreeArgs, WaitArgs};
use crate::telemetry;
use crate::text::print_stdout;

type CommandResult = anyhow::Result<ExitCode>;

/// Runs a future to its end on a new runtime. Tasks still running then end with the process.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    run_on(&mut Builder::new_multi_thread(), work)
}

fn run_on<T>(runtime: &mut Builder, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = runtime.enable_all().build().context("failed to start the runtime")?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

pub(crate) fn run_demo(args: DemoArgs) -> CommandResult {
    block_on(demo::play_demo(args))
}

pub(crate) fn run_service(cluster: &ClusterArgs, args: RunArgs) -> CommandResult {
    telemetry::start_logging(&args.log, args.log_format)?;
    // What follows an event is short and in a row: on more threads its tasks mostly wake each other. Rules are evaluated, and
    // HTTP is answered, on threads of their own.
    run_on(Builder::new_multi_thread().worker_threads(1), controller::run_service(cluster, args))?;
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
