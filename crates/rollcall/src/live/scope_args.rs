//! Selection of objects and policies.

use std::path::PathBuf;

use clap::Args;

/// Selection of objects and policies.
#[derive(Args, Debug)]
pub(crate) struct ScopeArgs {
    /// Only this namespace, and cluster-scoped objects; children that these have elsewhere are read there.
    #[arg(short, long, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub(super) namespace: Option<String>,
    /// All namespaces.
    #[arg(short = 'A', long)]
    pub(super) all_namespaces: bool,
    /// Read policies from these files instead of the cluster.
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}
