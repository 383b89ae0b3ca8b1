//! TLS 1.2 and 1.3 by rustls. The certificate can be replaced while belljar serves; open connections keep the old one.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use zeroize::Zeroizing;

/// A certificate chain and its key, in PEM.
pub struct TlsPem {
    /// The certificate chain, the server's own certificate first.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Zeroizing<Vec<u8>>,
}

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsIdentityError {
    /// The file of the certificate is not PEM.
    #[error("the certificate is not PEM: {0}")]
    CertificatePem(pem::Error),
    /// The file of the certificate has none.
    #[error("there is no certificate; expected \"-----BEGIN CERTIFICATE-----\"")]
    NoCertificate,
    /// The file of the key is not PEM, or has no key.
    #[error("there is no private key; expected \"-----BEGIN PRIVATE KEY-----\" without a password")]
    NoKey,
    /// The key does not belong to the certificate, or its kind is not supported.
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// The certificate that is in use.
pub struct TlsIdentity(ArcSwap<CurrentIdentity>);

/// One certificate with its key, ready for handshakes.
struct CurrentIdentity {
    config: Arc<ServerConfig>,
    /// The SHA-256 of both files.
    digest: [u8; 32],
}

impl TlsIdentity {
    /// # Errors
    /// The pair cannot be used.
    pub fn new(pem: &TlsPem) -> Result<Self, TlsIdentityError> {
        Ok(Self(ArcSwap::from_pointee(CurrentIdentity::new(pem)?)))
    }

    /// Uses another certificate for new connections. True if it is another one.
    ///
    /// # Errors
    /// The pair cannot be used. The old one stays in use.
    pub fn replace(&self, pem: &TlsPem) -> Result<bool, TlsIdentityError> {
        if self.0.load().digest == digest(pem) {
            return Ok(false);
        }
        self.0.store(Arc::new(CurrentIdentity::new(pem)?));
        Ok(true)
    }

    /// The handshake of a new connection, within `time`. `None` if it fails or takes longer.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        time: Duration,
    ) -> Option<TlsStream<S>> {
        let handshake = TlsAcceptor::from(Arc::clone(&self.0.load().config)).accept(stream);
        match timeout(time, handshake).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!("a TLS handshake failed: {error}");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took longer than {time:?}");
                None
            }
        }
    }
}

impl CurrentIdentity {
    fn new(pem: &TlsPem) -> Result<Self, TlsIdentityError> {
        Ok(Self { config: Arc::new(server_config(pem)?), digest: digest(pem) })
    }
}

fn digest(pem: &TlsPem) -> [u8; 32] {
    Sha256::new().chain_update(&pem.cert).chain_update([0]).chain_update(&*pem.key).finalize().into()
}

fn server_config(pem: &TlsPem) -> Result<ServerConfig, TlsIdentityError> {
    let chain = CertificateDer::pem_slice_iter(&pem.cert).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(TlsIdentityError::CertificatePem)?;
    if chain.is_empty() {
        return Err(TlsIdentityError::NoCertificate);
    }
    // The parser's error may quote the file.
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(|_| TlsIdentityError::NoKey)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(TlsIdentityError::Pair)?;
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).map_err(TlsIdentityError::Pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
