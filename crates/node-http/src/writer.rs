//! The server that writes the chain, to which a server that only reads it passes requests on.

use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use actix_web::web::Bytes;
use std::fmt::Debug;
use std::time::Duration;

/// Passes requests on to the server that writes the chain: those that change something, and those about what only one
/// server has, its filters and its pool.
pub trait Writer: Debug + Send + Sync {
    /// Sends a request, and waits for the response.
    ///
    /// # Errors
    /// If there is no response: a description of why.
    fn send(&self, request: WriterRequest) -> Result<WriterResponse, String>;
}

/// A request to the server that writes the chain.
#[derive(Clone, Debug)]
pub struct WriterRequest {
    pub method: Method,
    /// Path and query below the base path.
    pub target: String,
    /// The headers of the client that concern the writer, and those that describe the client.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// How long the client waits for the response.
    pub timeout: Duration,
}

/// The response of the server that writes the chain.
#[derive(Clone, Debug)]
pub struct WriterResponse {
    /// The status code of HTTP.
    pub status: u16,
    /// Lower-case names with their values.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
}

impl WriterResponse {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }
}
