//! A live cluster, read with the user's own rights and rolled up here: no service has to run for it.

mod gather;
mod target;
mod tree;
mod wait;

pub(crate) use tree::{TreeArgs, tree};
pub(crate) use wait::{WaitArgs, wait};

use std::path::PathBuf;

use clap::Args;

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
