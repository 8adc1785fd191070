//! A closer look at one object: who holds it, what it owns, what the Events about it say. `explain` takes it with the rights
//! of whoever runs it, the live page with Rollcall's own and for those who may see it.

pub mod ask;
pub mod below;
pub mod command;
pub mod events;
pub mod holders;
pub mod managers;

use std::collections::BTreeSet;

use readiness::{Limits, Time};
use watcher::Parent;

use ask::Ask;
use below::{Around, Owned};
use events::Event;

/// What stands around an object: what it owns that explains why it is not ready, and the latest Events about it and those.
pub async fn around(
    ask: &mut Ask,
    client: &kube::Client,
    object: &Parent,
    limits: &Limits,
    now: Time,
) -> (Vec<Owned>, Vec<Event>) {
    let meta = &object.child.meta;
    let mut events = ask.events(&meta.namespace, &meta.uid).await;
    let owns = below::look(ask, client, object, &Around { events: &events, limits, now }).await;
    let uids: BTreeSet<&str> = owns.iter().map(|owned| &*owned.uid).filter(|uid| !uid.is_empty()).collect();
    for uid in uids {
        events.extend(ask.events(&meta.namespace, uid).await);
    }
    let latest = events::latest(&events);
    (owns, latest)
}

/// The API group of an object.
pub fn group(object: &Parent) -> &str {
    object.child.meta.api_version.split_once('/').map_or("", |(group, _)| group)
}
