//! A listener on loopback, and clients that mean no good.

use std::net::Ipv4Addr;

use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::metrics::Metrics;

/// Longest time to wait; far longer than anything takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limits that are over soon.
const SHORT: ListenerTimeouts =
    ListenerTimeouts { header: Duration::from_millis(300), write: Duration::from_millis(300) };
/// Time limits that are never over.
const LONG: ListenerTimeouts =
    ListenerTimeouts { header: Duration::from_secs(3_600), write: Duration::from_secs(3_600) };

const WHOLE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const HALF: &str = "GET / HTTP/1.1\r\nHost: localh";

/// A running listener.
struct RunningListener {
    address: SocketAddr,
    metrics: ListenerMetrics,
    stop: CancellationToken,
    ended: JoinHandle<anyhow::Result<()>>,
}

/// Serves a word at `/`, and at `/endless` more than anybody reads.
async fn running(total: usize, per_address: usize, timeouts: ListenerTimeouts) -> RunningListener {
    running_with(ConnectionLimits { total, per_address }, timeouts, None).await
}

async fn running_with(
    limits: ConnectionLimits,
    timeouts: ListenerTimeouts,
    tls: Option<TlsAcceptor>,
) -> RunningListener {
    let chunk = Bytes::from(vec![b'x'; 65_536]);
    let chunks = move || futures::stream::repeat(Ok::<_, Infallible>(chunk.clone()));
    let router = Router::new()
        .route("/", get(async || "a word"))
        .route("/endless", get(move || std::future::ready(Body::from_stream(chunks()))))
        .route(
            "/stays",
            get(async || Body::from_stream(futures::stream::pending::<Result<Bytes, Infallible>>())),
        );
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (address, stop) = (socket.local_addr().unwrap(), CancellationToken::new());
    let metrics = Metrics::new(0).unwrap().page_listener();
    let listener = HttpListener { socket, limits, timeouts, tls, metrics: metrics.clone() };
    let ended = tokio::spawn(listener.serve(router, stop.clone()));
    RunningListener { address, metrics, stop, ended }
}

impl RunningListener {
    /// Sends this text from this address of the machine.
    async fn send(&self, from: u8, text: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).unwrap();
        let mut stream = timeout(TEST_TIMEOUT, socket.connect(self.address)).await.unwrap().unwrap();
        // A listener may have closed it already.
        _ = stream.write_all(text.as_bytes()).await;
        stream
    }

    /// Waits until so many connections are open.
    async fn until_open(&self, wanted: impl Fn(i64) -> bool) {
        let reached = async {
            while !wanted(self.metrics.open.get()) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TEST_TIMEOUT, reached)
            .await
            .unwrap_or_else(|_| panic!("{} are open", self.metrics.open.get()));
    }
}

/// What comes until the end; an end by a reset is one, too.
async fn received(mut stream: impl AsyncRead + Unpin) -> String {
    let mut bytes = Vec::new();
    _ = timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the connection stays open");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn three_hundred_half_sent_requests_keep_nobody_waiting() {
    for (total, per_address) in [(32, 32), (1_024, 256)] {
        let running = running(total, per_address, LONG).await;
        let mut half = Vec::new();
        for _ in 0..300 {
            half.push(running.send(1, HALF).await);
        }
        let answer = received(running.send(1, WHOLE).await).await;
        assert!(answer.ends_with("a word"), "{answer}");
        let most = i64::try_from(per_address).unwrap();
        running.until_open(|open| open <= most).await;
        assert!(running.metrics.evicted.get() >= 300 - u64::try_from(per_address).unwrap());
    }
}

#[tokio::test]
async fn who_does_not_finish_a_request_is_let_go() {
    let running = running(8, 8, SHORT).await;
    let answer = received(running.send(1, HALF).await).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    assert_eq!(received(running.send(1, "").await).await, "", "who says nothing");
    let kept_alive = received(running.send(1, &WHOLE.replace("close", "keep-alive")).await).await;
    assert!(kept_alive.ends_with("a word"), "who asks once and stays: {kept_alive}");
    let mut drip = running.send(1, HALF).await;
    let dripping = async {
        while drip.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TEST_TIMEOUT, dripping).await.expect("who sends a letter now and then is waited for");
    running.until_open(|open| open == 0).await;
}

