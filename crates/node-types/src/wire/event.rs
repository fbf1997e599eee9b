//! Event streams.

use super::decode::RequestLimits;
use super::log;
use super::parameters::ParameterDecoder;
use super::problem::ErrorDetail;
use super::text::TextError;
use super::{AddressFilter, HashData, Log, Quantity64, TopicFilter};
use crate::{BlockNumberOrTag, ChainEventId, EventId};
use serde::Serialize;
use std::str::FromStr;

/// The parameters of events: the kind of events and where to start. Without a start, the stream reports what happens
/// from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsInput {
    /// Logs that are added and removed.
    Logs {
        /// Contracts that emit them.
        address: AddressFilter,
        /// Topics, by position.
        topics: Vec<TopicFilter>,
        /// First block. `after` takes precedence.
        from_block: Option<BlockNumberOrTag>,
        /// The last event that the client received.
        after: Option<ChainEventId>,
    },
    /// Blocks that join the canonical chain.
    Blocks {
        /// First block. `after` takes precedence.
        from_block: Option<BlockNumberOrTag>,
        /// The last event that the client received.
        after: Option<HashData>,
    },
    /// Transactions that enter the pool.
    PendingTransactions {
        /// The arrival number of the last transaction that the client received.
        after: Option<Quantity64>,
    },
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `None` if a stream cannot resume after this event.
    pub id: Option<EventId>,
    /// What happened; `None` if only the position has advanced.
    pub data: Option<EventData>,
}

/// What happened: an element of the response of getFilterChanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventData {
    /// A log was added or removed.
    Log(Log),
    /// A block joined the canonical chain.
    Block(HashData),
    /// A transaction entered the pool.
    Transaction(HashData),
}

impl EventData {
    /// Returns the type of the event, as it is sent.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Log(_) => "log",
            Self::Block(_) => "block",
            Self::Transaction(_) => "transaction",
        }
    }
}

/// The kind of events in a stream.
#[derive(Clone, Copy)]
enum Stream {
    Logs,
    Blocks,
    PendingTransactions,
}

impl FromStr for Stream {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        match text {
            "logs" => Ok(Self::Logs),
            "blocks" => Ok(Self::Blocks),
            "pendingTransactions" => Ok(Self::PendingTransactions),
            _ => Err(TextError::EventStream),
        }
    }
}

const STREAM: &str = "Stream";
const ADDRESS: &str = "Address";
const FROM_BLOCK: &str = "FromBlock";
const LAST_EVENT_ID: &str = "LastEventId";
const TOPICS: [&str; 4] = ["Topic0", "Topic1", "Topic2", "Topic3"];

/// Parameters of log streams only.
const LOG_PARAMETERS: [&str; 5] = [ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3]];
/// Parameters of log and block streams, or of log streams only.
const CHAIN_PARAMETERS: [&str; 6] = [ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3], FROM_BLOCK];

impl EventsInput {
    /// The names of the query parameters.
    pub const PARAMETERS: [&'static str; 8] =
        [STREAM, ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3], FROM_BLOCK, LAST_EVENT_ID];

    /// Decodes the parameters. `value` returns a query parameter by name; an empty one counts as absent. The header
    /// `Last-Event-ID` takes precedence over the parameter `LastEventId`, because a browser that reconnects sends the
    /// original address with a newer header.
    ///
    /// # Errors
    /// All faults of the parameters.
    pub fn from_query<'a>(
        value: impl Fn(&str) -> Option<&'a str>,
        header: Option<&str>,
        limits: RequestLimits,
    ) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let value = |name| value(name).filter(|text| !text.is_empty());
        let stream = decoder.query(STREAM, value(STREAM).unwrap_or("logs"));
        let foreign: &[&str] = match stream {
            Some(Stream::Blocks) => &LOG_PARAMETERS,
            Some(Stream::PendingTransactions) => &CHAIN_PARAMETERS,
            Some(Stream::Logs) | None => &[],
        };
        for name in foreign {
            if let Some(text) = value(name) {
                decoder.refuse_query(name, text, "unexpected parameter for this stream");
            }
        }
        let after = (header.filter(|text| !text.is_empty()).map(|text| (text, true)))
            .or(value(LAST_EVENT_ID).map(|text| (text, false)));
        let input = match stream {
            Some(Stream::Blocks) => Some(Self::Blocks {
                from_block: value(FROM_BLOCK).and_then(|text| decoder.query(FROM_BLOCK, text)),
                after: last_event(&mut decoder, after),
            }),
            Some(Stream::PendingTransactions) => {
                Some(Self::PendingTransactions { after: last_event(&mut decoder, after) })
            }
            // If the stream is invalid, the other parameters are checked as those of logs.
            Some(Stream::Logs) | None => {
                let mut topics: Vec<TopicFilter> = TOPICS
                    .into_iter()
                    .map(|name| value(name).and_then(|text| decoder.list(name, text, log::TOPICS, limits.topics)))
                    .map(|topics| TopicFilter(topics.unwrap_or_default()))
                    .collect();
                let positions = topics.iter().rposition(|topic| !topic.is_any()).map_or(0, |last| last + 1);
                topics.truncate(positions);
                Some(Self::Logs {
                    address: value(ADDRESS)
                        .and_then(|text| decoder.list(ADDRESS, text, log::ADDRESSES, limits.addresses))
                        .map_or_else(AddressFilter::default, AddressFilter),
                    topics,
                    from_block: value(FROM_BLOCK).and_then(|text| decoder.query(FROM_BLOCK, text)),
                    // It may be the id of an event of another stream.
                    after: after
                        .filter(|(id, _)| stream.is_some() || !is_of_another_stream(id))
                        .and_then(|after| last_event(&mut decoder, Some(after))),
                })
            }
        };
        decoder.finish(input)
    }
}

/// Returns whether a text is the id of an event of a stream of blocks or of transactions.
fn is_of_another_stream(id: &str) -> bool {
    id.parse::<HashData>().is_ok() || id.parse::<Quantity64>().is_ok()
}

/// Parses the id of the last event. The flag says whether it is from the header.
fn last_event<T: FromStr<Err: Into<TextError>>>(
    decoder: &mut ParameterDecoder,
    text: Option<(&str, bool)>,
) -> Option<T> {
    match text? {
        (text, true) => decoder.header("Last-Event-ID", text),
        (text, false) => decoder.query(LAST_EVENT_ID, text),
    }
}
