//! The problems, each with an example that is generated like a real problem.

use super::headers;
use super::reference;
use crate::admission::rate::TooFast;
use crate::config::HttpConfig;
use crate::exchange::request_id::RequestId;
use crate::problem::page::ProblemPage;
use crate::problem::report;
use crate::problem::sent::Sent;
use crate::problem::{self, HttpError};
use node_core::backend::BackendError;
use node_core::executor::CallFailure;
use node_core::node::{Fault, Field, Limits, NodeError};
use node_core::pool::{PoolError, Rejection};
use node_types::wire::{BodyError, ErrorDetail};
use node_types::{BlockId, H256};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Every status of a problem, with the name of its response.
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

/// The address of the server in the examples.
pub(super) const BASE_URL: &str = "http://127.0.0.1:8545";

/// The request id in the examples.
const INSTANCE: Uuid = Uuid::from_u128(0x5d9c_3f6e_9f0c_4a53_8a53_0f3f_6f0c_2a11);

struct Example {
    name: &'static str,
    summary: &'static str,
    status: u16,
    page: Option<ProblemPage>,
    problem: Value,
}

/// Names of the examples without a page, which have the statuses 404 and 422.
const UNKNOWN_ROUTE: &str = "unknown-route";
const SWITCHED_OFF: &str = "switched-off";
const INVALID: &str = "invalid";

/// Name of the example of a server with tokens.
pub(super) const NO_TOKEN: &str = "no-token";

/// Returns an example for every status, and for every kind with a page, from a server at `base_url`.
fn examples(base_url: &str) -> Vec<Example> {
    let example = |(name, summary, error): (&'static str, &'static str, HttpError)| {
        let described = problem::describe(&error, &sent(name));
        let (status, page) = (described.status.as_u16(), described.page);
        let problem = report::problem(described, &RequestId::Generated(INSTANCE), base_url);
        let mut problem = serde_json::to_value(problem).unwrap_or_default();
        problem["$schema"] = report::schema_url(base_url).into();
        Example { name, summary, status, page, problem }
    };
    errors().into_iter().map(example).collect()
}

