//! The store behind plain HTTP.

mod faults;
mod replay;
mod request_info;
mod request_log;
mod response;
mod serve;
mod server_state;
mod stream;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use faults::{FaultAction, FaultHandle, FaultInjector, InjectedFault};
pub use replay::{ReplayScript, ReplayServer};
pub use request_info::RequestVerb;
pub use request_log::{LoggedRequest, RequestTally};
pub use server_state::{SandboxClock, StoreGuard};

use server_state::{ServerState, SharedCluster};

use crate::store::{EpochMillis, SandboxStore};

/// Settings of a server.
#[derive(Clone)]
pub struct SandboxOptions {
    /// Address to listen on. Port 0 picks a free port.
    pub addr: SocketAddr,
    /// Seed of UIDs and generated names.
    pub seed: u64,
    /// Runs garbage collection and namespace deletion within each request; otherwise only
    /// [`SandboxStore::run_controllers`] does.
    pub controllers: bool,
    /// The server's clock. Defaults to the system clock.
    pub clock: Option<SandboxClock>,
}

impl Default for SandboxOptions {
    /// A free port on loopback, controllers within each request, the system clock.
    fn default() -> SandboxOptions {
        SandboxOptions { addr: (Ipv4Addr::LOCALHOST, 0).into(), seed: 1, controllers: true, clock: None }
    }
}

/// An API server in memory. Dropping it stops it.
pub struct SandboxServer {
    addr: SocketAddr,
    shared: Arc<ServerState>,
    accepting: AbortHandle,
}

impl SandboxServer {
    /// Starts a server with an empty cluster.
    pub async fn start(options: SandboxOptions) -> io::Result<SandboxServer> {
        let now = options.clock.as_ref().map_or_else(wall_clock, |clock| clock());
        let mut store = SandboxStore::new_at(options.seed, now);
        store.set_controllers(options.controllers);
        SandboxServer::start_with_store(options, store).await
    }

    /// Starts a server over a store that is already filled.
    pub async fn start_with_store(options: SandboxOptions, store: SandboxStore) -> io::Result<SandboxServer> {
        let revision = watch::Sender::new(store.revision());
        let cluster = Arc::new(SharedCluster { store: Mutex::new(store), revision });
        let clock = options.clock.unwrap_or_else(|| Arc::new(wall_clock));
        SandboxServer::start_listening(options.addr, cluster, clock).await
    }

    /// Starts another server over the same objects, with faults and a log of its own, like several API servers behind
    /// one load balancer. [`FaultAction::LagAt`] makes its watch cache fall behind.
    pub async fn start_replica(&self) -> io::Result<SandboxServer> {
        let (cluster, clock) = (self.shared.cluster.clone(), self.shared.clock.clone());
        SandboxServer::start_listening((Ipv4Addr::LOCALHOST, 0).into(), cluster, clock).await
    }

    async fn start_listening(
        addr: SocketAddr,
        cluster: Arc<SharedCluster>,
        clock: SandboxClock,
    ) -> io::Result<SandboxServer> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(ServerState {
            cluster,
            epoch: watch::Sender::new(0),
            faults: FaultInjector::default(),
            log: request_log::RequestLog::default(),
            clock,
        });
        let accepting = tokio::spawn(accept_connections(listener, shared.clone())).abort_handle();
        Ok(SandboxServer { addr, shared, accepting })
    }

    /// Base URL for clients: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Locks the store, to inspect it or to edit it behind the clients' backs. Watches are notified of edits when the
    /// guard is dropped; do not hold it across an await.
    pub fn lock_store(&self) -> StoreGuard<'_> {
        self.shared.lock_store()
    }

    /// Current time of the server's clock.
    pub fn now(&self) -> EpochMillis {
        (self.shared.clock)()
    }

    /// Fault injector of this server.
    pub fn faults(&self) -> &FaultInjector {
        &self.shared.faults
    }

    /// Returns the logged requests, oldest first. Only the newest are kept.
    pub fn logged_requests(&self) -> Vec<LoggedRequest> {
        self.shared.log.all()
    }

    /// Returns the number of all requests since the log was last cleared, by what they address.
    pub fn request_counts(&self) -> BTreeMap<RequestTally, u64> {
        self.shared.log.counts()
    }

    /// Clears the request log and the counts.
    pub fn forget_requests(&self) {
        self.shared.log.clear();
    }

    /// Ends all running watches, as a load balancer or a restart would.
    pub fn end_watches(&self) {
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }
}

impl Drop for SandboxServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[expect(clippy::disallowed_methods, reason = "the server's own clock; everything below it is told the time")]
fn wall_clock() -> EpochMillis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    EpochMillis::try_from(since.as_millis()).unwrap_or(EpochMillis::MAX)
}

/// Accepts connections while the server lives; its connections end with it.
async fn accept_connections(listener: TcpListener, shared: Arc<ServerState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(serve_connection(socket, shared.clone()));
            }
            Some(_) = connections.join_next() => {}
            else => {}
        }
    }
}

async fn serve_connection(socket: TcpStream, shared: Arc<ServerState>) {
    // Events are small and late ones are worthless: no Nagle. If the option cannot be set, the server is only slower.
    let _ = socket.set_nodelay(true);
    let service = hyper::service::service_fn(|request| serve::answer_request(shared.clone(), request));
    // A disconnected client is not an error of the server.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}
