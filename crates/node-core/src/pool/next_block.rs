//! What the next block will demand of a transaction.

use crate::block::SealedHeader;
use crate::fees;
use crate::forks::{BlobParams, ChainSpec, Fork};
use node_types::U256;
use node_types::consensus::Header;

/// The rules and numbers of the block after the head, as far as they are known before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextBlock {
    /// Rules in force one second after the head.
    pub fork: Fork,
    /// Gas limit: that of the head.
    pub gas_limit: u64,
    /// Base fee in wei per gas; zero before London.
    pub base_fee: u64,
    /// Blob base fee in wei per blob gas; none before Cancun.
    pub blob_base_fee: Option<U256>,
    /// Blob parameters; none before Cancun.
    pub blob_params: Option<BlobParams>,
}

impl NextBlock {
    /// What the block after `parent` demands.
    pub fn after(spec: &ChainSpec, parent: &SealedHeader) -> Self {
        let number = parent.header.number.saturating_add(1);
        let timestamp = parent.header.timestamp.saturating_add(1);
        let merged = parent.header.difficulty.is_zero()
            || spec.terminal_total_difficulty.is_some_and(|terminal| parent.total_difficulty >= terminal);
        let excess_blob_gas = fees::next_excess_blob_gas(spec, &parent.header, timestamp);
        let header = Header { number, timestamp, excess_blob_gas, ..Header::default() };
        Self {
            fork: spec.fork_at(number, timestamp, merged),
            gas_limit: parent.header.gas_limit,
            base_fee: fees::next_base_fee(spec, &parent.header).unwrap_or(0),
            blob_base_fee: fees::blob_base_fee(spec, &header),
            blob_params: spec.blob_params(timestamp),
        }
    }
}
