use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;

use super::*;
use crate::api_client::connection::BoxError;
use crate::api_client::connection::is_discarded;
use crate::api_client::connection::pool::{ConnectionPool, SendRequest, WireBody};
use crate::api_client::connection::transport::{OpenPool, PooledTransport};

/// Connections whose bytes can be swallowed: of those that there are, or of all.
#[derive(Default)]
struct SwallowingNetwork {
    server_down: AtomicBool,
    pools: Mutex<Vec<Arc<AtomicBool>>>,
    asked: Mutex<Vec<(usize, String)>>,
    /// Number of times that the certificates changed.
    certificates: AtomicU64,
    /// The server knows no later ones than these.
    accepted: AtomicU64,
    /// Number of bytes that a chatty watch has brought.
    chatter: AtomicUsize,
}

struct FakeSender {
    network: Arc<SwallowingNetwork>,
    pool: usize,
    certificates: u64,
    swallowed: Arc<AtomicBool>,
}

impl SendRequest for FakeSender {
    fn send_request(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<WireBody>, BoxError>> {
        let path = request.uri().path().to_owned();
        self.network.asked.lock().unwrap().push((self.pool, path.clone()));
        let (network, swallowed) = (self.network.clone(), self.swallowed.clone());
        let refused = self.certificates > network.accepted.load(Ordering::Relaxed);
        async move {
            if refused {
                return Err("the handshake failed".into());
            }
            if swallowed.load(Ordering::Relaxed) || network.server_down.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let frames = match path.as_str() {
                "/quiet-watch" => stream::pending().boxed(),
                "/chatty-watch" => stream::unfold(network, |network| async {
                    sleep(Duration::from_secs(1)).await;
                    network.chatter.fetch_add(1, Ordering::Relaxed);
                    Some((Ok(Frame::data(Bytes::from_static(b"x"))), network))
                })
                .boxed(),
                _ => stream::empty().boxed(),
            };
            Ok(Response::new(WireBody::new(StreamBody::new(frames))))
        }
        .boxed()
    }
}

struct FakeOpener(Arc<SwallowingNetwork>);

impl OpenPool for FakeOpener {
    fn read_certificates(&self) -> u64 {
        self.0.certificates.load(Ordering::Relaxed)
    }

    fn open_pool(&self) -> ConnectionPool {
        self.0.open()
    }
}

impl SwallowingNetwork {
    fn open(self: &Arc<Self>) -> ConnectionPool {
        let swallowed = Arc::new(AtomicBool::new(false));
        let certificates = self.certificates.load(Ordering::Relaxed);
        let mut pools = self.pools.lock().unwrap();
        let sender = || -> Box<dyn SendRequest> {
            let (network, swallowed) = (self.clone(), swallowed.clone());
            Box::new(FakeSender { network, pool: pools.len(), certificates, swallowed })
        };
        let pool = ConnectionPool::new(sender(), sender(), certificates);
        pools.push(swallowed);
        pool
    }

    /// From now on, nothing goes over the connections that there are.
    fn swallow(&self) {
        for swallowed in self.pools.lock().unwrap().iter() {
            swallowed.store(true, Ordering::Relaxed);
        }
    }

    fn count_asked(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(_, asked)| asked == path).count()
    }

    fn count_pools(&self) -> usize {
        self.pools.lock().unwrap().len()
    }
}

fn connect() -> (Arc<SwallowingNetwork>, kube::Client, ConnectionMonitor) {
    let network = Arc::new(SwallowingNetwork::default());
    let slot = Arc::new(PoolSlot::new(FakeOpener(network.clone())));
    let client = kube::Client::new(PooledTransport(slot.clone()), "default");
    (network, client.clone(), ConnectionMonitor::new(client, slot))
}

/// A monitor at work, and how many pools it has replaced.
fn watch_over(monitor: ConnectionMonitor) -> Arc<AtomicUsize> {
    watch_both(monitor).0
}

/// The same, and how often the server was there again.
fn watch_both(monitor: ConnectionMonitor) -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (replaced, restored) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (replaced.clone(), restored.clone());
    let on_replaced = move || _ = counts.0.fetch_add(1, Ordering::Relaxed);
    tokio::spawn(monitor.run(on_replaced, move || _ = counts.1.fetch_add(1, Ordering::Relaxed)));
    (replaced, restored)
}

async fn open(client: &kube::Client, path: &str) -> kube::client::Body {
    client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap().into_body()
}

