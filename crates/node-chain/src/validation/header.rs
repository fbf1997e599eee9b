//! Validation of a header against its parent.

use super::BlockError;
use node_core::assembly::MAX_EXTRA_DATA;
use node_core::block::SealedHeader;
use node_core::protocol::difficulty::expected_difficulty;
use node_core::protocol::fees::{
    ELASTICITY_MULTIPLIER, GAS_PER_BLOB, max_blob_gas, next_base_fee, next_excess_blob_gas,
};
use node_core::protocol::gas::{BLOCK_GAS_LIMITS, is_gas_limit_step};
use node_core::protocol::{ChainSpec, DaoFork, Fork};
use node_types::consensus::{EMPTY_OMMERS_HASH, Header, HeaderField};

/// Extra data of the first blocks of the DAO fork (EIP-779).
const DAO_EXTRA_DATA: &[u8] = b"dao-hard-fork";

/// Number of blocks, starting with the DAO fork block, that must have its extra data, or must not have it on a chain
/// that refuses the fork (EIP-779).
const DAO_EXTRA_RANGE: u64 = 10;

/// Checks all rules that depend only on a header and its parent, except for seals. `parent` must be the block that
/// [`parent_hash`](Header::parent_hash) identifies, which is not checked.
///
/// The rules after the merge apply if and only if `parent` reaches the terminal total difficulty (EIP-3675).
///
/// # Errors
/// Returns a [`BlockError`] for the first rule that the header violates.
pub fn validate_header(spec: &ChainSpec, header: &Header, parent: &SealedHeader) -> Result<(), BlockError> {
    let merged = spec.terminal_total_difficulty.is_some_and(|terminal| parent.total_difficulty >= terminal);
    let fork = spec.fork_at(header.number, header.timestamp, merged);
    lineage(header, &parent.header)?;
    if merged {
        after_merge(header)?;
    } else {
        before_merge(spec, fork, header, parent)?;
    }
    extra_data(spec, header)?;
    field_presence(fork, header)?;
    gas(spec, fork, header, &parent.header)?;
    blob_gas(spec, header, &parent.header)
}

fn lineage(header: &Header, parent: &Header) -> Result<(), BlockError> {
    let expected = parent.number.saturating_add(1);
    if header.number != expected || parent.number == u64::MAX {
        return Err(BlockError::Number { got: header.number, expected });
    }
    if header.timestamp <= parent.timestamp {
        return Err(BlockError::Timestamp { got: header.timestamp, parent: parent.timestamp });
    }
    Ok(())
}

fn after_merge(header: &Header) -> Result<(), BlockError> {
    if !header.difficulty.is_zero() {
        return Err(BlockError::DifficultyAfterMerge { got: header.difficulty });
    }
    if header.nonce != [0; 8] {
        return Err(BlockError::NonceAfterMerge { got: u64::from_be_bytes(header.nonce) });
    }
    if header.ommers_hash != EMPTY_OMMERS_HASH {
        return Err(BlockError::OmmersAfterMerge);
    }
    Ok(())
}

fn before_merge(spec: &ChainSpec, fork: Fork, header: &Header, parent: &SealedHeader) -> Result<(), BlockError> {
    if header.difficulty.is_zero() {
        return Err(BlockError::MergedTooEarly {
            total_difficulty: parent.total_difficulty,
            terminal: spec.terminal_total_difficulty,
        });
    }
    let expected = expected_difficulty(fork, header.timestamp, &parent.header);
    if header.difficulty != expected {
        return Err(BlockError::Difficulty { got: header.difficulty, expected });
    }
    Ok(())
}

fn extra_data(spec: &ChainSpec, header: &Header) -> Result<(), BlockError> {
    if header.extra_data.len() > MAX_EXTRA_DATA {
        return Err(BlockError::ExtraDataTooLong { length: header.extra_data.len() });
    }
    if let Some(DaoFork { block, supported }) = spec.dao_fork
        && header.number.checked_sub(block).is_some_and(|blocks| blocks < DAO_EXTRA_RANGE)
        && (*header.extra_data == *DAO_EXTRA_DATA) != supported
    {
        return Err(BlockError::DaoExtraData { got: header.extra_data.clone(), supported });
    }
    Ok(())
}

/// Checks that the header has exactly the optional fields of `fork`.
fn field_presence(fork: Fork, header: &Header) -> Result<(), BlockError> {
    for field in HeaderField::ALL {
        match (fork.has(field), field.is_present(header)) {
            (true, false) => return Err(BlockError::MissingField { field, fork }),
            (false, true) => return Err(BlockError::UnexpectedField { field, fork }),
            _ => {}
        }
    }
    Ok(())
}

fn gas(spec: &ChainSpec, fork: Fork, header: &Header, parent: &Header) -> Result<(), BlockError> {
    let got = header.gas_limit;
    // The limit doubles in the first London block, so that the gas target equals the old limit (EIP-1559).
    let parent_limit = if fork >= Fork::London && parent.base_fee_per_gas.is_none() {
        parent.gas_limit.saturating_mul(ELASTICITY_MULTIPLIER)
    } else {
        parent.gas_limit
    };
    if !BLOCK_GAS_LIMITS.contains(&got) {
        return Err(BlockError::GasLimitRange { got });
    }
    if !is_gas_limit_step(parent_limit, got) {
        return Err(BlockError::GasLimitStep { got, parent: parent_limit });
    }
    if header.gas_used > got {
        return Err(BlockError::GasUsedAboveLimit { used: header.gas_used, limit: got });
    }
    match (header.base_fee_per_gas, next_base_fee(spec, parent)) {
        (Some(got), Some(expected)) if got != expected => Err(BlockError::BaseFee { got, expected }),
        _ => Ok(()),
    }
}

fn blob_gas(spec: &ChainSpec, header: &Header, parent: &Header) -> Result<(), BlockError> {
    if let (Some(used), Some(limit)) = (header.blob_gas_used, max_blob_gas(spec, header.timestamp)) {
        if used > limit {
            return Err(BlockError::BlobGasUsedAboveLimit { used, limit });
        }
        if !used.is_multiple_of(GAS_PER_BLOB) {
            return Err(BlockError::BlobGasUsedFraction { got: used });
        }
    }
    match (header.excess_blob_gas, next_excess_blob_gas(spec, parent, header.timestamp)) {
        (Some(got), Some(expected)) if got != expected => Err(BlockError::ExcessBlobGas { got, expected }),
        _ => Ok(()),
    }
}
