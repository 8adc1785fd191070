//! The listener's certificate: from files that are read again when they change, or made at the start.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Interval at which the files are read. A kubelet takes a minute to bring a changed Secret anyway. 10 s.
const CERTIFICATE_READ_INTERVAL: Duration = Duration::from_secs(10);

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CertificateSource {
    /// PEM files with the certificate chain and its private key.
    Files {
        /// The chain, the listener's own certificate first.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// Signed by itself, for these names.
    SelfSigned(Vec<String>),
}

/// The certificate that is presented to clients now.
#[derive(Debug)]
pub(crate) struct ReloadedCertificate {
    source: CertificateSource,
    current: RwLock<Arc<CertifiedKey>>,
}

/// Presents the current certificate, whatever name a client asks for.
#[derive(Debug)]
struct CertificateResolver(Arc<ReloadedCertificate>);

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl ReloadedCertificate {
    /// Reads or makes the certificate.
    pub(crate) async fn open(source: CertificateSource) -> anyhow::Result<Arc<ReloadedCertificate>> {
        let first = match &source {
            CertificateSource::Files { certificate, key } => {
                parse_pair(&PemPair::read(certificate, key).await?).with_context(|| {
                    format!("failed to use the certificate {} with {}", certificate.display(), key.display())
                })?
            }
            CertificateSource::SelfSigned(names) => self_signed(names.clone())?,
        };
        Ok(Arc::new(ReloadedCertificate { source, current: RwLock::new(Arc::new(first)) }))
    }

    /// Encrypts connections with whatever certificate is current.
    pub(crate) fn acceptor(self: &Arc<Self>) -> anyhow::Result<TlsAcceptor> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .context("failed to configure TLS")?
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(CertificateResolver(self.clone())));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Reads the files again and again until `stop`.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut seen = None;
        let mut tick = tokio::time::interval(CERTIFICATE_READ_INTERVAL);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            seen = self.read_again(seen).await;
        }
    }

    /// Presents the files' certificate from now on if they differ from `seen`; returns what they are. A pair that cannot
    /// be used leaves the one before in force.
    pub(super) async fn read_again(&self, seen: Option<PemPair>) -> Option<PemPair> {
        let CertificateSource::Files { certificate, key } = &self.source else { return None };
        match PemPair::read(certificate, key).await {
            Ok(read) if seen.as_ref() == Some(&read) => seen,
            Ok(read) => {
                self.replace(&read);
                Some(read)
            }
            Err(error) => {
                if seen.is_some() {
                    let error = format!("{error:#}");
                    warn!(error, "failed to read the certificate; the one before is kept");
                }
                None
            }
        }
    }

    fn replace(&self, pair: &PemPair) {
        match parse_pair(pair) {
            Ok(parsed) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(parsed);
                info!("read the certificate");
            }
            // Half of a pair that is being replaced: the next read sees the other half.
            Err(error) => warn!(
                error = format!("{error:#}"),
                "the changed certificate cannot be used; the one before is kept"
            ),
        }
    }
}

/// Content of the two files.
#[derive(PartialEq, Eq)]
pub(super) struct PemPair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl PemPair {
    async fn read(certificate: &Path, key: &Path) -> anyhow::Result<PemPair> {
        let read = async |path: &Path| {
            let path = path.to_owned();
            let file = path.display().to_string();
            let bytes = tokio::task::spawn_blocking(move || std::fs::read(path)).await?;
            bytes.with_context(|| format!("failed to read {file}"))
        };
        Ok(PemPair { certificate: read(certificate).await?, key: read(key).await? })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Fails if the key is not the certificate's.
fn parse_pair(pair: &PemPair) -> anyhow::Result<CertifiedKey> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.context("the certificate is not PEM")?;
    anyhow::ensure!(!chain.is_empty(), "the certificate's file has no certificate");
    let key = PrivateKeyDer::from_pem_slice(&pair.key).context("the key is not PEM")?;
    CertifiedKey::from_der(chain, key, &provider()).context("the key does not fit the certificate")
}

fn self_signed(names: Vec<String>) -> anyhow::Result<CertifiedKey> {
    let made = rcgen::generate_simple_self_signed(names).context("failed to make a certificate")?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    CertifiedKey::from_der(vec![made.cert.der().clone()], key.into(), &provider())
        .context("failed to use the certificate made at the start")
}
