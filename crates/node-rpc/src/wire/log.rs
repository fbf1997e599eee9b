//! Logs.

use super::Hex;
use crate::error::RpcError;
use crate::scope::Scope;
use node_core::filters::ChangedLog;
use node_core::logs::FoundLog;
use node_types::wire::{AddressData, BytesData, Data, HashData};
use node_types::{BlockId, H256};
use serde::Serialize;

/// A log with its place on the chain.
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

/// Timestamps of blocks by their hash, each read once.
#[derive(Default)]
pub(crate) struct Timestamps {
    /// Logs of a block are consecutive.
    last: Option<(H256, Option<u64>)>,
}

impl Timestamps {
    fn of(&mut self, scope: Scope<'_>, hash: H256) -> Result<Option<u64>, RpcError> {
        match self.last {
            Some((known, timestamp)) if known == hash => Ok(timestamp),
            _ => {
                let header = scope.node.get_header(scope.context, BlockId::Hash(hash))?;
                let timestamp = header.map(|header| header.header.timestamp);
                self.last = Some((hash, timestamp));
                Ok(timestamp)
            }
        }
    }

    /// Converts a log. In the pending block, its position is null.
    pub(crate) fn log(&mut self, scope: Scope<'_>, found: FoundLog) -> Result<Log, RpcError> {
        let FoundLog { block, pending, log_index, transaction_index, transaction_hash, log } = found;
        let mined = !pending;
        Ok(Log {
            address: Data(log.address),
            topics: log.topics.into_iter().map(Data).collect(),
            data: Data(log.data),
            block_number: mined.then_some(Hex(block.number)),
            transaction_hash: mined.then_some(Data(transaction_hash)),
            transaction_index: mined.then_some(Hex(transaction_index as u64)),
            block_hash: mined.then_some(Data(block.hash)),
            block_timestamp: if mined { self.of(scope, block.hash)?.map(Hex) } else { None },
            log_index: mined.then_some(Hex(log_index)),
            removed: false,
        })
    }

    /// Converts a log that appeared or disappeared.
    pub(crate) fn changed(&mut self, scope: Scope<'_>, change: ChangedLog) -> Result<Log, RpcError> {
        Ok(Log { removed: change.removed, ..self.log(scope, change.found)? })
    }
}

/// Converts logs.
pub(crate) fn logs(scope: Scope<'_>, logs: Vec<FoundLog>) -> Result<Vec<Log>, RpcError> {
    let mut timestamps = Timestamps::default();
    logs.into_iter().map(|log| timestamps.log(scope, log)).collect()
}

/// Converts logs that appeared or disappeared.
pub(crate) fn changed_logs(scope: Scope<'_>, logs: Vec<ChangedLog>) -> Result<Vec<Log>, RpcError> {
    let mut timestamps = Timestamps::default();
    logs.into_iter().map(|change| timestamps.changed(scope, change)).collect()
}
