//! What logs are asked for.

use super::BlockNumberParam;
use node_types::wire::{AddressFilter, Data, FilterObject, GetLogsInput, HashData, TopicFilter};
use node_types::{Address, BlockNumberOrTag, H256};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};

/// The filter object of eth_getLogs, eth_newFilter and eth_subscribe.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LogFilter {
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
        read.map(Self).map_err(|error| D::Error::custom(crate::message::plain(&error)))
    }
}

impl LogFilter {
    fn bounds(&self) -> [Option<BlockNumberOrTag>; 2] {
        [self.from_block, self.to_block].map(|bound| bound.map(|bound| bound.0))
    }

    /// The addresses and the words at each topic position; none among several words leaves the position open.
    pub(crate) fn criteria(&self) -> (AddressFilter, Vec<TopicFilter>) {
        let address = self.address.0.iter().map(|address| address.0).collect();
        let position = |words: &OneOrMany<Option<Data<H256>>>| {
            let words: Option<Vec<H256>> = words.0.iter().map(|word| word.map(|word| word.0)).collect();
            TopicFilter(words.unwrap_or_default())
        };
        (address, self.topics.iter().flatten().map(position).collect())
    }

    /// What eth_getLogs asks for.
    pub(crate) fn query(&self) -> GetLogsInput {
        let [from_block, to_block] = self.bounds();
        let (address, topics) = self.criteria();
        GetLogsInput { address, topics, block_hash: self.block_hash, from_block, to_block }
    }

    /// What eth_newFilter asks for. A filter without a first block begins with the head.
    pub(crate) fn filter(&self) -> Result<FilterObject, &'static str> {
        if self.block_hash.is_some() {
            return Err("a filter of changes cannot be of one block");
        }
        let [from_block, to_block] = self.bounds();
        let (address, topics) = self.criteria();
        Ok(FilterObject { address, topics, from_block: Some(from_block.unwrap_or_default()), to_block })
    }
}
