//! Logs, with or without paging.

use super::operation::Operation;
use crate::convert::input::ABOVE_HEAD;
use crate::convert::{self, output};
use crate::exchange::parameters::Parameters;
use crate::exchange::{Exchange, Job};
use crate::problem::HttpError;
use crate::problem::page::ProblemPage::{BlockNotFound, ExecutionFailed, LimitExceeded, RangeAboveHead};
use actix_web::HttpResponse;
use node_core::block::LogRef;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::logs::FoundLog;
use node_core::node::{BlockRange, ForeignCursor, LogCursor, LogQuery, Node, NodeError};
use node_types::wire::{
    self, BodyError, BufferFull, ErrorDetail, GetLogsInput, GetLogsOutput, JsonArray, JsonBuffer, JsonObject, LogRange,
};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/getLogs/",
            "Search logs",
            "Returns all matching logs of a range of blocks, ordered by block and log index. A bound that is absent is the latest block; \
             `BlockHash` instead selects a single block. `ToBlock: pending` includes the logs of the pending block. Topics match by \
             position: null matches any topic, an array matches any of its elements.\n\nWith `Prefer: page`, a result that exceeds the \
             limit is split into pages: the header `Link` with `rel=\"next\"` is the address to which to post the same body for the next \
             page.",
        )
        .limits(
            "20,000 logs in a response (`max-logs`), 10,000,000 blocks (`max-block-range`), 1,000 addresses (`max-addresses`), \
             4 positions of topics with 1,000 topics each (`max-topics`).",
        )
        .with(
            "query",
            CURSOR,
            json!({ "type": "string" }),
            "Where the page begins, from the header `Link` of the previous page.",
        )
        .with("header", "Prefer", json!({ "type": "string" }), "`page` to split a long result into pages (RFC 7240).")
        .problems(&[BlockNotFound, RangeAboveHead, ExecutionFailed, LimitExceeded])
        .input::<GetLogsInput>(true)
        .output::<GetLogsOutput>()
        .handler(get_logs),
    ]
}

async fn get_logs(mut exchange: Exchange) -> HttpResponse {
    let mut sent = None;
    let read = exchange.parameters(|parameters| {
        let (cursor, faults) = sent_cursor(parameters);
        sent = cursor;
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    });
    let faults = match read {
        Ok(()) => Vec::new(),
        Err(HttpError::Parameters(faults)) => faults,
        Err(error) => return exchange.fail(&error),
    };
    let in_pages = sent.is_some() || exchange.prefers("page");
    let cursor = sent.as_ref().map(|sent| sent.cursor);
    let decode = move |node: &Node, body: &[u8]| {
        let check = |LogRange { from, to }| {
            let range = BlockRange { from, to };
            move |node: &Node, context: &Context| node.check_log_range(context, &range, ABOVE_HEAD)
        };
        let input: GetLogsInput = match wire::decode_body_within(body, convert::input::limits(node)) {
            Ok(input) => input,
            Err(BodyError::Invalid(mut faults)) => {
                let query = wire::decode_fields(body).map(convert::input::log_query);
                faults.extend(sent.as_ref().and_then(|sent| sent.fault(query.as_ref())));
                let range = GetLogsInput::range_of(body).ok_or_else(|| HttpError::Parameters(faults.clone()))?;
                return Ok(Job::faulty(Cost::of_logs([range.from, range.to]), faults).with_check(check(range)));
            }
            Err(error) => return Err(HttpError::Body(error)),
        };
        let cost = Cost::of_logs([input.from_block, input.to_block]);
        let check = check(LogRange { from: input.from_block, to: input.to_block });
        let query = convert::input::log_query(input);
        let foreign = sent.as_ref().and_then(|sent| sent.fault(Some(&query)));
        let work = move |node: &Node, context: &Context, out: &mut JsonBuffer| {
            let next = write_logs(out, |visit| {
                if in_pages {
                    node.visit_logs_page(context, &query, cursor, visit)
                } else {
                    node.visit_logs(context, &query, visit).map(|()| None)
                }
            })?;
            Ok(next.map(|cursor| format!("getLogs/?{CURSOR}={cursor}")))
        };
        Job::with_faults(Ok(Job::writing(cost, work).with_check(check)), foreign.into_iter().collect())
    };
    let job = exchange.decode_body(true, Arc::new(decode)).await;
    exchange.run(Job::with_faults(job, faults)).await
}

