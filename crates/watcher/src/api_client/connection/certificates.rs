//! The certificates that a client trusts and shows, read again when their files change: whoever issues them replaces them
//! while it runs.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use kube::Config;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::BoxError;

/// Files that a client's certificates come from.
pub(super) struct CertificateFiles {
    /// The authorities that it trusts.
    authorities: Option<PathBuf>,
    /// Its own certificate and the key of it.
    identity: Vec<PathBuf>,
    /// Contents are told apart by a hash: a key is not held here.
    hasher: RandomState,
}

/// What the files hold at one time.
pub(super) struct CertificateContents {
    /// Tells it from what they held before.
    pub(super) fingerprint: u64,
    authorities: Option<Vec<u8>>,
}

impl CertificateFiles {
    /// The files that `config` names for the client itself, and `authorities`.
    pub(super) fn new(config: &Config, authorities: Option<PathBuf>) -> Self {
        let identity = [&config.auth_info.client_certificate, &config.auth_info.client_key];
        let identity = identity.into_iter().flatten().map(PathBuf::from).collect();
        CertificateFiles { authorities, identity, hasher: RandomState::new() }
    }

    /// Reads them; `None` where there are none, or one cannot be read: it is being replaced.
    pub(super) fn read(&self) -> Option<CertificateContents> {
        if self.authorities.is_none() && self.identity.is_empty() {
            return None;
        }
        let authorities = self.authorities.as_ref().map(std::fs::read).transpose().ok()?;
        let identity: Vec<Vec<u8>> =
            self.identity.iter().map(std::fs::read).collect::<Result<_, _>>().ok()?;
        let fingerprint = self.hasher.hash_one((&authorities, identity));
        Some(CertificateContents { fingerprint, authorities })
    }
}

impl CertificateContents {
    /// The configuration with these authorities. The client's own certificate is read when it connects.
    pub(super) fn apply_to(&self, config: &Config) -> Result<Config, BoxError> {
        let mut config = config.clone();
        if let Some(pem) = &self.authorities {
            let parsed = CertificateDer::pem_slice_iter(pem).map(|one| Ok(one?.to_vec()));
            let parsed: Vec<Vec<u8>> = parsed.collect::<Result<_, BoxError>>()?;
            if parsed.is_empty() {
                return Err("the file of authorities has no certificate".into());
            }
            config.root_cert = Some(parsed);
        }
        Ok(config)
    }
}
