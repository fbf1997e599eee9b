//! Which thread an operation runs on.

use node_core::node::FeeHistory;
use node_types::wire::{FeeHistoryInput, GetBlockByHashInput, GetBlockByNumberInput, GetLogsInput};
use node_types::{BlockId, BlockNumberOrTag};

/// Longer request bodies, in bytes, are decoded in the work pool.
const SHORT_BODY: usize = 64 * 1024;

/// Proofs of more storage slots run in the work pool.
const SHORT_PROOF: usize = 4;

/// Where work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the thread that received the request: takes a few microseconds.
    Here,
    /// On the thread that received the request, for a short time slice; if that is not enough, the work starts again in
    /// the work pool. The work must check its context regularly.
    HereBriefly,
    /// In the work pool: may take long.
    Pool,
    /// In the pool for code that clients supply: calls, estimates, and building the pending block.
    Code,
}

impl Place {
    /// For reads as of `block`. Reading the pending block runs code.
    pub(crate) fn reading<B: Copy + Into<BlockId>>(block: &B) -> Self {
        if Into::<BlockId>::into(*block).is_pending() { Self::Code } else { Self::Here }
    }

    /// For a block by number. Writing full transactions takes long.
    pub(crate) fn block(input: &GetBlockByNumberInput) -> Self {
        match Self::reading(&input.block_number) {
            Self::Here if input.transaction_detail => Self::Pool,
            place => place,
        }
    }

    /// For a block by hash.
    pub(crate) fn side_block(input: &GetBlockByHashInput) -> Self {
        if input.transaction_detail { Self::Pool } else { Self::Here }
    }

    /// For a fee history.
    pub(crate) fn fee_history(input: &FeeHistoryInput) -> Self {
        if *input.block_count > FeeHistory::FEW_BLOCKS { Self::Pool } else { Self::HereBriefly }
    }

    /// For a log search.
    pub(crate) fn logs(input: &GetLogsInput) -> Self {
        let with_pending = [input.from_block, input.to_block].contains(&Some(BlockNumberOrTag::Pending));
        if with_pending { Self::Code } else { Self::HereBriefly }
    }

    /// For a proof of an account and `slots` of its storage slots. `quick` says whether the backend proves in microseconds.
    pub(crate) fn proof(quick: bool, slots: usize) -> Self {
        if quick && slots <= SHORT_PROOF { Self::Here } else { Self::Pool }
    }

    /// For decoding a request body of `length` bytes.
    pub(crate) fn decoding(length: usize) -> Self {
        if length > SHORT_BODY { Self::Pool } else { Self::Here }
    }
}
