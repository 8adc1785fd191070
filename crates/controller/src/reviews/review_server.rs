//! An API server for tests, which answers reviews by a function, and counts requests.

use std::future::Ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::Value;

/// Response to a review, from its path and body.
pub(crate) type ReviewAnswer = fn(&str, &Value) -> Value;

/// API server whose answers are a function of the review.
#[derive(Clone)]
pub(crate) struct ReviewServer {
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<ReviewAnswer>>,
}

impl ReviewServer {
    pub(crate) fn new(answer: ReviewAnswer) -> Self {
        ReviewServer { asked: Arc::default(), answer: Arc::new(Mutex::new(answer)) }
    }

    /// A client of this server.
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Number of reviews so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Answers like this from now on.
    pub(crate) fn set_answer(&self, answer: ReviewAnswer) {
        *self.answer.lock().unwrap() = answer;
    }
}

impl tower_service::Service<Request<kube::client::Body>> for ReviewServer {
    type Response = Response<kube::client::Body>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (parts, body) = request.into_parts();
        let body = futures::executor::block_on(body.collect()).unwrap().to_bytes();
        // A request that is no review has no body.
        let review: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = self.answer.lock().unwrap()(parts.uri.path(), &review);
        let code = answer["code"].as_u64().unwrap_or(201);
        let body = kube::client::Body::from(answer.to_string().into_bytes());
        std::future::ready(Ok(Response::builder().status(u16::try_from(code).unwrap()).body(body).unwrap()))
    }
}
