//! The listener: `/metrics`, `/livez`, `/readyz`, and the page. Read-only.

use std::fmt::Write;
use std::sync::Arc;

use aggregator::KindState;
use anyhow::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::page::Page;
use crate::patience::Patient;
use crate::snapshot::Snapshot;

/// What the pages show.
#[derive(Clone)]
pub(crate) struct Pages {
    /// The metrics.
    pub(crate) metrics: Arc<Metrics>,
    /// Where everything stands.
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// The policies were read once.
    pub(crate) read: watch::Receiver<bool>,
    /// What ails the history.
    pub(crate) history: watch::Receiver<Option<String>>,
    /// All was ready once: what happens later is in the body, not in the code.
    pub(crate) was_ready: Arc<std::sync::atomic::AtomicBool>,
}

/// Serves until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    pages: Pages,
    page: Page,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .with_state(pages)
        .merge(page.router());
    axum::serve(Patient(listener), router)
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await
        .context("failed to serve HTTP")
}

async fn metrics(State(pages): State<Pages>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], pages.metrics.text())
}

async fn readyz(State(pages): State<Pages>) -> (StatusCode, String) {
    use std::sync::atomic::Ordering::Relaxed;
    let snapshot = pages.snapshot.borrow().clone();
    let read = *pages.read.borrow();
    let mut body = String::new();
    if !read {
        body.push_str("policies: not read yet\n");
    }
    for kind in snapshot.kinds.values().filter(|k| k.state != KindState::Synced) {
        let trouble = kind.trouble.as_deref().unwrap_or("");
        _ = writeln!(body, "{}: {:?} {trouble}", kind.label, kind.state);
    }
    if let Some(trouble) = &*pages.history.borrow() {
        _ = writeln!(body, "{trouble}");
    }
    if read && snapshot.synced && snapshot.planned {
        pages.was_ready.store(true, Relaxed);
    }
    if pages.was_ready.load(Relaxed) {
        (StatusCode::OK, format!("ok\n{body}"))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{body}"))
    }
}
