//! Errors of requests, and one exhaustive match from errors to HTTP statuses.

pub(crate) mod page;
pub(crate) mod report;
pub(crate) mod sent;

use crate::admission::clients::{Exhausted, Resource};
use crate::admission::rate::TooFast;
use crate::problem::page::ProblemPage;
use crate::problem::sent::Sent;
use actix_web::http::StatusCode;
use node_core::node::{ErrorKind, Limit, NodeError};
use node_types::BlockNumber;
use node_types::wire::{BodyError, BufferFull, ErrorDetail};
use std::net::IpAddr;

/// Encodings of request bodies that this build can decompress, in the form of the header `Accept-Encoding`.
pub(crate) const ENCODINGS: &str =
    if cfg!(feature = "compression") { "gzip, deflate, br, zstd" } else { "gzip, deflate" };

/// Maximum number of headers of a request of HTTP/1.1. actix-http refuses more with the same status as headers that are
/// too long.
const MAX_HEADER_COUNT: usize = 96;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Body(BodyError),
    #[error("the parameters are invalid")]
    Parameters(Vec<ErrorDetail>),
    /// The request has faults, and so have those parts of it that could be checked on the chain nevertheless.
    #[error("the request is invalid")]
    Faulty(Vec<ErrorDetail>, #[source] Box<NodeError>),
    #[error("the path cannot be decoded: every % must begin an escape, and the decoded path must be UTF-8")]
    Path,
    #[error("no operation has this path")]
    UnknownRoute,
    #[error("this path accepts {allow} only")]
    MethodNotAllowed { allow: &'static str },
    #[error(
        "this path is for WebSocket (RFC 6455, version 13): request an upgrade with GET, on a connection that can be upgraded"
    )]
    NoWebSocket,
    #[error("this is not a valid request of HTTP/1.1: {0}")]
    NotHttp(&'static str),
    #[error("this is not a valid request: {0}")]
    Malformed(&'static str),
    #[error("this port requires TLS; use https")]
    NoTls,
    #[error("the headers did not arrive in time")]
    HeadersTimeout,
    #[error("the body cannot be read completely")]
    BodyBroken,
    #[error("only clients on this machine may control the chain (`force-control`)")]
    ControlRefused,
    #[error(
        "control of the chain is off on this address, because other machines can reach it (`force-control`, `control-listen`, or a token with the role \
         `control`)"
    )]
    ControlExposed,
    #[error(
        "only clients on this machine may control the chain, and {0}, which forwards the request, is not a trusted proxy \
         (`trusted-proxies`)"
    )]
    ControlForwarded(IpAddr),
    #[error("control of the chain is switched off (`no-control`)")]
    ControlOff,
    #[error("control of the chain is served on another address (`control-listen`)")]
    ControlOnOtherAddress,
    #[error("the token does not have the role {0} (`token-file`)")]
    RoleMissing(&'static str),
    #[error("the operation {0} is switched off (`api`)")]
    SwitchedOff(&'static str),
    #[error("`cors-origins` does not allow pages of this origin to do this")]
    ForeignOrigin,
    #[error(
        "a page of this origin may control the chain only if `cors-origins` allows it, with =control after the origin"
    )]
    ControlFromPage,
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error("the body must be of media type application/json")]
    MediaType,
    #[error("the body may be compressed with one of {ENCODINGS}")]
    ContentEncoding,
    #[error("the body cannot be decompressed")]
    BodyUnpackable,
    #[error("the body has more than {limit} gzip members, which is the maximum")]
    TooManyMembers { limit: usize },
    #[error("the body is longer than {limit} bytes (`max-body`)")]
    BodyTooLarge { limit: usize },
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("this server does not accept the host {host:?} (`allowed-hosts`)")]
    HostRefused { host: String },
    #[error(
        "path, query and headers together are longer than {limit} bytes, or there are more than {} headers",
        MAX_HEADER_COUNT
    )]
    HeadersTooLong { limit: usize },
    #[error("the header Authorization must contain Bearer, a space, and a valid token (`token-file`)")]
    Unauthorized,
    #[error("more than {} requests a second (`rate-limit`)", .0.limit)]
    TooFast(TooFast),
    #[error("not ready: {0}")]
    NotReady(String),
    #[error("the block of the last event id is not known here; connect again, or without the id")]
    UnknownEvent,
    #[error("the head is block {head}, and the header X-Min-Head demands block {wanted}; this server may be behind")]
    Behind { head: BlockNumber, wanted: BlockNumber },
    #[error("the header X-Min-Head must be a decimal block number")]
    InvalidMinHead,
    #[error("the server that writes the chain cannot be reached (`writer`)")]
    WriterUnreachable,
    #[error("the server that writes the chain (`writer`) only reads it: servers pass requests on in a circle")]
    ForwardedTwice,
    #[error("the server is busy, try again soon")]
    Overloaded,
    #[error("the operation panicked")]
    Panicked,
    #[error("the response cannot be encoded")]
    Encode(#[source] serde_json::Error),
}