/// Appends an object with the logs that `search` passes on. Returns what `search` returns.
pub(super) fn write_logs<T>(
    out: &mut JsonBuffer,
    search: impl FnOnce(&mut dyn FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>) -> Result<T, NodeError>,
) -> Result<T, NodeError> {
    let mut output = JsonObject::begin(out);
    let mut logs = JsonArray::begin(output.member("Logs"));
    let returned = search(&mut |found| {
        let out = logs.element();
        output::append_log(out, &found);
        out.full().map_or(ControlFlow::Continue(()), ControlFlow::Break)
    })?;
    logs.end();
    output.end();
    Ok(returned)
}

/// The parameter with the start of a page, and another spelling of it that is accepted.
const CURSOR: &str = "Cursor";
const CURSOR_IN_LOWER_CASE: &str = "cursor";

/// The cursor of a request.
struct SentCursor {
    cursor: LogCursor,
    name: &'static str,
    text: String,
}

impl SentCursor {
    /// Returns the fault that the cursor belongs to another request than that for `query`, which is `None` if it has
    /// faults: cursors are returned only for requests without any.
    fn fault(&self, query: Option<&LogQuery>) -> Option<ErrorDetail> {
        let error = query.map_or(Err(ForeignCursor), |query| self.cursor.check(query)).err()?;
        Some(cursor_fault(self.name, &self.text, error.to_string()))
    }
}

fn cursor_fault(name: &str, text: &str, message: impl Into<String>) -> ErrorDetail {
    ErrorDetail::new(format!("query.{name}"), message).with_text(text)
}

/// Returns the cursor of a request, and the faults of its parameters.
fn sent_cursor(parameters: &mut Parameters<'_>) -> (Option<SentCursor>, Vec<ErrorDetail>) {
    let names = [CURSOR, CURSOR_IN_LOWER_CASE];
    let sent = parameters.queries(&names).into_iter().zip(names).filter_map(|(text, name)| Some((name, text?)));
    let (mut cursor, mut faults) = (None, Vec::new());
    for (index, (name, text)) in sent.enumerate() {
        match text.parse() {
            _ if index > 0 => faults.push(cursor_fault(name, &text, "duplicate parameter")),
            Ok(parsed) => cursor = Some(SentCursor { cursor: parsed, name, text }),
            Err(_) => faults.push(cursor_fault(name, &text, "not a cursor of this server")),
        }
    }
    (cursor, faults)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use node_core::block::BlockRef;
    use node_types::wire::append_json;
    use node_types::{Address, H256};

    #[test]
    fn writes_what_is_serialized() {
        let found = |log_index| FoundLog {
            block: BlockRef { number: 8, hash: H256::repeat_byte(1) },
            timestamp: 9,
            pending: false,
            log_index,
            transaction_index: 2,
            transaction_hash: H256::repeat_byte(3),
            log: LogRef { address: Address::repeat_byte(4), topics: &[[5; 32]; 2], data: &[6; 40] },
        };
        for count in [0, 1, 3] {
            let (mut written, mut serialized) = (JsonBuffer::default(), JsonBuffer::default());
            let search = |visit: &mut dyn FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>| {
                assert!((0..count).all(|log_index| visit(found(log_index)).is_continue()));
                Ok(())
            };
            write_logs(&mut written, search).unwrap();
            let logs = (0..count).map(|log_index| output::log(found(log_index).to_found_log())).collect();
            append_json(&mut serialized, &GetLogsOutput { logs }).unwrap();
            assert_eq!(String::from_utf8(written.into()), String::from_utf8(serialized.into()));
        }
    }
}
