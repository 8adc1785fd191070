//! A controller as its users write it first: a store of the children in full, which each reconciliation searches, and a
//! patch of the status at its end.
//!
//! The store and the triggers come from one stream. With `Controller::owns` and a reflector beside it, which are two
//! watches, a reconciliation can come before its child is in the store, and the parent then keeps a wrong answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bench_subject_kube_rs::{Status, condition_patch, ready_condition};
use futures::StreamExt;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, CustomResource, ResourceExt};
use serde::{Deserialize, Serialize};

/// Spec of a parent.
#[derive(Clone, CustomResource, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced, status = "Status", schema = "disabled")]
struct WidgetSpec {
    size: i32,
    text: String,
}

/// Spec of a child.
#[derive(Clone, CustomResource, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Part", namespaced, status = "Status", schema = "disabled")]
struct PartSpec {
    settings: BTreeMap<String, String>,
}

struct Context {
    client: Client,
    parts: Store<Part>,
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, kube::Error> {
    // Whoever waits here for the store holds up what fills it.
    let ready = tokio::time::timeout(Duration::from_millis(100), context.parts.wait_until_ready()).await;
    if !matches!(ready, Ok(Ok(()))) {
        return Ok(Action::requeue(Duration::from_millis(100)));
    }
    let uid = widget.uid().unwrap_or_default();
    let parts = context.parts.state_filter(|part| part.owner_references().iter().any(|owner| owner.uid == uid));
    let is_ready = |part: &&Arc<Part>| part.status.as_ref().is_some_and(Status::is_ready);
    let count = parts.iter().filter(is_ready).count();
    let condition = ready_condition(&*widget, widget.status.as_ref(), count, parts.len());
    let widgets = Api::<Widget>::namespaced(context.client.clone(), &widget.namespace().unwrap_or_default());
    let patch = Patch::Merge(condition_patch(widget.status.as_ref(), &condition));
    widgets.patch_status(&widget.name_any(), &PatchParams::default(), &patch).await?;
    Ok(Action::await_change())
}

fn retry(_: Arc<Widget>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let (parts, writer) = reflector::store();
    let of_parts = watcher(Api::<Part>::all(client.clone()), watcher::Config::default());
    let changed = reflector(writer, of_parts.default_backoff()).touched_objects();
    let context = Arc::new(Context { client: client.clone(), parts });
    Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .owns_stream(changed)
        .run(reconcile, retry, context)
        .for_each(|_| async {})
        .await;
    Ok(())
}
