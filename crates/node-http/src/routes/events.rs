//! The event stream.

use super::operation::{Content, Operation};
use crate::convert;
use crate::events;
use crate::exchange::Exchange;
use crate::exchange::parameters::Parameters;
use crate::problem::page::ProblemPage::LimitExceeded;
use actix_web::{HttpRequest, HttpResponse};
use node_types::BlockNumberOrTag;
use node_types::wire::{AddressFilter, ErrorDetail, EventsInput, RequestLimits, TopicFilter, schema};
use serde_json::json;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get(
            "/events/",
            "Receive events as they happen",
            "A stream of Server-Sent Events: logs, blocks or transactions, as a filter reports them, without polling. Each event has an id. \
             A client that reconnects with the id of the last event misses nothing, and learns what a reorganization removed. `data` is an \
             element of the result of getFilterChanges. An event `problem` ends the stream. If the block of an id is not known, the stream \
             waits 30 s for it before it ends.",
        )
        .limits(
            "256 streams at a time (`max-streams`), 64 MiB of addresses and topics of all filters and streams (`max-filter-bytes`).",
        )
        .with(
            "query",
            "Stream",
            json!({ "type": "string", "enum": ["", "logs", "blocks", "pendingTransactions"] }),
            "The kind of events; logs if absent.",
        )
        .with("query", "Address", schema::text::<AddressFilter>(), "Logs only: contracts that emit them, separated by commas.")
        .with("query", "Topic0", schema::text::<TopicFilter>(), "Logs only: topics at position 0, separated by commas.")
        .with("query", "Topic1", schema::text::<TopicFilter>(), "Logs only: topics at position 1, separated by commas.")
        .with("query", "Topic2", schema::text::<TopicFilter>(), "Logs only: topics at position 2, separated by commas.")
        .with("query", "Topic3", schema::text::<TopicFilter>(), "Logs only: topics at position 3, separated by commas.")
        .with(
            "query",
            "FromBlock",
            schema::empty_or(schema::text::<BlockNumberOrTag>()),
            "Logs and blocks only: the first block; not a hash.",
        )
        .with(
            "query",
            "LastEventId",
            json!({ "type": "string" }),
            "Id of the last event that the client received. The header `Last-Event-ID`, which browsers send, takes precedence.",
        )
        .content(Content::Text(&["text/event-stream"]))
        .no_store()
        .problems(&[LimitExceeded])
        .handler(stream_events),
    ]
}

async fn stream_events(exchange: Exchange) -> HttpResponse {
    let limits = convert::input::limits(&exchange.service().node);
    let input = exchange.parameters(|parameters| input(exchange.request(), parameters, limits));
    events::respond(exchange, input).await
}

fn input(
    request: &HttpRequest,
    parameters: &mut Parameters<'_>,
    limits: RequestLimits,
) -> Result<EventsInput, Vec<ErrorDetail>> {
    let values = parameters.queries(&EventsInput::PARAMETERS);
    let value = |name: &str| {
        let index = EventsInput::PARAMETERS.iter().position(|known| *known == name)?;
        values[index].as_deref()
    };
    // An id that is not UTF-8 is reported as malformed.
    let header = request.headers().get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()));
    EventsInput::from_query(value, header.as_deref(), limits)
}