/// Waits until a body ends; how long that took, and whether its pool was given up.
async fn end_of(body: &mut kube::client::Body) -> (Duration, bool) {
    let begun = Instant::now();
    loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return (begun.elapsed(), is_discarded(&error)),
            None => return (begun.elapsed(), false),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_die_silently_are_found_in_seconds_at_the_cost_of_one_request() {
    let (network, client, monitor) = connect();
    let replaced = watch_over(monitor);
    let mut watches = [open(&client, "/quiet-watch").await, open(&client, "/quiet-watch").await];
    sleep(Duration::from_secs(31)).await;
    assert_eq!((replaced.load(Ordering::Relaxed), network.count_asked("/version")), (0, 4));
    network.swallow();
    for watch in &mut watches {
        let (took, given_up) = end_of(watch).await;
        assert!(given_up && took < Duration::from_secs(15), "{took:?}");
    }
    assert_eq!((replaced.load(Ordering::Relaxed), network.count_pools()), (1, 2));
    assert_eq!(network.count_asked("/version"), 6, "one was not answered, and one over the new pool was");
    open(&client, "/quiet-watch").await;
    assert_eq!(network.asked.lock().unwrap().last(), Some(&(1, "/quiet-watch".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_is_sent_again_over_the_new_connections_and_brings_them_about() {
    let (network, client, monitor) = connect();
    watch_over(monitor);
    sleep(Duration::from_millis(2_100)).await;
    network.swallow();
    let begun = Instant::now();
    open(&client, "/object").await;
    assert!(begun.elapsed() < Duration::from_secs(11), "a slow one is looked into: {:?}", begun.elapsed());
    assert_eq!(network.count_asked("/object"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_write_is_not_known_so_it_is_not_sent_again() {
    let (network, client, monitor) = connect();
    let replaced = watch_over(monitor);
    sleep(Duration::from_secs(1)).await;
    network.swallow();
    let write = Request::patch("/object").body(Body::empty()).unwrap();
    assert!(
        timeout(Duration::from_secs(60), client.send(write)).await.is_err(),
        "it has a deadline of its own"
    );
    assert_eq!((replaced.load(Ordering::Relaxed), network.count_asked("/object")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_nobody_loses_no_connection() {
    let (network, client, monitor) = connect();
    let replaced = watch_over(monitor);
    let mut watch = open(&client, "/quiet-watch").await;
    network.server_down.store(true, Ordering::Relaxed);
    assert!(timeout(Duration::from_secs(600), end_of(&mut watch)).await.is_err());
    assert_eq!(replaced.load(Ordering::Relaxed), 0);
    assert!(network.count_asked("/version") < 90, "two in twenty seconds");
}

#[tokio::test(start_paused = true)]
async fn that_the_server_is_there_again_is_told_once_each_time() {
    let (network, _client, monitor) = connect();
    let (_, restored) = watch_both(monitor);
    for times in 0..3 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(restored.load(Ordering::Relaxed), times, "it is there, or is not yet there again");
        network.server_down.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(restored.load(Ordering::Relaxed), times);
        network.server_down.store(false, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_still_brings_something_is_kept() {
    let (network, client, monitor) = connect();
    let replaced = watch_over(monitor);
    let mut watch = open(&client, "/chatty-watch").await;
    network.swallow();
    assert!(timeout(Duration::from_secs(60), end_of(&mut watch)).await.is_err());
    assert_eq!(replaced.load(Ordering::Relaxed), 1);
    assert!(network.chatter.load(Ordering::Relaxed) > 50);
}

#[tokio::test(start_paused = true)]
async fn many_slow_answers_are_no_storm_of_liveness_reads() {
    let (network, client, monitor) = connect();
    watch_over(monitor);
    let slow = (0..100).map(|_| async {
        let mut watch = open(&client, "/quiet-watch").await;
        end_of(&mut watch).await
    });
    network.server_down.store(true, Ordering::Relaxed);
    let all = timeout(Duration::from_secs(60), futures::future::join_all(slow)).await;
    assert!(all.is_err() && network.count_asked("/version") <= 14, "{}", network.count_asked("/version"));
}

#[tokio::test(start_paused = true)]
async fn new_certificates_are_used_as_soon_as_the_server_knows_them_and_quiet_connections_are_opened_again() {
    let (network, client, monitor) = connect();
    let replaced = watch_over(monitor);
    let mut quiet = open(&client, "/quiet-watch").await;
    network.certificates.store(1, Ordering::Relaxed);
    assert!(timeout(Duration::from_secs(60), end_of(&mut quiet)).await.is_err(), "the server refuses them");
    open(&client, "/object").await;
    network.accepted.store(1, Ordering::Relaxed);
    let (took, given_up) = end_of(&mut quiet).await;
    assert!(given_up && took < Duration::from_secs(15), "{took:?}");
    open(&client, "/renewed").await;
    let asked = network.asked.lock().unwrap().clone();
    let by = |path: &str| asked.iter().find(|(_, asked)| asked == path).map(|(pool, _)| *pool);
    assert_eq!((by("/object"), by("/renewed")), (Some(0), Some(network.count_pools() - 1)));
    assert_eq!(replaced.load(Ordering::Relaxed), 0, "nothing was dead");
    let pools = network.count_pools();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(network.count_pools(), pools, "that was all");
}
