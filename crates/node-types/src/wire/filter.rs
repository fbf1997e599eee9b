//! Filters that are polled for changes.

use super::decode::{Decode, Faults, Input, ObjectDecoder, decode_object, deserialize_by_decoding};
use super::log::Topics;
use super::{AddressFilter, HashData, Log, TopicFilter};
use crate::BlockNumberOrTag;
use serde::{Deserialize, Serialize, Serializer};

/// The request body of newFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_newFilter))]
#[serde(rename_all = "PascalCase")]
pub struct NewFilterInput {
    /// The logs that the filter reports.
    pub filter_object: FilterObject,
}

/// The criteria of a log filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct FilterObject {
    /// Contracts that emit the logs.
    pub address: AddressFilter,
    /// First block; the latest if empty. Not a hash.
    #[serde(serialize_with = "block_or_empty")]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub from_block: Option<BlockNumberOrTag>,
    /// Last block, inclusive; it may be in the future. Open-ended if empty. Not a hash.
    #[serde(serialize_with = "block_or_empty")]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub to_block: Option<BlockNumberOrTag>,
    /// Topics by position.
    #[cfg_attr(feature = "schema", schema(max_items = 4))]
    pub topics: Vec<TopicFilter>,
}

/// The request body of operations without input. It has no properties and may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmptyInput;

/// The response of newFilter, newBlockFilter and newPendingTransactionFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_newFilter))]
#[serde(rename_all = "PascalCase")]
pub struct FilterIdOutput {
    /// Identifies the filter in later requests.
    pub filter_id: String,
}

/// The response of getFilterChanges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getFilterChanges))]
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

/// The response of getFilterLogs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_getFilterLogs))]
#[serde(rename_all = "PascalCase")]
pub struct GetFilterLogsOutput {
    /// All logs in the filter's range.
    pub logs: Vec<Log>,
}

/// The response of uninstallFilter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_uninstallFilter))]
#[serde(rename_all = "PascalCase")]
pub struct UninstallFilterOutput {
    /// Whether the filter existed.
    pub result: bool,
}

/// Encodes an absent bound as the empty string, because all four fields are required.
fn block_or_empty<S: Serializer>(bound: &Option<BlockNumberOrTag>, serializer: S) -> Result<S::Ok, S::Error> {
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
        address: required("Address"),
        from_block: required("FromBlock") as BlockBound,
        to_block: required("ToBlock") as BlockBound,
        topics: required("Topics") as Topics,
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

deserialize_by_decoding!(NewFilterInput, FilterObject);
