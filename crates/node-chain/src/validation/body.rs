//! The body of a block against its header.

use super::BlockError;
use crate::prepared::PreparedBlock;
use node_core::crypto::SignatureError;
use node_core::executor::TransactionError;
use node_core::forks::{ChainSpec, Fork};
use node_types::U256;
use node_types::consensus::{Transaction, TransactionBody, TransactionType};

/// Longest encoding of a block since Osaka, in bytes: 10 MiB without the room kept for the beacon block (EIP-7934).
pub const MAX_BLOCK_SIZE: u64 = (10 << 20) - (2 << 20);

/// Half the order of secp256k1: no higher s since Homestead (EIP-2).
const HALF_ORDER: U256 =
    U256([0xdfe9_2f46_681b_20a0, 0x5d57_6e73_57a4_501d, 0xffff_ffff_ffff_ffff, 0x7fff_ffff_ffff_ffff]);

/// Checks that the body is of a form that `fork` knows, and that its ommers and withdrawals are those of the header.
///
/// The transactions root is left to [`validate_outcome`](super::validate_outcome): a transaction that no block may
/// hold is a better reason than a root that does not commit to it.
pub fn validate_body(spec: &ChainSpec, fork: Fork, block: &PreparedBlock) -> Result<(), BlockError> {
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
    match (fork >= Fork::Shanghai, block.withdrawals_root) {
        (true, None) => return Err(BlockError::MissingWithdrawals),
        (false, Some(_)) => return Err(BlockError::UnexpectedWithdrawals),
        _ => {}
    }
    if let (Some(got), Some(expected)) = (header.withdrawals_root, block.withdrawals_root)
        && got != expected
    {
        return Err(BlockError::WithdrawalsRoot { got, expected });
    }
    for (index, signed) in block.transactions.iter().enumerate() {
        validate_form(spec, fork, index, &signed.transaction)?;
    }
    Ok(())
}

/// Whether `fork` knows transactions of this type, with such a chain id and such a signature.
fn validate_form(spec: &ChainSpec, fork: Fork, index: usize, transaction: &Transaction) -> Result<(), BlockError> {
    let refused = |source| Err(BlockError::Transaction { index, source });
    let kind = transaction.body.transaction_type();
    let since = match kind {
        TransactionType::Legacy => Fork::Frontier,
        TransactionType::AccessList => Fork::Berlin,
        TransactionType::DynamicFee => Fork::London,
        TransactionType::Blob => Fork::Cancun,
        TransactionType::SetCode => Fork::Prague,
    };
    if fork < since {
        return refused(TransactionError::TypeNotSupported(kind as u8));
    }
    if let Some(got) = transaction.body.chain_id() {
        if fork < Fork::SpuriousDragon {
            return Err(BlockError::ReplayProtectionTooEarly { index, chain_id: got });
        }
        if got != spec.chain_id {
            return refused(TransactionError::ChainId { got, expected: spec.chain_id });
        }
    }
    let legacy = matches!(transaction.body, TransactionBody::Legacy(_));
    if fork >= Fork::Homestead && legacy && transaction.signature.s > HALF_ORDER {
        return refused(TransactionError::Signature(SignatureError::HighS));
    }
    Ok(())
}
