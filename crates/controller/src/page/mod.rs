//! The live page and its API. Read-only. What is shown is made beside the loop, from one walk of it, and only while
//! somebody looks.
//!
//! **Who may see what.** On loopback, whoever gets there. Anywhere else, each object is shown to those who may `list` its
//! kind in its namespace; what may not be seen is not counted either.

mod api;
mod branch;
mod desk;
mod digests;
mod gate;
mod refusal;
mod seen;
mod shown;
mod stream;
#[cfg(test)]
mod tests;
mod tree;

use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

pub(crate) use desk::Ask;

use crate::clock::ServerClock;
use crate::kinds::Known;
use crate::metrics::Metrics;
use crate::snapshot::Snapshot;
use crate::transitions::Transitions;

/// So many streams may be open at a time.
const STREAMS: usize = 1_000;
/// So many questions may wait for the loop.
pub(crate) const ASKS: usize = 16;

/// Nothing but our own files, no frames, no markup from strings.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The files of the page: path, type, text. Modules as the browser loads them; nothing bundles them.
const ASSETS: [(&str, &str, &str); 13] = [
    ("/", HTML, include_str!("assets/index.html")),
    ("/style.css", CSS, include_str!("assets/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/app.js", JS, include_str!("assets/app.js")),
    ("/address.js", JS, include_str!("assets/address.js")),
    ("/keys.js", JS, include_str!("assets/keys.js")),
    ("/list.js", JS, include_str!("assets/list.js")),
    ("/object.js", JS, include_str!("assets/object.js")),
    ("/parent.js", JS, include_str!("assets/parent.js")),
    ("/server.js", JS, include_str!("assets/server.js")),
    ("/stream.js", JS, include_str!("assets/stream.js")),
    ("/tree.js", JS, include_str!("assets/tree.js")),
    ("/words.js", JS, include_str!("assets/words.js")),
];

/// What the page is made of.
#[derive(Clone)]
pub(crate) struct Page(Arc<Parts>);

struct Parts {
    desk: Arc<desk::Desk>,
    gate: gate::Gate,
    client: kube::Client,
    known: Known,
    metrics: Arc<Metrics>,
    streams: Arc<Semaphore>,
    /// Live reads for those who look closer.
    looks: Semaphore,
    around: branch::Around,
    stop: CancellationToken,
}

/// What it is given.
pub(crate) struct Setting {
    /// Where it is served.
    pub(crate) listen: SocketAddr,
    /// The client.
    pub(crate) client: kube::Client,
    /// What is known of the world.
    pub(crate) reflector: Arc<Reflector>,
    /// Where kinds are served.
    pub(crate) known: Known,
    /// Counts streams.
    pub(crate) metrics: Arc<Metrics>,
    /// The time.
    pub(crate) clock: ServerClock,
    /// To the loop.
    pub(crate) asks: mpsc::Sender<Ask>,
    /// Changes where something moved.
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// The last ones of each parent.
    pub(crate) transitions: Weak<Transitions>,
    /// Ends streams.
    pub(crate) stop: CancellationToken,
}

impl Page {
    /// A page.
    pub(crate) fn new(setting: Setting) -> Page {
        let Setting { listen, client, reflector, known, metrics, clock, asks, snapshot, transitions, stop } =
            setting;
        Page(Arc::new(Parts {
            desk: Arc::new(desk::Desk::new(reflector, clock.clone(), asks, snapshot, transitions)),
            gate: gate::Gate::new(client.clone(), clock.own(), listen.ip().is_loopback()),
            client,
            known,
            metrics,
            streams: Arc::new(Semaphore::new(STREAMS)),
            looks: Semaphore::new(branch::AT_ONCE),
            around: branch::Around::default(),
            stop,
        }))
    }

    /// Keeps those who listen up to date, until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        self.0.desk.clone().run(stop).await
    }

    /// What it serves.
    pub(crate) fn router(self) -> Router {
        let assets = ASSETS.iter().fold(Router::new(), |router, (path, kind, text)| {
            router.route(path, get(async || ([(header::CONTENT_TYPE, *kind)], *text)))
        });
        assets
            .route("/api/v1/parents", get(api::parents))
            .route("/api/v1/parents/{uid}", get(api::parent))
            .route("/api/v1/parents/{uid}/branch", get(branch::branch))
            .route("/api/v1/parents/{uid}/around", get(branch::around))
            .route("/api/v1/stream", get(stream::stream))
            .layer(axum::middleware::map_response(guarded))
            .with_state(self)
    }
}

/// What goes with every answer.
async fn guarded(mut response: Response) -> Response {
    let fixed: [(HeaderName, &str); 5] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // Nothing of a cluster stays behind in a browser; the page itself is small.
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
