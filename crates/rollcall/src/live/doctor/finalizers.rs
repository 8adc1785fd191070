//! `rollcall doctor --finalizers`: the finalizers of a cluster, who sets them, and who waits on which.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use inspect::client::InspectClient;
use inspect::discover::listable_kinds;
use inspect::holder_signs::{HolderNames, HolderSigns, HolderState, LifeSigns};
use inspect::kubectl::KubectlObject;
use readiness::Time;
use serde::Serialize;
use watcher::status::time;
use watcher::wire::WireMeta;
use watcher::{ApiFailureCause, ApiKind, list_live_metadata};

/// Maximum number of concurrent lists.
const MAX_CONCURRENT_LISTS: usize = 8;
/// Maximum number of waiting objects that are named for one finalizer.
const MAX_WAITING_NAMED: usize = 20;

/// A finalizer and the objects that carry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FinalizerEntry {
    pub(super) finalizer: String,
    /// Number of objects that carry it.
    pub(super) objects: usize,
    /// The same by kind, as `Database.example.com`.
    pub(super) kinds: BTreeMap<String, usize>,
    /// Field managers that set it.
    pub(super) set_by: BTreeSet<String>,
    /// Component whose domain it carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) likely: Option<&'static str>,
    pub(super) holder: HolderSigns,
    /// Number of objects in deletion that it holds.
    pub(super) waiting: usize,
    /// These objects, those that wait longest first.
    pub(super) waiters: Vec<WaitingObject>,
}

/// An object in deletion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitingObject {
    /// Time of the deletion request.
    pub(super) since: String,
    /// The object, as `Database shop/orders`.
    pub(super) object: String,
    /// Command that removes the finalizer; printed, never run.
    pub(super) release: String,
}

impl FinalizerEntry {
    /// Does an object in deletion wait for a holder of which there is no sign?
    pub(super) fn is_ownerless_wait(&self) -> bool {
        self.waiting > 0 && self.holder.state == HolderState::Ownerless
    }
}

/// The finalizers of a cluster.
#[derive(Debug, Default)]
pub(super) struct FinalizerInventory {
    /// Those that hold a deletion first, then by the number of objects.
    pub(super) entries: Vec<FinalizerEntry>,
    /// Number of kinds that were listed.
    pub(super) kinds: usize,
    /// Kinds that could not be read, with the error.
    pub(super) unread: BTreeMap<String, String>,
}

/// Reads the finalizers of all kinds that the cluster serves.
pub(super) async fn read_finalizers(
    client: &kube::Client,
    namespace: Option<&str>,
    now: Time,
) -> anyhow::Result<FinalizerInventory> {
    let kinds = listable_kinds(client).await?;
    let lists = kinds.into_iter().map(|api| async move {
        let scope = namespace.filter(|_| api.namespaced);
        let listed = list_live_metadata(client, &api, scope, None).await;
        (api, listed)
    });
    let mut lists = stream::iter(lists).buffered(MAX_CONCURRENT_LISTS);
    let (mut inventory, mut tally) = (FinalizerInventory::default(), FinalizerTally::default());
    while let Some((api, listed)) = lists.next().await {
        match listed {
            Ok(objects) => {
                inventory.kinds += 1;
                for meta in &objects {
                    tally.add_object(&api, meta);
                }
            }
            Err(error) => {
                let why = match error.cause {
                    ApiFailureCause::Forbidden => "you may not list it".to_owned(),
                    _ => error.detail,
                };
                inventory.unread.insert(api.to_string(), why);
            }
        }
    }
    let mut ask = InspectClient::new(client.clone());
    let signs = if tally.0.is_empty() { LifeSigns::default() } else { LifeSigns::read(&mut ask).await };
    let unread = ask.refused.into_iter().map(|what| ("signs of life".to_owned(), what));
    inventory.unread.extend(unread);
    inventory.entries = tally.into_entries(&signs, now);
    Ok(inventory)
}

/// Finalizers by name, while objects are counted.
#[derive(Default)]
struct FinalizerTally(BTreeMap<String, CountedFinalizer>);

#[derive(Default)]
struct CountedFinalizer {
    objects: usize,
    kinds: BTreeMap<String, usize>,
    set_by: BTreeSet<String>,
    waiters: Vec<WaitingObject>,
}

