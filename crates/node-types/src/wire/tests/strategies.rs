//! Random requests and responses.

use crate::consensus::Bloom;
use crate::wire::*;
use crate::{Address, BlockId, BlockNumberOrTag, Bytes, H256, U256};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;

pub(crate) fn u256() -> impl Strategy<Value = U256> + Clone {
    (any::<[u8; 32]>(), 0_usize..=256).prop_map(|(bytes, shift)| U256::from_big_endian(&bytes) >> shift)
}

pub(crate) fn hash() -> impl Strategy<Value = HashData> + Clone {
    any::<[u8; 32]>().prop_map(|bytes| H256(bytes).into())
}

fn blob_hash() -> impl Strategy<Value = HashData> + Clone {
    any::<[u8; 31]>().prop_map(|bytes| H256::from_slice(&[&[1], &bytes[..]].concat()).into())
}

pub(crate) fn address() -> impl Strategy<Value = AddressData> + Clone {
    any::<[u8; 20]>().prop_map(|bytes| Address::from(bytes).into())
}

pub(crate) fn bytes() -> impl Strategy<Value = BytesData> + Clone {
    vec(any::<u8>(), 0..40).prop_map(|bytes| Bytes::from(bytes).into())
}

pub(crate) fn small() -> impl Strategy<Value = Quantity64> + Clone {
    any::<u64>().prop_map(Quantity)
}

pub(crate) fn large() -> impl Strategy<Value = Quantity256> + Clone {
    u256().prop_map(Quantity)
}

fn word() -> impl Strategy<Value = Word> + Clone {
    u256().prop_map(Word)
}

fn bloom() -> impl Strategy<Value = BloomData> + Clone {
    any::<u8>().prop_map(|byte| Bloom([byte; 256]).into())
}

pub(crate) fn tag() -> impl Strategy<Value = BlockNumberOrTag> + Clone {
    prop_oneof![
        any::<u64>().prop_map(BlockNumberOrTag::Number),
        Just(BlockNumberOrTag::Earliest),
        Just(BlockNumberOrTag::Latest),
        Just(BlockNumberOrTag::Pending),
        Just(BlockNumberOrTag::Safe),
        Just(BlockNumberOrTag::Finalized),
    ]
}

pub(crate) fn block_id() -> impl Strategy<Value = BlockId> {
    prop_oneof![tag().prop_map(BlockId::from), hash().prop_map(|hash| BlockId::Hash(hash.0))]
}

fn storage_key() -> impl Strategy<Value = StorageKey> {
    hash().prop_map(|hash| StorageKey(hash.0))
}

fn addresses() -> impl Strategy<Value = AddressFilter> {
    vec(address(), 0..4).prop_map(|addresses| addresses.into_iter().map(|address| address.0).collect())
}

fn topics() -> impl Strategy<Value = Vec<TopicFilter>> {
    let position = vec(hash(), 0..3).prop_map(|topics| TopicFilter(topics.into_iter().map(|topic| topic.0).collect()));
    vec(position, 0..=4)
}

pub(crate) fn get_logs_input() -> impl Strategy<Value = GetLogsInput> {
    let blocks = prop_oneof![
        hash().prop_map(|hash| (Some(hash), None, None)),
        (of(tag()), of(tag())).prop_map(|(from, to)| (None, from, to)),
    ];
    (addresses(), blocks, topics()).prop_map(|(address, (block_hash, from_block, to_block), topics)| GetLogsInput {
        address,
        block_hash,
        from_block,
        to_block,
        topics,
    })
}

pub(crate) fn new_filter_input() -> impl Strategy<Value = NewFilterInput> {
    (addresses(), of(tag()), of(tag()), topics()).prop_map(|(address, from_block, to_block, topics)| NewFilterInput {
        filter_object: FilterObject { address, from_block, to_block, topics },
    })
}

