//! How connections are made: TCP with keep-alive, and TLS.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};

use super::BoxError;
use super::pool::{ConnectionPool, SendRequest, WireBody};
use super::transport::PoolOpener;

/// Longest time to connect. 10 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without traffic after which the kernel asks whether the other end is still there. 15 s.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
/// Interval at which it asks again. 5 s.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of questions without an answer after which the connection is closed.
const KEEPALIVE_PROBES: u32 = 3;
/// Time after which a connection is closed on which what was sent is not acknowledged. 30 s.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(30);

/// Prepares pools of connections to the server that `config` names.
pub(super) fn pool_opener(config: &kube::Config) -> Result<PoolOpener, kube::Error> {
    if config.proxy_url.is_some() {
        // kube is built without proxies, and says so in its own words.
        ClientBuilder::try_from(config.clone())?;
    }
    let connector = config.rustls_https_connector_with_connector(tcp_connector())?;
    Ok(Box::new(move || {
        let requests = Client::builder(TokioExecutor::new()).build(connector.clone());
        let probes = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(1).build(connector.clone());
        ConnectionPool::new(Box::new(HyperSender(requests)), Box::new(HyperSender(probes)))
    }))
}

fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(KEEPALIVE_IDLE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    tcp
}

/// hyper's client, with its own pool.
struct HyperSender<C>(Client<C, Body>);

impl<C: Connect + Clone + Send + Sync + 'static> SendRequest for HyperSender<C> {
    fn send_request(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<WireBody>, BoxError>> {
        let answer = self.0.request(request);
        async move { Ok(answer.await?.map(|body| body.map_err(BoxError::from).boxed_unsync())) }.boxed()
    }
}
