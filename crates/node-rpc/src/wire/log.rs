//! Logs.

use super::Hex;
use crate::error::RpcError;
use crate::method::Scope;
use node_types::wire::{self, AddressData, BytesData, HashData};
use node_types::{BlockId, BlockNumber, H256};
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
    /// Logs of a block stand together.
    last: Option<(H256, Option<BlockNumber>)>,
}

impl Timestamps {
    fn of(&mut self, scope: Scope<'_>, hash: H256) -> Result<Option<u64>, RpcError> {
        match self.last {
            Some((known, timestamp)) if known == hash => Ok(timestamp),
            _ => {
                let header = scope.node.find_header(scope.context, BlockId::Hash(hash))?;
                let timestamp = header.map(|header| header.header.timestamp);
                self.last = Some((hash, timestamp));
                Ok(timestamp)
            }
        }
    }

    /// A log with the time of its block.
    pub(crate) fn log(&mut self, scope: Scope<'_>, log: wire::Log) -> Result<Log, RpcError> {
        let timestamp = match log.block_hash {
            Some(hash) => self.of(scope, hash.0)?,
            None => None,
        };
        Ok(Log {
            address: log.address,
            topics: log.topics,
            data: log.data,
            block_number: log.block_number.map(|number| Hex(number.0)),
            transaction_hash: log.transaction_hash,
            transaction_index: log.transaction_index.map(|index| Hex(index.0)),
            block_hash: log.block_hash,
            block_timestamp: timestamp.map(Hex),
            log_index: log.log_index.map(|index| Hex(index.0)),
            removed: log.removed,
        })
    }
}

/// Logs with the times of their blocks.
pub(crate) fn logs(scope: Scope<'_>, logs: Vec<wire::Log>) -> Result<Vec<Log>, RpcError> {
    let mut timestamps = Timestamps::default();
    logs.into_iter().map(|log| timestamps.log(scope, log)).collect()
}
