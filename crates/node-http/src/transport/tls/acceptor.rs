//! TLS by rustls.

use super::{Encrypted, InvalidTls, validity};
use actix_web::rt::net::TcpStream;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A configuration for TLS 1.2 and 1.3, for HTTP/1.1. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Current>>);

#[derive(Clone)]
struct Current {
    acceptor: TlsAcceptor,
    /// When the server's own certificate is valid, in Unix seconds.
    validity: RangeInclusive<i64>,
}

impl Tls {
    /// Reads a PEM certificate chain, with the server's own certificate first, and its PEM private key.
    ///
    /// # Errors
    /// If one of them is not PEM or is empty, or if the key does not match the certificate.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, InvalidTls> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(|error| InvalidTls::Certificate(error.into()))?;
        let first = certificates.first().ok_or(InvalidTls::NoCertificate)?;
        let validity = validity::validity(first).ok_or(InvalidTls::NoValidity)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| InvalidTls::Key(error.into()))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| InvalidTls::Refused(error.into()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(RwLock::new(Current { acceptor: TlsAcceptor::from(Arc::new(config)), validity }))))
    }

    /// Replaces certificate and key, including those of clones, with those of `other`, for all further connections.
    pub fn replace(&self, other: &Self) {
        let current = other.0.read().clone();
        *self.0.write() = current;
    }

    /// Returns when the server's own certificate is valid, in Unix seconds.
    pub fn validity(&self) -> RangeInclusive<i64> {
        self.0.read().validity.clone()
    }

    /// Completes the handshake of a new connection.
    pub(crate) async fn accept(&self, socket: TcpStream) -> io::Result<Box<dyn Encrypted>> {
        let acceptor = self.0.read().acceptor.clone();
        Ok(Box::new(acceptor.accept(socket).await?))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Encrypted for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}
