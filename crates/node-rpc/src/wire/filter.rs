//! Filters for logs.

use super::BlockNumberParam;
use crate::error::RpcError;
use node_core::backend::LogFilter;
use node_core::node::{AboveHead, BlockRange, LogBlocks, LogQuery};
use node_types::wire::{Data, HashData};
use node_types::{Address, H256};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};

/// The filter object of eth_getLogs, eth_newFilter and eth_subscribe.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FilterObject {
    address: OneOrMany<Data<Address>>,
    topics: Option<Vec<OneOrMany<Option<Data<H256>>>>>,
    block_hash: Option<HashData>,
    from_block: Option<BlockNumberParam>,
    to_block: Option<BlockNumberParam>,
}

/// Nothing, one value, or an array of them.
#[derive(Clone, Debug)]
struct OneOrMany<T>(Vec<T>);

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        let read = match raw.get() {
            "null" => Ok(Vec::new()),
            array if array.starts_with('[') => serde_json::from_str(array),
            one => serde_json::from_str(one).map(|value| vec![value]),
        };
        read.map(Self).map_err(|error| D::Error::custom(crate::error::plain(&error)))
    }
}

impl FilterObject {
    fn range(&self) -> BlockRange {
        BlockRange { from: self.from_block.map(|bound| bound.0), to: self.to_block.map(|bound| bound.0) }
    }

    /// Returns the addresses and the words at each topic position. A null among several words matches any topic.
    pub(crate) fn criteria(&self) -> LogFilter {
        let position = |words: &OneOrMany<Option<Data<H256>>>| {
            let words: Option<Vec<H256>> = words.0.iter().map(|word| word.map(|word| word.0)).collect();
            words.unwrap_or_default()
        };
        LogFilter {
            addresses: self.address.0.iter().map(|address| address.0).collect(),
            topics: self.topics.iter().flatten().map(position).collect(),
        }
    }

    /// Returns the query of eth_getLogs.
    pub(crate) fn query(&self, above_head: AboveHead) -> Result<LogQuery, RpcError> {
        let blocks = match (self.block_hash, self.range()) {
            (None, range) => LogBlocks::Range(range),
            (Some(hash), BlockRange { from: None, to: None }) => LogBlocks::Hash(hash.0),
            (Some(_), _) => {
                let message = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";
                return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
            }
        };
        Ok(LogQuery { filter: self.criteria(), blocks, above_head })
    }

    /// Returns the range of eth_newFilter, which starts with the head by default.
    pub(crate) fn filter_range(&self) -> Result<BlockRange, &'static str> {
        if self.block_hash.is_some() {
            return Err("a filter of changes cannot be of one block");
        }
        let BlockRange { from, to } = self.range();
        Ok(BlockRange { from: Some(from.unwrap_or_default()), to })
    }
}