impl FinalizerTally {
    fn add_object(&mut self, api: &ApiKind, meta: &WireMeta) {
        for (at, name) in meta.finalizers.iter().enumerate() {
            let counted = self.0.entry(name.to_string()).or_default();
            counted.objects += 1;
            *counted.kinds.entry(api.to_string()).or_default() += 1;
            let setters = meta.setters.iter().filter(|(finalizer, _)| finalizer == name);
            counted.set_by.extend(setters.map(|(_, manager)| manager.to_string()));
            if let Some(deleted) = meta.deleted {
                let object = KubectlObject {
                    group: &api.group,
                    kind: &api.kind,
                    namespace: &meta.namespace,
                    name: &meta.name,
                };
                counted.waiters.push(WaitingObject {
                    since: time::format_seconds(deleted),
                    object: crate::eval::object_title(&api.kind, &meta.namespace, &meta.name),
                    release: object.release_command(at, name),
                });
            }
        }
    }

    fn into_entries(self, signs: &LifeSigns, now: Time) -> Vec<FinalizerEntry> {
        let entry = |(finalizer, counted): (String, CountedFinalizer)| {
            let CountedFinalizer { objects, kinds, set_by, mut waiters } = counted;
            let likely = readiness::likely_holder(&finalizer).map(|holder| holder.who);
            let holder = find_holder(signs, &finalizer, &set_by, likely, now);
            waiters.sort();
            let waiting = waiters.len();
            waiters.truncate(MAX_WAITING_NAMED);
            FinalizerEntry { finalizer, objects, kinds, set_by, likely, holder, waiting, waiters }
        };
        let mut entries: Vec<FinalizerEntry> = self.0.into_iter().map(entry).collect();
        entries.sort_by_key(|entry| {
            let reversed = std::cmp::Reverse((entry.waiting, entry.objects));
            (!entry.is_ownerless_wait(), reversed)
        });
        entries
    }
}

/// Signs of life of the manager that set the finalizer: of any of them, if there are several.
fn find_holder(
    signs: &LifeSigns,
    finalizer: &str,
    set_by: &BTreeSet<String>,
    likely: Option<&str>,
    now: Time,
) -> HolderSigns {
    let of = |manager| HolderNames { finalizer, manager, likely, last_write: None };
    let mut found: Vec<HolderSigns> =
        set_by.iter().map(|manager| signs.find_signs(&of(Some(manager)), now)).collect();
    found.sort_by_key(|signs| std::cmp::Reverse(signs.state));
    found.into_iter().next().unwrap_or_else(|| signs.find_signs(&of(None), now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(name: &str, finalizers: &[&str], manager: &str, deleted: Option<Time>) -> WireMeta {
        WireMeta {
            name: name.into(),
            namespace: "shop".into(),
            finalizers: finalizers.iter().map(|name| (*name).into()).collect(),
            setters: finalizers.iter().map(|name| ((*name).into(), manager.into())).collect(),
            deleted,
            ..WireMeta::default()
        }
    }

    #[test]
    fn each_finalizer_is_counted_with_who_set_it_and_who_waits_and_what_waits_comes_first() {
        let api = ApiKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Database".to_owned(),
            plural: "databases".to_owned(),
            namespaced: true,
            has_status: true,
        };
        let mut tally = FinalizerTally::default();
        tally.add_object(&api, &meta("a", &["many.io/x"], "many", None));
        tally
            .add_object(&api, &meta("b", &["many.io/x", "gone.io/y"], "gone", Some(Time(1_767_225_600_000))));
        tally.add_object(&api, &meta("c", &[], "none", None));
        let entries = tally.into_entries(&LifeSigns::default(), Time(1_767_225_600_000));
        let brief: Vec<_> = entries.iter().map(|e| (&*e.finalizer, e.objects, e.waiting)).collect();
        assert_eq!(brief, [("many.io/x", 2, 1), ("gone.io/y", 1, 1)]);
        assert_eq!(entries[0].set_by.iter().collect::<Vec<_>>(), ["gone", "many"]);
        assert_eq!(entries[0].kinds["Database.example.com"], 2);
        let waiter = &entries[1].waiters[0];
        assert_eq!((&*waiter.object, &*waiter.since), ("Database shop/b", "2026-01-01T00:00:00Z"));
        assert!(
            waiter.release.contains("finalizers/1") && waiter.release.contains("gone.io/y"),
            "{waiter:?}"
        );
        assert_eq!(entries[0].holder.state, HolderState::Unknown, "nothing could be read");
    }
}
