//! Proptest strategies for consensus objects.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::{Address, Bytes, H256, U256};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::path::PathBuf;

/// Numbers of every length in bytes, and those at which the form of an RLP header changes.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift),
        prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff, 0x100, u64::MAX]),
    ]
}

/// 256-bit words of every length.
pub(crate) fn word() -> impl Strategy<Value = U256> {
    vec(any::<u8>(), 0..=32).prop_map(|bytes| U256::from_big_endian(&bytes))
}

/// Prices of at most 128 bits, as alloy stores them.
pub(crate) fn price() -> impl Strategy<Value = U256> {
    (any::<u128>(), 0u32..128).prop_map(|(price, shift)| U256::from(price >> shift))
}

pub(crate) fn hash() -> impl Strategy<Value = H256> {
    any::<[u8; 32]>().prop_map(H256)
}

pub(crate) fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::from)
}

/// Byte strings shorter and longer than 1, 55 and 255 bytes, where the form of the header changes.
pub(crate) fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![vec(any::<u8>(), 0..=2), vec(any::<u8>(), 50..60), vec(any::<u8>(), 250..260)].prop_map(Bytes::from)
}

pub(crate) fn bloom() -> impl Strategy<Value = Bloom> {
    vec(any::<u8>(), 256).prop_map(|bytes| Bloom(bytes.try_into().unwrap()))
}

/// Headers of every fork: any number of the optional fields, from the first on.
pub(crate) fn header() -> impl Strategy<Value = Header> {
    let hashes = (hash(), hash(), hash(), hash(), hash(), hash());
    let numbers = (number(), number(), number(), number());
    let optional = (number(), hash(), number(), number(), hash(), hash());
    let others = (address(), bloom(), word(), bytes(), any::<[u8; 8]>());
    (hashes, numbers, others, optional, 0..=6).prop_map(|(hashes, numbers, others, optional, present)| Header {
        parent_hash: hashes.0,
        ommers_hash: hashes.1,
        beneficiary: others.0,
        state_root: hashes.2,
        transactions_root: hashes.3,
        receipts_root: hashes.4,
        logs_bloom: others.1,
        difficulty: others.2,
        number: numbers.0,
        gas_limit: numbers.1,
        gas_used: numbers.2,
        timestamp: numbers.3,
        extra_data: others.3,
        mix_hash: hashes.5,
        nonce: others.4,
        base_fee_per_gas: (present > 0).then_some(optional.0),
        withdrawals_root: (present > 1).then_some(optional.1),
        blob_gas_used: (present > 2).then_some(optional.2),
        excess_blob_gas: (present > 3).then_some(optional.3),
        parent_beacon_block_root: (present > 4).then_some(optional.4),
        requests_hash: (present > 5).then_some(optional.5),
    })
}

pub(crate) fn withdrawal() -> impl Strategy<Value = Withdrawal> {
    (number(), number(), address(), number()).prop_map(|(index, validator_index, address, amount)| Withdrawal {
        index,
        validator_index,
        address,
        amount,
    })
}

pub(crate) fn account() -> impl Strategy<Value = Account> {
    (number(), word(), hash(), hash()).prop_map(|(nonce, balance, storage_root, code_hash)| Account {
        nonce,
        balance,
        storage_root,
        code_hash,
    })
}

pub(crate) fn log() -> impl Strategy<Value = Log> {
    (address(), vec(hash(), 0..=4), bytes()).prop_map(|(address, topics, data)| Log { address, topics, data })
}

pub(crate) fn transaction_type() -> impl Strategy<Value = TransactionType> {
    (0u8..=4).prop_map(|byte| TransactionType::try_from(byte).unwrap())
}

pub(crate) fn receipt() -> impl Strategy<Value = Receipt> {
    let outcome =
        prop_oneof![any::<bool>().prop_map(ReceiptOutcome::Success), hash().prop_map(ReceiptOutcome::StateRoot),];
    (transaction_type(), outcome, number(), bloom(), vec(log(), 0..4)).prop_map(
        |(transaction_type, outcome, cumulative_gas_used, logs_bloom, logs)| Receipt {
            transaction_type,
            outcome,
            cumulative_gas_used,
            logs_bloom,
            logs,
        },
    )
}

pub(crate) fn signature() -> impl Strategy<Value = Signature> {
    (word(), word(), any::<bool>()).prop_map(|(r, s, y_parity)| Signature { r, s, y_parity })
}

pub(crate) fn access_list() -> impl Strategy<Value = Vec<AccessListItem>> {
    let item = (address(), vec(hash(), 0..4));
    vec(item.prop_map(|(address, storage_keys)| AccessListItem { address, storage_keys }), 0..4)
}

