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
use policy::AwaitedInput;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::args::ListenerArgs;
use crate::clock::ServerClock;
use crate::kind_tasks::RecordsTrouble;
use crate::listener::{ConnectionLimits, HttpListener, ListenerTimeouts, ReloadedCertificate};
use crate::metrics::Metrics;
use crate::own_watches::OwnWatchStates;
use crate::page::{PageAuthorizer, PageRefusal, PageService, ViewerRequest, page_router};
use crate::snapshot::{KindNumbers, StatsSnapshot};

/// Limits of the probes' listener. A kubelet opens one connection per probe.
const PROBE_CONNECTIONS: ConnectionLimits = ConnectionLimits { total: 32, per_address: 32 };

/// Difference of the clocks above which `/readyz` names it, in seconds. The log does from here on, too.
const MAX_USUAL_CLOCK_OFFSET: f64 = 5.0;

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
    /// The API server's clock.
    pub(crate) clock: ServerClock,
    /// Why outcomes of Jobs cannot be saved, while they cannot.
    pub(crate) records: watch::Receiver<Option<RecordsTrouble>>,
    /// Why it cannot be kept what policies wrote, while it cannot.
    pub(crate) inventory: watch::Receiver<Option<String>>,
    /// Health of the watches that the service itself rests on.
    pub(crate) own_watches: watch::Receiver<OwnWatchStates>,
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
    for line in pages.own_watches.borrow().trouble_lines() {
        _ = writeln!(body, "{line}");
    }
    for kind in snapshot.kinds.values().filter(|k| k.state != KindState::Synced) {
        _ = writeln!(body, "{}", kind_line(kind));
    }
    body.extend(clock_line(pages.clock.offset_seconds()));
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

/// What keeps a kind from being seen, and what shows whether the API server can list it at all.
fn kind_line(kind: &KindNumbers) -> String {
    let KindNumbers { label, state, awaits, trouble } = kind;
    let trouble = trouble.as_deref().unwrap_or("");
    let list = match (state, awaits) {
        (_, Some(AwaitedInput::Scripts)) => {
            "; the ConfigMap of scripts by which a policy judges it is not read yet".to_owned()
        }
        (_, Some(AwaitedInput::NamespaceLabels)) => {
            "; the labels of namespaces by which a policy chooses among it are not read yet: does `kubectl get \
             namespaces` end?"
                .to_owned()
        }
        (KindState::Listing, None) => {
            let name = label.to_lowercase();
            format!("; its list is not complete: does `kubectl get {name} -A --chunk-size=500 -o name` end?")
        }
        _ => String::new(),
    };
    format!("{label}: {state:?} {trouble}{list}")
}

/// The difference of the clocks, where it is too large for an ordinary one.
fn clock_line(offset_seconds: f64) -> Option<String> {
    let which = if offset_seconds > 0.0 { "ahead of" } else { "behind" };
    (offset_seconds.abs() >= MAX_USUAL_CLOCK_OFFSET).then(|| {
        format!(
            "clock: the API server's is {:.0} s {which} this machine's; limits are measured by the server's; set \
             the one that is wrong: `timedatectl` on each node says whether it is synchronized\n",
            offset_seconds.abs()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_does_not_end_is_named_with_the_command_that_shows_why() {
        let line = |state: KindState, trouble: Option<&str>| {
            let trouble = trouble.map(str::to_owned);
            kind_line(&KindNumbers { label: "Deployment.apps".to_owned(), state, awaits: None, trouble })
        };
        let said = line(KindState::Listing, Some("request timed out"));
        assert!(said.starts_with("Deployment.apps: Listing request timed out; "), "{said}");
        assert!(said.contains("`kubectl get deployment.apps -A --chunk-size=500 -o name`"), "{said}");
        assert_eq!(line(KindState::Absent, None), "Deployment.apps: Absent ");
    }

    #[test]
    fn what_a_kind_waits_for_is_named_in_place_of_its_list() {
        for (awaits, named) in [
            (AwaitedInput::Scripts, "ConfigMap of scripts"),
            (AwaitedInput::NamespaceLabels, "labels of namespaces"),
        ] {
            let (label, state) = ("Shop.example.com".to_owned(), KindState::Listing);
            let said = kind_line(&KindNumbers { label, state, awaits: Some(awaits), trouble: None });
            assert!(said.contains(named) && !said.contains("chunk-size"), "{said}");
        }
    }

    #[test]
    fn clocks_that_differ_are_named_with_the_direction_and_what_shows_which_is_wrong() {
        assert_eq!(clock_line(2.0), None);
        let said = [clock_line(3_600.0), clock_line(-12.4)].map(Option::unwrap_or_default);
        assert!(said[0].starts_with("clock: the API server's is 3600 s ahead of this machine's"), "{said:?}");
        assert!(said[1].starts_with("clock: the API server's is 12 s behind this machine's"), "{said:?}");
        for line in &said {
            assert!(line.ends_with("`timedatectl` on each node says whether it is synchronized\n"), "{line}");
        }
    }
}
