//! The requirements of the next block on transactions.

use crate::protocol::{BlobParams, ChainSpec, Fork, fees};
use node_types::U256;
use node_types::consensus::Header;

/// The rules and values of the next block that are known before it is assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextBlockRules {
    pub fork: Fork,
    pub gas_limit: u64,
    /// Base fee in wei per gas; `None` before London.
    pub base_fee: Option<u64>,
    /// Blob base fee in wei per blob gas; `None` before Cancun.
    pub blob_base_fee: Option<U256>,
    /// Blob parameters; `None` before Cancun.
    pub blob_params: Option<BlobParams>,
    /// Maximum gas limit of a transaction; `None` if only that of the block applies.
    pub transaction_gas_cap: Option<u64>,
    /// Maximum length of init code in bytes; `None` before Shanghai.
    pub init_code_limit: Option<usize>,
}

impl NextBlockRules {
    /// Returns the rules of a block with this header.
    pub fn new(spec: &ChainSpec, header: &Header) -> Self {
        let fork = spec.fork(header);
        Self {
            fork,
            gas_limit: header.gas_limit,
            base_fee: header.base_fee_per_gas,
            blob_base_fee: fees::blob_base_fee(spec, header),
            blob_params: if fork >= Fork::Cancun { spec.blob_params(header.timestamp) } else { None },
            transaction_gas_cap: spec.transaction_gas_cap(fork),
            init_code_limit: spec.init_code_limit(fork),
        }
    }
}