fn call_object() -> impl Strategy<Value = TransactionCall> {
    // Empty data is encoded as `0x`, which differs from absent data.
    let plain = (of(bytes()), of(address()), of(small()), of(large()), of(address()), of(large()));
    let typed = (of(vec(access_list_item(), 0..3)), of(vec(authorization(), 0..3)), of(vec(blob_hash(), 0..3)));
    (plain, typed, of(large()), of(large()), of(small())).prop_map(|(plain, typed, fee, blob_fee, nonce)| {
        let (data, from, gas, gas_price, to, value) = plain;
        let (access_list, authorization_list, blob_versioned_hashes) = typed;
        // Authorizations and blobs require a recipient.
        let to =
            to.or_else(|| (authorization_list.is_some() || blob_versioned_hashes.is_some()).then(Default::default));
        TransactionCall {
            access_list,
            authorization_list,
            blob_versioned_hashes,
            data,
            from,
            gas,
            gas_price,
            max_fee_per_blob_gas: blob_fee,
            max_fee_per_gas: fee.filter(|_| gas_price.is_none()),
            max_priority_fee_per_gas: fee.filter(|_| gas_price.is_none()),
            nonce,
            to,
            value,
        }
    })
}

fn authorization() -> impl Strategy<Value = Authorization> {
    (address(), large(), small(), word(), word(), small())
        .prop_map(|(address, chain_id, nonce, r, s, v)| Authorization { address, chain_id, nonce, r, s, v })
}

pub(crate) fn call_input() -> impl Strategy<Value = CallInput> {
    (block_id(), call_object()).prop_map(|(block_number, transaction)| CallInput {
        block_number,
        transaction,
        ..CallInput::default()
    })
}

fn slots() -> impl Strategy<Value = StorageSlots> {
    btree_map(hash().prop_map(|hash| hash.0), u256(), 0..3).prop_map(StorageSlots)
}

fn account_override() -> impl Strategy<Value = AccountOverride> {
    let storage = prop_oneof![
        Just((None, None)),
        slots().prop_map(|slots| (Some(slots), None)),
        slots().prop_map(|slots| (None, Some(slots))),
    ];
    (of(large()), of(bytes()), of(small()), storage).prop_map(|(balance, code, nonce, (state, state_diff))| {
        AccountOverride { balance, code, nonce, state, state_diff }
    })
}

pub(crate) fn estimate_gas_input() -> impl Strategy<Value = EstimateGasInput> {
    let by_address = btree_map(address().prop_map(|address| address.0), account_override(), 0..3);
    let object = prop_oneof![
        by_address.prop_map(EstimateGasObject::Accounts),
        account_override()
            .prop_filter("an empty override decodes as an empty map", |flat| *flat != AccountOverride::default())
            .prop_map(EstimateGasObject::Flat),
    ];
    (of(object), call_object(), address(), address()).prop_map(|(object, mut transaction, from, to)| {
        if matches!(object, Some(EstimateGasObject::Flat(_))) {
            transaction.from = Some(from);
            transaction.to = Some(to);
        }
        CallInput { object, transaction, ..CallInput::default() }
    })
}

pub(crate) fn fee_history_input() -> impl Strategy<Value = FeeHistoryInput> {
    (1..=1024_u64, tag(), vec(0.0..=100.0, 0..10)).prop_map(|(count, newest_block, mut percentiles)| {
        percentiles.sort_by(f64::total_cmp);
        FeeHistoryInput { block_count: count.into(), newest_block, reward_percentiles: percentiles }
    })
}

pub(crate) fn get_proof_input() -> impl Strategy<Value = GetProofInput> {
    let block = block_id().prop_filter("the pending block has no proofs", |block| !block.is_pending());
    (address(), block, vec(storage_key(), 0..5)).prop_map(|(address, block_number, storage_keys)| GetProofInput {
        address,
        block_number,
        storage_keys,
    })
}

pub(crate) fn get_storage_at_input() -> impl Strategy<Value = GetStorageAtInput> {
    (address(), block_id(), storage_key()).prop_map(|(address, block_number, position)| GetStorageAtInput {
        address,
        block_number,
        position,
    })
}

pub(crate) fn log() -> impl Strategy<Value = Log> {
    (address(), of((hash(), small(), small(), hash(), small())), bytes(), any::<bool>(), vec(hash(), 0..=4)).prop_map(
        |(address, mined, data, removed, topics)| Log {
            address,
            block_hash: mined.map(|mined| mined.0),
            block_number: mined.map(|mined| mined.1),
            data,
            log_index: mined.map(|mined| mined.2),
            removed,
            topics,
            transaction_hash: mined.map(|mined| mined.3),
            transaction_index: mined.map(|mined| mined.4),
        },
    )
}

