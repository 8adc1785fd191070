//! Clients over a pool that can be replaced.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder, ConfigExt};
use tower_service::Service;

use super::BoxError;
use super::connector::HttpsOpener;
use super::monitor::ConnectionMonitor;
use super::transport::{PoolSlot, PooledTransport};
use crate::api_client::date_header::{DateLayer, DateObserver};

/// Creates a client without kube's hidden retries: the caller decides when to retry.
///
/// [`follow`](crate::api_client::follow()) and [`get_live`](crate::get_live()) have their own deadlines and pacing, so any client
/// works for them. With another one, kube would retry after a 429 by itself, up to fifteen times and for up to 1,000 s,
/// without reporting it.
pub fn client_without_retries(config: kube::Config) -> Result<kube::Client, kube::Error> {
    Ok(build_client(config, None, None)?.0)
}

/// Creates a [`client_without_retries`] that reports the `Date` of each response to `keeper`, and what looks after its
/// connections while it runs. That reads the certificates again when their files change: those of `config`, and the one of the
/// authorities that it trusts, if it came from a file.
pub fn timed_client(
    config: kube::Config,
    authorities: Option<PathBuf>,
    keeper: Arc<dyn DateObserver>,
) -> Result<(kube::Client, ConnectionMonitor), kube::Error> {
    let (client, slot) = build_client(config, authorities, Some(keeper))?;
    let monitor = ConnectionMonitor::new(client.clone(), slot);
    Ok((client, monitor))
}

fn build_client(
    config: kube::Config,
    authorities: Option<PathBuf>,
    keeper: Option<Arc<dyn DateObserver>>,
) -> Result<(kube::Client, Arc<PoolSlot>), kube::Error> {
    let slot = Arc::new(PoolSlot::new(HttpsOpener::new(config.clone(), authorities)?));
    let (base, headers, auth) =
        (config.base_uri_layer(), config.extra_headers_layer()?, config.auth_layer()?);
    let transport = PooledTransport(slot.clone());
    let stack = ClientBuilder::new(transport, config.default_namespace).with_layer(&headers);
    let client = match auth {
        Some(auth) => finish_client(stack.with_layer(&auth).with_layer(&base), keeper),
        None => finish_client(stack.with_layer(&base), keeper),
    };
    Ok((client, slot))
}

fn finish_client<S, B>(stack: ClientBuilder<S>, keeper: Option<Arc<dyn DateObserver>>) -> kube::Client
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    match keeper {
        Some(keeper) => stack.with_layer(&DateLayer(keeper)).build(),
        None => stack.build(),
    }
}
