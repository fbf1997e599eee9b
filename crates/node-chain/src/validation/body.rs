//! Validation of a body against its header.

use super::BlockError;
use crate::prepared::PreparedBlock;
use node_core::assembly::MAX_BLOCK_SIZE;
use node_core::protocol::Fork;
use node_types::consensus::HeaderField;

/// Checks the form of the body under the rules of `fork`, and that its ommers and withdrawals match the header.
///
/// The executor checks the transactions. [`validate_outcome`](super::validate_outcome) checks the transactions root
/// after execution, because an invalid transaction is a better explanation than a root that does not match.
///
/// # Errors
/// Returns a [`BlockError`] for the first rule that the body violates.
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
