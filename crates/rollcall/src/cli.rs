//! Command-line arguments.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use controller::args::{ClusterArgs, RunArgs};

use crate::check::CheckArgs;
use crate::commands;
use crate::complete::{self, CompletionArgs};
use crate::demo::DemoArgs;
use crate::eval::{self, EvalArgs};
use crate::generate::{self, CrdDefaultsArgs, HealthLuaArgs, ManPagesArgs, ReadersArgs};
use crate::install::InstallArgs;
use crate::live::{DoctorArgs, ExplainArgs, HistoryArgs, PlanArgs, SuggestArgs, TreeArgs, WaitArgs};
use crate::rbac::{self, RbacArgs};
use crate::release::{self, ReleaseArgs};
use crate::version::{self, VersionArgs};

const FIRST_STEPS: &str = "\
First steps:
  rollcall demo                       a demonstration, without a cluster
  rollcall suggest > policy.yaml      policies for what is in the cluster, with the evidence for each
  rollcall check -f policy.yaml       is the policy valid, and what rights does it need?
  rollcall eval -f manifests.yaml     which of these objects are ready?
  rollcall install -f policy.yaml | kubectl apply --server-side -f -
  kubectl apply -f policy.yaml        begin with `mode: shadow`: evaluates everything, writes nothing
  rollcall plan -f policy.yaml        what would the parents in the cluster say with it?
  rollcall run                        the service from here, instead of in the cluster
  kubectl get readinesspolicies       its status; when it is right, remove `mode: shadow`
  rollcall tree                       parents and their children, read with your own rights
  rollcall explain database/orders    why it is not ready: root causes first
  rollcall doctor                     problems in the cluster, and how to fix them

Exit codes: 0 yes or done, 1 no, 2 not determined (usage, evaluation, connection), 124 timed out.";

