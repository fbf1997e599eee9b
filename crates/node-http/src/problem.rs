//! What can go wrong, and how it is told: one exhaustive match from errors to HTTP.

use crate::problem_page::ProblemPage;
use crate::rate::TooFast;
use crate::sent::Sent;
use actix_web::http::StatusCode;
use node_core::context::Interrupted;
use node_core::node::NodeError;
use node_rpc::options;
use node_types::wire::{BodyError, ErrorDetail};
use std::net::IpAddr;

/// Why a request is not answered with 200.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The node refuses it, or fails.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The body is not JSON, or not the JSON that the operation takes.
    #[error(transparent)]
    Body(BodyError),
    /// Path or query parameters are invalid.
    #[error("the parameters are invalid")]
    Parameters(Vec<ErrorDetail>),
    /// The path has a broken escape.
    #[error("the path cannot be decoded: every % must begin an escape, and the decoded path must be UTF-8")]
    Path,
    /// There is nothing under this path.
    #[error("there is nothing under this path")]
    UnknownRoute,
    /// There is, but not by this method.
    #[error("this path answers to {allow} only")]
    MethodNotAllowed {
        /// The methods it takes.
        allow: &'static str,
    },
    /// There is, but only for clients that go on in WebSocket.
    #[error("this path speaks WebSocket (RFC 6455, version 13): ask for an upgrade by GET")]
    NoWebSocket,
    /// The body's framing is broken, or it ended early.
    #[error("the body cannot be read to its end")]
    BodyBroken,
    /// Control is only for those on the same machine.
    #[error("control of the chain is refused, for the server listens on {0}, where others may reach it")]
    ControlRefused(IpAddr),
    /// Control is not for pages that come from elsewhere.
    #[error("control of the chain is refused to pages of other origins")]
    ForeignOrigin,
    /// The body says that it is something else than JSON.
    #[error("the body must be of media type application/json")]
    MediaType,
    /// The body is too long.
    #[error("the body is longer than {limit} bytes (`max-body`)")]
    BodyTooLarge {
        /// Longest body taken.
        limit: usize,
    },
    /// The body came too slowly.
    #[error("the body did not arrive in time (`body-timeout`)")]
    BodyTimeout,
    /// Arrays and objects of the body stand too deep in each other.
    #[error("the body is nested deeper than {limit} levels (`max-depth`)")]
    BodyTooDeep {
        /// Deepest nesting taken.
        limit: usize,
    },
    /// The request names a host that this server is not.
    #[error("this server does not answer as {host:?} (`allowed-hosts`)")]
    HostRefused {
        /// The name, or its beginning.
        host: String,
    },
    /// Path, query and headers are too long.
    #[error("path, query and headers together are longer than {limit} bytes (`max-headers`)")]
    HeadersTooLong {
        /// Longest taken.
        limit: usize,
    },
    /// The client shows no token, or none that is known.
    #[error(
        "the header Authorization must hold a token that this server knows: Bearer, a blank, and the token (`token-file`)"
    )]
    Unauthorized,
    /// The client has sent too many requests.
    #[error("more than {} requests a second (`rate-limit`)", .0.limit)]
    TooFast(TooFast),
    /// There are as many connections as may be.
    #[error("there are {limit} connections already, which is all there may be (`max-connections`)")]
    TooManyConnections {
        /// Most connections at a time.
        limit: usize,
    },
    /// There are as many requests as may be.
    #[error("there are {limit} requests already, which is all there may be (`max-requests`)")]
    TooManyRequests {
        /// Most requests at a time.
        limit: usize,
    },
    /// The server cannot do what it is for, or is about to end.
    #[error("not ready: {0}")]
    NotReady(String),
    /// All threads are busy and enough requests wait for one.
    #[error("the server is busy, try again soon (`pool-queue`)")]
    Overloaded,
    /// As many clients as may be are told of events.
    #[error("{limit} clients are told of events already, which is all there may be (`max-streams`)")]
    TooManyStreams {
        /// Most streams at a time.
        limit: usize,
    },
    /// A defect made the work panic.
    #[error("the work panicked")]
    Panicked,
    /// A defect made an answer unwritable.
    #[error("the answer cannot be encoded")]
    Encode(#[source] serde_json::Error),
}

