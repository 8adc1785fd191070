//! Handlers of `/api/v1/parents/{uid}` and `/api/v1/parents/by-name`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use readiness::Level;
use readiness::rollup::ParentReason;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{row_json, status_word};
use super::authz::{PageViewer, ViewerRequest};
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::tree;
use super::view::{PageRow, PageView};
use super::visibility::visible_to;
use rollcall_core::{GroupTally, Transition};

/// Maximum number of objects in a tree.
const MAX_TREE_OBJECTS: usize = 25_000;

/// Query parameters of one parent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ParentQuery {
    /// Policy to evaluate; defaults to the one with the worst answer.
    pub(super) policy: String,
    /// Maximum number of objects.
    limit: Option<usize>,
}

/// Query parameters that name a parent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NamedParentQuery {
    /// Kind and group, as in `Database.example.com`.
    label: String,
    namespace: String,
    name: String,
    /// As of [`ParentQuery`].
    policy: String,
    limit: Option<usize>,
}

/// Finds the requested row, if the viewer may see it.
pub(super) async fn find_row(
    page: &PageService,
    request: &ViewerRequest,
    uid: &str,
    policy: &str,
) -> Result<(PageViewer, Arc<PageView>, PageRow), PageRefusal> {
    let viewer = page.0.authz.identify_viewer(request).await?;
    let shown = page.0.views.current_view().await?;
    // Rows are sorted by severity.
    let row = shown
        .rows_of(uid)
        .into_iter()
        .find(|row| policy.is_empty() || shown.names.policy_name(row.policy) == policy)
        .cloned();
    let row = row.ok_or(PageRefusal::NotFound)?;
    let seen = visible_to(page, &viewer, &shown.names, [(row.kind, row.namespace.clone())]).await?;
    if !seen.may_see(row.kind, &row.namespace) {
        return Err(PageRefusal::NotFound);
    }
    Ok((viewer, shown, row))
}

/// Returns one parent with its tree of objects.
pub(super) async fn get_parent(
    State(page): State<PageService>,
    request: ViewerRequest,
    Path(uid): Path<String>,
    Query(asked): Query<ParentQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let found = find_row(&page, &request, &uid, &asked.policy).await?;
    parent_json(&page, found, asked.limit).await
}

/// Returns the parent that has this name now, as [`get_parent`] does. An address with a name survives that the parent is
/// created again.
pub(super) async fn get_named_parent(
    State(page): State<PageService>,
    request: ViewerRequest,
    Query(asked): Query<NamedParentQuery>,
) -> Result<Json<Value>, PageRefusal> {
    // Before anything is looked up: who has no token is told so.
    page.0.authz.identify_viewer(&request).await?;
    let shown = page.0.views.current_view().await?;
    let uid = shown.uid_of_name(&asked.label, &asked.namespace, &asked.name).ok_or(PageRefusal::NotFound)?;
    let found = find_row(&page, &request, &uid, &asked.policy).await?;
    parent_json(&page, found, asked.limit).await
}

/// One parent with its tree of objects.
async fn parent_json(
    page: &PageService,
    (viewer, shown, row): (PageViewer, Arc<PageView>, PageRow),
    limit: Option<usize>,
) -> Result<Json<Value>, PageRefusal> {
    let views = &page.0.views;
    let words = views.parent_details(&shown, &[(row.parent, row.policy)]).await?.pop().unwrap_or_default();
    let room = limit.unwrap_or(MAX_TREE_OBJECTS).min(MAX_TREE_OBJECTS);
    let mut nodes = views.trees.pick_tree(shown.clone(), row.clone(), (room, MAX_TREE_OBJECTS)).await?;
    let seen =
        visible_to(page, &viewer, &shown.names, nodes.iter().map(|node| node.kind_namespace.clone())).await?;
    let may_see = |node: &tree::PageNode| seen.may_see(node.kind_namespace.0, &node.kind_namespace.1);
    let hidden = tree::hide_nodes(&mut nodes, |node| node.depth, may_see);
    let mut answer = row_json(&shown.names, &row, &words.message);
    answer["now"] = json!(shown.now.0);
    answer["policies"] = shown
        .rows_of(&row.uid)
        .into_iter()
        .map(|row| json!({ "name": shown.names.policy_name(row.policy), "verdict": row.verdict_level().as_str() }))
        .collect();
    answer["decided"] = json!(deciding_branch(&row, &words.groups));
    // A viewer who may not see all children is not told their tallies.
    let groups = words.groups.iter().filter(|_| !hidden);
    answer["groups"] = groups.map(group_json).collect();
    answer["hidden"] = json!(hidden);
    answer["nodes"] = json!(nodes);
    answer["transitions"] = recent_transitions(page, &shown, &row);
    Ok(Json(answer))
}

