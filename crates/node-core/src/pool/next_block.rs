//! What the next block will demand of a transaction.

use crate::fees;
use crate::forks::{BlobParams, ChainSpec, Fork};
use node_types::U256;
use node_types::consensus::Header;

/// The rules and numbers of the block after the head, as far as they are known before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextBlock {
    /// Rules in force.
    pub fork: Fork,
    /// Gas limit.
    pub gas_limit: u64,
    /// Base fee in wei per gas; zero before London.
    pub base_fee: u64,
    /// Blob base fee in wei per blob gas; none before Cancun.
    pub blob_base_fee: Option<U256>,
    /// Blob parameters; none before Cancun.
    pub blob_params: Option<BlobParams>,
}

impl NextBlock {
    /// What a block of `header` demands.
    pub fn new(spec: &ChainSpec, header: &Header) -> Self {
        let fork = spec.fork(header);
        Self {
            fork,
            gas_limit: header.gas_limit,
            base_fee: header.base_fee_per_gas.unwrap_or(0),
            blob_base_fee: fees::blob_base_fee(spec, header),
            blob_params: if fork >= Fork::Cancun { spec.blob_params(header.timestamp) } else { None },
        }
    }
}
