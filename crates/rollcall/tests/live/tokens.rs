//! Strangers with tokens that nobody knows, at the listener that asks for tokens: what they cost the API server is bounded, and
//! they keep nobody out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use sandbox::{FaultAction, InjectedFault};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use super::cluster::LiveCluster;
use super::service::RunningService;

const STRANGERS: u64 = 500;
/// Reviews that one address may cause at once with tokens that are not accepted, and seconds after which it may cause another.
const BURST: u64 = 20;
const SECONDS_EACH: u64 = 3;

/// A listener that asks for tokens.
struct TokenListener {
    cluster: LiveCluster,
    service: RunningService,
}

impl TokenListener {
    async fn start(name: &str) -> TokenListener {
        let cluster = LiveCluster::start(name).await;
        let service = RunningService::start_at(&cluster, "0.0.0.0:0", &[], &[]);
        TokenListener { cluster, service }
    }

    /// The status with which a request from this address and with this token is answered.
    async fn ask(&self, from: u8, token: &str, path: &str) -> u16 {
        let local = |host| IpAddr::V4(Ipv4Addr::new(127, 0, 0, host));
        let port = self.service.address().parse::<SocketAddr>().unwrap().port();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((local(from), 0).into()).unwrap();
        let mut stream = socket.connect((local(1), port).into()).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: rollcall\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Number of TokenReviews that the API server was asked for.
    fn reviews(&self) -> u64 {
        let counts = self.cluster.server.request_counts();
        counts.iter().filter(|(of, _)| of.plural == "tokenreviews").map(|(_, count)| count).sum()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_unknown_tokens_cost_the_api_server_few_reviews_and_keep_nobody_out() {
    let listener = TokenListener::start("tokens").await;
    let paths = ["/metrics", "/api/v1/parents"];
    for path in paths {
        assert_eq!(listener.ask(1, "good", path).await, 200, "{path}");
    }
    assert_eq!(listener.reviews(), 1, "both paths share what is known");
    let unknown = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {},
        "spec": {}, "status": { "authenticated": false } });
    let refuses = InjectedFault::new(FaultAction::AnswerRaw(unknown.to_string().into_bytes()));
    let refuses = refuses.on_kind("authentication.k8s.io", "tokenreviews");
    let (refused, before, started) =
        (listener.cluster.server.faults().add(refuses), listener.reviews(), Instant::now());
    let mut answers = BTreeMap::<u16, u64>::new();
    for (stranger, path) in (0..STRANGERS).zip(paths.iter().cycle()) {
        *answers.entry(listener.ask(1, &format!("bad-{stranger}"), path).await).or_default() += 1;
    }
    let asked = listener.reviews() - before;
    let most = BURST + 1 + started.elapsed().as_secs() / SECONDS_EACH;
    assert!((BURST..=most).contains(&asked), "{asked} reviews, at most {most}");
    assert_eq!(answers, BTreeMap::from([(401, asked), (429, STRANGERS - asked)]));
    refused.lift();
    for path in paths {
        assert_eq!(listener.ask(1, "good", path).await, 200, "one that is known, from the same address");
        assert_eq!(listener.ask(2, "another", path).await, 200, "a new one, from another address");
    }
}
