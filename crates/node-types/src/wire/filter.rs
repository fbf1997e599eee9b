//! Filters that are polled for changes.

use super::decode::{Decode, Faults, Input, ObjectDecoder, wire_objects};
use super::log::{LogRange, Topics};
#[cfg(feature = "schema")]
use super::schema::FilterIdText;
use super::{AddressFilter, HashData, Log, TopicFilter};
use crate::BlockNumberOrTag;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

wire_objects! {
    /// The request body of newFilter.
    request NewFilterInput {
        /// The logs that the filter reports.
        filter_object: FilterObject = required("FilterObject"),
    }

    /// The criteria of a log filter.
    request FilterObject {
        /// Contracts that emit the logs.
        address: AddressFilter = required("Address"),
        /// First block; the latest if empty. Not a hash.
        #[serde(serialize_with = "block_or_empty")]
        #[cfg_attr(feature = "schema", schema(required = true))]
        from_block: Option<BlockNumberOrTag> = required("FromBlock") as BlockBound,
        /// Last block, inclusive; it may be in the future. Open-ended if empty. Not a hash.
        #[serde(serialize_with = "block_or_empty")]
        #[cfg_attr(feature = "schema", schema(required = true))]
        to_block: Option<BlockNumberOrTag> = required("ToBlock") as BlockBound,
        /// Topics by position.
        #[cfg_attr(feature = "schema", schema(max_items = 4))]
        topics: Vec<TopicFilter> = required("Topics") as Topics,
    }
}

impl NewFilterInput {
    /// Returns the range of blocks in a body that may have faults elsewhere, or `None` if an end has faults.
    pub fn range_of(body: &[u8]) -> Option<LogRange> {
        let mut ignored = Faults::default();
        let raw: &RawValue = serde_json::from_slice(body).ok()?;
        ObjectDecoder::new(Input::body(raw), Self::PROPERTIES, &mut ignored)?.read("FilterObject", |object| {
            let mut ignored = Faults::default();
            let mut decoder = ObjectDecoder::new(object, FilterObject::PROPERTIES, &mut ignored)?;
            let (BlockBound(from), BlockBound(to)) =
                (decoder.required("FromBlock").ok()?, decoder.required("ToBlock").ok()?);
            Some(LogRange { from, to })
        })
    }
}

/// The request body of operations without input. It has no properties and may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmptyInput;

wire_objects! {
    /// The response of newFilter, newBlockFilter and newPendingTransactionFilter.
    response FilterIdOutput {
        /// Identifies the filter in later requests.
        #[cfg_attr(feature = "schema", schema(value_type = FilterIdText))]
        filter_id: String,
    }
}

/// The response of getFilterChanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct GetFilterChangesOutput {
    /// What happened since the last poll.
    pub result: FilterChanges,
}

/// What happened since the last poll of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FilterChanges {
    /// Hashes of blocks or transactions.
    Hashes(Vec<HashData>),
    /// Logs.
    Logs(Vec<Log>),
}

wire_objects! {
    /// The response of getFilterLogs.
    response GetFilterLogsOutput {
        /// All logs in the filter's range.
        logs: Vec<Log>,
    }

    /// The response of uninstallFilter.
    response UninstallFilterOutput {
        /// Whether the filter existed.
        result: bool,
    }
}

/// Encodes an absent bound as the empty string, because all four fields are required.
fn block_or_empty<S: Serializer>(bound: &Option<BlockNumberOrTag>, serializer: S) -> Result<S::Ok, S::Error> {
    match bound {
        Some(tag) => tag.serialize(serializer),
        None => serializer.serialize_str(""),
    }
}

impl Decode for EmptyInput {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        ObjectDecoder::new(input, &[], faults).map(|_| Self)
    }
}

/// A bound of a range; `None` if it is empty.
struct BlockBound(Option<BlockNumberOrTag>);

impl Decode for BlockBound {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            return Some(Self(None));
        }
        BlockNumberOrTag::decode(input, faults).map(|tag| Self(Some(tag)))
    }
}