impl From<BufferFull> for HttpError {
    fn from(full: BufferFull) -> Self {
        match full {
            BufferFull::TooLong { .. } | BufferFull::OverMemory { .. } => Self::Node(NodeError::ResponseTooLarge(full)),
            // Once others are read, there is memory again.
            BufferFull::NoMemory { limit } => {
                Self::Exhausted(Exhausted { resource: Resource::Transfers, capacity: limit })
            }
        }
    }
}

impl HttpError {
    /// Returns the name of the limit that the request exceeded, or `None` if it failed for another reason. Most
    /// limits are named after the option that sets them.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        Some(match self {
            Self::BodyTooLarge { .. } => "max-body",
            Self::BodyTimeout => "body-timeout",
            Self::HeadersTimeout => "header-timeout",
            Self::HostRefused { .. } => "allowed-hosts",
            Self::HeadersTooLong { .. } => "max-headers",
            Self::TooFast(_) => "rate-limit",
            Self::Exhausted(exhausted) => exhausted.resource.option(),
            Self::Overloaded => "pool-queue",
            Self::Node(error) => return error.limit().map(Limit::name),
            _ => return None,
        })
    }

    /// Returns whether the error is normal for a server that is starting, busy or shutting down.
    pub(crate) fn is_expected(&self) -> bool {
        matches!(
            self,
            Self::Overloaded
                | Self::Exhausted(_)
                | Self::NotReady(_)
                | Self::UnknownEvent
                | Self::Behind { .. }
                | Self::WriterUnreachable
                | Self::Node(NodeError::Importing)
        )
    }

    /// Returns the seconds after which the client may retry, or `None` if waiting does not help.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooFast(TooFast { wait, .. }) => Some(wait.as_secs() + 1),
            Self::NotReady(_) | Self::UnknownEvent | Self::Node(NodeError::Importing) => Some(5),
            Self::Node(NodeError::TooManyFilters { .. }) => Some(60),
            busy if busy.is_expected() => Some(1),
            _ => None,
        }
    }
}

/// The response to a failed request.
pub(crate) struct Description {
    pub(crate) status: StatusCode,
    /// The page of the problem type; `None` for `about:blank`.
    pub(crate) page: Option<ProblemPage>,
    pub(crate) detail: String,
    pub(crate) errors: Vec<ErrorDetail>,
}

/// Describes an error to the client. For internal errors, this has no details; they are written to the log.
pub(crate) fn describe(error: &HttpError, sent: &Sent) -> Description {
    if let HttpError::Node(error) = error {
        return describe_node(error, sent);
    }
    let (status, page) = classify(error);
    let (detail, errors) = match error {
        _ if status == StatusCode::INTERNAL_SERVER_ERROR => (DEFECT.to_owned(), Vec::new()),
        HttpError::Body(BodyError::Invalid(faults)) | HttpError::Parameters(faults) => {
            (summary(faults), sent.with_values(faults))
        }
        HttpError::Faulty(faults, others) => {
            let all = [sent.with_values(faults), sent.details(others)].concat();
            (summary(&all), all)
        }
        error => (error.to_string(), Vec::new()),
    };
    Description { status, page, detail, errors }
}

/// Describes the error of an operation, like [`describe`].
pub(crate) fn describe_node(error: &NodeError, sent: &Sent) -> Description {
    let (status, page) = classify_node(error);
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        return Description { status, page, detail: DEFECT.to_owned(), errors: Vec::new() };
    }
    let errors = sent.details(error);
    let detail = match error {
        NodeError::Invalid(_) => summary(&errors),
        error => sent::message(error),
    };
    Description { status, page, detail, errors }
}

/// The detail of an internal error.
const DEFECT: &str = "the server failed; its log has details under the id of this instance";

/// Returns an error in one sentence for the log.
pub(crate) fn detail(error: &HttpError) -> String {
    describe(error, &Sent::default()).detail
}

pub(crate) fn status(error: &HttpError) -> StatusCode {
    classify(error).0
}

/// Summarizes faults in one sentence.
fn summary(faults: &[ErrorDetail]) -> String {
    match faults {
        [] => "the request is invalid".to_owned(),
        [only] => format!("{}: {}", only.location, only.message),
        [first, others @ ..] => format!("{}: {}; {} more in errors", first.location, first.message, others.len()),
    }
}

