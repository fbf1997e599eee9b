//! TLS, with a certificate and a key that are given.

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What it takes to speak TLS 1.2 and 1.3, with HTTP/2 or HTTP/1.1 as the client likes.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl Tls {
    /// From a chain of certificates, the server's own first, and its private key, both PEM.
    ///
    /// # Errors
    /// When one of them is not PEM or holds nothing, or when they do not belong together.
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

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTls {
    /// The chain of certificates is not PEM.
    #[error("the certificate is not PEM")]
    Certificate(#[source] pem::Error),
    /// There is none in it.
    #[error("there is no certificate in it")]
    NoCertificate,
    /// The key is not PEM, or there is none.
    #[error("the key is not PEM")]
    Key(#[source] pem::Error),
    /// They are of no use, or do not belong together.
    #[error("certificate and key cannot be used")]
    Refused(#[source] rustls::Error),
}
