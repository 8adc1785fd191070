//! The live page and its API. Read-only. The view is built outside the loop, from one walk of its state, and only while
//! clients request it.
//!
//! **Access.** On loopback, every client sees everything. Anywhere else, each object is shown to viewers who may `list`
//! its kind in its namespace; hidden objects are not counted either.

mod api;
mod authz;
mod below;
mod below_search;
mod below_tree;
mod branch;
mod earlier_rollouts;
mod edge_list;
mod ended_rollout;
#[cfg(feature = "fixtures")]
pub(crate) mod fixture;
mod loop_query;
mod page_service;
mod parent_api;
mod past_rollouts;
mod refusal;
mod rollout;
mod rollout_reader;
pub(crate) mod rollout_report;
mod stream;
#[cfg(test)]
mod tests;
mod transitions_api;
mod tree;
mod tree_reader;
mod ttl_cache;
mod view;
mod view_cache;
mod visibility;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;

pub(crate) use authz::{PageAuthorizer, ViewerRequest};
pub(crate) use ended_rollout::read_ended_rollout;
pub(crate) use loop_query::LoopQuery;
pub(crate) use page_service::{PageConfig, PageService};
pub(crate) use past_rollouts::PastRollouts;
pub(crate) use refusal::PageRefusal;
pub(crate) use rollout_report::RolloutReport;

/// Capacity of the queue of queries to the loop.
pub(crate) const LOOP_QUERY_QUEUE_SIZE: usize = 16;

/// Content-Security-Policy: only our own files, no frames, no markup from strings.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const CONTENT_TYPE_HTML: &str = "text/html; charset=utf-8";
const CONTENT_TYPE_CSS: &str = "text/css; charset=utf-8";
const CONTENT_TYPE_JS: &str = "text/javascript; charset=utf-8";

/// Files of the page: path, content type, text. The browser loads them as modules; there is no bundler.
const PAGE_ASSETS: [(&str, &str, &str); 20] = [
    ("/", CONTENT_TYPE_HTML, include_str!("assets/index.html")),
    ("/style.css", CONTENT_TYPE_CSS, include_str!("assets/style.css")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/app.js", CONTENT_TYPE_JS, include_str!("assets/app.js")),
    ("/address.js", CONTENT_TYPE_JS, include_str!("assets/address.js")),
    ("/below.js", CONTENT_TYPE_JS, include_str!("assets/below.js")),
    ("/copy.js", CONTENT_TYPE_JS, include_str!("assets/copy.js")),
    ("/gate.js", CONTENT_TYPE_JS, include_str!("assets/gate.js")),
    ("/hour.js", CONTENT_TYPE_JS, include_str!("assets/hour.js")),
    ("/keys.js", CONTENT_TYPE_JS, include_str!("assets/keys.js")),
    ("/list.js", CONTENT_TYPE_JS, include_str!("assets/list.js")),
    ("/object.js", CONTENT_TYPE_JS, include_str!("assets/object.js")),
    ("/parent.js", CONTENT_TYPE_JS, include_str!("assets/parent.js")),
    ("/parents.js", CONTENT_TYPE_JS, include_str!("assets/parents.js")),
    ("/rollout.js", CONTENT_TYPE_JS, include_str!("assets/rollout.js")),
    ("/server.js", CONTENT_TYPE_JS, include_str!("assets/server.js")),
    ("/stream.js", CONTENT_TYPE_JS, include_str!("assets/stream.js")),
    ("/tree.js", CONTENT_TYPE_JS, include_str!("assets/tree.js")),
    ("/wall.js", CONTENT_TYPE_JS, include_str!("assets/wall.js")),
    ("/words.js", CONTENT_TYPE_JS, include_str!("assets/words.js")),
];

/// HTTP routes of the page.
pub(crate) fn page_router(page: PageService) -> Router {
    let assets = PAGE_ASSETS.iter().fold(Router::new(), |router, (path, kind, text)| {
        router.route(path, get(async || ([(header::CONTENT_TYPE, *kind)], *text)))
    });
    assets
        .route("/api/v1/parents", get(api::list_parents))
        .route("/api/v1/parents/by-name", get(parent_api::get_named_parent))
        .route("/api/v1/parents/{uid}", get(parent_api::get_parent))
        .route("/api/v1/parents/{uid}/branch", get(branch::get_branch))
        .route("/api/v1/parents/{uid}/around", get(branch::get_around))
        .route("/api/v1/parents/{uid}/below", get(below::get_below))
        .route("/api/v1/parents/{uid}/rollout", get(rollout::get_rollout))
        .route("/api/v1/transitions", get(transitions_api::list_transitions))
        .route("/api/v1/stream", get(stream::open_stream))
        .layer(axum::middleware::map_response(add_security_headers))
        .with_state(page)
}

/// Adds the security headers to every response.
async fn add_security_headers(mut response: Response) -> Response {
    let fixed: [(HeaderName, &str); 5] = [
        (header::CONTENT_SECURITY_POLICY, PAGE_CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        // No cluster data stays in the browser's cache; the page itself is small.
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
