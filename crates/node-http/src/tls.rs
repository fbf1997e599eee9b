//! TLS with a configured certificate and key.

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A TLS configuration for TLS 1.2 and 1.3, with HTTP/2 or HTTP/1.1 as the client chooses.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// Reads a PEM certificate chain, with the server's own certificate first, and its PEM private key.
    ///
    /// # Errors
    /// If one of them is not PEM or is empty, or if they do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, InvalidTls> {
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>().map_err(InvalidTls::Certificate)?;
        if certificates.is_empty() {
            return Err(InvalidTls::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(InvalidTls::Key)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(InvalidTls::Refused)?;
        config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).into();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.clone().into()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTls {
    /// The certificate chain is not PEM.
    #[error("the certificate is not PEM")]
    Certificate(#[source] pem::Error),
    /// The certificate file is empty.
    #[error("the certificate file contains no certificate")]
    NoCertificate,
    /// The key is not PEM, or missing.
    #[error("the key is not PEM")]
    Key(#[source] pem::Error),
    /// They are unsupported, or do not belong together.
    #[error("certificate and key cannot be used")]
    Refused(#[source] rustls::Error),
}
