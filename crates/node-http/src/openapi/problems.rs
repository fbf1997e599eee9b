//! The problems, each with an example that is made as a real one is.

use super::{headers, reference};
use crate::config::HttpConfig;
use crate::problem::{self, HttpError};
use crate::problem_page::ProblemPage;
use crate::rate::TooFast;
use crate::report;
use node_core::context::Interrupted;
use node_core::filters::FilterLimits;
use node_core::node::{Limits, NodeError};
use node_core::pool::{PoolError, Rejection};
use node_types::wire::{BodyError, ErrorDetail};
use node_types::{BlockId, H256};
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;
use uuid::Uuid;

/// Every status of a problem, and the name of the response that has it.
pub(super) const STATUSES: [(u16, &str); 13] = [
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (408, "RequestTimeout"),
    (413, "PayloadTooLarge"),
    (415, "UnsupportedMediaType"),
    (422, "UnprocessableEntity"),
    (429, "TooManyRequests"),
    (431, "RequestHeaderFieldsTooLarge"),
    (500, "InternalServerError"),
    (503, "ServiceUnavailable"),
];

/// Where the server of the examples is.
pub(super) const BASE_URL: &str = "http://127.0.0.1:8545";

/// The occurrence that the examples tell of.
const INSTANCE: Uuid = Uuid::from_u128(0x5d9c_3f6e_9f0c_4a53_8a53_0f3f_6f0c_2a11);

/// A problem that a client may be told.
struct Example {
    name: &'static str,
    summary: &'static str,
    status: u16,
    page: Option<ProblemPage>,
    problem: Value,
}

/// Names of the examples that stand for themselves, without a page: status 404, then 422.
const UNKNOWN_ROUTE: &str = "unknown-route";
const INVALID: &str = "invalid";

/// The examples, every kind of problem once.
fn examples() -> Vec<Example> {
    let example = |(name, summary, error): (&'static str, &'static str, HttpError)| {
        let described = problem::describe(&error);
        let (status, page) = (described.status.as_u16(), described.page);
        let problem = report::problem(described, INSTANCE, BASE_URL);
        let mut problem = serde_json::to_value(problem).unwrap_or_default();
        problem["$schema"] = report::schema_url(BASE_URL).into();
        Example { name, summary, status, page, problem }
    };
    errors().into_iter().map(example).collect()
}

fn errors() -> Vec<(&'static str, &'static str, HttpError)> {
    let limits = Limits::default();
    let http = HttpConfig::default();
    let fault = ErrorDetail::new("body.Topics[1]", "expected 0x and 64 hex digits").with_text("0x01");
    let unknown_filter = "0x2d1f0ad5c9be4c0b9a3e8e3f66a1b7c4".to_owned();
    let reverted = NodeError::ExecutionReverted {
        reason: Some("not the owner".to_owned()),
        output: const_reason("not the owner").into(),
    };
    let rejected = NodeError::TransactionRejected(Rejection { reasons: vec![PoolError::MissingSidecar] });
    let too_many = NodeError::TooManyLogs { limit: limits.logs, to_block: Some(18_000_041), location: "body.ToBlock" };
    let malformed = BodyError::Malformed { reason: "expected value".to_owned(), line: 1, column: 12 };
    vec![
        ("body-empty", "A body is needed and there is none", HttpError::Body(BodyError::Empty)),
        ("body-malformed", "The body is not JSON", HttpError::Body(malformed)),
        ("body-broken", "The body ended early", HttpError::BodyBroken),
        ("no-token", "A token is demanded", HttpError::Unauthorized),
        (
            "foreign-host",
            "The request is for another host",
            HttpError::HostRefused { host: "elsewhere.example".to_owned() },
        ),
        ("headers-too-long", "The headers are too long", HttpError::HeadersTooLong { limit: http.max_headers }),
        (
            "too-fast",
            "The client asks too often",
            HttpError::TooFast(TooFast { limit: 1_000, wait: Duration::from_millis(700) }),
        ),
        ("path-undecodable", "The path has a broken escape", HttpError::Path),
        ("foreign-origin", "A page of another origin wants to control the chain", HttpError::ForeignOrigin),
        (
            "control-refused",
            "Others may reach the server, and could control the chain",
            HttpError::ControlRefused(Ipv4Addr::UNSPECIFIED.into()),
        ),
        (UNKNOWN_ROUTE, "There is nothing under the path", HttpError::UnknownRoute),
        (
            "block-not-found",
            "The chain has no such block",
            NodeError::BlockNotFound { block: BlockId::number(9_000_000), location: "body.BlockNumber" }.into(),
        ),
        ("filter-not-found", "There is no such filter", NodeError::FilterNotFound { id: unknown_filter }.into()),
        (
            "state-pruned",
            "The state is no longer kept",
            NodeError::StatePruned { block: 17, earliest: 1_000, location: "body.BlockNumber" }.into(),
        ),
        (
            "method-not-allowed",
            "The path answers to other methods",
            HttpError::MethodNotAllowed { allow: "POST, OPTIONS" },
        ),
        ("body-timeout", "The body came too slowly", HttpError::BodyTimeout),
        ("body-too-large", "The body is too long", HttpError::BodyTooLarge { limit: http.max_body }),
        ("media-type", "The body is not said to be JSON", HttpError::MediaType),
        (INVALID, "A field is of the wrong type, range or name", HttpError::Parameters(vec![fault])),
        ("not-producing", "The node does not produce blocks", NodeError::NotProducing.into()),
        ("execution-reverted", "The contract reverted", reverted.into()),
        (
            "execution-failed",
            "The call cannot be run to its end",
            NodeError::ExecutionFailed { reason: format!("it needs more than the {} gas allowed", limits.gas_cap) }
                .into(),
        ),
        ("transaction-rejected", "The pool does not take the transaction", rejected.into()),
        ("limit-exceeded", "The answer would be too large", too_many.into()),
        ("out-of-time", "The answer would take too long", NodeError::Interrupted(Interrupted::DeadlineExceeded).into()),
        (
            "too-many-blocks",
            "The query spans too many blocks",
            NodeError::TooManyBlocks {
                blocks: limits.block_range + 7,
                limit: limits.block_range,
                to_block: limits.block_range - 1,
                location: "body.ToBlock",
            }
            .into(),
        ),
        ("body-too-deep", "The body is nested too deep", HttpError::BodyTooDeep { limit: http.max_depth }),
        (
            "too-many-filters",
            "There are as many filters as may be",
            NodeError::TooManyFilters { limit: FilterLimits::default().count }.into(),
        ),
        ("failed", "The server failed", HttpError::Panicked),
        ("overloaded", "All threads are busy", HttpError::Overloaded),
        (
            "too-many-connections",
            "There are as many connections as may be",
            HttpError::TooManyConnections { limit: http.max_connections },
        ),
        (
            "too-many-requests",
            "There are as many requests as may be",
            HttpError::TooManyRequests { limit: http.max_requests },
        ),
        ("not-ready", "The server is not ready", HttpError::NotReady("the server is about to end".to_owned())),
        (
            "too-many-streams",
            "As many clients as may be are told of events",
            HttpError::TooManyStreams { limit: http.max_streams },
        ),
    ]
}

