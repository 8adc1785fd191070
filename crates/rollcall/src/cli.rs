//! What can be said on the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use controller::args::{ClusterArgs, RunArgs};

use crate::check::CheckArgs;
use crate::commands;
use crate::complete::{self, CompletionArgs};
use crate::demo::DemoArgs;
use crate::eval::{self, EvalArgs};
use crate::generate::{self, CrdDefaultsArgs, HealthLuaArgs};
use crate::live::{DoctorArgs, ExplainArgs, HistoryArgs, TreeArgs, WaitArgs};

const FIRST_STEPS: &str = "\
First steps:
  rollcall demo                       what it is for, without a cluster
  rollcall check -f policy.yaml       is the policy valid, and what rights does it need?
  rollcall eval -f manifests.yaml     what would it make of these objects?
  rollcall crd | kubectl apply -f -
  rollcall rbac -f policy.yaml | kubectl apply -f -
  kubectl apply -f policy.yaml        begin with `mode: shadow`: all is computed, nothing written
  rollcall run                        from here; in the cluster: kubectl apply -k deploy/kustomize
  kubectl get readinesspolicies       what became of it; when it is right, leave `mode: shadow` out
  rollcall tree                       parents and what belongs to them, with your own rights
  rollcall explain database/orders    why it is not ready: root causes first
  rollcall doctor                     what in the cluster would hurt, and what mends it

Exit codes: 0 yes or done, 1 no, 2 could not tell (usage, evaluation, connection), 124 waited too long.";

/// Are all of its children ready, and if not, which one, and why?
///
/// Rollcall watches the children of parent objects in a Kubernetes cluster, judges each, and writes the answer to the
/// parent's status.conditions, where Argo CD, Flux, Helm, `kubectl wait` and people look.
#[derive(Parser, Debug)]
#[command(
    name = "rollcall",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = FIRST_STEPS
)]
pub(crate) struct Cli {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Play a story on a cluster in memory: no Kubernetes needed, nothing is touched.
    Demo(DemoArgs),
    /// Run the service: watch, judge, write, until SIGTERM.
    Run(Box<RunArgs>),
    /// Judge manifests without a cluster: which objects are ready, and which rule says so.
    Eval(Box<EvalArgs>),
    /// Print the CustomResourceDefinitions, for `kubectl apply -f -`.
    Crd,
    /// Print the rights that policies need, and no more, for `kubectl apply -f -`.
    Rbac(RbacArgs),
    /// Check policies without a cluster: every field, every rule; what they would watch, and the rights they need. One
    /// line per finding, with file, line and column; exits 1 where one is an error.
    Check(CheckArgs),
    /// Show parents and what belongs to them in a live cluster, with verdicts and reasons. No service has to run.
    Tree(TreeArgs),
    /// Say why objects are not ready: root causes first, which field decided, since when, who holds them, what to try.
    Explain(ExplainArgs),
    /// Look for what would hurt: CRDs, ownerReferences, sizes, versions, rights, policies. Changes nothing.
    Doctor(DoctorArgs),
    /// Wait until objects and all that belongs to them are ready.
    Wait(WaitArgs),
    /// Show the transitions of an object, newest last: from the object store that `run --history` fills, else from Events.
    History(HistoryArgs),
    /// Print the script by which Argo CD reads what Rollcall writes, for the parents of policies.
    HealthLua(HealthLuaArgs),
    /// Print the defaults that CRDs of parents need, so that the very first read of an object is true.
    CrdDefaults(CrdDefaultsArgs),
    /// Print a completion script for a shell.
    Completion(CompletionArgs),
    /// What could follow on the command line, as kubectl asks its plugins.
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(complete::Words),
    /// Take Rollcall's entries off the parents of policies, as an uninstall needs it.
    Release(ReleaseArgs),
}

/// `rollcall rbac`.
#[derive(Args, Debug)]
pub(crate) struct RbacArgs {
    /// Files with ReadinessPolicies; left out, only the right to follow policies themselves. CRDs among them tell how
    /// their kinds are called in a role, and which have no status subresource, so that more than their status has to be
    /// patched.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Roles in these namespaces instead of one ClusterRole, for `run --namespaces --policies`.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// The service account that gets them.
    #[arg(long, default_value = "rollcall", value_name = "NAME")]
    pub(crate) service_account: String,
    /// The namespace of the service account.
    #[arg(short = 'n', long = "namespace", default_value = "rollcall-system", value_name = "NAMESPACE")]
    pub(crate) namespace: String,
}

/// `rollcall release`.
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// Policies from these files; left out, every policy in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only these policies.
    #[arg(value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// Only policies with such labels.
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) policy_selector: String,
    /// Only these namespaces.
    #[arg(long, value_delimiter = ',', value_name = "NAMESPACE")]
    pub(crate) namespaces: Vec<String>,
    /// Take this lease from the running service first and keep it for five minutes, so that nothing is written again.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) lease: Option<String>,
    /// Delete the ReadinessRecords in this namespace as well: how Jobs ended that are gone is then forgotten. Where policies
    /// are chosen, only those of their kinds of parents.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) records: Option<String>,
}

/// The whole command line, under the name that it was called by: kubectl finds its plugins as `kubectl-NAME`.
pub(crate) fn command() -> clap::Command {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let plugin = program.file_stem().is_some_and(|name| name == "kubectl-rollcall");
    let command = Cli::command();
    if plugin { command.bin_name("kubectl rollcall") } else { command }
}

impl Cli {
    pub(crate) fn read() -> Self {
        let matches = command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    pub(crate) fn run(self) -> ExitCode {
        let done = match self.command {
            Command::Demo(args) => commands::demo(args),
            Command::Run(args) => commands::run(&self.cluster, *args),
            Command::Eval(args) => eval::run(&self.cluster, &args),
            Command::Crd => commands::crd(),
            Command::Rbac(args) => commands::rbac(&args),
            Command::Check(args) => commands::check(&args),
            Command::Tree(args) => commands::tree(&self.cluster, &args),
            Command::Explain(args) => commands::explain(&self.cluster, &args),
            Command::Doctor(args) => commands::doctor(&self.cluster, &args),
            Command::History(args) => commands::history(&self.cluster, &args),
            Command::Wait(args) => commands::wait(&self.cluster, &args),
            Command::HealthLua(args) => generate::health_lua(&args),
            Command::CrdDefaults(args) => generate::crd_defaults(&args),
            Command::Completion(args) => complete::script(&args),
            Command::Complete(words) => complete::candidates(&words),
            Command::Release(args) => commands::release(&self.cluster, &args),
        };
        done.unwrap_or_else(|error| {
            crate::text::say(&format!("{error:#}"));
            ExitCode::from(2)
        })
    }
}
