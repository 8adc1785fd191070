//! How connections are made: TCP with keep-alive, through a proxy where there is one, and TLS.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};

use super::BoxError;
use super::certificates::CertificateFiles;
use super::pool::{ConnectionPool, SendRequest, WireBody};
use super::transport::OpenPool;

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

/// Opens pools of connections with one state of the certificates.
type HttpsPools = Box<dyn Fn(u64) -> ConnectionPool + Send + Sync>;

/// Opens pools of connections to the server that a configuration names.
pub(super) struct HttpsOpener {
    config: kube::Config,
    files: CertificateFiles,
    state: Mutex<CertificateState>,
}

/// The certificates in use.
struct CertificateState {
    pools: HttpsPools,
    /// Number of times that they changed.
    version: u64,
    /// What the files held when they were read last, whether it could be used or not.
    fingerprint: Option<u64>,
}

impl HttpsOpener {
    /// Prepares pools; the authorities are read from `authorities` again, if there is such a file.
    pub(super) fn new(config: kube::Config, authorities: Option<PathBuf>) -> Result<Self, kube::Error> {
        let files = CertificateFiles::new(&config, authorities);
        let contents = files.read();
        // They may have changed since the configuration was read.
        let current = contents.as_ref().and_then(|contents| contents.apply_to(&config).ok());
        let pools = https_pools(current.as_ref().unwrap_or(&config))?;
        let fingerprint = contents.map(|contents| contents.fingerprint);
        let state = Mutex::new(CertificateState { pools, version: 0, fingerprint });
        Ok(HttpsOpener { config, files, state })
    }

    fn lock(&self) -> MutexGuard<'_, CertificateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenPool for HttpsOpener {
    fn read_certificates(&self) -> u64 {
        let Some(contents) = self.files.read() else { return self.lock().version };
        let mut state = self.lock();
        if state.fingerprint != Some(contents.fingerprint) {
            state.fingerprint = Some(contents.fingerprint);
            let pools = contents
                .apply_to(&self.config)
                .and_then(|config| https_pools(&config).map_err(BoxError::from));
            match pools {
                Ok(pools) => {
                    state.pools = pools;
                    state.version += 1;
                    tracing::info!("read the certificates for the API server again: they changed");
                }
                // Half of what is being replaced: the next read sees the other half.
                Err(error) => tracing::warn!(
                    %error,
                    "the changed certificates for the API server cannot be used; those before are kept"
                ),
            }
        }
        state.version
    }

    fn open_pool(&self) -> ConnectionPool {
        let state = self.lock();
        (state.pools)(state.version)
    }
}

fn https_pools(config: &kube::Config) -> Result<HttpsPools, kube::Error> {
    let tcp = tcp_connector();
    let Some(url) = &config.proxy_url else {
        return Ok(pools_over(config.rustls_https_connector_with_connector(tcp)?));
    };
    let proxy = Matcher::builder().all(url.to_string()).build().intercept(&config.cluster_url);
    match proxy.as_ref().and_then(|proxy| Some((proxy, proxy.uri().scheme_str()?))) {
        Some((proxy, "http")) => {
            Ok(pools_over(config.rustls_https_connector_with_connector(tunnel(proxy, tcp))?))
        }
        Some((proxy, "https")) => {
            let tls = config.rustls_https_connector_with_connector(tcp)?;
            Ok(pools_over(config.rustls_https_connector_with_connector(tunnel(proxy, tls))?))
        }
        Some((proxy, "socks5" | "socks5h")) => {
            let socks = SocksV5::new(proxy.uri().clone(), tcp);
            let socks = match proxy.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            };
            Ok(pools_over(config.rustls_https_connector_with_connector(socks)?))
        }
        _ => Err(kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(without_credentials(url)) }),
    }
}

/// The address of a proxy, as it may be shown.
fn without_credentials(url: &Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.authority =
        parts.authority.and_then(|authority| authority.as_str().rsplit('@').next()?.parse().ok());
    Uri::from_parts(parts).unwrap_or_default()
}

/// A tunnel through an HTTP proxy that is connected to in this way.
fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

fn pools_over(connector: impl Connect + Clone + Send + Sync + 'static) -> HttpsPools {
    Box::new(move |certificates| {
        let requests = Client::builder(TokioExecutor::new()).build(connector.clone());
        let probes = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(1).build(connector.clone());
        ConnectionPool::new(Box::new(HyperSender(requests)), Box::new(HyperSender(probes)), certificates)
    })
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

#[cfg(test)]
mod tests {
    use rustix::net::sockopt;
    use tower_service::Service;

    use super::*;

    /// Two authorities, of which nobody has the keys.
    const AUTHORITIES: [&str; 2] =
        [include_str!("testdata/authority-a.pem"), include_str!("testdata/authority-b.pem")];

    #[test]
    fn authorities_are_read_again_once_they_can_be_used() {
        let folder = std::env::temp_dir().join(format!("rollcall-authorities-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("ca.crt");
        std::fs::write(&file, AUTHORITIES[0]).unwrap();
        let config = kube::Config::new("https://127.0.0.1:6443".parse().unwrap());
        let opener = HttpsOpener::new(config, Some(file.clone())).unwrap();
        let both = AUTHORITIES.concat();
        let steps = [
            (Some(AUTHORITIES[0]), 0),
            (Some(both.as_str()), 1),
            (Some(both.as_str()), 1),
            (Some(""), 1),
            (Some("-----BEGIN CERTIFICATE-----\nAAAA\n"), 1),
            (Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 1),
            (None, 1),
            (Some(AUTHORITIES[1]), 2),
        ];
        for (content, version) in steps {
            match content {
                Some(content) => std::fs::write(&file, content).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            assert_eq!(opener.read_certificates(), version, "{content:?}");
            assert_eq!(opener.open_pool().certificates, version, "{content:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_proxy_of_another_protocol_is_refused_without_its_credentials() {
        let opened = |proxy: &str| {
            let mut config = kube::Config::new("https://cluster:6443".parse().unwrap());
            config.proxy_url = Some(proxy.parse().unwrap());
            HttpsOpener::new(config, None).map(drop).map_err(|error| error.to_string())
        };
        for proxy in ["http://a:b@proxy:3128", "https://proxy", "socks5://a:b@proxy:1080", "socks5h://proxy"]
        {
            assert_eq!(opened(proxy), Ok(()), "{proxy}");
        }
        let said = opened("gopher://me:secret@proxy:70/").unwrap_err();
        assert!(said.contains("gopher://proxy:70/") && !said.contains("secret"), "{said}");
    }

    #[tokio::test]
    async fn the_kernel_asks_after_the_other_end_of_a_connection_that_is_silent() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", server.local_addr().unwrap());
        let connected = tcp_connector().call(address.parse().unwrap()).await.unwrap();
        let socket = connected.inner();
        assert!(sockopt::socket_keepalive(socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(socket).unwrap(), KEEPALIVE_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(socket).unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), KEEPALIVE_PROBES);
        #[cfg(target_os = "linux")]
        {
            let timeout = sockopt::tcp_user_timeout(socket).unwrap();
            assert_eq!(u128::from(timeout), UNACKNOWLEDGED_TIMEOUT.as_millis());
            // Whether anything was sent or not, it is found at the same time.
            assert_eq!(UNACKNOWLEDGED_TIMEOUT, KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES);
        }
    }
}