#[tokio::test]
async fn nobody_waits_for_a_body_or_reads_a_long_head() {
    let running = running(8, 8, LONG).await;
    let half = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nsome of it";
    let answer = received(running.send(1, half).await).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(2 * MAX_REQUEST_HEAD_SIZE));
    let answer = received(running.send(1, &long).await).await;
    assert!(answer.starts_with("HTTP/1.1 431 ") || answer.is_empty(), "{answer}");
}

#[tokio::test]
async fn who_reads_nothing_is_let_go() {
    let running = running(8, 8, ListenerTimeouts { header: TEST_TIMEOUT, ..SHORT }).await;
    let _slow = running.send(1, &WHOLE.replace("/ ", "/endless ")).await;
    running.until_open(|open| open == 1).await;
    running.until_open(|open| open == 0).await;
}

#[tokio::test]
async fn many_connections_from_few_addresses_leave_room_for_others() {
    let running = running(16, 6, LONG).await;
    let mut stays = running.send(9, &WHOLE.replace("/ ", "/stays ")).await;
    let mut head = [0; 15];
    timeout(TEST_TIMEOUT, stays.read_exact(&mut head)).await.unwrap().unwrap();
    let mut half = Vec::new();
    for from in 2..=5 {
        for _ in 0..50 {
            half.push(running.send(from, HALF).await);
        }
    }
    let answer = received(running.send(7, WHOLE).await).await;
    assert!(answer.ends_with("a word"), "{answer}");
    running.until_open(|open| open <= 16).await;
    // What is being answered goes on.
    let mut more = [0; 1];
    let rest = async { while stays.read(&mut more).await.unwrap() > 0 {} };
    assert!(timeout(Duration::from_millis(100), rest).await.is_err(), "its stream has ended");
}

#[tokio::test]
async fn where_everything_is_being_answered_one_address_gets_no_more() {
    let running = running(16, 2, LONG).await;
    let stays = WHOLE.replace("/ ", "/stays ");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = running.send(2, &stays).await;
        stream.read_exact(&mut [0; 15]).await.unwrap();
        open.push(stream);
    }
    assert_eq!(received(running.send(2, WHOLE).await).await, "");
    assert_eq!(running.metrics.refused.get(), 1);
    assert!(received(running.send(3, WHOLE).await).await.ends_with("a word"));
}

#[tokio::test]
async fn a_stop_waits_for_no_request_and_finishes_what_was_begun() {
    let running = running(16, 16, LONG).await;
    let half = running.send(1, HALF).await;
    let kept = running.send(1, &WHOLE.replace("close", "keep-alive")).await;
    let mut slow = running.send(1, &WHOLE.replace("/ ", "/endless ")).await;
    slow.read_exact(&mut [0; 15]).await.unwrap();
    running.until_open(|open| open == 3).await;
    running.stop.cancel();
    assert_eq!(received(half).await, "");
    received(kept).await;
    assert!(!running.ended.is_finished(), "a response was cut off");
    drop(slow);
    timeout(TEST_TIMEOUT, running.ended).await.unwrap().unwrap().unwrap();
    assert_eq!(running.metrics.open.get(), 0);
}

mod tls {
    use std::path::PathBuf;

    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits { total: 16, per_address: 16 };

    /// A folder of its own for each test, with a pair of files.
    struct PairOfFiles {
        certificate: PathBuf,
        key: PathBuf,
    }

