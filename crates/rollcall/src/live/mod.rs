//! Commands on a live cluster: objects are read with the user's own rights and aggregated in this process; the service
//! need not run.

mod below_watch;
mod cluster_libraries;
mod cluster_rollup;
mod connect;
mod decided_policies;
mod default_policies;
mod doctor;
mod explain;
mod follow;
mod history;
mod kinds_to_read;
mod leaf_node;
mod listed_policies;
mod node_reason;
mod pick;
mod plan;
mod policy_cluster;
mod read_error;
mod rollout_text;
mod scope_args;
mod since;
mod suggest;
mod survey;
mod target;
mod tree;
mod tree_selection;
mod tree_watch;
mod uncounted;
mod uncounted_search;
mod wait;

pub(crate) use connect::connect_cluster;
pub(crate) use doctor::{DoctorArgs, diagnose_cluster};
pub(crate) use explain::{ExplainArgs, explain_targets};
pub(crate) use history::{HistoryArgs, print_history};
pub(crate) use plan::{PlanArgs, plan_policies};
pub(crate) use suggest::{SuggestArgs, suggest_policies, suggested_policies};
pub(crate) use tree::{TreeArgs, print_tree};
pub(crate) use uncounted::UNCOUNTED_ROLE;
pub(crate) use wait::{WaitArgs, run_wait};

use controller::args::ClusterArgs;

use policy_cluster::PolicyCluster;
use scope_args::ScopeArgs;
use target::ObjectTarget;

/// Connects to the cluster and resolves the targets.
async fn open_cluster(
    cluster: &ClusterArgs,
    scope: &ScopeArgs,
    what: &[String],
) -> anyhow::Result<(PolicyCluster, Vec<ObjectTarget>)> {
    let (client, namespace) = connect_cluster(cluster).await?;
    let mut targets = target::find_targets(&client, what).await?;
    if !scope.all_namespaces {
        // What is read may be more: children of a cluster-scoped object, and those that a policy finds elsewhere.
        let own = scope.namespace.as_ref().unwrap_or(&namespace);
        for target in targets.iter_mut().filter(|target| target.namespaced) {
            target.namespace = Some(own.clone());
        }
    }
    let cluster = PolicyCluster::new(client, scope, &namespace, &targets).await?;
    Ok((cluster, targets))
}
