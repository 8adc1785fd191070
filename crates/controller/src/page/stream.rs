//! `/api/v1/stream`: what moves, as server-sent events. A reader who falls behind is let go, not waited for.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, Sse};
use futures::Stream;
use futures::stream::unfold;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::error::RecvError;

use super::Page;
use super::api::row_json;
use super::desk::{Batch, Listening};
use super::gate::Viewer;
use super::refusal::Refusal;
use super::seen::Seen;

/// How often it is said that there is nothing to say.
const BEAT: Duration = Duration::from_secs(10);
/// How often it is asked anew who listens, and what they may see.
const CHECK: Duration = Duration::from_secs(60);

/// One open stream.
struct Reader {
    page: Page,
    headers: HeaderMap,
    viewer: Viewer,
    listening: Listening,
    check: tokio::time::Interval,
    beat: tokio::time::Interval,
    open: bool,
    _place: OwnedSemaphorePermit,
}

/// Changed and vanished parents, as they change.
pub(super) async fn stream(
    State(page): State<Page>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let viewer = page.0.gate.who(&headers).await?;
    let place = page.0.streams.clone().try_acquire_owned().map_err(|_| Refusal::TooMany)?;
    let listening = page.0.desk.listen();
    let shown = page.0.desk.shown().await?;
    let seen = page.seen(&viewer, &shown.names, shown.places.iter().cloned()).await?;
    if seen.is_nothing() && !page.may_look(&viewer, &shown.names, "").await? {
        return Err(Refusal::NoRights);
    }
    page.0.metrics.page_streams.inc();
    let mut check = tokio::time::interval(CHECK);
    check.reset();
    let beat = tokio::time::interval(BEAT);
    let reader = Reader { page, headers, viewer, listening, check, beat, open: true, _place: place };
    Ok(Sse::new(unfold(reader, next)))
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.page.0.metrics.page_streams.dec();
    }
}

async fn next(mut reader: Reader) -> Option<(Result<Event, Infallible>, Reader)> {
    if !reader.open {
        return None;
    }
    let event = loop {
        if let Some(event) = reader.hear().await {
            break event;
        }
    };
    Some((Ok(event), reader))
}

impl Reader {
    /// The next event, or nothing worth one.
    async fn hear(&mut self) -> Option<Event> {
        let stop = self.page.0.stop.clone();
        tokio::select! { biased;
            () = stop.cancelled() => Some(self.end("stopping")),
            _ = self.check.tick() => match self.page.0.gate.who(&self.headers).await {
                Ok(viewer) => { self.viewer = viewer; None }
                Err(Refusal::WrongToken) => Some(self.end("the token is not valid any more")),
                Err(_) => None,
            },
            batch = self.listening.batches.recv() => match batch {
                Ok(batch) => self.event(&batch).await,
                Err(RecvError::Lagged(_)) => {
                    self.page.0.metrics.page_streams_dropped.inc();
                    Some(self.end("too slow"))
                }
                Err(RecvError::Closed) => Some(self.end("stopping")),
            },
            _ = self.beat.tick() => Some(Event::default().event("beat").data(self.page.0.desk.clock.now().0.to_string())),
        }
    }

    /// The last event: why there is none after it.
    fn end(&mut self, why: &str) -> Event {
        self.open = false;
        Event::default().event("end").data(why)
    }

    async fn event(&mut self, batch: &Batch) -> Option<Event> {
        let reload = || Some(Event::default().event("reload").data(batch.now.0.to_string()));
        if batch.reload {
            return reload();
        }
        let Ok(seen) = self.seen(batch).await else { return reload() };
        let changed: Vec<_> = batch
            .changed
            .iter()
            .filter(|(row, _)| seen.may(row.kind, &row.namespace))
            .map(|(row, message)| row_json(&batch.names, row, message))
            .collect();
        let gone = batch.gone.iter().filter(|row| seen.may(row.kind, &row.namespace));
        let gone: Vec<_> =
            gone.map(|row| json!({ "uid": &*row.uid, "policy": batch.names.policy(row.policy) })).collect();
        if changed.is_empty() && gone.is_empty() {
            return None;
        }
        let data = json!({ "now": batch.now.0, "changed": changed, "gone": gone });
        Some(Event::default().event("changed").data(data.to_string()))
    }

    /// What this reader may see of a batch.
    async fn seen(&self, batch: &Batch) -> Result<Seen, Refusal> {
        let rows = batch.changed.iter().map(|(row, _)| row).chain(&batch.gone);
        let places = rows.map(|row| (row.kind, row.namespace.clone()));
        self.page.seen(&self.viewer, &batch.names, places).await
    }
}
