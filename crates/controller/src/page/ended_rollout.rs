//! What a rollout waited for that has ended, for the service itself: read as for a viewer who may see everything.

use std::collections::BTreeSet;

use readiness::Level;

use super::authz::PageViewer;
use super::below::find_visible;
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::rollout::{MAX_ROLLOUT_OBJECTS, RolloutTimes, rollout_nodes, written_condition};
use super::rollout_report::{RolloutReport, places_of};

/// Reads what the rollout of a parent waited for, with Rollcall's own rights.
///
/// # Errors
/// Says why it cannot be told: the parent has gone or turned since, it does not say when it began, or it cannot be read.
pub(crate) async fn read_ended_rollout(
    page: &PageService,
    uid: &str,
    policy: &str,
) -> Result<RolloutReport, String> {
    let refused = |refusal: PageRefusal| format!("{refusal:?}");
    let shown = page.0.views.current_view().await.map_err(|error| error.to_string())?;
    let mut rows = shown.rows_of(uid).into_iter();
    let row = rows.find(|row| shown.names.policy_name(row.policy) == policy).cloned();
    let row = row.ok_or("the parent has gone")?;
    if row.verdict_level() != Level::Ready {
        return Err("the parent has turned since".to_owned());
    }
    let (nodes, is_cut) = {
        let below = find_visible(page, &PageViewer::Local, &shown, row.clone()).await.map_err(refused)?;
        rollout_nodes(page, &below)
    };
    let _turn = page.0.inspections.acquire().await.map_err(|error| error.to_string())?;
    let now = page.0.views.clock.now();
    let mut read = page.0.rollouts.read(&nodes, &BTreeSet::new(), None, now).await.map_err(refused)?;
    let meta = &read.root_object["metadata"];
    if meta["uid"] != *row.uid {
        return Err("the parent has gone".to_owned());
    }
    let generation = meta["generation"].as_i64().unwrap_or_default();
    if is_cut {
        read.not_read.insert(format!("more than {MAX_ROLLOUT_OBJECTS} objects"));
    }
    let condition = written_condition(page, &row);
    let RolloutTimes { from, to, parts, .. } = RolloutTimes::of(&read, condition.as_deref(), None, now);
    let text = |field: &str| read.root_object[field].as_str().unwrap_or_default().to_owned();
    Ok(RolloutReport {
        read_at: now,
        api_version: text("apiVersion"),
        kind: text("kind"),
        namespace: row.namespace.to_string(),
        name: row.name.to_string(),
        uid: uid.to_owned(),
        generation,
        policy: policy.to_owned(),
        from: from.ok_or("the parent does not say when it was changed")?,
        to,
        parts,
        places: places_of(&nodes),
        not_read: read.not_read.into_iter().collect(),
    })
}
