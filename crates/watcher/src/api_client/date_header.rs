//! The server's clock, read from the `Date` header of each response.
//!
//! All timestamps in objects come from the server's clock, and the timestamps in conditions are compared with them.
//! Such comparisons need the server's time, not the local time.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::UNIX_EPOCH;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use kube::client::Body;
use readiness::Time;
use tower_layer::Layer;
use tower_service::Service;

/// Observer of `Date` headers.
pub trait DateObserver: Send + Sync {
    /// Returns the local time.
    fn local_time(&self) -> Time;
    /// Reports a response to a request that was sent at `sent`, by the local clock. `date` is the server's time in
    /// whole seconds, rounded down; `None` if the response has no `Date`.
    fn on_date(&self, sent: Time, date: Option<Time>);
}

/// Reports the `Date` of each response.
#[derive(Clone)]
pub(crate) struct DateLayer(pub(crate) Arc<dyn DateObserver>);

impl<S> Layer<S> for DateLayer {
    type Service = DateService<S>;

    fn layer(&self, inner: S) -> DateService<S> {
        DateService { inner, keeper: self.0.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct DateService<S> {
    inner: S,
    keeper: Arc<dyn DateObserver>,
}

impl<S, B> Service<Request<Body>> for DateService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (keeper, sent) = (self.keeper.clone(), self.keeper.local_time());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            keeper.on_date(sent, parse_date(answer.headers()));
            Ok(answer)
        })
    }
}

/// Time of the server in whole seconds, as a response says it.
pub(super) fn parse_date(headers: &HeaderMap) -> Option<Time> {
    parse_http_date(headers.get(header::DATE)?.to_str().ok()?)
}

/// Parses a date as HTTP writes it, in any of its three forms.
pub(super) fn parse_http_date(text: &str) -> Option<Time> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time::default() + since)
}
