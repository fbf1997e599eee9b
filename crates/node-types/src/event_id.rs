//! Ids of streamed events, which clients use to resume a stream.

use crate::H256;
use crate::wire::{Data, HashData, TextError};
use std::fmt;
use std::str::FromStr;

/// The id of a log or block event: the position in the chain up to which a stream has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainEventId {
    pub block: H256,
    /// Index of the last log of the block that was sent; `None` if the whole block was.
    pub log_index: Option<u64>,
}

/// The id of a streamed event. A client sends it in the header `Last-Event-ID` to resume the stream after the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventId {
    /// An event about a log or a block.
    Chain(ChainEventId),
    /// The arrival number of a transaction in the pool.
    Arrival(u64),
}

impl fmt::Display for ChainEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Data(self.block).fmt(f)?;
        self.log_index.map_or(Ok(()), |index| write!(f, ":{index}"))
    }
}

impl FromStr for ChainEventId {
    type Err = TextError;

    /// Parses `0x` and 64 hex digits, optionally followed by a colon and a decimal number.
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