pub(crate) fn authorization() -> impl Strategy<Value = Authorization> {
    (word(), address(), number(), any::<u8>(), word(), word()).prop_map(|(chain_id, address, nonce, y_parity, r, s)| {
        Authorization { chain_id, address, nonce, y_parity, r, s }
    })
}

/// Transactions of the five types, with prices from `price`.
pub(crate) fn transaction_with<P>(price: fn() -> P) -> impl Strategy<Value = Transaction>
where
    P: Strategy<Value = U256> + 'static,
{
    let prices = (price(), price(), price());
    let common = (number(), number(), option::of(address()), word(), bytes(), access_list());
    let chain_id = option::of(number());
    let extra = (vec(hash(), 0..4), vec(authorization(), 0..4));
    (transaction_type(), chain_id, prices, common, extra, signature()).prop_map(
        |(transaction_type, chain_id, prices, common, extra, signature)| {
            let (gas_price, max_priority_fee_per_gas, max_fee_per_blob_gas) = prices;
            let (nonce, gas_limit, to, value, input, access_list) = common;
            let (blob_versioned_hashes, authorization_list) = extra;
            let max_fee_per_gas = gas_price;
            let receiver = to.unwrap_or_default();
            let id = chain_id.unwrap_or_default();
            let body = match transaction_type {
                TransactionType::Legacy => TransactionBody::Legacy(LegacyTransaction {
                    chain_id,
                    nonce,
                    gas_price,
                    gas_limit,
                    to,
                    value,
                    input,
                }),
                TransactionType::AccessList => TransactionBody::AccessList(AccessListTransaction {
                    chain_id: id,
                    nonce,
                    gas_price,
                    gas_limit,
                    to,
                    value,
                    input,
                    access_list,
                }),
                TransactionType::DynamicFee => TransactionBody::DynamicFee(DynamicFeeTransaction {
                    chain_id: id,
                    nonce,
                    max_priority_fee_per_gas,
                    max_fee_per_gas,
                    gas_limit,
                    to,
                    value,
                    input,
                    access_list,
                }),
                TransactionType::Blob => TransactionBody::Blob(BlobTransaction {
                    chain_id: id,
                    nonce,
                    max_priority_fee_per_gas,
                    max_fee_per_gas,
                    gas_limit,
                    to: receiver,
                    value,
                    input,
                    access_list,
                    max_fee_per_blob_gas,
                    blob_versioned_hashes,
                }),
                TransactionType::SetCode => TransactionBody::SetCode(SetCodeTransaction {
                    chain_id: id,
                    nonce,
                    max_priority_fee_per_gas,
                    max_fee_per_gas,
                    gas_limit,
                    to: receiver,
                    value,
                    input,
                    access_list,
                    authorization_list,
                }),
            };
            Transaction { body, signature }
        },
    )
}

/// Transactions of the five types.
pub(crate) fn transaction() -> impl Strategy<Value = Transaction> {
    transaction_with(word)
}

/// Blob transactions with a sidecar of either version and up to two blobs.
pub(crate) fn blob_transaction() -> impl Strategy<Value = PooledTransaction> {
    let carrying = transaction_with(price)
        .prop_filter("a blob transaction", |transaction| transaction.transaction_type() == TransactionType::Blob);
    (carrying, any::<bool>(), vec(any::<u8>(), 0..=2)).prop_map(|(transaction, version_0, seeds)| {
        let strings = |length: usize, each: usize| -> Vec<Bytes> {
            seeds.iter().flat_map(|seed| (0..each).map(|_| Bytes::from(vec![*seed; length]))).collect()
        };
        let (blobs, commitments) = (strings(131_072, 1), strings(48, 1));
        let sidecar = if version_0 {
            BlobSidecar::V0 { blobs, commitments, proofs: strings(48, 1) }
        } else {
            BlobSidecar::V1 { blobs, commitments, cell_proofs: strings(48, 128) }
        };
        PooledTransaction { transaction, sidecar: Some(sidecar) }
    })
}

/// Blocks whose transactions have prices from `price`.
pub(crate) fn block_with<P>(price: fn() -> P) -> impl Strategy<Value = Block>
where
    P: Strategy<Value = U256> + 'static,
{
    let withdrawals = option::of(vec(withdrawal(), 0..4));
    (header(), vec(transaction_with(price), 0..5), vec(header(), 0..=2), withdrawals)
        .prop_map(|(header, transactions, ommers, withdrawals)| Block { header, transactions, ommers, withdrawals })
}

/// Blocks with any number of transactions and ommers, with and without withdrawals.
pub(crate) fn block() -> impl Strategy<Value = Block> {
    block_with(word)
}

/// Returns a file of the recorded test data: in `../shared` beside the workspace, or in the folder in `NODE_SHARED`.
pub(crate) fn shared_file(path: &str) -> Vec<u8> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let file = std::env::var_os("NODE_SHARED").map_or_else(beside, PathBuf::from).join(path);
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
