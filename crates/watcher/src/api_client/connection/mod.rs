//! The connections to the API server: pooled, looked after, and given up together when they are dead.
//!
//! A connection can die without a word: a NAT entry is forgotten, a load balancer or a node is gone, and no FIN is sent.
//! The kernel's keep-alive finds that where packets are lost. Where a middlebox still acknowledges them, only a request shows
//! it that is not answered, and over HTTP/1.1 each watch holds a connection of its own on which nothing may be asked. So
//! each pool keeps one more connection, as old as the pool, for [liveness reads](ConnectionMonitor).

mod certificates;
mod client;
mod connector;
mod monitor;
mod pool;
mod transport;

pub use client::{client_without_retries, timed_client};
pub use monitor::ConnectionMonitor;
pub(crate) use pool::is_discarded;

/// Any error of a request.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
