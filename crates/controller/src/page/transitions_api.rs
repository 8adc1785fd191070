//! Handler of `/api/v1/transitions`: what has changed lately of all parents that a viewer may see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use readiness::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::status_word;
use super::authz::ViewerRequest;
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::visibility::{VisibleScope, require_any_right, visible_to};
use rollcall_core::Transition;

/// Time back from now for which transitions are returned, unless a request says since when. One hour.
const DEFAULT_TRANSITIONS_AGE: Duration = Duration::from_hours(1);
/// Maximum number of transitions in one answer: the newest.
const MAX_LISTED_TRANSITIONS: usize = 1_000;

/// Query parameters of the transitions.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TransitionsQuery {
    /// Returns only transitions since this time, in milliseconds since the Unix epoch.
    since: Option<i64>,
    /// Returns only transitions of parents in this namespace.
    namespace: String,
}

/// Lists transitions, newest first. They are kept where they are published; the loop is not asked.
pub(super) async fn list_transitions(
    State(page): State<PageService>,
    request: ViewerRequest,
    Query(asked): Query<TransitionsQuery>,
) -> Result<Json<Value>, PageRefusal> {
    let viewer = page.0.authz.identify_viewer(&request).await?;
    let shown = page.0.views.current_view().await?;
    let now = page.0.views.clock.now();
    let since = asked.since.map_or_else(|| default_since(now), Time);
    let hub = page.0.views.transitions.upgrade().ok_or(PageRefusal::Unreachable)?;
    let (mut latest, reaches) = hub.latest_since(since);
    latest.retain(|of| asked.namespace.is_empty() || of.parent.namespace == asked.namespace);
    let places: BTreeSet<_> = latest.iter().map(|of| (of.kind, (&*of.parent.namespace).into())).collect();
    let seen = visible_to(&page, &viewer, &shown.names, places).await?;
    require_any_right(&page, &viewer, &seen, &shown.names, &asked.namespace).await?;
    let (transitions, is_cut) = visible_transitions(&latest, &seen);
    Ok(Json(json!({
        "now": now.0, "since": since.0, "reaches": reaches.filter(|reaches| *reaches > since).map(|reaches| reaches.0),
        "transitions": transitions, "cut": is_cut, "partial": seen.truncated,
    })))
}

fn default_since(now: Time) -> Time {
    Time(now.0.saturating_sub(readiness::saturating_millis(DEFAULT_TRANSITIONS_AGE)))
}

/// Those that the viewer may see, and whether there are more than fit.
fn visible_transitions(latest: &[Arc<Transition>], seen: &VisibleScope) -> (Vec<Value>, bool) {
    let mut visible = latest.iter().filter(|of| seen.may_see(of.kind, &(&*of.parent.namespace).into()));
    let listed = visible.by_ref().take(MAX_LISTED_TRANSITIONS).map(|of| transition_json(of)).collect();
    (listed, visible.next().is_some())
}

fn transition_json(of: &Transition) -> Value {
    let parent = &of.parent;
    let dot = if parent.group.is_empty() { "" } else { "." };
    json!({
        "at": of.at.0, "uid": of.uid, "kind": parent.kind, "label": format!("{}{dot}{}", parent.kind, parent.group),
        "namespace": parent.namespace, "name": parent.name, "policy": of.policy,
        "from": of.from.map(|from| from.child_level().as_str()),
        "verdict": of.to.child_level().as_str(), "status": status_word(of.to), "reason": of.to.as_str(),
    })
}
