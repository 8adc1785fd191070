//! The listener of the demo's page and metrics.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use tokio::net::TcpListener;

const DEFAULT_LISTEN_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Binds a listener and returns it with a line that names its address.
pub(super) async fn bind_listener(
    wanted: Option<SocketAddr>,
    once: bool,
) -> anyhow::Result<(TcpListener, String)> {
    let free = |addr: SocketAddr| SocketAddr::new(addr.ip(), 0);
    let addr = wanted.unwrap_or(if once { free(DEFAULT_LISTEN_ADDRESS) } else { DEFAULT_LISTEN_ADDRESS });
    let failed = |addr| format!("failed to listen on {addr}: try --listen {}", free(DEFAULT_LISTEN_ADDRESS));
    let (listener, taken) = match TcpListener::bind(addr).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            (TcpListener::bind(free(addr)).await.with_context(|| failed(free(addr)))?, true)
        }
        done => (done.with_context(|| failed(addr))?, false),
    };
    let at = listener.local_addr().context("failed to read the listener's address")?;
    let taken = if taken { format!(" ({} is taken)", addr.port()) } else { String::new() };
    Ok((listener, format!("page: http://{at}{taken}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_a_port_is_taken_a_free_one_is_offered() {
        let (first, _) = bind_listener(None, true).await.unwrap();
        let taken = first.local_addr().unwrap();
        let (second, line) = bind_listener(Some(taken), true).await.unwrap();
        assert_ne!(second.local_addr().unwrap(), taken);
        assert!(line.contains(&format!("({} is taken)", taken.port())), "{line}");
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_an_error_with_a_way_out() {
        let error = bind_listener(Some(([192, 0, 2, 1], 80).into()), false).await.unwrap_err();
        assert!(format!("{error:#}").contains("--listen 127.0.0.1:0"), "{error:#}");
    }
}
