//! The store behind plain HTTP.

mod address;
mod faults;
mod log;
mod replay;
mod serve;
mod stream;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use address::Verb;
pub use faults::{Act, Fault, FaultHandle, Faults};
pub use log::Logged;
pub use replay::{Replay, ReplayServer};

use crate::store::{Millis, Store};

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// How a server is started.
#[derive(Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub addr: SocketAddr,
    /// What its uids and generated names come from.
    pub seed: u64,
    /// Whether garbage collection and the emptying of namespaces happen at once, or only by [`Store::tick`].
    pub controllers: bool,
    /// Its clock; the system's where none is given.
    pub clock: Option<Clock>,
}

impl Default for Options {
    /// A free port on loopback, controllers at once, the system's clock.
    fn default() -> Options {
        Options { addr: (Ipv4Addr::LOCALHOST, 0).into(), seed: 1, controllers: true, clock: None }
    }
}

/// What replicas share: the objects. Written by requests and by whoever holds a [`StoreGuard`].
struct Cluster {
    store: Mutex<Store>,
    revision: watch::Sender<u64>,
}

/// What the connections of one server share.
struct Shared {
    cluster: Arc<Cluster>,
    /// Moves when all running watches are to end.
    epoch: watch::Sender<u64>,
    faults: Faults,
    log: log::Log,
    clock: Clock,
}

/// An API server in memory. It stops when it is dropped.
pub struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Server {
    /// Starts one with an empty cluster.
    pub async fn start(options: Options) -> io::Result<Server> {
        let now = options.clock.as_ref().map_or_else(wall_clock, |clock| clock());
        let mut store = Store::begun(options.seed, now);
        store.set_controllers(options.controllers);
        Server::serve(options, store).await
    }

    /// Starts one over a store that is already filled.
    pub async fn serve(options: Options, store: Store) -> io::Result<Server> {
        let revision = watch::Sender::new(store.revision());
        let cluster = Arc::new(Cluster { store: Mutex::new(store), revision });
        let clock = options.clock.unwrap_or_else(|| Arc::new(wall_clock));
        Server::listen(options.addr, cluster, clock).await
    }

    /// Another server over the same objects, with faults and a log of its own: as a load balancer has several behind
    /// it. With [`Act::LagAt`] its watch cache falls behind.
    pub async fn replica(&self) -> io::Result<Server> {
        let (cluster, clock) = (self.shared.cluster.clone(), self.shared.clock.clone());
        Server::listen((Ipv4Addr::LOCALHOST, 0).into(), cluster, clock).await
    }

    async fn listen(addr: SocketAddr, cluster: Arc<Cluster>, clock: Clock) -> io::Result<Server> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            cluster,
            epoch: watch::Sender::new(0),
            faults: Faults::default(),
            log: log::Log::default(),
            clock,
        });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Server { addr, shared, accepting })
    }

    /// Its address as clients want it: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The store, for looking and for editing behind the clients' backs. Watches learn of edits when the guard goes;
    /// do not keep it across an await.
    pub fn store(&self) -> StoreGuard<'_> {
        self.shared.lock()
    }

    /// What the server's clock says now.
    pub fn now(&self) -> Millis {
        (self.shared.clock)()
    }

    /// The faults, to script some.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The requests so far, oldest first; of very many the newest.
    pub fn requests(&self) -> Vec<Logged> {
        self.shared.log.all()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.shared.log.clear();
    }

    /// Ends all running watches, as a load balancer or a restart would.
    pub fn end_watches(&self) {
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Exclusive access to the store; watches are woken when it goes.
pub struct StoreGuard<'a> {
    store: MutexGuard<'a, Store>,
    revision: &'a watch::Sender<u64>,
}

impl Deref for StoreGuard<'_> {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl Drop for StoreGuard<'_> {
    fn drop(&mut self) {
        let now = self.store.revision();
        self.revision.send_if_modified(|seen| std::mem::replace(seen, now) != now);
    }
}

impl Shared {
    fn lock(&self) -> StoreGuard<'_> {
        // A panic in a test that held the guard must not hide the failure behind a second one.
        let store = self.cluster.store.lock().unwrap_or_else(PoisonError::into_inner);
        StoreGuard { store, revision: &self.cluster.revision }
    }
}

#[expect(clippy::disallowed_methods, reason = "the server's own clock; everything below it is told the time")]
fn wall_clock() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as Millis
}

/// Takes connections for as long as the server lives; theirs end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(connection(socket, shared.clone()));
            }
            Some(_) = connections.join_next() => {}
            else => {}
        }
    }
}

async fn connection(socket: TcpStream, shared: Arc<Shared>) {
    // Events are small and late ones are worthless: no Nagle. Where it cannot be set, it is only slower.
    let _ = socket.set_nodelay(true);
    let service = hyper::service::service_fn(|request| serve::answer(shared.clone(), request));
    // A client that went away is no error of the server's.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}
