//! TLS with a configured certificate and key. Without the feature `tls`, the same type exists but has no values.

#[cfg(feature = "tls")]
mod acceptor;
#[cfg(feature = "tls")]
mod validity;

#[cfg(feature = "tls")]
pub use acceptor::Tls;

use actix_web::rt::net::TcpStream;
use std::error::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection after its TLS handshake.
pub(crate) trait Encrypted: AsyncRead + AsyncWrite + Unpin {
    /// Returns the underlying connection.
    fn socket(&self) -> &TcpStream;
}

/// Why a certificate and a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTls {
    /// The certificate chain is not PEM.
    #[error("the certificate is not PEM")]
    Certificate(#[source] Box<dyn Error + Send + Sync>),
    /// The certificate file is empty.
    #[error("the certificate file contains no certificate")]
    NoCertificate,
    /// The certificate does not say when it is valid.
    #[error("the certificate does not say when it is valid")]
    NoValidity,
    /// The key is not PEM, or missing.
    #[error("the key is not PEM")]
    Key(#[source] Box<dyn Error + Send + Sync>),
    /// They are unsupported, or the key does not match the certificate.
    #[error("certificate and key cannot be used")]
    Refused(#[source] Box<dyn Error + Send + Sync>),
    /// The crate was built without the feature `tls`.
    #[error("this program was built without TLS; build it with `--features tls`")]
    NotBuilt,
}

/// A TLS configuration. This type has no values, because the feature `tls` is disabled.
#[cfg(not(feature = "tls"))]
#[derive(Clone, Debug)]
pub enum Tls {}

#[cfg(not(feature = "tls"))]
impl Tls {
    /// Always fails; with the feature `tls`, it would read a certificate and a key.
    ///
    /// # Errors
    /// Always [`InvalidTls::NotBuilt`].
    pub fn from_pem(_certificates: &[u8], _key: &[u8]) -> Result<Self, InvalidTls> {
        Err(InvalidTls::NotBuilt)
    }

    /// Cannot be called, because this type has no values.
    pub fn replace(&self, _other: &Self) {
        match *self {}
    }

    /// Cannot be called, because this type has no values.
    pub fn validity(&self) -> std::ops::RangeInclusive<i64> {
        match *self {}
    }

    pub(crate) async fn accept(&self, _socket: TcpStream) -> std::io::Result<Box<dyn Encrypted>> {
        match *self {}
    }
}
