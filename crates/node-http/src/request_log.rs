//! The log line of a request.

use actix_web::http::StatusCode;
use std::time::Duration;
use uuid::Uuid;

/// Why a request failed, as its log line reports it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The code of a JSON-RPC error, or the HTTP status.
    pub(crate) code: i64,
    /// One sentence.
    pub(crate) message: String,
    /// Number of requests of the batch that failed; the code and the message are those of the first.
    pub(crate) requests: usize,
}

/// Writes the log line of a request. A JSON-RPC error is sent with status 200, and logged without it.
pub(crate) fn log(id: Uuid, operation: &str, status: StatusCode, elapsed: Duration, failure: Option<&Failure>) {
    let micros = elapsed.as_micros() as u64;
    match failure {
        None => tracing::info!(target: "request", %id, operation, status = status.as_u16(), micros),
        Some(Failure { code, message, requests }) => {
            tracing::info!(target: "request", %id, operation, code, error = message.as_str(), failed = requests, micros);
        }
    }
}
