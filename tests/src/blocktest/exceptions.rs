//! The tests' names for reasons of refusal, and the errors that match them.

use super::case::chained;
use node_chain::{BlockError, ImportError};
use node_core::crypto::SignatureError;
use node_core::executor::TransactionError;
use node_types::consensus::DecodeError;
use node_types::consensus::HeaderField;

/// Checks that a block was refused for one of the reasons in `exceptions`, separated by `|`.
pub(super) fn check_refusal(exceptions: &str, error: &ImportError) -> Result<(), String> {
    let refusal = Refusal::of(error);
    let mut matched = false;
    for name in exceptions.split('|') {
        let family = FAMILIES.iter().find(|(known, _)| *known == name.trim());
        let (_, belongs) = family.ok_or_else(|| format!("unknown exception {name}"))?;
        matched |= belongs(&refusal);
    }
    if matched { Ok(()) } else { Err(format!("was refused, expected {exceptions}, got: {}", chained(error))) }
}

/// The causes of an import error.
#[derive(Default)]
struct Refusal<'a> {
    decode: Option<&'a DecodeError>,
    unknown_parent: bool,
    block: Option<&'a BlockError>,
    /// Like `block`; for an ommer with an invalid header, the fault of that header.
    header: Option<&'a BlockError>,
    transaction: Option<&'a TransactionError>,
}

impl<'a> Refusal<'a> {
    fn of(error: &'a ImportError) -> Self {
        let mut refusal = Self::default();
        match error {
            ImportError::Decode(source) => refusal.decode = Some(source),
            ImportError::UnknownParent { .. } | ImportError::OtherGenesis { .. } => refusal.unknown_parent = true,
            ImportError::Invalid { source, .. } => {
                (refusal.block, refusal.header) = (Some(source), Some(source));
                match source {
                    BlockError::Transaction { source, .. } => refusal.transaction = Some(source),
                    BlockError::OmmerHeader { source, .. } => refusal.header = Some(source),
                    _ => {}
                }
            }
            _ => {}
        }
        refusal
    }

    /// Whether a field whose name contains one of `fields` is malformed.
    fn malformed(&self, fields: &[&str]) -> bool {
        let field = match self.decode {
            Some(
                DecodeError::Overflow { field, .. }
                | DecodeError::UnexpectedLength { field, .. }
                | DecodeError::LeadingZeros { field }
                | DecodeError::NotAList { field }
                | DecodeError::NotBytes { field },
            ) => field,
            _ => return false,
        };
        fields.iter().any(|name| field.contains(name))
    }
}

