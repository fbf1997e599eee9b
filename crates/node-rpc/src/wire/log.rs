//! Logs.

use super::Hex;
use node_core::filters::ChangedLog;
use node_core::logs::FoundLog;
use node_types::wire::{AddressData, BytesData, Data, HashData};
use serde::Serialize;

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
