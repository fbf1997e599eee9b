//! Logs.

use super::Hex;
use super::hex::HexDigits;
use node_core::block::LogRef;
use node_core::filters::ChangedLog;
use node_core::logs::FoundLog;
use node_types::wire::{
    AddressData, BufferFull, BytesData, Data, HashData, JsonArray, JsonBuffer, JsonObject, append_data,
};
use serde::Serialize;
use std::ops::ControlFlow;

/// A log with its position on the chain.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    pub(crate) address: AddressData,
    pub(crate) topics: Vec<HashData>,
    pub(crate) data: BytesData,
    pub(crate) block_number: Option<Hex<u64>>,
    pub(crate) transaction_hash: Option<HashData>,
    pub(crate) transaction_index: Option<Hex<u64>>,
    pub(crate) block_hash: Option<HashData>,
    pub(crate) block_timestamp: Option<Hex<u64>>,
    pub(crate) log_index: Option<Hex<u64>>,
    pub(crate) removed: bool,
}

/// Appends the JSON of `Log::from(found)` to an array, in a fraction of the time that serializing it takes.
pub(crate) fn append_element(logs: &mut JsonArray<'_>, found: &FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull> {
    let out = logs.element();
    append_log(out, found);
    out.full().map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

fn append_log(out: &mut JsonBuffer, found: &FoundLog<LogRef<'_>>) {
    let FoundLog { block, timestamp, pending, log_index, transaction_index, transaction_hash, log } = found;
    let mut object = JsonObject::begin(out);
    object.data("address", &log.address.0);
    let mut topics = JsonArray::begin(object.member("topics"));
    log.topics.iter().for_each(|topic| append_data(topics.element(), topic));
    topics.end();
    object.data("data", log.data);
    if *pending {
        for name in ["blockNumber", "transactionHash", "transactionIndex", "blockHash", "blockTimestamp", "logIndex"] {
            object.null(name);
        }
    } else {
        object.text("blockNumber", HexDigits::of(block.number).as_str());
        object.data("transactionHash", &transaction_hash.0);
        object.text("transactionIndex", HexDigits::of(*transaction_index as u64).as_str());
        object.data("blockHash", &block.hash.0);
        object.text("blockTimestamp", HexDigits::of(*timestamp).as_str());
        object.text("logIndex", HexDigits::of(*log_index).as_str());
    }
    object.boolean("removed", false);
    object.end();
}

impl From<FoundLog> for Log {
    /// In the pending block, the position is null.
    fn from(found: FoundLog) -> Self {
        let FoundLog { block, timestamp, pending, log_index, transaction_index, transaction_hash, log } = found;
        let mined = !pending;
        Self {
            address: Data(log.address),
            topics: log.topics.into_iter().map(Data).collect(),
            data: Data(log.data),
            block_number: mined.then_some(Hex(block.number)),
            transaction_hash: mined.then_some(Data(transaction_hash)),
            transaction_index: mined.then_some(Hex(transaction_index as u64)),
            block_hash: mined.then_some(Data(block.hash)),
            block_timestamp: mined.then_some(Hex(timestamp)),
            log_index: mined.then_some(Hex(log_index)),
            removed: false,
        }
    }
}

impl From<ChangedLog> for Log {
    fn from(change: ChangedLog) -> Self {
        Self { removed: change.removed, ..change.found.into() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use node_core::block::BlockRef;
    use node_types::wire::append_json;
    use node_types::{Address, H256};

    #[test]
    fn appends_what_is_serialized() {
        for (count, pending) in [(0, true), (0, false), (1, true), (3, false), (4, false)] {
            let (topics, data) = (vec![[7; 32]; count], vec![9; 50 * count]);
            let found = FoundLog {
                block: BlockRef { number: 8, hash: H256::repeat_byte(10) },
                timestamp: u64::MAX,
                pending,
                log_index: 300,
                transaction_index: 0,
                transaction_hash: H256::repeat_byte(11),
                log: LogRef { address: Address::repeat_byte(1), topics: &topics, data: &data },
            };
            let (mut appended, mut serialized) = (JsonBuffer::default(), JsonBuffer::default());
            append_log(&mut appended, &found);
            append_json(&mut serialized, &Log::from(found.to_found_log())).unwrap();
            assert_eq!(String::from_utf8(appended.into()), String::from_utf8(serialized.into()));
        }
    }
}
