//! A live cluster, read with the user's own rights and rolled up here: no service has to run for it.

mod connect;
mod doctor;
mod explain;
mod follow;
mod gather;
mod history;
mod pick;
mod since;
mod survey;
mod target;
mod tree;
mod wait;

pub(crate) use connect::connect;
pub(crate) use doctor::{DoctorArgs, doctor};
pub(crate) use explain::{ExplainArgs, explain};
pub(crate) use history::{HistoryArgs, history};
pub(crate) use tree::{TreeArgs, tree};
pub(crate) use wait::{WaitArgs, wait};

use std::path::PathBuf;

use clap::Args;
use controller::args::ClusterArgs;

use gather::Cluster;
use target::Target;

/// What is looked at, and by which policies.
#[derive(Args, Debug)]
pub(crate) struct ScopeArgs {
    /// Only this namespace (and what lives in none).
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Policies from these files instead of those in the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The cluster, and what of it is meant.
async fn open(
    cluster: &ClusterArgs,
    scope: &ScopeArgs,
    what: &[String],
) -> anyhow::Result<(Cluster, Vec<Target>)> {
    let (client, namespace) = connect(cluster).await?;
    let targets = target::find(&client, what).await?;
    let cluster = Cluster::new(client, scope, &namespace, &targets).await?;
    Ok((cluster, targets))
}
