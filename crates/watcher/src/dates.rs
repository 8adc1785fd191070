//! What the server says the time is: the `Date` of each of its answers.
//!
//! Every moment that an object carries was read from the server's clock, and what is written into conditions is read beside
//! them. So whoever compares the two needs the server's time, not this machine's.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::UNIX_EPOCH;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use kube::client::Body;
use readiness::Time;
use tower_layer::Layer;
use tower_service::Service;

use crate::guard::unhurried;

/// Who wants to know.
pub trait Timekeeper: Send + Sync {
    /// What time it is on this machine.
    fn here(&self) -> Time;
    /// The server answered a request that was sent at `sent`, on this machine's clock. `date` is what its own clock said
    /// meanwhile, in whole seconds, cut off; none where the answer has none.
    fn heard(&self, sent: Time, date: Option<Time>);
}

/// [`client`](crate::client()), each of whose answers is told to the keeper of time.
pub fn timed_client(config: kube::Config, keeper: Arc<dyn Timekeeper>) -> Result<kube::Client, kube::Error> {
    Ok(unhurried(config)?.with_layer(&Dates(keeper)).build())
}

#[derive(Clone)]
struct Dates(Arc<dyn Timekeeper>);

impl<S> Layer<S> for Dates {
    type Service = Dated<S>;

    fn layer(&self, inner: S) -> Dated<S> {
        Dated { inner, keeper: self.0.clone() }
    }
}

#[derive(Clone)]
struct Dated<S> {
    inner: S,
    keeper: Arc<dyn Timekeeper>,
}

impl<S, B> Service<Request<Body>> for Dated<S>
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
        let (keeper, sent) = (self.keeper.clone(), self.keeper.here());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            keeper.heard(sent, date(answer.headers()));
            Ok(answer)
        })
    }
}

fn date(headers: &HeaderMap) -> Option<Time> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time::default() + since)
}
