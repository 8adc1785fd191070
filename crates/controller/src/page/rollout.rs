//! What the rollout of a parent's current generation waited for: `/api/v1/parents/{uid}/rollout`. As `rollcall explain
//! --slow` tells it, from objects that are read live with Rollcall's rights, for viewers who may list them.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use inspect::rollout::{PathPart, RolloutDamping, RolloutEnd, critical_path, spec_changed_at, told_ready_at};
use readiness::{Level, Time};
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use super::authz::{PageViewer, ViewerRequest};
use super::below::{VisibleBelow, find_visible};
use super::earlier_rollouts::earlier_rollouts;
use super::page_service::PageService;
use super::parent_api::{ParentQuery, find_row};
use super::refusal::PageRefusal;
use super::rollout_reader::{ReadRollout, RolloutKey, RolloutNode};
use super::rollout_report::part_json;
use super::view::PageRow;
use crate::reviews::AccessRight;

/// How long any policy waits after the last child, as far as the page knows: what was told later than that explains was told
/// again.
const POLICY_WAITS_AT_MOST: RolloutDamping = RolloutDamping(Duration::from_mins(5));
/// Maximum number of objects of one rollout that are read.
pub(super) const MAX_ROLLOUT_OBJECTS: usize = 200;

/// Returns the critical path of a parent's rollout.
pub(super) async fn get_rollout(
    State(page): State<PageService>,
    request: ViewerRequest,
    Path(uid): Path<String>,
    Query(asked): Query<ParentQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let (viewer, shown, row) = find_row(&page, &request, &uid, &asked.policy).await?;
    let policy_name = shown.names.policy_name(row.policy);
    let (nodes, is_cut) = {
        let below = find_visible(&page, &viewer, &shown, row.clone()).await?;
        rollout_nodes(&page, &below)
    };
    let silent = namespaces_without_events(&page, &viewer, &nodes).await?;
    let (views, rollouts) = (&page.0.views, &page.0.rollouts);
    let key = RolloutKey::new(&row, &nodes, &silent);
    if let Some(known) = rollouts.known(&key, views.clock.now()) {
        return with_earlier(&page, &viewer, (&row.uid, policy_name), known).await;
    }
    let _turn = page.0.inspections.acquire().await.map_err(|_| PageRefusal::Unreachable)?;
    let now = views.clock.now();
    let unfinished = (row.verdict_level() != Level::Ready).then_some(now);
    let mut read = tokio::select! {
        () = page.0.stop.cancelled() => return Err(PageRefusal::Unreachable),
        read = rollouts.read(&nodes, &silent, unfinished, now) => read?,
    };
    // What was created again under this name had another rollout.
    if read.root_object["metadata"]["uid"] != *row.uid {
        return Err(PageRefusal::NotFound);
    }
    if is_cut {
        read.not_read.insert(format!("more than {MAX_ROLLOUT_OBJECTS} objects"));
    }
    let condition = written_condition(&page, &row);
    let answer = rollout_json(&read, condition.as_deref(), unfinished, now);
    rollouts.keep(key, answer.clone(), now);
    with_earlier(&page, &viewer, (&row.uid, policy_name), answer).await
}

/// The answer with the rollouts of earlier generations that are known.
async fn with_earlier(
    page: &PageService,
    viewer: &PageViewer,
    owner: (&str, &str),
    mut answer: Value,
) -> Result<Json<Value>, PageRefusal> {
    let from = answer["from"].as_i64().map_or(Time(i64::MAX), Time);
    // A group keeps its generation while its members are rolled out.
    let generation = answer["generation"].as_i64().filter(|_| answer["isGroup"] != true);
    answer["earlier"] = earlier_rollouts(page, viewer, owner, (from, generation)).await?.into();
    Ok(Json(answer))
}

/// Condition type that is written to a parent.
pub(super) fn written_condition(page: &PageService, row: &PageRow) -> Option<String> {
    let interest = page.0.views.reflector.interest(row.kind)?;
    let rule = interest.parent.iter().find(|rule| rule.policy == row.policy)?;
    Some(rule.condition.to_string())
}