/// Returns the request of an example whose error repeats a part of the request.
fn sent(example: &str) -> Sent {
    match example {
        "block-not-found" => Sent::of_body(r#"{"BlockNumber": "9000000"}"#),
        "range-above-head" => Sent::of_body(r#"{"FromBlock": "8999000", "ToBlock": "9000001"}"#),
        "limit-exceeded" => Sent::of_body(r#"{"FromBlock": "18000000", "ToBlock": "latest"}"#),
        "execution-failed" => Sent::of_body(r#"{"Transaction": {"To": "0x5fbdb2315678afecb367f032d93f642f64180aa3"}}"#),
        "transaction-rejected" => Sent::of_body(r#"{"Data": "0x03c0"}"#),
        "state-pruned" => Sent::of_body(r#"{"BlockNumber": "17"}"#),
        "filter-not-found" => Sent::of_path("FilterId", "0x2d1f0ad5c9be4c0b9a3e8e3f66a1b7c4"),
        _ => Sent::default(),
    }
}

fn errors() -> Vec<(&'static str, &'static str, HttpError)> {
    let limits = Limits::default();
    let http = HttpConfig::default();
    let fault = ErrorDetail::new("body.Topics[1]", "expected 0x and 64 hex digits").with_text("0x01");
    let reverted = NodeError::ExecutionReverted {
        reason: Some("not the owner".to_owned()),
        output: const_reason("not the owner").into(),
    };
    let rejected = NodeError::TransactionRejected(Rejection { reasons: vec![PoolError::MissingSidecar] });
    let too_many = NodeError::TooManyLogs { limit: limits.logs, to_block: Some(18_000_041), field: Field::ToBlock };
    let malformed = BodyError::Malformed { reason: "expected value".to_owned(), line: 1, column: 12 };
    vec![
        ("body-malformed", "The body is not JSON", HttpError::Body(malformed)),
        (NO_TOKEN, "A token is required", HttpError::Unauthorized),
        (
            "headers-too-long",
            "The headers are too long",
            HttpError::HeadersTooLong { limit: http.requests.max_headers },
        ),
        (
            "too-fast",
            "The client sends too many requests",
            HttpError::TooFast(TooFast { limit: 1_000, wait: Duration::from_millis(700) }),
        ),
        ("control-refused", "Only programs on the same machine may control the chain", HttpError::ControlRefused),
        (UNKNOWN_ROUTE, "The path does not exist", HttpError::UnknownRoute),
        (SWITCHED_OFF, "The operator switched the operation off", HttpError::SwitchedOff("sendRawTransaction")),
        (
            "block-not-found",
            "The block does not exist",
            NodeError::BlockNotFound { block: BlockId::number(9_000_000), field: Field::BlockNumber }.into(),
        ),
        (
            "range-above-head",
            "The range of blocks ends above the head",
            NodeError::RangeAboveHead {
                head: 9_000_000,
                faults: vec![Fault::new(Field::ToBlock, "block range extends beyond current head block 9000000")],
            }
            .into(),
        ),
        ("filter-not-found", "The filter does not exist", NodeError::FilterNotFound.into()),
        (
            "state-pruned",
            "The state of the block was pruned",
            NodeError::StatePruned { block: 17, earliest: 1_000, field: Field::BlockNumber }.into(),
        ),
        (
            "method-not-allowed",
            "The path does not accept the method",
            HttpError::MethodNotAllowed { allow: "POST, OPTIONS" },
        ),
        ("body-timeout", "The body arrived too slowly", HttpError::BodyTimeout),
        ("body-too-large", "The body is too long", HttpError::BodyTooLarge { limit: http.requests.max_body }),
        ("media-type", "The body is not declared as JSON", HttpError::MediaType),
        (INVALID, "A field has the wrong type, range or name", HttpError::Parameters(vec![fault])),
        ("execution-reverted", "The contract reverted", reverted.into()),
        (
            "execution-failed",
            "The call cannot be completed",
            NodeError::from(CallFailure::GasCap { cap: limits.gas_cap }).into(),
        ),
        ("transaction-rejected", "The pool rejects the transaction", rejected.into()),
        ("limit-exceeded", "The result would be too large", too_many.into()),
        ("failed", "The server failed", HttpError::Panicked),
        ("overloaded", "All threads are busy", HttpError::Overloaded),
        (
            "upstream-unavailable",
            "A fork cannot read what it does not have yet",
            NodeError::Upstream(
                "the upstream is unavailable: rpc.example.org: connection refused; needed: the header of block 17"
                    .into(),
            )
            .into(),
        ),
        (
            "no-state-root",
            "Nothing can be proven about the state of the block of a fork",
            NodeError::from(BackendError::NoStateRoot {
                block: 19,
                first: 18,
                reason:
                    "the fork is offline; needed: account 0x00000961ef480eb55e80d19ad83579a64c007002 as of block 17"
                        .into(),
            })
            .into(),
        ),
    ]
}

/// Returns the revert data for `reason`: `Error(string)` of the contract ABI.
fn const_reason(reason: &str) -> Vec<u8> {
    let mut output = vec![0x08, 0xc3, 0x79, 0xa0];
    output.extend(H256::from_low_u64_be(32).as_bytes());
    output.extend(H256::from_low_u64_be(reason.len() as u64).as_bytes());
    output.extend(reason.as_bytes());
    output.resize(4 + 64 + reason.len().next_multiple_of(32), 0);
    output
}

/// Returns the example of an invalid request to the server at `base_url`.
pub(crate) fn of_invalid_request(base_url: &str) -> Option<Value> {
    examples(base_url).into_iter().find(|example| example.name == INVALID).map(|example| example.problem)
}

/// Returns the example of a problem with this page, from the server at `base_url`.
pub(crate) fn of_page(page: ProblemPage, base_url: &str) -> Option<Value> {
    examples(base_url).into_iter().find(|example| example.page == Some(page)).map(|example| example.problem)
}

/// Returns the Example Objects by name, for `components`.
pub(super) fn example_components() -> Value {
    let named =
        |example: Example| (example.name.to_owned(), json!({ "summary": example.summary, "value": example.problem }));
    examples(BASE_URL).into_iter().map(named).collect::<Map<_, _>>().into()
}

/// Returns the responses that many operations share, by name, for `components`.
pub(super) fn response_components() -> Value {
    let examples = examples(BASE_URL);
    let mut responses = Map::new();
    for (status, name) in STATUSES {
        let names = examples.iter().filter(|example| example.status == status).map(|example| example.name);
        responses.insert(name.to_owned(), describe(status, names));
    }
    responses.insert(
        "NotModified".to_owned(),
        json!({ "description": "The client already has the response.", "headers": headers::of_not_modified() }),
    );
    responses.into()
}

/// Returns the response with this status for an operation with these problems. `document` is whether it is a document
/// rather than an operation of the node.
pub(super) fn response(status: u16, pages: &[ProblemPage], document: bool) -> Value {
    let examples = examples(BASE_URL);
    let of_pages = examples
        .iter()
        .filter(|example| example.status == status && example.page.is_some_and(|page| pages.contains(&page)))
        .map(|example| example.name);
    let blank = match status {
        404 if document => Some(UNKNOWN_ROUTE),
        404 => Some(SWITCHED_OFF),
        422 => Some(INVALID),
        _ => None,
    };
    describe(status, blank.into_iter().chain(of_pages))
}

fn describe(status: u16, examples: impl Iterator<Item = &'static str>) -> Value {
    let description = match status {
        400 => "The request is malformed.",
        401 => "The server requires a token (`token-file`), and the request has no valid one.",
        403 => "The request is for another server, or this client must not send it.",
        404 => {
            "What was requested does not exist or is no longer stored, or the operator switched the operation off (`api`)."
        }
        405 => "The path does not accept this method.",
        408 => "The body arrived too slowly.",
        413 => "The body is too long (`max-body`).",
        415 => "The body is not declared as JSON.",
        422 => "The request is well formed but cannot be fulfilled; `errors` lists every reason.",
        429 => "The client exceeds a limit.",
        431 => "The headers are too long.",
        500 => "The server failed. Its log has the reason, under the id of this instance.",
        _ => "The server is overloaded or not ready.",
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

    fn status_of(page: ProblemPage) -> u16 {
        match page {
            ProblemPage::BlockNotFound
            | ProblemPage::FilterNotFound
            | ProblemPage::StatePruned
            | ProblemPage::NoStateRoot => 404,
            ProblemPage::RangeAboveHead
            | ProblemPage::ExecutionReverted
            | ProblemPage::ExecutionFailed
            | ProblemPage::TransactionRejected
            | ProblemPage::LimitExceeded => 422,
            ProblemPage::UpstreamUnavailable => 503,
        }
    }

    #[test]
    fn every_page_has_an_example_of_its_status() {
        for page in ProblemPage::ALL {
            let problem = of_page(page, BASE_URL).unwrap();
            assert_eq!(problem["status"], status_of(page), "{page:?}");
            assert!(problem["type"].as_str().unwrap().ends_with(page.slug()), "{problem}");
        }
    }

    #[test]
    fn every_status_has_an_example() {
        let examples = examples(BASE_URL);
        for (status, name) in STATUSES {
            assert!(examples.iter().any(|example| example.status == status), "{status} {name}");
        }
        for example in examples {
            assert!(STATUSES.iter().any(|(status, _)| *status == example.status), "{}", example.name);
        }
    }
}