impl HttpError {
    /// The option that sets the limit which the request met, if it met one.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        Some(match self {
            Self::BodyTooLarge { .. } => "max-body",
            Self::BodyTooDeep { .. } => "max-depth",
            Self::BodyTimeout => "body-timeout",
            Self::HostRefused { .. } => "allowed-hosts",
            Self::HeadersTooLong { .. } => "max-headers",
            Self::TooFast(_) => "rate-limit",
            Self::TooManyConnections { .. } => "max-connections",
            Self::TooManyRequests { .. } => "max-requests",
            Self::Overloaded => "pool-queue",
            Self::TooManyStreams { .. } => "max-streams",
            Self::Node(error) => return error.limit().map(options::option),
            _ => return None,
        })
    }

    /// Whether a busy or ending server is to be expected to answer so.
    pub(crate) fn is_expected(&self) -> bool {
        use HttpError::*;
        let busy =
            matches!(self, Overloaded | TooManyStreams { .. } | TooManyConnections { .. } | TooManyRequests { .. });
        busy || matches!(self, NotReady(_))
    }

    /// Seconds after which the client may try again; none if waiting does not help.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::TooFast(TooFast { wait, .. }) => Some(wait.as_secs() + 1),
            Self::NotReady(_) => Some(5),
            Self::Node(NodeError::TooManyFilters { .. }) => Some(60),
            busy if busy.is_expected() => Some(1),
            _ => None,
        }
    }
}

/// What a client is told.
pub(crate) struct Description {
    pub(crate) status: StatusCode,
    /// None for `about:blank`.
    pub(crate) page: Option<ProblemPage>,
    pub(crate) detail: String,
    pub(crate) errors: Vec<ErrorDetail>,
}

/// Translates an error. Nothing of the inside leaks: what is not the client's fault is told in general words.
pub(crate) fn describe(error: &HttpError, sent: &Sent) -> Description {
    let (status, page) = classify(error);
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        let detail = "the server failed; its log tells why, under the id of this instance".to_owned();
        return Description { status, page, detail, errors: Vec::new() };
    }
    let (errors, listed) = match error {
        HttpError::Body(BodyError::Invalid(faults)) | HttpError::Parameters(faults) => (faults.clone(), true),
        HttpError::Node(error) => (sent.details(error), matches!(error, NodeError::Invalid(_))),
        _ => (Vec::new(), false),
    };
    let detail = match error {
        _ if listed => summary(&errors),
        HttpError::Node(error) => options::message(error),
        error => error.to_string(),
    };
    Description { status, page, detail, errors }
}

/// The status of an answer that tells of `error`.
pub(crate) fn status(error: &HttpError) -> StatusCode {
    classify(error).0
}

