//! HTTP listeners: one for `/metrics`, the page and its API, and one for the probes alone. Read-only.

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

use crate::args::ListenerArgs;
use crate::kind_tasks::RecordsTrouble;
use crate::listener::{ConnectionLimits, HttpListener, ListenerTimeouts, ReloadedCertificate};
use crate::metrics::Metrics;
use crate::page::{PageAuthorizer, PageRefusal, PageService, ViewerRequest, page_router};
use crate::snapshot::StatsSnapshot;

/// Limits of the probes' listener. A kubelet opens one connection per probe.
const PROBE_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: 32 };

/// State shared by the HTTP handlers.
#[derive(Clone)]
pub(crate) struct AdminState {
    /// The metrics.
    pub(crate) metrics: Arc<Metrics>,
    /// Latest snapshot of kinds, policies and parents.
    pub(crate) snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    /// True once the policies have been listed.
    pub(crate) policies_read: watch::Receiver<bool>,
    /// Current error of the history store, if any.
    pub(crate) history: watch::Receiver<Option<String>>,
    /// Reviews clients that read metrics; `None` if every client may.
    pub(crate) metrics_readers: Option<PageAuthorizer>,
    /// Why outcomes of Jobs cannot be saved, while they cannot.
    pub(crate) records: watch::Receiver<Option<RecordsTrouble>>,
    /// Why it cannot be kept what policies wrote, while it cannot.
    pub(crate) inventory: watch::Receiver<Option<String>>,
    /// Set once everything was ready. Later problems are reported in the body of `/readyz`, not in its status code.
    pub(crate) was_ready: Arc<std::sync::atomic::AtomicBool>,
}

/// Serves page, API, metrics and probes until `stop`.
pub(crate) async fn serve_http(
    socket: TcpListener,
    args: ListenerArgs,
    pages: AdminState,
    page: PageService,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let names = vec![crate::event_recorder::host_name(), "localhost".to_owned()];
    let certificate = match args.certificate_source(names) {
        Some(source) => Some(ReloadedCertificate::open(source).await?),
        None => None,
    };
    let metrics = Router::new().route("/metrics", get(get_metrics)).with_state(pages.clone());
    let listener = HttpListener {
        limits: args.connection_limits(socket.local_addr().context("failed to read the listen address")?),
        socket,
        timeouts: ListenerTimeouts::PAGE,
        tls: certificate.as_ref().map(ReloadedCertificate::acceptor).transpose()?,
        metrics: pages.metrics.page_listener(),
    };
    let following = async {
        if let Some(certificate) = certificate {
            certificate.follow(stop.clone()).await;
        }
    };
    let serving = listener.serve(probe_router(pages).merge(metrics).merge(page_router(page)), stop.clone());
    tokio::join!(serving, following).0
}

/// Serves the probes alone until `stop`.
pub(crate) async fn serve_probes(
    socket: TcpListener,
    pages: AdminState,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = HttpListener {
        socket,
        limits: PROBE_CONNECTIONS,
        timeouts: ListenerTimeouts::PROBES,
        tls: None,
        metrics: pages.metrics.probe_listener(),
    };
    listener.serve(probe_router(pages), stop).await
}

fn probe_router(pages: AdminState) -> Router {
    Router::new().route("/livez", get(async || "ok\n")).route("/readyz", get(get_readyz)).with_state(pages)
}

async fn get_metrics(
    State(pages): State<AdminState>,
    request: ViewerRequest,
) -> Result<impl IntoResponse, PageRefusal> {
    if let Some(readers) = &pages.metrics_readers {
        readers.authorize_metrics(&request).await?;
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], pages.metrics.encode_text()))
}

async fn get_readyz(State(pages): State<AdminState>) -> (StatusCode, String) {
    use std::sync::atomic::Ordering::Relaxed;
    let snapshot = pages.snapshot.borrow().clone();
    let read = *pages.policies_read.borrow();
    let mut body = String::new();
    if !read {
        body.push_str("policies: not read yet\n");
    }
    for kind in snapshot.kinds.values().filter(|k| k.state != KindState::Synced) {
        let trouble = kind.trouble.as_deref().unwrap_or("");
        _ = writeln!(body, "{}: {:?} {trouble}", kind.label, kind.state);
    }
    for trouble in [&pages.history, &pages.inventory] {
        if let Some(trouble) = &*trouble.borrow() {
            _ = writeln!(body, "{trouble}");
        }
    }
    if let Some(trouble) = &*pages.records.borrow() {
        _ = writeln!(body, "{}", trouble.message);
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
