//! Logs.

use super::decode::{
    Decode, Faults, Input, ListLimit, Location, ObjectDecoder, decode_array, deserialize_by_decoding, wire_objects,
};
use super::text::TextError;
use super::{AddressData, ByteString, BytesData, Data, HashData, Quantity64};
use crate::{Address, BlockNumberOrTag, H256};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::str::FromStr;

wire_objects! {
    /// The request body of getLogs.
    request GetLogsInput {
        /// Contracts that emitted the logs; any if absent.
        #[serde(skip_serializing_if = "AddressFilter::is_any")]
        address: AddressFilter = optional_or_default("Address"),
        /// The only block to search. Excludes `FromBlock` and `ToBlock`.
        #[serde(skip_serializing_if = "Option::is_none")]
        block_hash: Option<HashData> = optional("BlockHash"),
        /// First block; the latest if absent. Not a hash: see `BlockHash`.
        #[serde(skip_serializing_if = "Option::is_none")]
        from_block: Option<BlockNumberOrTag> = optional("FromBlock"),
        /// Last block, inclusive; the latest if absent. Not a hash: see `BlockHash`.
        #[serde(skip_serializing_if = "Option::is_none")]
        to_block: Option<BlockNumberOrTag> = optional("ToBlock"),
        /// Topics by position, at most four.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "schema", schema(max_items = 4))]
        topics: Vec<TopicFilter> = optional_or_default("Topics") as Topics,
        => |decoder| {
            if let Ok(Some(_)) = block_hash {
                for (name, bound) in [("FromBlock", &from_block), ("ToBlock", &to_block)] {
                    if let Ok(Some(_)) = bound {
                        decoder.fault(name, "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other");
                    }
                }
            }
        }
    }

    /// The response of getLogs.
    response GetLogsOutput {
        /// Logs, ordered by block and log index.
        logs: Vec<Log>,
    }
}

/// The ends of a range of blocks in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    /// First block.
    pub from: Option<BlockNumberOrTag>,
    /// Last block.
    pub to: Option<BlockNumberOrTag>,
}

impl GetLogsInput {
    /// Returns the range of blocks in a body that may have faults elsewhere, or `None` if its last block has faults. If
    /// only its first block has faults, the range consists of the last one.
    pub fn range_of(body: &[u8]) -> Option<LogRange> {
        let mut ignored = Faults::default();
        let raw: &RawValue = serde_json::from_slice(body).ok()?;
        let mut decoder = ObjectDecoder::new(Input::body(raw), Self::PROPERTIES, &mut ignored)?;
        let to: Option<BlockNumberOrTag> = decoder.optional("ToBlock").ok()?;
        Some(LogRange { from: decoder.optional("FromBlock").unwrap_or(to), to })
    }
}

/// Contracts whose logs match; if empty, any contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressFilter(pub Vec<Address>);

/// The topics that match at one position; if empty, any topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicFilter(pub Vec<H256>);

wire_objects! {
    /// A log of a contract with its position in the chain.
    response Log as Response_Log {
        /// The contract that emitted it.
        address: AddressData,
        /// Hash of its block; null while it is pending.
        block_hash: Option<HashData>,
        /// Number of its block; null while it is pending.
        block_number: Option<Quantity64>,
        /// The data that is not indexed.
        data: BytesData,
        /// Index in the block; null while it is pending.
        log_index: Option<Quantity64>,
        /// Whether a reorganization removed it.
        removed: bool,
        /// Up to four topics: usually the hash of the event's signature, then its indexed arguments.
        topics: Vec<HashData>,
        /// Hash of its transaction; null while it is pending.
        transaction_hash: Option<HashData>,
        /// Index of its transaction in the block; null while it is pending.
        transaction_index: Option<Quantity64>,
    }
}

/// Maximum number of topics of a log.
const MAX_TOPICS: ListLimit = ListLimit { most: 4, option: None };

impl AddressFilter {
    /// Returns whether the logs of every contract match.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }
}

impl TopicFilter {
    /// Returns whether every topic matches.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }
}

/// Addresses separated by commas; the empty string if there are none.
impl fmt::Display for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            Data(*address).fmt(f)?;
        }
        Ok(())
    }
}

/// Parses addresses separated by commas. The empty string has none.
impl FromStr for AddressFilter {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        separated_by_commas(text).map(Self)
    }
}

