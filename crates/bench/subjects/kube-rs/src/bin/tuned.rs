//! The same controller by somebody who measured the first one: types without what is not read, one row per child instead
//! of the child, an index by owner that the watch keeps itself, a trigger only where readiness moved, and a patch only
//! where the condition changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bench_subject_kube_rs::{Status, condition_patch, ready_condition};
use futures::{StreamExt, future, stream};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::WatchStreamExt;
use kube::{Api, Client, CustomResource, Resource, ResourceExt};
use serde::{Deserialize, Serialize};

/// Spec of a parent, of which nothing is read.
#[derive(Clone, CustomResource, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced, status = "Status", schema = "disabled")]
struct WidgetSpec {}

/// Spec of a child, of which nothing is read.
#[derive(Clone, CustomResource, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Part", namespaced, status = "Status", schema = "disabled")]
struct PartSpec {}

type ParentRows = HashMap<String, HashMap<String, bool>>;

/// Readiness of all children, by the UID of the parent and that of the child.
#[derive(Default)]
struct PartIndex {
    rows: ParentRows,
    /// Rows of a list that is not complete.
    listed: Option<ParentRows>,
    synced: bool,
}

/// Parent and row of a child.
fn row_of(part: &Part) -> Option<(ObjectRef<Widget>, String, String, bool)> {
    let owner = part.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    let parent = ObjectRef::new(&owner.name).within(part.meta().namespace.as_deref()?);
    let ready = part.status.as_ref().is_some_and(Status::is_ready);
    Some((parent, owner.uid.clone(), part.uid()?, ready))
}

impl PartIndex {
    /// Takes an event in, and returns the parent whose answer it can change.
    fn apply(&mut self, event: Event<Part>) -> Option<ObjectRef<Widget>> {
        match event {
            Event::Init => self.listed = Some(ParentRows::new()),
            Event::InitApply(part) => {
                let (parent, owner, uid, ready) = row_of(&part)?;
                let before = self.rows.get(&owner).and_then(|rows| rows.get(&uid)).copied();
                self.listed.get_or_insert_default().entry(owner).or_default().insert(uid, ready);
                return (self.synced && before != Some(ready)).then_some(parent);
            }
            Event::InitDone => {
                self.rows = self.listed.take().unwrap_or_default();
                self.synced = true;
            }
            Event::Apply(part) => {
                let (parent, owner, uid, ready) = row_of(&part)?;
                let before = self.rows.entry(owner).or_default().insert(uid, ready);
                return (before != Some(ready)).then_some(parent);
            }
            Event::Delete(part) => {
                let (parent, owner, uid, _) = row_of(&part)?;
                self.rows.get_mut(&owner)?.remove(&uid);
                return Some(parent);
            }
        }
        None
    }
}

impl TunedContext {
    fn index(&self) -> std::sync::MutexGuard<'_, PartIndex> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TunedContext {
    client: Client,
    parts: Arc<Mutex<PartIndex>>,
}

async fn reconcile(widget: Arc<Widget>, context: Arc<TunedContext>) -> Result<Action, kube::Error> {
    let uid = widget.uid().unwrap_or_default();
    let (ready, all) = {
        let index = context.index();
        if !index.synced {
            return Ok(Action::requeue(Duration::from_millis(100)));
        }
        index.rows.get(&uid).map_or((0, 0), |rows| (rows.values().filter(|ready| **ready).count(), rows.len()))
    };
    let status = widget.status.as_ref();
    let condition = ready_condition(&*widget, status, ready, all);
    if status.and_then(|status| status.condition("Ready")) == Some(&condition) {
        return Ok(Action::await_change());
    }
    let widgets = Api::<Widget>::namespaced(context.client.clone(), &widget.namespace().unwrap_or_default());
    let patch = Patch::Merge(condition_patch(status, &condition));
    widgets.patch_status(&widget.name_any(), &PatchParams::default(), &patch).await?;
    Ok(Action::await_change())
}

fn retry(_: Arc<Widget>, _: &kube::Error, _: Arc<TunedContext>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

/// Drops the metadata that is never read.
fn strip<K: Resource>(object: &mut K) {
    let meta = object.meta_mut();
    (meta.managed_fields, meta.annotations, meta.labels) = (None, None, None);
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let parts = Arc::new(Mutex::new(PartIndex::default()));
    let index = parts.clone();
    let moved = watcher(Api::<Part>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let parent = event.ok().and_then(|event| {
                index.lock().unwrap_or_else(PoisonError::into_inner).apply(event)
            });
            future::ready(parent)
        });
    let (widgets, writer) = reflector::store();
    let of_widgets = watcher(Api::<Widget>::all(client.clone()), watcher::Config::default());
    let changed = reflector::reflector(writer, of_widgets.default_backoff().modify(strip)).applied_objects();
    Controller::for_stream(changed, widgets)
        // A stream that ends would end the controller: the watch goes on, and so does this one.
        .reconcile_on(moved.chain(stream::pending()))
        .run(reconcile, retry, Arc::new(TunedContext { client, parts }))
        .for_each(|_| async {})
        .await;
    Ok(())
}
