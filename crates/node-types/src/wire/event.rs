//! Events, told as they happen.

use super::parameters::ParameterDecoder;
use super::problem::ErrorDetail;
use super::text::TextError;
use super::{AddressFilter, Data, HashData, Log, Quantity64, TopicFilter};
use crate::{BlockNumberOrTag, H256};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The parameters of events: what is to be told, and where to begin. Without a place to begin, what happens from now on is
/// told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsInput {
    /// Logs that appear and disappear.
    Logs {
        /// Contracts that emit them.
        address: AddressFilter,
        /// Topics by position.
        topics: Vec<TopicFilter>,
        /// First block, unless `after` says where to begin.
        from_block: Option<BlockNumberOrTag>,
        /// The last event that the client has.
        after: Option<LastEvent<ChainEventId>>,
    },
    /// Blocks that join the chain.
    Blocks {
        /// First block, unless `after` says where to begin.
        from_block: Option<BlockNumberOrTag>,
        /// The last event that the client has.
        after: Option<LastEvent<HashData>>,
    },
    /// Transactions that come into the pool.
    PendingTransactions {
        /// The last event that the client has: its number of arrival.
        after: Option<LastEvent<Quantity64>>,
    },
}

/// The event behind which a client wants to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEvent<T> {
    /// Its id.
    pub id: T,
    /// Where the request names it.
    pub location: &'static str,
}

/// Names a place in the chain: all that came before it has been told, and of its block all, or all up to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainEventId {
    /// Hash of the block.
    pub block: H256,
    /// Index in the block of the last log that was told; none where the whole block was.
    pub log_index: Option<u64>,
}

/// Names an event, so that a client can go on behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventId {
    /// Of logs and blocks.
    Chain(ChainEventId),
    /// Of transactions: the number of arrival.
    Arrival(u64),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Names the place behind it; none where a client cannot go on there.
    pub id: Option<EventId>,
    /// What happened; none where only the place has moved.
    pub data: Option<EventData>,
}

/// What happened: an element of the answer of getFilterChanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventData {
    /// A log appeared or disappeared.
    Log(Log),
    /// A block joined the chain.
    Block(HashData),
    /// A transaction came into the pool.
    Transaction(HashData),
}

impl EventData {
    /// The event's type on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Log(_) => "log",
            Self::Block(_) => "block",
            Self::Transaction(_) => "transaction",
        }
    }
}

/// What kind of events is told.
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

/// The parameters that only logs have.
const FOR_LOGS: [&str; 5] = [ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3]];
/// The parameters that only logs and blocks have, or only logs.
const FOR_CHAIN: [&str; 6] = [ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3], FROM_BLOCK];

impl EventsInput {
    /// Names of the parameters in the query.
    pub const PARAMETERS: [&'static str; 8] =
        [STREAM, ADDRESS, TOPICS[0], TOPICS[1], TOPICS[2], TOPICS[3], FROM_BLOCK, LAST_EVENT_ID];

    /// Reads the parameters, given by name. The header `Last-Event-ID` goes before the parameter `LastEventId`: a browser
    /// that connects again sends the address of the first time with a newer header. Empty ones are as good as absent.
    pub fn from_query<'a>(
        value: impl Fn(&str) -> Option<&'a str>,
        header: Option<&str>,
    ) -> Result<Self, Vec<ErrorDetail>> {
        let mut decoder = ParameterDecoder::default();
        let value = |name| value(name).filter(|text| !text.is_empty());
        let stream = decoder.query(STREAM, value(STREAM).unwrap_or("logs"));
        let foreign: &[&str] = match stream {
            Some(Stream::Blocks) => &FOR_LOGS,
            Some(Stream::PendingTransactions) => &FOR_CHAIN,
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
            // What else is wrong is told for logs if it is not known what is wanted.
            Some(Stream::Logs) | None => {
                let mut topics: Vec<TopicFilter> = TOPICS
                    .into_iter()
                    .map(|name| value(name).and_then(|text| decoder.query(name, text)).unwrap_or_default())
                    .collect();
                let positions = topics.iter().rposition(|topic| !topic.is_any()).map_or(0, |last| last + 1);
                topics.truncate(positions);
                Some(Self::Logs {
                    address: value(ADDRESS).and_then(|text| decoder.query(ADDRESS, text)).unwrap_or_default(),
                    topics,
                    from_block: value(FROM_BLOCK).and_then(|text| decoder.query(FROM_BLOCK, text)),
                    after: if stream.is_some() { last_event(&mut decoder, after) } else { None },
                })
            }
        };
        decoder.finish(input)
    }
}

/// Reads the id of the last event, and whether it comes in the header.
fn last_event<T: FromStr<Err: Into<TextError>>>(
    decoder: &mut ParameterDecoder,
    text: Option<(&str, bool)>,
) -> Option<LastEvent<T>> {
    let (id, location) = match text? {
        (text, true) => (decoder.header("Last-Event-ID", text), "header.Last-Event-ID"),
        (text, false) => (decoder.query(LAST_EVENT_ID, text), "query.LastEventId"),
    };
    Some(LastEvent { id: id?, location })
}

impl fmt::Display for ChainEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Data(self.block).fmt(f)?;
        self.log_index.map_or(Ok(()), |index| write!(f, ":{index}"))
    }
}

impl FromStr for ChainEventId {
    type Err = TextError;

    /// `0x` and 64 hex digits, then nothing, or a colon and a decimal number.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (block, index) = text.split_once(':').map_or((text, None), |(block, index)| (block, Some(index)));
        let block: HashData = block.parse().map_err(|_| TextError::ChainEventId)?;
        let number = |digits: &str| {
            let decimal = digits.bytes().all(|digit| digit.is_ascii_digit());
            digits.parse().ok().filter(|_| decimal).ok_or(TextError::ChainEventId)
        };
        Ok(Self { block: block.0, log_index: index.map(number).transpose()? })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(id) => id.fmt(f),
            Self::Arrival(number) => number.fmt(f),
        }
    }
}