fn access_list_item() -> impl Strategy<Value = AccessListItem> {
    (address(), vec(hash(), 0..3)).prop_map(|(address, storage_keys)| AccessListItem { address, storage_keys })
}

pub(crate) fn transaction() -> impl Strategy<Value = Transaction> {
    let places = (vec(access_list_item(), 0..3), of(hash()), of(small()), of(small()), of(small()));
    let parties = (address(), of(address()), hash(), bytes());
    let fees = (small(), large(), of(large()), of(large()), large());
    (places, parties, fees, small(), word(), word(), large()).prop_map(|(places, parties, fees, nonce, r, s, v)| {
        Transaction {
            access_list: places.0,
            block_hash: places.1,
            block_number: places.2,
            chain_id: places.3,
            from: parties.0,
            gas: fees.0,
            gas_price: fees.1,
            hash: parties.2,
            input: parties.3,
            max_fee_per_gas: fees.2,
            max_priority_fee_per_gas: fees.3,
            nonce,
            r,
            s,
            to: parties.1,
            transaction_index: places.4,
            transaction_type: Quantity(2),
            v,
            value: fees.4,
        }
    })
}

pub(crate) fn block() -> impl Strategy<Value = Block> {
    let withdrawal = (address(), small(), any::<u64>(), any::<u64>())
        .prop_map(|(address, amount, index, validator_index)| Withdrawal { address, amount, index, validator_index });
    let transactions = prop_oneof![
        vec(transaction(), 1..3).prop_map(BlockTransactions::Full),
        vec(hash(), 0..3).prop_map(|hashes| BlockTransactions::Hashes(hashes.into_iter().map(|hash| hash.0).collect())),
    ];
    let pending = of((hash(), bloom(), any::<[u8; 8]>(), small()));
    let withdrawals = of((vec(withdrawal, 0..3), hash()));
    (pending, of(small()), large(), bytes(), small(), hash(), transactions, vec(hash(), 0..3), withdrawals).prop_map(
        |(mined, base_fee_per_gas, difficulty, extra_data, number, root, transactions, uncles, withdrawals)| Block {
            base_fee_per_gas,
            difficulty,
            extra_data,
            gas_limit: number,
            hash: mined.as_ref().map(|mined| mined.0),
            logs_bloom: mined.as_ref().map(|mined| mined.1),
            mix_hash: difficulty,
            nonce: mined.as_ref().map(|mined| mined.2.into()),
            number: mined.map(|mined| mined.3),
            parent_hash: root,
            transactions,
            uncles,
            withdrawals: withdrawals.clone().map(|withdrawals| withdrawals.0),
            withdrawals_root: withdrawals.map(|withdrawals| withdrawals.1),
            ..Block::default()
        },
    )
}

pub(crate) fn receipt() -> impl Strategy<Value = TransactionReceipt> {
    (of(address()), of(small()), vec(log(), 0..3), bloom(), large(), hash()).prop_map(
        |(contract_address, status, logs, logs_bloom, effective_gas_price, transaction_hash)| TransactionReceipt {
            contract_address,
            status,
            logs,
            logs_bloom,
            effective_gas_price,
            transaction_hash,
            ..TransactionReceipt::default()
        },
    )
}

pub(crate) fn proof() -> impl Strategy<Value = GetProofOutput> {
    let entry = (hash(), vec(bytes(), 0..3), word()).prop_map(|(key, proof, value)| StorageEntry { key, proof, value });
    (vec(bytes(), 0..3), address(), large(), hash(), small(), vec(entry, 0..3)).prop_map(
        |(account_proof, address, balance, code_hash, nonce, storage_proof)| GetProofOutput {
            account_proof,
            address,
            balance,
            code_hash,
            nonce,
            storage_hash: code_hash,
            storage_proof,
        },
    )
}

pub(crate) fn fee_history() -> impl Strategy<Value = FeeHistoryOutput> {
    // Ratios of a power of two, which have exact decimal forms.
    let ratio = (0..=1024_u32).prop_map(|gas| f64::from(gas) / 1024.0);
    (vec(large(), 1..4), vec(ratio, 0..3), small(), vec(vec(large(), 0..3), 0..3)).prop_map(
        |(base_fee_per_gas, gas_used_ratio, oldest_block, reward)| FeeHistoryOutput {
            base_fee_per_gas,
            gas_used_ratio,
            oldest_block,
            reward,
        },
    )
}
