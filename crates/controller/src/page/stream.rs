//! `/api/v1/stream`: changes as server-sent events. A client that falls behind is disconnected, not waited for.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures::Stream;
use futures::stream::unfold;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;

use super::api::row_json;
use super::authz::{PageViewer, ViewerRequest};
use super::page_service::PageService;
use super::refusal::PageRefusal;
use super::view_cache::{ChangeBatch, StreamSubscription};
use super::visibility::{VisibleScope, require_any_right, visible_to};

/// Interval between heartbeats of an idle stream.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which a stream's token and access rights are reviewed again.
const REAUTHENTICATION_INTERVAL: Duration = Duration::from_secs(60);

/// One open stream.
struct StreamReader {
    page: PageService,
    request: ViewerRequest,
    viewer: PageViewer,
    subscription: StreamSubscription,
    reauthentication: tokio::time::Interval,
    heartbeat: tokio::time::Interval,
    open: bool,
    _place: OwnedSemaphorePermit,
}

/// Streams changed and deleted parents as they change.
pub(super) async fn open_stream(
    State(page): State<PageService>,
    request: ViewerRequest,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageRefusal> {
    let viewer = page.0.authz.identify_viewer(&request).await?;
    let place = page.0.streams.clone().try_acquire_owned().map_err(|_| PageRefusal::TooManyStreams)?;
    let listening = page.0.views.subscribe_changes();
    let shown = page.0.views.current_view().await?;
    let seen = visible_to(&page, &viewer, &shown.names, shown.places().cloned()).await?;
    require_any_right(&page, &viewer, &seen, &shown.names, "").await?;
    page.0.metrics.page_streams.inc();
    let mut check = tokio::time::interval(REAUTHENTICATION_INTERVAL);
    check.reset();
    let beat = tokio::time::interval(HEARTBEAT_INTERVAL);
    let reader = StreamReader {
        page,
        request,
        viewer,
        subscription: listening,
        reauthentication: check,
        heartbeat: beat,
        open: true,
        _place: place,
    };
    Ok(Sse::new(unfold(reader, next_event)))
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.page.0.metrics.page_streams.dec();
    }
}

async fn next_event(mut reader: StreamReader) -> Option<(Result<Event, Infallible>, StreamReader)> {
    if !reader.open {
        return None;
    }
    let event = loop {
        if let Some(event) = reader.wait_for_event().await {
            break event;
        }
    };
    Some((Ok(event), reader))
}

impl StreamReader {
    /// Next event; `None` if there is nothing to send.
    async fn wait_for_event(&mut self) -> Option<Event> {
        let stop = self.page.0.stop.clone();
        tokio::select! { biased;
            () = stop.cancelled() => Some(self.end_stream("stopping")),
            _ = self.reauthentication.tick() => match self.page.0.authz.identify_viewer(&self.request).await {
                Ok(viewer) => { self.viewer = viewer; None }
                Err(PageRefusal::WrongToken) => Some(self.end_stream("the token is no longer valid")),
                Err(_) => None,
            },
            batch = self.subscription.batches.recv() => match batch {
                Ok(batch) => self.batch_event(&batch).await,
                Err(RecvError::Lagged(_)) => {
                    self.page.0.metrics.page_streams_dropped.inc();
                    Some(self.end_stream("too slow"))
                }
                Err(RecvError::Closed) => Some(self.end_stream("stopping")),
            },
            _ = self.heartbeat.tick() => Some(Event::default().event("beat").data(self.page.0.views.clock.now().0.to_string())),
        }
    }

    /// Last event of a stream, with the reason for its end.
    fn end_stream(&mut self, why: &str) -> Event {
        self.open = false;
        Event::default().event("end").data(why)
    }

    async fn batch_event(&mut self, batch: &ChangeBatch) -> Option<Event> {
        let reload = || Some(Event::default().event("reload").data(batch.now.0.to_string()));
        if batch.reload {
            return reload();
        }
        let Ok(seen) = self.visible_in(batch).await else { return reload() };
        if seen.truncated {
            return reload();
        }
        let changed: Vec<_> = batch
            .changed
            .iter()
            .filter(|(row, _)| seen.may_see(row.kind, &row.namespace))
            .map(|(row, message)| row_json(&batch.names, row, message))
            .collect();
        let gone = batch.gone.iter().filter(|row| seen.may_see(row.kind, &row.namespace));
        let gone: Vec<_> = gone
            .map(|row| json!({ "uid": &*row.uid, "policy": batch.names.policy_name(row.policy) }))
            .collect();
        if changed.is_empty() && gone.is_empty() {
            return None;
        }
        let view = self.page.0.views.view_json(batch.number);
        let data = json!({ "now": batch.now.0, "view": view, "changed": changed, "gone": gone });
        Some(Event::default().event("changed").data(data.to_string()))
    }

    /// Scope of a batch that this client may see.
    async fn visible_in(&self, batch: &ChangeBatch) -> Result<VisibleScope, PageRefusal> {
        let rows = batch.changed.iter().map(|(row, _)| row).chain(&batch.gone);
        let places = rows.map(|row| (row.kind, row.namespace.clone()));
        visible_to(&self.page, &self.viewer, &batch.names, places).await
    }
}