/// What a contract returns that reverts with `reason`: `Error(string)` by the contract ABI.
fn const_reason(reason: &str) -> Vec<u8> {
    let mut output = vec![0x08, 0xc3, 0x79, 0xa0];
    output.extend(H256::from_low_u64_be(32).as_bytes());
    output.extend(H256::from_low_u64_be(reason.len() as u64).as_bytes());
    output.extend(reason.as_bytes());
    output.resize(4 + 64 + reason.len().next_multiple_of(32), 0);
    output
}

/// The status that problems with this page have.
pub(super) fn status_of(page: ProblemPage) -> u16 {
    match page {
        ProblemPage::BlockNotFound | ProblemPage::FilterNotFound | ProblemPage::StatePruned => 404,
        ProblemPage::ExecutionReverted
        | ProblemPage::ExecutionFailed
        | ProblemPage::TransactionRejected
        | ProblemPage::LimitExceeded => 422,
    }
}

/// An example of the problem with this page.
pub(crate) fn of_page(page: ProblemPage) -> Option<Value> {
    examples().into_iter().find(|example| example.page == Some(page)).map(|example| example.problem)
}

/// The Example Objects by name, for `components`.
pub(super) fn example_components() -> Value {
    let named =
        |example: Example| (example.name.to_owned(), json!({ "summary": example.summary, "value": example.problem }));
    examples().into_iter().map(named).collect::<Map<_, _>>().into()
}

/// The responses that many operations share, by name, for `components`.
pub(super) fn response_components() -> Value {
    let examples = examples();
    let mut responses = Map::new();
    for (status, name) in STATUSES {
        let names = examples.iter().filter(|example| example.status == status).map(|example| example.name);
        responses.insert(name.to_owned(), describe(status, names));
    }
    responses.insert(
        "NotModified".to_owned(),
        json!({ "description": "The client has the answer already.", "headers": headers::of_not_modified() }),
    );
    responses.into()
}

/// The response with this status of an operation that answers these problems, or of a document.
pub(super) fn response(status: u16, pages: &[ProblemPage], document: bool) -> Value {
    let examples = examples();
    let of_pages = examples
        .iter()
        .filter(|example| example.status == status && example.page.is_some_and(|page| pages.contains(&page)))
        .map(|example| example.name);
    let blank = match status {
        404 if document => Some(UNKNOWN_ROUTE),
        422 => Some(INVALID),
        _ => None,
    };
    describe(status, blank.into_iter().chain(of_pages))
}

fn describe(status: u16, examples: impl Iterator<Item = &'static str>) -> Value {
    let description = match status {
        400 => "The request cannot be read.",
        401 => "The server demands a token (`token-file`), and the request has none that it knows.",
        403 => "The request is not for this server, or not for this client.",
        404 => "What is asked for is not there.",
        405 => "The path answers to other methods.",
        408 => "The body came too slowly (`body-timeout`).",
        413 => "The body is too long (`max-body`).",
        415 => "The body is not said to be JSON.",
        422 => "The request is understood and cannot be fulfilled; `errors` lists every reason.",
        429 => "The client asks for too much at a time.",
        431 => "The headers are too long (`max-headers`).",
        500 => "The server failed; its log tells why, under the id of this instance.",
        _ => "The server is busy.",
    };
    let mut content = json!({ "schema": reference("schemas", "ErrorModel") });
    let examples: Map<_, _> = examples.map(|name| (name.to_owned(), reference("examples", name))).collect();
    if !examples.is_empty() {
        content["examples"] = examples.into();
    }
    json!({
        "description": description,
        "headers": headers::of_problem(status),
        "content": { "application/problem+json": content },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_an_example_of_its_status() {
        for page in ProblemPage::ALL {
            let problem = of_page(page).unwrap();
            assert_eq!(problem["status"], status_of(page), "{page:?}");
            assert!(problem["type"].as_str().unwrap().ends_with(page.slug()), "{problem}");
        }
    }

    #[test]
    fn every_status_has_an_example() {
        let examples = examples();
        for (status, name) in STATUSES {
            assert!(examples.iter().any(|example| example.status == status), "{status} {name}");
        }
        for example in examples {
            assert!(STATUSES.iter().any(|(status, _)| *status == example.status), "{}", example.name);
        }
    }
}
