//! No TLS.

use super::{Encrypted, InvalidTls};
use actix_http::Protocol;
use actix_web::rt::net::TcpStream;
use std::io;

/// A TLS configuration, of which there is none: the feature `tls` is off.
#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    /// Reads a certificate and a key if the feature `tls` is on.
    ///
    /// # Errors
    /// Always [`InvalidTls::NotBuilt`].
    pub fn from_pem(_certificates: &[u8], _key: &[u8]) -> Result<Self, InvalidTls> {
        Err(InvalidTls::NotBuilt)
    }

    /// Replaces certificate and key.
    pub fn replace(&self, _other: &Self) {
        match *self {}
    }

    pub(crate) async fn accept(&self, _socket: TcpStream) -> io::Result<(Box<dyn Encrypted>, Protocol)> {
        match *self {}
    }
}