    impl PairOfFiles {
        fn new(test: &str) -> PairOfFiles {
            let folder = std::env::temp_dir().join(format!("rollcall-{test}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            PairOfFiles { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
        }

        fn source(&self) -> CertificateSource {
            CertificateSource::Files { certificate: self.certificate.clone(), key: self.key.clone() }
        }

        /// Writes a new pair; returns its certificate.
        fn renew(&self) -> CertificateDer<'static> {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            std::fs::write(&self.certificate, pem("CERTIFICATE", made.cert.der())).unwrap();
            std::fs::write(&self.key, pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
            made.cert.der().clone()
        }
    }

    /// The PEM encoding; its lines may have any length.
    fn pem(label: &str, der: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for three in der.chunks(3) {
            let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte))
                << (8 * (3 - three.len()));
            for at in 0..4 {
                let digit = char::from(DIGITS[bits >> (18 - 6 * at) & 63]);
                text.push(if at <= three.len() { digit } else { '=' });
            }
        }
        let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    async fn serving(certificate: &Arc<ReloadedCertificate>, timeouts: ListenerTimeouts) -> RunningListener {
        running_with(LIMITS, timeouts, Some(certificate.acceptor().unwrap())).await
    }

    /// Asks over TLS, and trusts this certificate alone.
    async fn asked(running: &RunningListener, trusted: &CertificateDer<'static>) -> Result<String, String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = running.send(1, "").await;
        let connector = TlsConnector::from(Arc::new(config));
        let connected = connector.connect("localhost".try_into().unwrap(), stream).await;
        let mut stream = connected.map_err(|error| error.to_string())?;
        stream.write_all(WHOLE.as_bytes()).await.map_err(|error| error.to_string())?;
        Ok(received(stream).await)
    }

    #[tokio::test]
    async fn a_changed_certificate_is_presented_and_a_broken_one_is_not() {
        let files = PairOfFiles::new("renewed");
        let first = files.renew();
        let certificate = ReloadedCertificate::open(files.source()).await.unwrap();
        let running = serving(&certificate, LONG).await;
        assert!(asked(&running, &first).await.unwrap().ends_with("a word"));
        let seen = certificate.read_again(None).await;

        let second = files.renew();
        let seen = certificate.read_again(seen).await;
        assert!(asked(&running, &second).await.unwrap().ends_with("a word"));
        asked(&running, &first).await.unwrap_err();

        // A new certificate with the old key, then none, then no file: each leaves what was there.
        let (old_key, _) = (std::fs::read(&files.key).unwrap(), files.renew());
        let good = (std::fs::read(&files.certificate).unwrap(), std::fs::read(&files.key).unwrap());
        let broken: [&dyn Fn(); 3] = [
            &|| std::fs::write(&files.key, &old_key).unwrap(),
            &|| std::fs::write(&files.certificate, "").unwrap(),
            &|| std::fs::remove_file(&files.certificate).unwrap(),
        ];
        let mut seen = seen;
        for breaks in broken {
            breaks();
            seen = certificate.read_again(seen).await;
            assert!(asked(&running, &second).await.unwrap().ends_with("a word"));
        }
        std::fs::write(&files.certificate, &good.0).unwrap();
        std::fs::write(&files.key, &good.1).unwrap();
        certificate.read_again(seen).await;
        asked(&running, &second).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_pair_that_does_not_fit_is_refused_at_the_start() {
        let files = PairOfFiles::new("unfit");
        files.renew();
        let key = std::fs::read(&files.key).unwrap();
        files.renew();
        std::fs::write(&files.key, key).unwrap();
        let error = ReloadedCertificate::open(files.source()).await.unwrap_err();
        assert!(format!("{error:#}").contains("does not fit"), "{error:#}");
    }

    #[tokio::test]
    async fn who_does_not_finish_a_handshake_or_speaks_without_is_let_go() {
        let made = CertificateSource::SelfSigned(vec!["localhost".to_owned()]);
        let certificate = ReloadedCertificate::open(made).await.unwrap();
        let running = serving(&certificate, SHORT).await;
        assert_eq!(received(running.send(1, "").await).await, "");
        let plain = received(running.send(1, WHOLE).await).await;
        assert!(!plain.contains("a word"), "{plain}");
        running.until_open(|open| open == 0).await;
    }
}
