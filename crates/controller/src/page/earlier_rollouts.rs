//! Rollouts of earlier generations, as far as a viewer may see them.

use std::collections::BTreeSet;

use readiness::Time;
use serde_json::{Value, json};

use super::authz::PageViewer;
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::rollout_report::{RolloutPlace, RolloutReport, part_json};
use super::visibility::review_places;
use crate::reviews::AccessRight;

/// The earlier rollouts of a parent, by its uid and policy, for a viewer who is shown the one that began at this time, of this
/// generation. What one waited for is left out unless all of it may be seen: what is left of a path says nothing of the rest.
pub(super) async fn earlier_rollouts(
    page: &PageService,
    viewer: &PageViewer,
    owner: (&str, &str),
    (from, shown): (Time, Option<i64>),
) -> Result<Vec<Value>, PageRefusal> {
    let earlier = page.0.past_rollouts.before(owner, from, shown);
    let place =
        |place: &RolloutPlace| ((place.group.clone(), place.resource.clone()), place.namespace.clone());
    let places: BTreeSet<_> = earlier.iter().flat_map(|report| report.places.iter().map(place)).collect();
    let right = |(group, resource): &(String, String), namespace: &str| AccessRight {
        verb: "list",
        group: group.clone(),
        resource: resource.clone(),
        namespace: namespace.to_owned(),
        name: String::new(),
    };
    let allowed = review_places(page, viewer, places, right).await?;
    let may_see = |report: &RolloutReport| {
        report.places.iter().map(place).all(|(kind, namespace)| allowed.contains(&kind, &namespace))
    };
    Ok(earlier.iter().map(|report| report_json(report, may_see(report))).collect())
}

fn report_json(report: &RolloutReport, is_seen: bool) -> Value {
    let parts: Vec<_> = report.parts.iter().filter(|_| is_seen).map(part_json).collect();
    let not_read: &[String] = if is_seen { &report.not_read } else { &[] };
    json!({
        "generation": report.generation, "from": report.from.0, "to": report.to.0, "parts": parts, "hidden": !is_seen,
        "notRead": not_read,
    })
}