/// Are all of its children ready, and if not, which one, and why?
///
/// Rollcall watches the children of parent objects in a Kubernetes cluster, evaluates the readiness of each, and writes
/// the result to the parent's status.conditions, where Argo CD, Flux, Helm, `kubectl wait` and people read it.
#[derive(Parser, Debug)]
#[command(
    name = "rollcall",
    version = controller::build_info::VERSION,
    propagate_version = true,
    max_term_width = 100,
    after_help = FIRST_STEPS
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand, Debug)]
enum CliCommand {
    /// Play a demo story on an in-memory cluster: no Kubernetes needed, nothing is changed.
    Demo(DemoArgs),
    /// Run the service: watch children, evaluate readiness, write conditions, until SIGTERM.
    Run(Box<RunArgs>),
    /// Evaluate manifests without a cluster: which objects are ready, and which rule decided.
    Eval(Box<EvalArgs>),
    /// Print everything that a cluster needs to run Rollcall, for `kubectl apply -f -`: definitions, rights of the policies, the
    /// Deployment, dashboards and alerts; or the same as values of the Helm chart.
    Install(InstallArgs),
    /// Print the CustomResourceDefinitions, for `kubectl apply -f -`.
    Crd,
    /// Print the RBAC roles that policies need, and no more, for `kubectl apply -f -`; or check that they are granted.
    Rbac(RbacArgs),
    /// Check policies without a cluster: every field and every rule, the kinds they would watch, and the rights they
    /// need. Prints one line per finding with file, line and column; exits 1 if one is an error.
    Check(CheckArgs),
    /// Suggest policies for what is in a live cluster: which custom resources own what, and what their operators tell. Prints
    /// policies in shadow mode with the evidence in comments; changes nothing.
    Suggest(SuggestArgs),
    /// Show what parents in a live cluster would say if policies were applied or deleted: who turns, to what and why, which
    /// conditions come and go, which rights lack. Changes nothing.
    Plan(PlanArgs),
    /// Show parents and their children in a live cluster, with verdicts and reasons. The service need not run.
    Tree(TreeArgs),
    /// Explain why objects are not ready: root causes first, the field that decided, since when, who holds them, what
    /// to try.
    Explain(ExplainArgs),
    /// Look for problems in a cluster: CRDs, ownerReferences, sizes, versions, rights, policies. Changes nothing.
    Doctor(DoctorArgs),
    /// Wait until objects and all of their children are ready, or, as `kubectl wait` does, until objects are created,
    /// deleted, or have a condition.
    Wait(WaitArgs),
    /// Show the transitions of an object, newest last: from the object store that `run --history` fills, or from
    /// Events. Or what the rollouts of its generations waited for.
    History(HistoryArgs),
    /// Print the Argo CD health script that reads Rollcall's conditions on the parents of policies.
    HealthLua(HealthLuaArgs),
    /// Print what other tools need to read Rollcall's answer: Flux, kro, kubectl, Helm, Pulumi, kube-state-metrics, Argo Rollouts.
    Readers(ReadersArgs),
    /// Print the defaults that the CRDs of parents need so that a new object does not look ready at its first read.
    CrdDefaults(CrdDefaultsArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// Write the manual pages, one of each command, into a folder.
    ManPages(ManPagesArgs),
    /// Print the version, and the commit and the date of the commit that was built.
    Version(VersionArgs),
    /// Print completion candidates, as kubectl asks its plugins for them.
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(complete::CompletionWords),
    /// Remove Rollcall's conditions from the parents of policies, before an uninstall.
    Release(ReleaseArgs),
}

/// Builds the command line under the name the program was called by: kubectl runs its plugins as `kubectl-NAME`.
pub(crate) fn build_command() -> clap::Command {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let plugin = program.file_stem().is_some_and(|name| name == "kubectl-rollcall");
    let command = CommandLine::command();
    if plugin { command.bin_name("kubectl rollcall") } else { command }
}

impl CommandLine {
    pub(crate) fn parse_args() -> Self {
        let matches = build_command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    pub(crate) fn run_command(self) -> ExitCode {
        let done = match self.command {
            CliCommand::Demo(args) => commands::run_demo(args),
            CliCommand::Run(args) => commands::run_service(&self.cluster, *args),
            CliCommand::Eval(args) => eval::run_eval(&self.cluster, &args),
            CliCommand::Install(args) => commands::print_installation(&self.cluster, &args),
            CliCommand::Crd => commands::print_crds(),
            CliCommand::Rbac(args) => commands::block_on(rbac::run_rbac(&self.cluster, &args)),
            CliCommand::Check(args) => commands::check_policies(&args),
            CliCommand::Suggest(args) => commands::suggest_policies(&self.cluster, &args),
            CliCommand::Plan(args) => commands::plan_policies(&self.cluster, &args),
            CliCommand::Tree(args) => commands::show_tree(&self.cluster, &args),
            CliCommand::Explain(args) => commands::explain_objects(&self.cluster, &args),
            CliCommand::Doctor(args) => commands::run_doctor(&self.cluster, &args),
            CliCommand::History(args) => commands::show_history(&self.cluster, &args),
            CliCommand::Wait(args) => commands::wait_for_ready(&self.cluster, &args),
            CliCommand::HealthLua(args) => generate::health_lua(&args),
            CliCommand::Readers(args) => generate::readers(&args),
            CliCommand::CrdDefaults(args) => generate::crd_defaults(&args),
            CliCommand::Completion(args) => complete::print_completion_script(&args, build_command()),
            CliCommand::ManPages(args) => generate::man_pages(&args, build_command()),
            CliCommand::Version(args) => version::print_version(args),
            CliCommand::Complete(words) => complete::print_candidates(&words, build_command()),
            CliCommand::Release(args) => {
                commands::block_on(release::release_conditions(&self.cluster, &args))
            }
        };
        done.unwrap_or_else(|error| {
            crate::text::print_error_line(&format!("{error:#}"));
            ExitCode::from(2)
        })
    }
}