fn classify(error: &HttpError) -> (StatusCode, Option<ProblemPage>) {
    let blank = |status| (status, None);
    match error {
        HttpError::Node(error) => classify_node(error),
        HttpError::Body(BodyError::Empty | BodyError::Malformed { .. })
        | HttpError::Path
        | HttpError::NotHttp(_)
        | HttpError::Malformed(_)
        | HttpError::NoTls
        | HttpError::BodyBroken
        | HttpError::BodyUnpackable
        | HttpError::InvalidMinHead
        | HttpError::TooManyMembers { .. } => blank(StatusCode::BAD_REQUEST),
        HttpError::ForwardedTwice => blank(StatusCode::LOOP_DETECTED),
        HttpError::Body(BodyError::Invalid(_)) | HttpError::Parameters(_) | HttpError::Faulty(..) => {
            blank(StatusCode::UNPROCESSABLE_ENTITY)
        }
        HttpError::UnknownRoute | HttpError::SwitchedOff(_) => blank(StatusCode::NOT_FOUND),
        HttpError::MethodNotAllowed { .. } => blank(StatusCode::METHOD_NOT_ALLOWED),
        HttpError::NoWebSocket => blank(StatusCode::UPGRADE_REQUIRED),
        HttpError::ControlRefused
        | HttpError::ControlExposed
        | HttpError::ControlForwarded(_)
        | HttpError::ControlOff
        | HttpError::ControlOnOtherAddress
        | HttpError::RoleMissing(_)
        | HttpError::ForeignOrigin
        | HttpError::ControlFromPage
        | HttpError::HostRefused { .. } => blank(StatusCode::FORBIDDEN),
        HttpError::Unauthorized => blank(StatusCode::UNAUTHORIZED),
        HttpError::HeadersTooLong { .. } => blank(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        HttpError::TooFast(_) => blank(StatusCode::TOO_MANY_REQUESTS),
        HttpError::MediaType | HttpError::ContentEncoding => blank(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        HttpError::BodyTooLarge { .. } => blank(StatusCode::PAYLOAD_TOO_LARGE),
        HttpError::BodyTimeout | HttpError::HeadersTimeout => blank(StatusCode::REQUEST_TIMEOUT),
        HttpError::Overloaded
        | HttpError::Exhausted(_)
        | HttpError::NotReady(_)
        | HttpError::UnknownEvent
        | HttpError::Behind { .. }
        | HttpError::WriterUnreachable => blank(StatusCode::SERVICE_UNAVAILABLE),
        HttpError::Panicked | HttpError::Encode(_) => blank(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn classify_node(error: &NodeError) -> (StatusCode, Option<ProblemPage>) {
    let kind = error.kind();
    let page = match kind {
        ErrorKind::Timeout => Some(ProblemPage::LimitExceeded),
        kind => ProblemPage::ALL.into_iter().find(|page| page.slug() == kind.slug()),
    };
    (status_of(kind), page)
}

/// Returns the HTTP status of a kind of error.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BlockNotFound
        | ErrorKind::TransactionNotFound
        | ErrorKind::FilterNotFound
        | ErrorKind::StatePruned
        | ErrorKind::NoStateRoot => StatusCode::NOT_FOUND,
        ErrorKind::InvalidRequest
        | ErrorKind::AccountEdited
        | ErrorKind::ExecutionReverted
        | ErrorKind::ExecutionFailed
        | ErrorKind::TransactionRejected
        | ErrorKind::ControlRefused
        | ErrorKind::NotProducing
        | ErrorKind::ReadOnly
        | ErrorKind::UnknownAccount
        | ErrorKind::NotTraceable
        | ErrorKind::LimitExceeded
        | ErrorKind::RangeAboveHead
        | ErrorKind::Timeout => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::TooManyFilters => StatusCode::TOO_MANY_REQUESTS,
        // If a request was cancelled, its client has disconnected.
        ErrorKind::Importing | ErrorKind::NotWriter | ErrorKind::UpstreamUnavailable | ErrorKind::Cancelled => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        // A test ensures that every other kind is listed.
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::backend::BackendError;

    #[test]
    fn summarizes_faults() {
        let fault = |location: &str| ErrorDetail::new(location, "expected string");
        let cases = [
            (vec![], "the request is invalid"),
            (vec![fault("body.A")], "body.A: expected string"),
            (vec![fault("body.A"), fault("body.B")], "body.A: expected string; 1 more in errors"),
        ];
        for (faults, expected) in cases {
            assert_eq!(describe(&HttpError::Parameters(faults), &Sent::default()).detail, expected);
        }
    }

    #[test]
    fn only_internal_errors_are_defects() {
        for kind in ErrorKind::ALL.iter().copied() {
            let is_defect = status_of(kind) == StatusCode::INTERNAL_SERVER_ERROR;
            assert_eq!(is_defect, kind == ErrorKind::Internal, "{kind:?}");
        }
    }

    #[test]
    fn internal_errors_leak_no_details() {
        let secret = "/var/lib/secret is broken";
        let storage = BackendError::Storage(secret.into());
        for error in [HttpError::Node(NodeError::Backend(storage)), HttpError::Panicked] {
            let description = describe(&error, &Sent::default());
            assert_eq!(description.status, StatusCode::INTERNAL_SERVER_ERROR, "{error:?}");
            assert!(
                !description.detail.contains("secret") && !description.detail.contains("backend"),
                "{}",
                description.detail
            );
            assert!(description.errors.is_empty(), "{error:?}");
        }
    }
}
