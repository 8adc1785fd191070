//! Everything below the objects of a parent's tree that its policy does not count: `/api/v1/parents/{uid}/below`. It takes
//! many requests to the API server, and is asked for beside the tree.

use std::sync::Arc;

use aggregator::ObjectId;
use axum::Json;
use axum::extract::{Path, Query, State};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use tokio::sync::SemaphorePermit;

use super::authz::{PageViewer, ViewerRequest};
use super::below_search::SearchedTree;
use super::below_tree::{BelowFindings, BelowNode};
use super::page_service::PageService;
use super::parent_api::{ParentQuery, find_row};
use super::refusal::PageRefusal;
use super::tree::{PageNode, hide_nodes};
use super::view::{PageRow, PageView};
use super::visibility::{ReviewedPlaces, review_places, visible_to};
use crate::reviews::AccessRight;

/// Maximum number of objects in a tree below which is searched.
const MAX_SEARCHED_TREE: usize = 100_000;

/// Returns what the objects of a tree own and no policy counts there, as far as the viewer may list it.
pub(super) async fn get_below(
    State(page): State<PageService>,
    request: ViewerRequest,
    Path(uid): Path<String>,
    Query(asked): Query<ParentQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let (viewer, shown, row) = find_row(&page, &request, &uid, &asked.policy).await?;
    let VisibleBelow { found, nodes, allowed, _turn } = find_visible(&page, &viewer, &shown, row).await?;
    Ok(Json(findings_json(&shown, &found, &nodes, &allowed)))
}

/// A whole tree with what was found below it, as far as a viewer may see it.
pub(super) struct VisibleBelow<'a> {
    /// What was found; not all of it may be seen.
    pub(super) found: Arc<BelowFindings>,
    /// Objects of the tree that may be seen.
    pub(super) nodes: Vec<PageNode>,
    /// Which of the kinds that were found may be seen.
    pub(super) allowed: ReviewedPlaces<usize, Box<str>>,
    /// The turn to hold the tree.
    pub(super) _turn: SemaphorePermit<'a>,
}

/// Searches below a parent, for a viewer who pays for it.
pub(super) async fn find_visible<'a>(
    page: &'a PageService,
    viewer: &PageViewer,
    shown: &Arc<PageView>,
    row: PageRow,
) -> Result<VisibleBelow<'a>, PageRefusal> {
    let user = match viewer {
        PageViewer::Local => None,
        PageViewer::User(user) => Some(user),
    };
    let key = (row.uid.clone(), row.policy);
    let tree = async {
        // The whole tree, each object once: what is in it is not found again, whether or not it is shown.
        let nodes = page.0.views.trees.pick_tree(shown.clone(), row, (MAX_SEARCHED_TREE, 0)).await?;
        if nodes.len() > MAX_SEARCHED_TREE { Err(PageRefusal::TreeTooLarge) } else { Ok(nodes) }
    };
    let SearchedTree { found, mut nodes, _turn: turn } = tokio::select! {
        () = page.0.stop.cancelled() => return Err(PageRefusal::Unreachable),
        searched = page.0.below.find_below(key, user, tree) => searched?,
    };
    let places = nodes.iter().map(|node| node.kind_namespace.clone());
    let seen = visible_to(page, viewer, &shown.names, places).await?;
    let may_see = |node: &PageNode| seen.may_see(node.kind_namespace.0, &node.kind_namespace.1);
    hide_nodes(&mut nodes, |node| node.depth, may_see);
    let allowed = review_found(page, viewer, &found, &nodes).await?;
    Ok(VisibleBelow { found, nodes, allowed, _turn: turn })
}

/// Objects of the tree that the viewer sees, each where it stands first.
fn owners_seen(nodes: &[PageNode]) -> FxHashMap<ObjectId, &PageNode> {
    let mut owners = FxHashMap::default();
    for node in nodes {
        owners.entry(node.id).or_insert(node);
    }
    owners
}

/// Which of the kinds that were found below what the viewer sees they may list.
async fn review_found(
    page: &PageService,
    viewer: &PageViewer,
    found: &BelowFindings,
    nodes: &[PageNode],
) -> Result<ReviewedPlaces<usize, Box<str>>, PageRefusal> {
    let owners = owners_seen(nodes);
    let places = found.places(|owner| owners.contains_key(&owner));
    let right = |kind: &usize, namespace: &str| AccessRight {
        verb: "list",
        group: found.kinds[*kind].group.clone(),
        resource: found.kinds[*kind].plural.clone(),
        namespace: namespace.to_owned(),
        name: String::new(),
    };
    review_places(page, viewer, places, right).await
}

fn findings_json(
    shown: &PageView,
    found: &Arc<BelowFindings>,
    nodes: &[PageNode],
    allowed: &ReviewedPlaces<usize, Box<str>>,
) -> Value {
    let owners = owners_seen(nodes);
    let (mut below, mut hidden) = (Vec::new(), false);
    for group in &found.groups {
        let Some(owner) = owners.get(&group.owner) else { continue };
        let mut nodes = group.nodes.clone();
        let may_see = |node: &BelowNode| allowed.contains(&node.kind_index, &Box::from(&*node.namespace));
        hidden |= hide_nodes(&mut nodes, |node| node.depth, may_see);
        if !nodes.is_empty() {
            let nodes: Vec<Value> = nodes.iter().map(|node| node_json(shown, node)).collect();
            below.push(json!({
                "label": owner.label, "namespace": owner.namespace, "name": owner.name, "nodes": nodes,
            }));
        }
    }
    let may_list = |(kind, namespace): &(usize, Box<str>)| allowed.contains(kind, namespace);
    let left_out = found.left_out.iter().filter(|(place, _)| may_list(place));
    let left_out: usize = left_out.map(|(_, number)| number).sum();
    json!({ "below": below, "notRead": found.unread_for(may_list), "hidden": hidden, "leftOut": left_out })
}

/// A node; of one that is a parent itself, what its policy says, as everywhere else.
fn node_json(shown: &PageView, node: &BelowNode) -> Value {
    let mut value = json!(node);
    value["uncounted"] = json!(true);
    if let Some(row) = shown.rows_of(&node.object_uid).first() {
        value["uid"] = json!(&*row.uid);
        value["policy"] = json!(shown.names.policy_name(row.policy));
        value["verdict"] = json!(row.verdict_level().as_str());
        value["reason"] = json!(row.answer.reason.as_str());
        value["detail"] = json!(format!("{} of {} ready", row.answer.ready, row.answer.total));
        value["since"] = json!(row.since.map(|since| since.0));
        value["sinceFrom"] = Value::Null;
    }
    value
}
