//! `rollcall wait`: waits until objects are ready, gone, or carry a condition, and shows meanwhile on one line what they
//! wait for.

mod object_wait;
mod quiet_span;
mod ready_wait;
mod status_line;
mod wait_goal;
mod wait_limit;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use controller::args::ClusterArgs;

use super::scope_args::ScopeArgs;
use object_wait::wait_for_objects;
use ready_wait::wait_until_ready;
use wait_goal::WaitGoal;
use wait_limit::WaitLimit;

/// `rollcall wait`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all are as awaited; 1 one failed permanently (--for=ready only); 2 it could not be determined; 124 not in time."
)]
pub(crate) struct WaitArgs {
    /// Objects as KIND/NAME or KIND NAME; one that does not exist yet is waited for.
    #[arg(value_name = "KIND/NAME", required = true)]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Maximum time to wait; with 0s, as in `kubectl wait`, the cluster is asked once.
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration, value_name = "DURATION")]
    timeout: Duration,
    /// State to wait for: `ready`, the object and all of its children, where an operator that leaves no mark has to be quiet for
    /// the policy's `settle` from now on, unless the service has told the object ready; or as in `kubectl wait`, for objects of any kind:
    /// `create`, `delete`, `condition=TYPE` or `condition=TYPE=STATUS` (default status: True). A condition about an older
    /// generation does not count.
    #[arg(long = "for", default_value = "ready", value_name = "WHAT")]
    goal: WaitGoal,
}

pub(crate) async fn run_wait(cluster: &ClusterArgs, args: &WaitArgs) -> anyhow::Result<ExitCode> {
    let limit = WaitLimit::begin(args.timeout);
    match &args.goal {
        WaitGoal::Ready => wait_until_ready(cluster, &args.scope, &args.what, limit).await,
        WaitGoal::Object(goal) => wait_for_objects(cluster, &args.scope, &args.what, goal, limit).await,
    }
}
