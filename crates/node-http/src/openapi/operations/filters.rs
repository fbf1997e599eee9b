//! Logs, filters that are polled, and streams of events.

use super::Operation;
use crate::openapi::operation::{Answer, Link};
use crate::problem_page::ProblemPage::{BlockNotFound, ExecutionFailed, FilterNotFound, LimitExceeded};
use node_types::wire::schema::TextParameter::{Addresses, BlockNumberOrTag, Topics};
use serde_json::json;

/// What can be asked about a filter that was made.
const FILTER: &[Link] = &[
    ("getFilterChanges", "FilterId", "FilterId"),
    ("getFilterLogs", "FilterId", "FilterId"),
    ("uninstallFilter", "FilterId", "FilterId"),
];

const FILTER_ID: &str = "The filter, as the operation that made it answered.";
const FILTERS: &str =
    "1,024 filters at a time (`max-filters`); one that is not polled for 5 min is gone (`filter-ttl`).";
const LOG_FILTERS: &str = "1,024 filters at a time (`max-filters`); one that is not polled for 5 min is gone (`filter-ttl`). \
     1,000 addresses (`max-addresses`), 4 positions of topics with 1,000 topics each (`max-topics`).";
const BLOCK_FILTER: &str = "A filter that reports the hash of each block that joins the chain.";
const TRANSACTION_FILTER: &str = "A filter that reports the hash of each transaction that comes into the pool.";

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::post(
            "getLogs",
            "/getLogs/",
            "Find logs",
            "All logs of a range of blocks that match, in the order of blocks, then of log indices. A bound that is absent is the latest \
             block; `BlockHash` alone names a single block. `ToBlock: pending` adds the logs of the pending block. Topics go by position: \
             null matches any, an array any of its elements.\n\nWith `Prefer: page` an answer of more than the limit comes in pages: the \
             header `Link` with `rel=\"next\"` says where to post the same body for the next one.",
        )
        .limits(
            "20,000 logs an answer (`max-logs`), 10,000,000 blocks (`max-block-range`), 1,000 addresses (`max-addresses`), 4 positions of topics with 1,000 topics each \
             (`max-topics`).",
        )
        .with("query", "cursor", json!({ "type": "string" }), "Where the page begins, from the header `Link` of the page before.")
        .with("header", "Prefer", json!({ "type": "string" }), "`page` for pages, where one answer would be too long (RFC 7240).")
        .problems(&[BlockNotFound, ExecutionFailed, LimitExceeded]),
        Operation::post(
            "newFilter",
            "/newFilter/",
            "Make a log filter",
            "A filter that reports the logs that match, from now on, when it is polled with getFilterChanges; after a reorganization \
             first those that were removed. `\"\"` means any.",
        )
        .limits(LOG_FILTERS)
        .problems(&[BlockNotFound])
        .links(FILTER),
        Operation::post("newBlockFilter", "/newBlockFilter/", "Make a block filter", BLOCK_FILTER)
            .optional_body()
            .limits(FILTERS)
            .links(FILTER),
        Operation::get("newBlockFilterByGet", "/newBlockFilter/", "Make a block filter by GET", BLOCK_FILTER)
            .limits(FILTERS)
            .not_stored()
            .links(FILTER),
        Operation::post(
            "newPendingTransactionFilter",
            "/newPendingTransactionFilter/",
            "Make a transaction filter",
            TRANSACTION_FILTER,
        )
        .optional_body()
        .limits(FILTERS)
        .links(FILTER),
        Operation::get(
            "newPendingTransactionFilterByGet",
            "/newPendingTransactionFilter/",
            "Make a transaction filter by GET",
            TRANSACTION_FILTER,
        )
        .limits(FILTERS)
        .not_stored()
        .links(FILTER),
        filter(
            "getFilterChanges",
            "/getFilterChanges/{FilterId}/",
            "Poll a filter",
            "What happened since the last successful poll: logs, or hashes of blocks or transactions.",
        )
        .limits("20,000 entries (`max-logs`); what is left comes with the next poll.")
        .problems(&[FilterNotFound, LimitExceeded]),
        filter(
            "getFilterLogs",
            "/getFilterLogs/{FilterId}/",
            "Read all logs of a filter",
            "All logs in the whole range of a log filter, whether they were polled or not.",
        )
        .limits("20,000 logs (`max-logs`).")
        .problems(&[FilterNotFound, LimitExceeded]),
        Operation::get(
            "uninstallFilter",
            "/uninstallFilter/{FilterId}/",
            "Remove a filter",
            "Ends a filter; answers whether there was one of this name.",
        )
        .with("path", "FilterId", json!({ "type": "string", "minLength": 1 }), FILTER_ID)
        .not_stored(),
        Operation::get(
            "events",
            "/events/",
            "Be told what happens",
            "A stream of Server-Sent Events: logs, blocks or transactions, as a filter reports them, without polling. Each event has an id; \
             a client that connects again with the last one misses nothing and is told what a reorganization took back. `data` is an \
             element of what getFilterChanges answers. An event `problem` ends the stream.",
        )
        .limits("256 streams at a time (`max-streams`).")
        .with(
            "query",
            "Stream",
            json!({ "type": "string", "enum": ["", "logs", "blocks", "pendingTransactions"] }),
            "What is told; logs where it is absent.",
        )
        .query("Address", Addresses, "Of logs: contracts that emit them, separated by commas.")
        .query("Topic0", Topics, "Of logs: topics at position 0, separated by commas.")
        .query("Topic1", Topics, "Of logs: topics at position 1, separated by commas.")
        .query("Topic2", Topics, "Of logs: topics at position 2, separated by commas.")
        .query("Topic3", Topics, "Of logs: topics at position 3, separated by commas.")
        .query("FromBlock", BlockNumberOrTag, "Of logs and blocks: where to begin.")
        .with("query", "LastEventId", json!({ "type": "string" }), "As the header, which goes before it.")
        .with("header", "Last-Event-ID", json!({ "type": "string" }), "Id of the last event that the client has.")
        .answers(Answer::Text(&["text/event-stream"]))
        .not_stored()
        .problems(&[BlockNotFound]),
    ]
}

/// Asks about a filter; that it does so is a use of it.
fn filter(id: &'static str, path: &'static str, summary: &'static str, description: &'static str) -> Operation {
    let schema = json!({ "type": "string", "pattern": "^0x[0-9a-fA-F]{32}$" });
    Operation::get(id, path, summary, description).with("path", "FilterId", schema, FILTER_ID).not_stored()
}
