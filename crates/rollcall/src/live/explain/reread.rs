//! An object of a tree, read again in full: only the verdict of most objects is kept.

use inspect::client::InspectClient;
use rollcall_core::TreeNode;
use watcher::{ParentObject, get_live};

use crate::live::survey::ClusterSurvey;

/// Reads the object of a node. Why it cannot be read is noted.
pub(super) async fn reread_object(
    client: &kube::Client,
    survey: &ClusterSurvey,
    ask: &mut InspectClient,
    node: &TreeNode,
) -> Option<ParentObject> {
    let api = survey.find_kind(node)?;
    let namespace = Some(&*node.namespace).filter(|_| api.namespaced);
    match get_live::<ParentObject>(client, api, namespace, &node.name).await {
        Ok(found) => found.map(|found| found.with_type_meta(&api.api_version(), &api.kind)),
        Err(error) => {
            ask.refused.insert(format!("{} {}: {}", node.kind, node.name, error.detail));
            None
        }
    }
}
