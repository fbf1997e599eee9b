//! The body of a block against its header.

use super::BlockError;
use crate::prepared::PreparedBlock;
use node_core::assembly::MAX_BLOCK_SIZE;
use node_core::forks::Fork;
use node_types::consensus::HeaderField;

/// Checks that the body is of a form that `fork` knows, and that its ommers and withdrawals are those of the header.
///
/// Transactions are left to the executor, which refuses those that `fork` does not know. The transactions root is left
/// to [`validate_outcome`](super::validate_outcome): a transaction that no block may hold is a better reason than a
/// root that does not commit to it.
pub fn validate_body(fork: Fork, block: &PreparedBlock) -> Result<(), BlockError> {
    let header = &block.header;
    if fork >= Fork::Osaka && block.size > MAX_BLOCK_SIZE {
        return Err(BlockError::BlockSize { size: block.size, limit: MAX_BLOCK_SIZE });
    }
    if fork >= Fork::Paris && !block.ommers.is_empty() {
        return Err(BlockError::OmmersAfterMerge);
    }
    if header.ommers_hash != block.ommers_hash {
        return Err(BlockError::OmmersHash { got: header.ommers_hash, expected: block.ommers_hash });
    }
    match (fork.has(HeaderField::WithdrawalsRoot), block.withdrawals_root) {
        (true, None) => return Err(BlockError::MissingWithdrawals),
        (false, Some(_)) => return Err(BlockError::UnexpectedWithdrawals),
        _ => {}
    }
    if let (Some(got), Some(expected)) = (header.withdrawals_root, block.withdrawals_root)
        && got != expected
    {
        return Err(BlockError::WithdrawalsRoot { got, expected });
    }
    Ok(())
}
