//! One connection without a socket, for fuzzing.

use std::sync::{Arc, Mutex};

use axum::Router;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{
    Admission, ClientAddress, ConnectionEntry, ConnectionLimits, ConnectionTable, ListenerState,
    ListenerTimeouts,
};
use crate::metrics::Metrics;

/// Serves one connection as the listener of the page does.
pub(crate) async fn serve_connection(
    io: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    metrics: &Metrics,
) {
    let mut table = ConnectionTable::new(ConnectionLimits { total: 1, per_address: 1 });
    let address = ClientAddress::from(std::net::IpAddr::from([10, 0, 0, 1]));
    let Admission::Admitted(id) = table.admit(address, CancellationToken::new()) else { return };
    let state = ListenerState {
        table: Mutex::new(table),
        timeouts: ListenerTimeouts::PAGE,
        tls: None,
        metrics: metrics.page_listener(),
        router,
        stop: CancellationToken::new(),
    };
    ConnectionEntry { state: Arc::new(state), id, address }.serve_http(io).await;
}
