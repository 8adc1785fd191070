//! Inspection of one object: finalizer holders, everything that it owns, and Events. The commands use it with the user's
//! rights, the live page with Rollcall's own, for viewers who have them too.

mod api_group;
pub mod client;
pub mod discover;
pub mod field_managers;
pub mod finalizer_holders;
pub mod holder_signs;
pub mod kubectl;
pub mod owned;
pub mod owned_index;
pub mod owned_reader;
pub mod owned_walk;
pub mod recent_events;
pub mod rollout;
pub mod self_rules;

use std::collections::BTreeSet;

use readiness::{StuckLimits, Time};
use watcher::ParentObject;

use client::InspectClient;
use owned::{InspectContext, OwnedObject};
use recent_events::RecentEvent;

pub use api_group::api_group;

/// Inspects the context of an object: owned objects that explain why it is not ready, and the latest Events about all
/// of them.
pub async fn inspect_object(
    ask: &mut InspectClient,
    client: &kube::Client,
    object: &ParentObject,
    limits: &StuckLimits,
    now: Time,
) -> (Vec<OwnedObject>, Vec<RecentEvent>) {
    let meta = &object.child.meta;
    let mut events = ask.list_events(&meta.namespace, &meta.uid).await;
    let owns =
        owned::inspect_owned(ask, client, object, &InspectContext { events: &events, limits, now }).await;
    let uids: BTreeSet<&str> = owns.iter().map(|owned| &*owned.uid).filter(|uid| !uid.is_empty()).collect();
    for uid in uids {
        events.extend(ask.list_events(&meta.namespace, uid).await);
    }
    let latest = recent_events::latest_events(&events);
    (owns, latest)
}
