//! Streams of events.

use super::output;
use node_core::backend::LogFilter;
use node_core::node::{self, EventQuery, EventStart};
use node_types::wire::{Data, Event, EventData, EventsInput};
use node_types::{BlockNumberOrTag, ChainEventId};

/// Converts the parameters of a stream.
pub(crate) fn query(input: EventsInput) -> EventQuery {
    let start = |from_block: Option<BlockNumberOrTag>, after: Option<ChainEventId>| match (after, from_block) {
        (Some(id), _) => EventStart::After(id),
        (None, Some(block)) => EventStart::Block(block),
        (None, None) => EventStart::Now,
    };
    match input {
        EventsInput::Logs { address, topics, from_block, after } => EventQuery::Logs {
            filter: LogFilter { addresses: address.0, topics: topics.into_iter().map(|topic| topic.0).collect() },
            start: start(from_block, after),
        },
        EventsInput::Blocks { from_block, after } => {
            let after = after.map(|block| ChainEventId { block: block.0, log_index: None });
            EventQuery::Blocks { start: start(from_block, after) }
        }
        EventsInput::PendingTransactions { after } => {
            EventQuery::PendingTransactions { after: after.map(|number| number.0) }
        }
    }
}

pub(crate) fn event(event: node::Event) -> Event {
    let data = event.data.map(|data| match data {
        node::EventData::Log(change) => EventData::Log(output::changed_log(change)),
        node::EventData::Block(block) => EventData::Block(Data(block.hash)),
        node::EventData::Transaction(hash) => EventData::Transaction(Data(hash)),
    });
    Event { id: event.id, data }
}