/// Parses topics separated by commas. The empty string has none.
impl FromStr for TopicFilter {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        separated_by_commas(text).map(Self)
    }
}

/// The plurals in messages.
pub(super) const ADDRESSES: &str = "addresses";
pub(super) const TOPICS: &str = "topics";

/// Decodes a string of items that are separated by commas, as an array of them is decoded.
fn decode_separated<T: ByteString>(
    input: Input<'_>,
    items: &str,
    limit: ListLimit,
    faults: &mut Faults,
) -> Option<Vec<T>> {
    let text = input.string(faults)?;
    read_separated(&text, *input.location(), items, limit, faults)
}

/// Parses the text at `location`, which holds at most `limit` items, whose plural is `items`. Each item with a fault is
/// located like an element of an array, unless it is the only one.
pub(super) fn read_separated<T: ByteString>(
    text: &str,
    location: Location<'_>,
    items: &str,
    limit: ListLimit,
    faults: &mut Faults,
) -> Option<Vec<T>> {
    let count = text.split(',').count();
    if let Some(message) = limit.exceeded_by(count, items) {
        faults.push_text(location, message, text);
    }
    let mut values = Vec::with_capacity(count.min(limit.most));
    for (index, item) in text.split(',').enumerate() {
        match separated(item) {
            Ok(_) if index >= limit.most => {}
            Ok(value) => values.push(value),
            Err(error) if count == 1 => faults.push_text(location, error, item),
            Err(error) => faults.push_text(Location::Element(&location, index), error, item),
        }
    }
    (values.len() == count).then_some(values)
}

fn separated_by_commas<T: ByteString>(text: &str) -> Result<Vec<T>, TextError> {
    if text.is_empty() { Ok(Vec::new()) } else { text.split(',').map(separated).collect() }
}

/// Parses an item of a list that is separated by commas.
fn separated<T: ByteString>(item: &str) -> Result<T, TextError> {
    item.trim_matches(' ').parse().map(|item: Data<T>| item.0)
}

impl FromIterator<Address> for AddressFilter {
    fn from_iter<I: IntoIterator<Item = Address>>(addresses: I) -> Self {
        Self(addresses.into_iter().collect())
    }
}

impl Serialize for AddressFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Decode for AddressFilter {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            Some(Self::default())
        } else if input.is_array() {
            let addresses: Vec<Data<Address>> = decode_array(input, ADDRESSES, faults.limits().addresses, faults)?;
            Some(addresses.into_iter().map(|address| address.0).collect())
        } else if input.is_string() {
            let limit = faults.limits().addresses;
            decode_separated(input, ADDRESSES, limit, faults).map(Self)
        } else {
            input.fault("expected string or array", faults);
            None
        }
    }
}

/// A filter that matches any topic is encoded as null, one topic as a string, several as an array.
impl Serialize for TopicFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [] => serializer.serialize_none(),
            [topic] => Data(*topic).serialize(serializer),
            topics => serializer.collect_seq(topics.iter().map(|topic| Data(*topic))),
        }
    }
}

impl Decode for TopicFilter {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            Some(Self::default())
        } else if input.is_array() {
            let topics: Vec<AnyOrTopic> = decode_array(input, TOPICS, faults.limits().topics, faults)?;
            let exact: Option<Vec<H256>> = topics.into_iter().map(|topic| topic.0).collect();
            Some(Self(exact.unwrap_or_default()))
        } else if input.is_string() {
            let limit = faults.limits().topics;
            decode_separated(input, TOPICS, limit, faults).map(Self)
        } else {
            input.fault("expected null, string or array", faults);
            None
        }
    }
}

/// An element of an array of topics. `None` makes the whole array match any topic.
struct AnyOrTopic(Option<H256>);

impl Decode for AnyOrTopic {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            return Some(Self(None));
        }
        Data::<H256>::decode(input, faults).map(|topic| Self(Some(topic.0)))
    }
}

#[derive(Default)]
pub(super) struct Topics(pub(super) Vec<TopicFilter>);

impl Decode for Topics {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            return Some(Self::default());
        }
        decode_array(input, "positions", MAX_TOPICS, faults).map(Self)
    }
}

deserialize_by_decoding!(AddressFilter, TopicFilter);