/// Objects of the rollout, each once and after its owner, and whether there are more.
pub(super) fn rollout_nodes(page: &PageService, below: &VisibleBelow<'_>) -> (Vec<RolloutNode>, bool) {
    let VisibleBelow { found, nodes, allowed, .. } = below;
    let (mut picked, mut known) = (Vec::new(), FxHashSet::default());
    for node in nodes {
        // A parent that stands in the tree twice has its time where it stands first.
        if !known.insert(node.id) {
            continue;
        }
        let api = page.0.resolved.get(&node.kind_namespace.0).map(|followed| followed.api.clone());
        picked.extend(api.map(|api| RolloutNode {
            depth: node.depth,
            api,
            namespace: node.namespace.clone(),
            name: node.name.clone(),
            is_ready: node.verdict == Level::Ready.as_str(),
        }));
        for group in found.groups.iter().filter(|group| group.owner == node.id) {
            let mut nodes = group.nodes.clone();
            let may_see = |node: &super::below_tree::BelowNode| {
                allowed.contains(&node.kind_index, &Box::from(&*node.namespace))
            };
            super::tree::hide_nodes(&mut nodes, |node| node.depth, may_see);
            picked.extend(nodes.into_iter().map(|below| RolloutNode {
                depth: node.depth + below.depth,
                api: found.kinds[below.kind_index].clone(),
                namespace: below.namespace,
                name: below.name,
                is_ready: below.verdict == Level::Ready.as_str(),
            }));
        }
    }
    // Nothing but the metadata of a Secret is read, and that says nothing of its time.
    picked.retain(|node| !(node.api.group.is_empty() && node.api.kind == "Secret"));
    let is_cut = picked.len() > MAX_ROLLOUT_OBJECTS;
    picked.truncate(MAX_ROLLOUT_OBJECTS);
    (picked, is_cut)
}

/// Namespaces of pods in which the viewer may not list Events.
async fn namespaces_without_events(
    page: &PageService,
    viewer: &PageViewer,
    nodes: &[RolloutNode],
) -> Result<BTreeSet<String>, PageRefusal> {
    let pods = nodes.iter().filter(|node| node.is_pod());
    let namespaces: BTreeSet<_> = pods.map(|pod| pod.namespace.clone()).collect();
    let right = |namespace: &String| AccessRight {
        verb: "list",
        group: String::new(),
        resource: "events".to_owned(),
        namespace: namespace.clone(),
        name: String::new(),
    };
    let (allowed, _) = page.0.authz.allowed_rights(viewer, namespaces.iter().map(right).collect()).await?;
    let is_barred = |(at, _): &(usize, String)| !allowed.contains(at);
    Ok(namespaces.into_iter().enumerate().filter(is_barred).map(|(_, namespace)| namespace).collect())
}

/// When a rollout was, and what it waited for.
pub(super) struct RolloutTimes {
    pub(super) from: Option<Time>,
    pub(super) to: Time,
    /// When its parent was told ready last, where the rollout does not explain that it was so late.
    told_later: Option<Time>,
    pub(super) parts: Vec<PathPart>,
}

impl RolloutTimes {
    pub(super) fn of(
        read: &ReadRollout,
        condition: Option<&str>,
        unfinished: Option<Time>,
        now: Time,
    ) -> RolloutTimes {
        let (object, root) = (&read.root_object, &read.root);
        let of_group = is_group(object).then_some(read.members_changed).flatten();
        let from = spec_changed_at(object).max(of_group);
        let told = condition.and_then(|condition| told_ready_at(object, condition));
        let end = from
            .zip(told)
            .map(|(from, told)| RolloutEnd::find(root, (from, told), &[], POLICY_WAITS_AT_MOST));
        // In shadow mode nobody is told: it was over when the last child was ready.
        let to = unfinished.or(end.map(|end| end.at)).or_else(|| root.ready_since()).unwrap_or(now);
        let parts = from.map(|from| critical_path(root, from, to)).unwrap_or_default();
        RolloutTimes { from, to, told_later: end.and_then(|end| end.told_later), parts }
    }
}

fn rollout_json(read: &ReadRollout, condition: Option<&str>, unfinished: Option<Time>, now: Time) -> Value {
    let object = &read.root_object;
    let RolloutTimes { from, to, told_later, parts } = RolloutTimes::of(read, condition, unfinished, now);
    json!({
        "now": now.0, "generation": object["metadata"]["generation"].as_i64(), "isOver": unfinished.is_none(),
        "isGroup": is_group(object),
        "from": from.map(|from| from.0), "to": to.0,
        "toldLater": told_later.map(|told| told.0),
        "parts": parts.iter().map(part_json).collect::<Vec<_>>(), "notRead": read.not_read,
    })
}

fn is_group(object: &Value) -> bool {
    let (group, kind) = policy::GROUP_KIND;
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    object["kind"] == kind && api_version.split_once('/').is_some_and(|(of, _)| of == group)
}