/// Most recent transitions of one answer, newest first.
fn recent_transitions(page: &PageService, shown: &PageView, row: &PageRow) -> Value {
    let transitions = page.0.views.transitions.upgrade();
    let last = transitions.map(|transitions| transitions.last_of_parent(&row.uid)).unwrap_or_default();
    let own = last.iter().rev().filter(|turn| turn.policy == shown.names.policy_name(row.policy));
    let turn = |turn: &Arc<Transition>| {
        json!({
            "at": turn.at.0, "verdict": turn.to.child_level().as_str(), "status": status_word(turn.to), "reason": turn.to.as_str(),
            "message": turn.message, "generation": turn.generation,
        })
    };
    own.map(turn).collect()
}

fn group_json(group: &GroupTally) -> Value {
    let at: BTreeMap<_, _> = group.at.iter().map(|(level, n)| (level.as_str(), n)).collect();
    json!({ "kind": group.kind, "min": group.min, "max": group.max, "optional": group.optional, "at": at })
}

/// Explains which branch of the roll-up decided.
fn deciding_branch(row: &PageRow, groups: &[GroupTally]) -> String {
    use ParentReason as R;
    let critical = || groups.iter().filter(|group| !group.optional);
    let count = |level: Level| -> u32 {
        critical().flat_map(|group| &group.at).filter(|(at, _)| *at == level).map(|(_, n)| n).sum()
    };
    let worst = |level: Level| {
        let n = count(level);
        format!("the worst critical child decides: {n} of {} {}", row.answer.total, level.as_str())
    };
    match row.answer.reason {
        R::AllChildrenReady => {
            "every expected critical child is ready, and the operator has handled this generation".to_owned()
        }
        R::ChildrenFailed => worst(Level::Failed),
        R::ChildrenStuck => worst(Level::Stuck),
        R::ChildrenUnknown => worst(Level::Unknown),
        R::ChildrenProgressing => worst(Level::Progressing),
        R::ChildrenTerminating => worst(Level::Terminating),
        R::ChildrenSuspended => worst(Level::Suspended),
        R::ChildrenMissing => {
            let short = critical().filter(|g| g.at.iter().map(|(_, n)| n).sum::<u32>() < g.min);
            let short: Vec<_> = short.map(|g| format!("{} (at least {})", g.kind, g.min)).collect();
            if short.is_empty() {
                "an expected child does not exist".to_owned()
            } else {
                format!("expected but missing: {}", short.join(", "))
            }
        }
        R::TooManyChildren => "more children exist than the policy expects".to_owned(),
        R::ChildrenPending => {
            "the operator has not reported handling this generation; children are not evaluated before it does"
                .to_owned()
        }
        R::ChildrenSettling => "all children are ready; waiting for settle and hold before True".to_owned(),
        R::OperatorSilent => "the operator has not responded within limits.pending".to_owned(),
        R::OperatorFailed => "the operator, or its own status, reports that it failed".to_owned(),
        R::KindNotVisible => "Rollcall is not permitted to list a kind of child".to_owned(),
        R::WatchStale => "a kind of child can be neither watched nor listed".to_owned(),
        R::RuleChanged => "the rule changed; its kind is being relisted".to_owned(),
        R::PolicyRefused => "the policy is refused, and there is no accepted version to judge by".to_owned(),
        R::TemplateFailed => "a template of the policy cannot be rendered for this parent".to_owned(),
        R::Terminating => "the parent itself is being deleted".to_owned(),
        R::DeletionStuck => {
            "the parent itself has been in deletion for longer than limits.terminating".to_owned()
        }
        R::DeadlineExceeded => "not ready for longer than limits.deadline".to_owned(),
    }
}
