//! The replacement for TLS when the feature `tls` is disabled.

use super::{Encrypted, InvalidTls};
use actix_web::rt::net::TcpStream;
use std::io;

/// A TLS configuration. This type has no values, because the feature `tls` is disabled.
#[derive(Clone, Debug)]
pub enum Tls {}

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

    pub(crate) async fn accept(&self, _socket: TcpStream) -> io::Result<Box<dyn Encrypted>> {
        match *self {}
    }
}