/// One sentence for a list of faults.
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
        HttpError::Body(BodyError::Empty | BodyError::Malformed { .. }) | HttpError::Path | HttpError::BodyBroken => {
            blank(StatusCode::BAD_REQUEST)
        }
        HttpError::BodyTooDeep { .. } => (StatusCode::UNPROCESSABLE_ENTITY, Some(ProblemPage::LimitExceeded)),
        HttpError::Body(BodyError::Invalid(_)) | HttpError::Parameters(_) => blank(StatusCode::UNPROCESSABLE_ENTITY),
        HttpError::UnknownRoute => blank(StatusCode::NOT_FOUND),
        HttpError::MethodNotAllowed { .. } => blank(StatusCode::METHOD_NOT_ALLOWED),
        HttpError::NoWebSocket => blank(StatusCode::UPGRADE_REQUIRED),
        HttpError::ControlRefused(_) | HttpError::ForeignOrigin | HttpError::HostRefused { .. } => {
            blank(StatusCode::FORBIDDEN)
        }
        HttpError::Unauthorized => blank(StatusCode::UNAUTHORIZED),
        HttpError::HeadersTooLong { .. } => blank(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        HttpError::TooFast(_) => blank(StatusCode::TOO_MANY_REQUESTS),
        HttpError::MediaType => blank(StatusCode::UNSUPPORTED_MEDIA_TYPE),
        HttpError::BodyTooLarge { .. } => blank(StatusCode::PAYLOAD_TOO_LARGE),
        HttpError::BodyTimeout => blank(StatusCode::REQUEST_TIMEOUT),
        HttpError::Overloaded
        | HttpError::TooManyStreams { .. }
        | HttpError::TooManyConnections { .. }
        | HttpError::TooManyRequests { .. }
        | HttpError::NotReady(_) => blank(StatusCode::SERVICE_UNAVAILABLE),
        HttpError::Panicked | HttpError::Encode(_) => blank(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn classify_node(error: &NodeError) -> (StatusCode, Option<ProblemPage>) {
    use ProblemPage::*;
    let refused = StatusCode::UNPROCESSABLE_ENTITY;
    match error {
        NodeError::Invalid(_)
        | NodeError::Edited(_)
        | NodeError::Control(_)
        | NodeError::NotProducing
        | NodeError::UnknownAccount(_)
        | NodeError::GenesisNotTraceable => (refused, None),
        NodeError::TransactionNotFound { .. } => (StatusCode::NOT_FOUND, None),
        NodeError::TraceTooLarge { .. } => (refused, Some(LimitExceeded)),
        NodeError::BlockNotFound { .. } => (StatusCode::NOT_FOUND, Some(BlockNotFound)),
        NodeError::FilterNotFound => (StatusCode::NOT_FOUND, Some(FilterNotFound)),
        NodeError::StatePruned { .. } => (StatusCode::NOT_FOUND, Some(StatePruned)),
        NodeError::ExecutionReverted { .. } => (refused, Some(ExecutionReverted)),
        NodeError::ExecutionFailed { .. } | NodeError::NoPendingBlock { .. } | NodeError::NotBuilt(_) => {
            (refused, Some(ExecutionFailed))
        }
        NodeError::TransactionRejected(_) => (refused, Some(TransactionRejected)),
        NodeError::TooManyFilters { .. } => (StatusCode::TOO_MANY_REQUESTS, None),
        NodeError::TooManyLogs { .. } | NodeError::TooManyFilterLogs { .. } | NodeError::TooManyBlocks { .. } => {
            (refused, Some(LimitExceeded))
        }
        NodeError::Interrupted(Interrupted::DeadlineExceeded) => (refused, Some(LimitExceeded)),
        // Nobody hears it.
        NodeError::Interrupted(Interrupted::Cancelled) => (StatusCode::SERVICE_UNAVAILABLE, None),
        NodeError::Backend(_) | NodeError::PendingBlock(_) | NodeError::Proof { .. } => {
            (StatusCode::INTERNAL_SERVER_ERROR, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::backend::BackendError;

    #[test]
    fn lists_of_faults_become_a_sentence() {
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
    fn the_inside_does_not_leak() {
        let secret = "/var/lib/secret is broken";
        let storage = BackendError::Storage(secret.into());
        for error in [HttpError::Node(NodeError::Backend(storage)), HttpError::Panicked] {
            let told = describe(&error, &Sent::default());
            assert_eq!(told.status, StatusCode::INTERNAL_SERVER_ERROR, "{error:?}");
            assert!(!told.detail.contains("secret") && !told.detail.contains("backend"), "{}", told.detail);
            assert!(told.errors.is_empty(), "{error:?}");
        }
    }
}
