//! Filters that are polled for changes.

use super::decode::{Decode, Faults, Input, ObjectDecoder, decode_object, deserialize_by_decoding};
use super::log::Topics;
use super::{AddressFilter, HashData, Log, TopicFilter};
use crate::BlockNumberOrTag;
use serde::{Deserialize, Serialize, Serializer};

/// The body of newFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_newFilter))]
#[serde(rename_all = "PascalCase")]
pub struct NewFilterInput {
    /// Which logs.
    pub filter_object: FilterObject,
}

/// Which logs a filter reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct FilterObject {
    /// Contracts that emit the logs.
    pub address: AddressFilter,
    /// First block.
    #[serde(serialize_with = "block_or_any")]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub from_block: Option<BlockNumberOrTag>,
    /// Last block, inclusive; it may lie ahead.
    #[serde(serialize_with = "block_or_any")]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub to_block: Option<BlockNumberOrTag>,
    /// Topics by position.
    #[cfg_attr(feature = "schema", schema(max_items = 4))]
    pub topics: Vec<TopicFilter>,
}

/// The body of newBlockFilter and newPendingTransactionFilter, which has no properties and may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmptyInput;

/// The answer of newFilter, newBlockFilter and newPendingTransactionFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_newFilter))]
#[serde(rename_all = "PascalCase")]
pub struct FilterIdOutput {
    /// Names the filter in later polls.
    pub filter_id: String,
}

/// The answer of getFilterChanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getFilterChanges))]
#[serde(rename_all = "PascalCase")]
pub struct GetFilterChangesOutput {
    /// What happened since the last poll.
    pub result: FilterChanges,
}

/// What a filter saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FilterChanges {
    /// Of block filters and pending-transaction filters: hashes.
    Hashes(Vec<HashData>),
    /// Of log filters: logs.
    Logs(Vec<Log>),
}

/// The answer of getFilterLogs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getFilterLogs))]
#[serde(rename_all = "PascalCase")]
pub struct GetFilterLogsOutput {
    /// All logs in the filter's range.
    pub logs: Vec<Log>,
}

/// The answer of uninstallFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_uninstallFilter))]
#[serde(rename_all = "PascalCase")]
pub struct UninstallFilterOutput {
    /// Whether there was such a filter.
    pub result: bool,
}

/// A bound that is open travels as the empty string, for all four fields have to be present.
fn block_or_any<S: Serializer>(bound: &Option<BlockNumberOrTag>, serializer: S) -> Result<S::Ok, S::Error> {
    match bound {
        Some(tag) => tag.serialize(serializer),
        None => serializer.serialize_str(""),
    }
}

decode_object! {
    NewFilterInput {
        filter_object: required("FilterObject"),
    }
    FilterObject {
        address: required_non_null("Address"),
        from_block: required_non_null("FromBlock") as BlockBound,
        to_block: required_non_null("ToBlock") as BlockBound,
        topics: required_non_null("Topics") as Topics,
    }
}

impl Decode for EmptyInput {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        ObjectDecoder::new(input, &[], faults).map(|_| Self)
    }
}

/// A block, or none for the empty string: anything goes.
struct BlockBound(Option<BlockNumberOrTag>);

impl Decode for BlockBound {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        if input.is_absent() {
            return Some(Self(None));
        }
        BlockNumberOrTag::decode(input, faults).map(|tag| Self(Some(tag)))
    }
}

deserialize_by_decoding!(NewFilterInput, FilterObject);