type Family = fn(&Refusal<'_>) -> bool;

/// The block cannot be decoded, for a reason that matches the pattern.
macro_rules! decode {
    ($($pattern:tt)+) => { |refusal| matches!(refusal.decode, Some($($pattern)+)) };
}

/// The block breaks a rule that matches the pattern.
macro_rules! block {
    ($($pattern:tt)+) => { |refusal| matches!(refusal.block, Some($($pattern)+)) };
}

/// The header of the block, or of one of its ommers, breaks a rule that matches the pattern.
macro_rules! header {
    ($($pattern:tt)+) => { |refusal| matches!(refusal.header, Some($($pattern)+)) };
}

/// A transaction breaks a rule that matches the pattern.
macro_rules! transaction {
    ($($pattern:tt)+) => { |refusal| matches!(refusal.transaction, Some($($pattern)+)) };
}

const ANY_DECODE: Family = |refusal| refusal.decode.is_some();

/// Every exception name in the tests, with the errors that match it.
const FAMILIES: &[(&str, Family)] = &[
    // Encoding.
    ("BlockException.RLP_STRUCTURES_ENCODING", ANY_DECODE),
    ("BlockException.INCORRECT_BLOCK_FORMAT", |refusal| {
        ANY_DECODE(refusal)
            || matches!(
                refusal.block,
                Some(
                    BlockError::MissingField { .. }
                        | BlockError::UnexpectedField { .. }
                        | BlockError::MissingWithdrawals
                        | BlockError::UnexpectedWithdrawals
                )
            )
    }),
    (
        "BlockException.RLP_INVALID_FIELD_OVERFLOW_64",
        decode!(DecodeError::Overflow { .. } | DecodeError::UnexpectedLength { .. }),
    ),
    ("BlockException.RLP_INVALID_ADDRESS", |refusal| refusal.malformed(&["address", "beneficiary"])),
    ("BlockException.RLP_WITHDRAWALS_NOT_READ", |refusal| {
        ANY_DECODE(refusal) || matches!(refusal.block, Some(BlockError::MissingWithdrawals))
    }),
    ("BlockException.RLP_BLOCK_LIMIT_EXCEEDED", block!(BlockError::BlockSize { .. })),
    // Lineage.
    ("BlockException.UNKNOWN_PARENT", |refusal| refusal.unknown_parent),
    ("BlockException.UNKNOWN_PARENT_ZERO", |refusal| refusal.unknown_parent),
    // A wrong block hash can only occur in messages of a consensus client, not in a block.
    ("BlockException.INVALID_BLOCK_HASH", |refusal| refusal.unknown_parent),
    ("BlockException.INVALID_BLOCK_NUMBER", block!(BlockError::Number { .. })),
    ("BlockException.INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT", block!(BlockError::Timestamp { .. })),
    // Header fields.
    ("BlockException.EXTRA_DATA_TOO_BIG", header!(BlockError::ExtraDataTooLong { .. })),
    ("BlockException.EXTRA_DATA_INVALID_DAO", header!(BlockError::DaoExtraData { .. })),
    (
        "BlockException.INVALID_DIFFICULTY",
        header!(
            BlockError::Difficulty { .. } | BlockError::MergedTooEarly { .. } | BlockError::DifficultyAfterMerge { .. }
        ),
    ),
    ("BlockException.INVALID_GASLIMIT", header!(BlockError::GasLimitStep { .. } | BlockError::GasLimitRange { .. })),
    ("BlockException.GASLIMIT_TOO_BIG", |refusal| {
        matches!(refusal.header, Some(BlockError::GasLimitRange { .. } | BlockError::GasLimitStep { .. }))
            || refusal.malformed(&["gas limit"])
    }),
    ("BlockException.INVALID_BASEFEE_PER_GAS", header!(BlockError::BaseFee { .. })),
    ("BlockException.INVALID_GAS_USED", header!(BlockError::GasUsed { .. } | BlockError::GasUsedAboveLimit { .. })),
    ("BlockException.INVALID_GAS_USED_ABOVE_LIMIT", header!(BlockError::GasUsedAboveLimit { .. })),
    ("BlockException.GAS_USED_OVERFLOW", |refusal| {
        matches!(refusal.header, Some(BlockError::GasUsedAboveLimit { .. } | BlockError::GasUsed { .. }))
            || matches!(refusal.transaction, Some(TransactionError::BlockGasExceeded { .. }))
    }),
    // The merge.
    ("BlockException.IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS", header!(BlockError::DifficultyAfterMerge { .. })),
    ("BlockException.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS", header!(BlockError::OmmersAfterMerge)),
    // Headers with fields of the wrong side of a fork.
    (
        "BlockException.IMPORT_IMPOSSIBLE_LEGACY_WRONG_PARENT",
        header!(BlockError::MissingField { field: HeaderField::BaseFeePerGas, .. }),
    ),
    (
        "BlockException.IMPORT_IMPOSSIBLE_LONDON_WRONG_PARENT",
        header!(
            BlockError::UnexpectedField { field: HeaderField::BaseFeePerGas, .. }
                | BlockError::MissingField { field: HeaderField::BaseFeePerGas, .. }
                | BlockError::GasLimitStep { .. }
        ),
    ),
    ("BlockException.IMPORT_IMPOSSIBLE_LONDON_OVER_PARIS", header!(BlockError::DifficultyAfterMerge { .. })),
    ("BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POW", header!(BlockError::DifficultyAfterMerge { .. })),
    ("BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POS", header!(BlockError::MergedTooEarly { .. })),
    ("BlockException.IMPORT_IMPOSSIBLE_LEGACY", header!(BlockError::MissingField { .. })),
    (
        "BlockException.IMPORT_IMPOSSIBLE_PARIS_OVER_SHANGHAI",
        header!(BlockError::MissingField { field: HeaderField::WithdrawalsRoot, .. } | BlockError::MissingWithdrawals),
    ),
    (
        "BlockException.IMPORT_IMPOSSIBLE_SHANGHAI",
        header!(
            BlockError::UnexpectedField { field: HeaderField::WithdrawalsRoot, .. } | BlockError::UnexpectedWithdrawals
        ),
    ),
    // Ommers.
    ("BlockException.TOO_MANY_UNCLES", block!(BlockError::TooManyOmmers { .. })),
    (
        "BlockException.UNCLE_IN_CHAIN",
        block!(BlockError::OmmerIncludedBefore { .. } | BlockError::RepeatedOmmer { .. }),
    ),
    ("BlockException.UNCLE_IS_ANCESTOR", block!(BlockError::OmmerIsAncestor { .. })),
    ("BlockException.UNCLE_IS_BROTHER", block!(BlockError::OmmerParent { .. } | BlockError::RepeatedOmmer { .. })),
    ("BlockException.UNCLE_UNKNOWN_PARENT", block!(BlockError::OmmerParent { .. })),
    ("BlockException.UNCLE_PARENT_INCORRECT", block!(BlockError::OmmerParent { .. } | BlockError::OmmerHeader { .. })),
    // Roots and hashes.
    ("BlockException.INVALID_TRANSACTIONS_ROOT", block!(BlockError::TransactionsRoot { .. })),
    ("BlockException.INVALID_UNCLES_HASH", block!(BlockError::OmmersHash { .. } | BlockError::OmmersAfterMerge)),
    ("BlockException.INVALID_WITHDRAWALS_ROOT", block!(BlockError::WithdrawalsRoot { .. })),
    ("BlockException.INVALID_LOG_BLOOM", block!(BlockError::LogsBloom)),
    ("BlockException.INVALID_RECEIPTS_ROOT", block!(BlockError::ReceiptsRoot { .. })),
    ("BlockException.INVALID_STATE_ROOT", block!(BlockError::StateRoot { .. })),
    ("BlockException.INVALID_REQUESTS", block!(BlockError::RequestsHash { .. })),
    // Blobs.
    (
        "BlockException.INCORRECT_BLOB_GAS_USED",
        block!(
            BlockError::BlobGasUsed { .. }
                | BlockError::BlobGasUsedFraction { .. }
                | BlockError::BlobGasUsedAboveLimit { .. }
        ),
    ),
    ("BlockException.BLOB_GAS_USED_ABOVE_LIMIT", block!(BlockError::BlobGasUsedAboveLimit { .. })),
    ("BlockException.INCORRECT_EXCESS_BLOB_GAS", block!(BlockError::ExcessBlobGas { .. })),
    ("BlockException.INVALID_VERSIONED_HASHES", transaction!(TransactionError::BlobVersion { .. })),
    // System contracts.
    ("BlockException.SYSTEM_CONTRACT_EMPTY", block!(BlockError::SystemContract { .. })),
    ("BlockException.SYSTEM_CONTRACT_CALL_FAILED", block!(BlockError::SystemContract { .. })),
    ("BlockException.INVALID_DEPOSIT_EVENT_LAYOUT", block!(BlockError::SystemContract { .. })),
    // Types of transactions.
    ("TransactionException.TYPE_NOT_SUPPORTED", |refusal| is_type_not_supported(refusal)),
    ("TransactionException.TYPE_1_TX_PRE_FORK", |refusal| is_type_not_supported(refusal)),
    ("TransactionException.TYPE_2_TX_PRE_FORK", |refusal| is_type_not_supported(refusal)),
    ("TransactionException.TYPE_3_TX_PRE_FORK", |refusal| is_type_not_supported(refusal)),
    ("TransactionException.TYPE_4_TX_PRE_FORK", |refusal| is_type_not_supported(refusal)),
    ("TransactionException.TYPE_3_TX_ZERO_BLOBS_PRE_FORK", |refusal| is_type_not_supported(refusal)),
    // Senders.
    ("TransactionException.SENDER_NOT_EOA", transaction!(TransactionError::SenderHasCode(_))),
    ("TransactionException.INVALID_CHAINID", |refusal| {
        matches!(
            refusal.transaction,
            Some(TransactionError::ChainId { .. } | TransactionError::ReplayProtectionTooEarly { .. })
        )
    }),
    ("TransactionException.INVALID_SIGNATURE_VRS", |refusal| is_signature(refusal)),
    ("TransactionException.EC_RECOVERY_FAIL", |refusal| is_signature(refusal)),
    ("TransactionException.RLP_INVALID_SIGNATURE_R", |refusal| is_signature(refusal) || refusal.malformed(&[" r"])),
    ("TransactionException.RLP_INVALID_SIGNATURE_S", |refusal| is_signature(refusal) || refusal.malformed(&[" s"])),
    // Nonces.
    ("TransactionException.NONCE_MISMATCH_TOO_HIGH", transaction!(TransactionError::NonceTooHigh { .. })),
    ("TransactionException.NONCE_MISMATCH_TOO_LOW", transaction!(TransactionError::NonceTooLow { .. })),
    ("TransactionException.NONCE_IS_MAX", |refusal| is_nonce_overflow(refusal)),
    ("TransactionException.NONCE_TOO_BIG", |refusal| is_nonce_overflow(refusal)),
    ("TransactionException.NONCE_OVERFLOW", |refusal| is_nonce_overflow(refusal)),
    // Fees and funds.
    ("TransactionException.INSUFFICIENT_ACCOUNT_FUNDS", transaction!(TransactionError::InsufficientFunds { .. })),
    ("TransactionException.INSUFFICIENT_MAX_FEE_PER_GAS", transaction!(TransactionError::FeeCapTooLow { .. })),
    (
        "TransactionException.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS",
        transaction!(TransactionError::TipAboveFeeCap { .. }),
    ),
    (
        "TransactionException.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS_2",
        transaction!(TransactionError::TipAboveFeeCap { .. }),
    ),
    ("TransactionException.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS", transaction!(TransactionError::BlobFeeCapTooLow { .. })),
    ("TransactionException.PRIORITY_OVERFLOW", |refusal| {
        refusal.malformed(&["priority fee"])
            || matches!(
                refusal.transaction,
                Some(TransactionError::TipAboveFeeCap { .. } | TransactionError::InsufficientFunds { .. })
            )
    }),
    ("TransactionException.GASLIMIT_PRICE_PRODUCT_OVERFLOW", transaction!(TransactionError::InsufficientFunds { .. })),
    ("TransactionException.GASPRICE_OVERFLOW", |refusal| {
        refusal.malformed(&["gas price", "fee"])
            || matches!(refusal.transaction, Some(TransactionError::InsufficientFunds { .. }))
    }),
    ("TransactionException.VALUE_OVERFLOW", |refusal| {
        refusal.malformed(&["value"]) || matches!(refusal.transaction, Some(TransactionError::InsufficientFunds { .. }))
    }),
    // Gas.
    (
        "TransactionException.INTRINSIC_GAS_TOO_LOW",
        transaction!(TransactionError::IntrinsicGas { .. } | TransactionError::FloorGas { .. }),
    ),
    (
        "TransactionException.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST",
        transaction!(TransactionError::FloorGas { .. } | TransactionError::IntrinsicGas { .. }),
    ),
    ("TransactionException.INITCODE_SIZE_EXCEEDED", transaction!(TransactionError::InitCodeTooLong { .. })),
    ("TransactionException.GAS_ALLOWANCE_EXCEEDED", transaction!(TransactionError::BlockGasExceeded { .. })),
    ("TransactionException.GAS_LIMIT_EXCEEDS_MAXIMUM", transaction!(TransactionError::GasLimitCap { .. })),
    ("TransactionException.GASLIMIT_OVERFLOW", |refusal| {
        refusal.malformed(&["gas limit"])
            || matches!(refusal.transaction, Some(TransactionError::BlockGasExceeded { .. }))
    }),
    // Blobs.
    ("TransactionException.TYPE_3_TX_ZERO_BLOBS", transaction!(TransactionError::NoBlobs)),
    ("TransactionException.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH", transaction!(TransactionError::BlobVersion { .. })),
    ("TransactionException.TYPE_3_TX_BLOB_COUNT_EXCEEDED", |refusal| is_too_many_blobs(refusal)),
    ("TransactionException.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED", |refusal| is_too_many_blobs(refusal)),
    ("TransactionException.TYPE_3_TX_CONTRACT_CREATION", |refusal| is_creation(refusal)),
    // A transaction with its blobs has the network encoding, not that of blocks.
    ("TransactionException.TYPE_3_TX_WITH_FULL_BLOBS", ANY_DECODE),
    // Set-code transactions.
    ("TransactionException.TYPE_4_EMPTY_AUTHORIZATION_LIST", transaction!(TransactionError::NoAuthorizations)),
    ("TransactionException.TYPE_4_TX_CONTRACT_CREATION", |refusal| is_creation(refusal)),
    ("TransactionException.TYPE_4_INVALID_AUTHORITY_SIGNATURE", ANY_DECODE),
    ("TransactionException.TYPE_4_INVALID_AUTHORITY_SIGNATURE_S_TOO_HIGH", ANY_DECODE),
    ("TransactionException.TYPE_4_INVALID_AUTHORIZATION_FORMAT", ANY_DECODE),
    // Encoding of transactions.
    ("TransactionException.ADDRESS_TOO_SHORT", |refusal| is_receiver(refusal)),
    ("TransactionException.ADDRESS_TOO_LONG", |refusal| is_receiver(refusal)),
    ("TransactionException.RLP_INVALID_TO", |refusal| is_receiver(refusal)),
    ("TransactionException.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_LONG", decode!(DecodeError::UnexpectedLength { .. })),
    ("TransactionException.RLP_INVALID_ACCESS_LIST_ADDRESS_TOO_SHORT", decode!(DecodeError::UnexpectedLength { .. })),
    ("TransactionException.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_LONG", decode!(DecodeError::UnexpectedLength { .. })),
    ("TransactionException.RLP_INVALID_ACCESS_LIST_STORAGE_TOO_SHORT", decode!(DecodeError::UnexpectedLength { .. })),
    ("TransactionException.RLP_TOO_FEW_ELEMENTS", decode!(DecodeError::MissingField { .. })),
    ("TransactionException.RLP_TOO_MANY_ELEMENTS", decode!(DecodeError::SurplusItems { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_GASLIMIT", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_GASPRICE", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_VALUE", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_NONCE", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_R", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_S", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_V", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_BASEFEE", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_PRIORITY_FEE", decode!(DecodeError::LeadingZeros { .. })),
    ("TransactionException.RLP_LEADING_ZEROS_DATA_SIZE", ANY_DECODE),
    ("TransactionException.RLP_LEADING_ZEROS_NONCE_SIZE", ANY_DECODE),
    ("TransactionException.RLP_ERROR_EOF", ANY_DECODE),
    ("TransactionException.RLP_ERROR_SIZE", ANY_DECODE),
    ("TransactionException.RLP_ERROR_SIZE_LEADING_ZEROS", ANY_DECODE),
    ("TransactionException.RLP_INVALID_DATA", ANY_DECODE),
    ("TransactionException.RLP_INVALID_GASLIMIT", |refusal| refusal.malformed(&["gas limit"])),
    ("TransactionException.RLP_INVALID_NONCE", |refusal| refusal.malformed(&["nonce"])),
    ("TransactionException.RLP_INVALID_VALUE", |refusal| refusal.malformed(&["value"])),
    ("TransactionException.RLP_INVALID_HEADER", ANY_DECODE),
];

fn is_type_not_supported(refusal: &Refusal<'_>) -> bool {
    matches!(refusal.transaction, Some(TransactionError::TypeNotSupported(_)))
        || matches!(refusal.decode, Some(DecodeError::UnknownTransactionType(_)))
}

fn is_signature(refusal: &Refusal<'_>) -> bool {
    matches!(
        refusal.transaction,
        Some(
            TransactionError::Signature(
                SignatureError::OutOfRange
                    | SignatureError::HighS
                    | SignatureError::Parity(_)
                    | SignatureError::NoPoint
            ) | TransactionError::ReplayProtectionTooEarly { .. }
        )
    ) || matches!(refusal.decode, Some(DecodeError::InvalidV { .. }))
}

fn is_nonce_overflow(refusal: &Refusal<'_>) -> bool {
    matches!(refusal.transaction, Some(TransactionError::NonceOverflow)) || refusal.malformed(&["nonce"])
}

fn is_too_many_blobs(refusal: &Refusal<'_>) -> bool {
    matches!(refusal.transaction, Some(TransactionError::TooManyBlobs { .. }))
        || matches!(refusal.block, Some(BlockError::BlobGasUsedAboveLimit { .. }))
}

fn is_creation(refusal: &Refusal<'_>) -> bool {
    matches!(refusal.decode, Some(DecodeError::ContractCreation { .. })) || is_receiver(refusal)
}

fn is_receiver(refusal: &Refusal<'_>) -> bool {
    refusal.malformed(&["receiver", " to"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::block::BlockRef;
    use node_types::H256;
    use std::collections::BTreeSet;

    #[test]
    fn names_stand_once() {
        let names: BTreeSet<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), FAMILIES.len());
    }

    #[test]
    fn refusals_belong_to_their_families_only() {
        let block = BlockRef { number: 1, hash: H256::zero() };
        let invalid = |source| ImportError::Invalid { block, source };
        let nonce = || TransactionError::NonceTooLow { got: 0, expected: 1 };
        let transaction = || invalid(BlockError::Transaction { index: 0, source: nonce() });
        let gas_used = || invalid(BlockError::GasUsed { got: 1, expected: 2 });
        let unknown_parent = || ImportError::UnknownParent { block, parent: H256::zero() };
        // Error, exceptions, whether they match.
        let cases = [
            (transaction(), "TransactionException.NONCE_MISMATCH_TOO_LOW", true),
            (transaction(), "TransactionException.NONCE_MISMATCH_TOO_HIGH", false),
            (transaction(), "TransactionException.SENDER_NOT_EOA|TransactionException.NONCE_MISMATCH_TOO_LOW", true),
            (transaction(), "BlockException.INVALID_GAS_USED", false),
            (gas_used(), "BlockException.INVALID_GAS_USED", true),
            (gas_used(), "BlockException.INVALID_STATE_ROOT", false),
            (unknown_parent(), "BlockException.UNKNOWN_PARENT", true),
            (unknown_parent(), "BlockException.INVALID_BLOCK_NUMBER", false),
            // An unknown name fails, regardless of the others.
            (gas_used(), "BlockException.INVALID_GAS_USED|BlockException.NO_SUCH_THING", false),
        ];
        for (error, exceptions, expected) in cases {
            assert_eq!(check_refusal(exceptions, &error).is_ok(), expected, "{exceptions}: {error}");
        }
    }
}
