//! Tells a client, and the log, what went wrong.

use crate::encode;
use crate::problem::{self, HttpError};
use actix_web::http::StatusCode;
use node_types::wire::Problem;
use uuid::Uuid;

/// Writes the problems of one request.
pub(crate) struct Reporter {
    pub(crate) operation: &'static str,
    pub(crate) id: Uuid,
    /// In front of all paths.
    pub(crate) base_url: String,
}

impl Reporter {
    /// The status and the JSON of a problem, on one line. What is not the client's fault goes to the log.
    pub(crate) fn problem(&self, error: &HttpError) -> (StatusCode, Vec<u8>) {
        let problem = problem::describe(error);
        if problem.status.is_server_error() && !error.is_expected() {
            let source: &dyn std::error::Error = error;
            tracing::error!(id = %self.id, operation = self.operation, error = source, "request failed");
        }
        let body = Problem {
            detail: problem.detail,
            errors: problem.errors,
            instance: format!("urn:uuid:{}", self.id),
            status: problem.status.as_u16(),
            title: problem.status.canonical_reason().unwrap_or_default().to_owned(),
            problem_type: problem.page.map_or_else(|| "about:blank".to_owned(), |page| page.url(&self.base_url)),
        };
        let body = encode::with_schema(&schema_url(&self.base_url), &body).unwrap_or_default();
        (problem.status, body)
    }
}

/// The address of the schema of problems.
pub(crate) fn schema_url(base_url: &str) -> String {
    encode::schema_url(base_url, "ErrorModel")
}
