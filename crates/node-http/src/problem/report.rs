//! Turning errors into problem responses (RFC 9457), and logging those that are the server's fault.

use crate::exchange::encode;
use crate::exchange::request_id::RequestId;
use crate::problem::page::ProblemPage;
use crate::problem::sent::Sent;
use crate::problem::{self, Description, HttpError};
use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use node_core::node::NodeError;
use node_core::sources::Sources;
use node_types::wire;
use std::fmt;
use std::ops::Deref;

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The problem (RFC 9457) with which this crate responds to an error, for use in your own routes that call the node.
///
/// It is an error response in actix-web, and with the feature `axum` in axum, so handlers can return
/// `Result<_, ProblemResponse>` and use `?` on errors of a node. Locations of faults refer to a request body, as in this
/// crate's own operations. The URL of the problem's page is relative to the base path.
///
/// # Examples
/// ```
/// use node_core::node::NodeError;
/// use node_http::ProblemResponse;
///
/// let problem = ProblemResponse::from(&NodeError::FilterNotFound);
/// assert_eq!((problem.status, problem.problem_type.as_str()), (404, "/problems/filter-not-found"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemResponse(pub wire::Problem);

impl From<&NodeError> for ProblemResponse {
    fn from(error: &NodeError) -> Self {
        Self(self::problem(problem::describe_node(error, &Sent::default()), &RequestId::new(), ""))
    }
}

/// Logs an error that is not the client's fault, because the problem does not contain its text.
impl From<NodeError> for ProblemResponse {
    fn from(error: NodeError) -> Self {
        let problem = Self::from(&error);
        if problem.status == StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
            tracing::error!(error = %Sources(&error), "request failed");
        }
        problem
    }
}

impl ProblemResponse {
    /// Returns a problem without a page.
    pub(crate) fn plain(status: StatusCode, detail: String) -> Self {
        Self(self::problem(Description { status, page: None, detail, errors: Vec::new() }, &RequestId::new(), ""))
    }

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }
}

/// Displays the detail.
impl fmt::Display for ProblemResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}

impl std::error::Error for ProblemResponse {}

impl ResponseError for ProblemResponse {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).content_type(PROBLEM_JSON).body(self.json())
    }
}

#[cfg(feature = "tower")]
impl From<ProblemResponse> for http::Response<String> {
    fn from(problem: ProblemResponse) -> Self {
        let mut response = Self::new(String::from_utf8(problem.json()).unwrap_or_default());
        *response.status_mut() =
            problem.status_code().as_u16().try_into().unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(PROBLEM_JSON));
        response
    }
}

#[cfg(feature = "axum")]
impl axum::response::IntoResponse for ProblemResponse {
    fn into_response(self) -> axum::response::Response {
        http::Response::<String>::from(self).into_response()
    }
}

impl From<ProblemResponse> for wire::Problem {
    fn from(problem: ProblemResponse) -> Self {
        problem.0
    }
}

impl Deref for ProblemResponse {
    type Target = wire::Problem;

    fn deref(&self) -> &wire::Problem {
        &self.0
    }
}

/// Reports the errors of one request.
pub(crate) struct Reporter {
    pub(crate) operation: &'static str,
    pub(crate) id: RequestId,
    /// Prefix of all paths.
    pub(crate) base_url: String,
    /// The content of the request, for the locations of faults.
    pub(crate) sent: Sent,
}

impl Reporter {
    /// Returns the status and the JSON of the problem, on one line. Logs unexpected errors of the server.
    pub(crate) fn problem(&self, error: &HttpError) -> (StatusCode, Vec<u8>) {
        let problem = problem::describe(error, &self.sent);
        if problem.status.is_server_error() && !error.is_expected() {
            tracing::error!(id = %self.id, operation = self.operation, error = %Sources(error), "request failed");
        }
        let status = problem.status;
        let body = self::problem(problem, &self.id, &self.base_url);
        let body = encode::with_schema(&schema_url(&self.base_url), &body).unwrap_or_default();
        (status, body)
    }
}

pub(crate) fn problem(description: Description, id: &RequestId, base_url: &str) -> wire::Problem {
    let Description { status, page, detail, errors } = description;
    wire::Problem {
        detail,
        errors,
        instance: id.instance(),
        status: status.as_u16(),
        title: page.map_or_else(|| status.canonical_reason().unwrap_or_default(), ProblemPage::title).to_owned(),
        problem_type: page.map_or_else(|| "about:blank".to_owned(), |page| page.url(base_url)),
    }
}

/// Returns the URL of the schema of problems.
pub(crate) fn schema_url(base_url: &str) -> String {
    encode::schema_url(base_url, "ErrorModel")
}
