//! Verification of responses against a header. The tries and proofs are those of alloy-trie.

#![allow(clippy::unwrap_used)]

use crate::consensus::{Account, EMPTY_ROOT, Header};
use crate::proof::InvalidProof;
use crate::wire::{Block, BlockHeader, BytesData, GetProofInput, GetProofOutput, InvalidBlock, StorageEntry};
use crate::{Address, Bytes, H256, U256, keccak256, verify_proof};
use alloy_primitives::B256;
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Returns the root of the trie of `entries`, whose keys are hashes, and the proof of `key`.
fn prove(entries: &BTreeMap<H256, Vec<u8>>, key: H256) -> (H256, Vec<BytesData>) {
    if entries.is_empty() {
        return (EMPTY_ROOT, Vec::new());
    }
    let target = Nibbles::unpack(B256::new(key.0));
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::from_iter([target]));
    for (key, value) in entries {
        builder.add_leaf(Nibbles::unpack(B256::new(key.0)), value);
    }
    let root = H256(builder.root().0);
    let nodes = builder.take_proof_nodes().matching_nodes_sorted(&target).into_iter().map(|(_, node)| node.to_vec());
    // alloy-trie also lists nodes that are contained in their parents.
    let separate = nodes.enumerate().filter(|(depth, node)| *depth == 0 || node.len() >= 32);
    (root, separate.map(|(_, node)| Bytes::from(node).into()).collect())
}

/// A request with its response, and the header of the block.
#[derive(Clone, Debug)]
struct Exchange {
    header: Header,
    request: GetProofInput,
    response: GetProofOutput,
}

/// Returns the exchange about `address` and `slots` in a state where it has `storage`, beside other accounts. `None`
/// for an account that does not exist.
fn exchange(others: u64, account: Option<(u64, BTreeMap<u64, u64>)>, slots: &[u64]) -> Exchange {
    let address = Address::repeat_byte(0xaa);
    let storage = account.as_ref().map(|(_, storage)| storage.clone()).unwrap_or_default();
    let slot_hash = |slot: u64| H256::from_low_u64_be(slot);
    let values = storage.iter().filter(|(_, value)| **value != 0);
    let leaves = values.map(|(slot, value)| (keccak256(slot_hash(*slot)), rlp::encode(value).to_vec())).collect();
    let (storage_root, _) = prove(&leaves, H256::zero());
    let account = account.map(|(nonce, _)| Account { nonce, balance: 7.into(), storage_root, ..Account::default() });

    let other =
        |index: u64| (keccak256(Address::from_low_u64_be(index)), Account { nonce: index, ..Account::default() });
    let mut accounts: BTreeMap<H256, Vec<u8>> = (0..others).map(other).map(|(key, it)| (key, it.encode())).collect();
    accounts.extend(account.map(|account| (keccak256(address), account.encode())));
    let (state_root, account_proof) = prove(&accounts, keccak256(address));
    let entry = |slot: &u64| StorageEntry {
        key: slot_hash(*slot).into(),
        proof: prove(&leaves, keccak256(slot_hash(*slot))).1,
        value: U256::from(storage.get(slot).copied().unwrap_or_default()).into(),
    };
    let claimed = account.unwrap_or_default();
    Exchange {
        header: Header { state_root, ..Header::default() },
        request: GetProofInput {
            address: address.into(),
            storage_keys: slots.iter().map(|slot| (*slot).into()).collect(),
            ..GetProofInput::default()
        },
        response: GetProofOutput {
            account_proof,
            address: address.into(),
            balance: claimed.balance.into(),
            code_hash: claimed.code_hash.into(),
            nonce: claimed.nonce.into(),
            storage_hash: claimed.storage_root.into(),
            storage_proof: slots.iter().map(entry).collect(),
        },
    }
}

impl Exchange {
    /// Verifies the response as a client reads it from the wire.
    fn verify(&self) -> Result<Option<Account>, InvalidProof> {
        let json = serde_json::to_string(&self.response).unwrap();
        verify_proof(&self.header, &self.request, &serde_json::from_str(&json).unwrap())
    }
}

proptest! {
    #[test]
    fn accepts_what_the_state_holds(
        others in 0..40_u64,
        account in proptest::option::of((0..9_u64, proptest::collection::btree_map(0..20_u64, 0..u64::MAX, 0..12))),
        slots in proptest::collection::vec(0..20_u64, 0..4),
    ) {
        let nonce = account.as_ref().map(|(nonce, _)| *nonce);
        let exchange = exchange(others, account, &slots);
        prop_assert_eq!(exchange.verify().unwrap().map(|account| account.nonce), nonce);
    }
}

#[test]
fn rejects_every_change_of_a_response() {
    let good = exchange(9, Some((3, BTreeMap::from([(1, 10), (2, 20), (5, 50)]))), &[1, 2, 7]);
    assert_eq!(good.verify().unwrap().unwrap().nonce, 3);
    type Change = fn(&mut GetProofOutput);
    let changes: [(&str, Change); 13] = [
        ("another address", |response| response.address = Address::zero().into()),
        ("another balance", |response| response.balance = U256::from(8).into()),
        ("another nonce", |response| response.nonce = 4.into()),
        ("another code", |response| response.code_hash = H256::zero().into()),
        ("another storage root", |response| response.storage_hash = EMPTY_ROOT.into()),
        ("another value", |response| response.storage_proof[0].value = U256::from(11).into()),
        ("a value where there is none", |response| response.storage_proof[2].value = U256::one().into()),
        ("another slot", |response| response.storage_proof[0].key = H256::zero().into()),
        ("slots in another order", |response| response.storage_proof.swap(0, 1)),
        ("a slot too few", |response| drop(response.storage_proof.pop())),
        ("a slot too many", |response| response.storage_proof.push(StorageEntry::default())),
        ("a node too few", |response| drop(response.account_proof.pop())),
        ("a node too many", |response| response.account_proof.push(BytesData::default())),
    ];
    for (case, change) in changes {
        let mut bad = good.clone();
        change(&mut bad.response);
        assert!(bad.verify().is_err(), "{case}");
    }
    for node in 0..good.response.account_proof.len() {
        let mut bad = good.clone();
        let mut bytes = bad.response.account_proof[node].to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        bad.response.account_proof[node] = Bytes::from(bytes).into();
        assert!(matches!(bad.verify(), Err(InvalidProof::Account(_))), "node {node}");
    }
    let other_state = Exchange { header: Header::default(), ..good };
    assert!(matches!(other_state.verify(), Err(InvalidProof::Account(_))));
}

#[test]
fn an_account_cannot_be_denied() {
    let exists = exchange(9, Some((3, BTreeMap::new())), &[]);
    let denied = exchange(9, None, &[]);
    assert_eq!(denied.verify(), Ok(None));
    let lie = Exchange { header: exists.header, ..denied };
    assert!(lie.verify().is_err());
}

fn block(header: &Header) -> Block {
    Block {
        base_fee_per_gas: header.base_fee_per_gas.map(Into::into),
        difficulty: header.difficulty.into(),
        extra_data: header.extra_data.clone().into(),
        gas_limit: header.gas_limit.into(),
        gas_used: header.gas_used.into(),
        hash: Some(header.hash().into()),
        logs_bloom: Some(header.logs_bloom.into()),
        miner: header.beneficiary.into(),
        mix_hash: U256::from_big_endian(header.mix_hash.as_bytes()).into(),
        nonce: Some(header.nonce.into()),
        number: Some(header.number.into()),
        parent_hash: header.parent_hash.into(),
        receipts_root: header.receipts_root.into(),
        sha3_uncles: header.ommers_hash.into(),
        state_root: header.state_root.into(),
        timestamp: header.timestamp.into(),
        transactions_root: header.transactions_root.into(),
        withdrawals_root: header.withdrawals_root.map(Into::into),
        ..Block::default()
    }
}

#[test]
fn a_block_of_a_response_has_the_header_of_its_hash() {
    let frontier = Header {
        parent_hash: H256::repeat_byte(1),
        number: 7,
        difficulty: 9.into(),
        mix_hash: H256::repeat_byte(2),
        nonce: [3; 8],
        extra_data: Bytes::from([4; 32]),
        ..Header::default()
    };
    let london = Header { base_fee_per_gas: Some(7), ..frontier.clone() };
    let shanghai = Header { withdrawals_root: Some(EMPTY_ROOT), ..london.clone() };
    for header in [frontier, london, shanghai.clone()] {
        assert_eq!(block(&header).header(), Ok(header.clone()));
        let forged = Block { gas_used: 1.into(), ..block(&header) };
        assert!(matches!(forged.header(), Err(InvalidBlock::OtherHash { .. })));
    }
    // The response does not have all fields of such a header.
    let cancun = Header { blob_gas_used: Some(0), ..shanghai.clone() };
    let error = block(&cancun).header().unwrap_err();
    assert_eq!(error, InvalidBlock::OtherHash { computed: shanghai.hash(), claimed: cancun.hash() });
    assert_eq!(Header::decode(&cancun.encode()).unwrap().hash(), cancun.hash());

    let pending = Block { hash: None, ..block(&shanghai) };
    assert_eq!(pending.header(), Err(InvalidBlock::Pending));
    let impossible = Block { base_fee_per_gas: None, ..block(&shanghai) };
    assert_eq!(impossible.header(), Err(InvalidBlock::MissingField));
}

#[test]
fn a_header_of_a_response_is_that_of_its_hash() {
    let shanghai =
        Header { number: 7, base_fee_per_gas: Some(7), withdrawals_root: Some(EMPTY_ROOT), ..Header::default() };
    let cancun = Header {
        blob_gas_used: Some(1),
        excess_blob_gas: Some(2),
        parent_beacon_block_root: Some(H256::repeat_byte(3)),
        ..shanghai.clone()
    };
    let prague = Header { requests_hash: Some(H256::repeat_byte(4)), ..cancun.clone() };
    let response = |header: &Header| BlockHeader {
        base_fee_per_gas: header.base_fee_per_gas.map(Into::into),
        blob_gas_used: header.blob_gas_used.map(Into::into),
        excess_blob_gas: header.excess_blob_gas.map(Into::into),
        hash: Some(header.hash().into()),
        number: header.number.into(),
        parent_beacon_block_root: header.parent_beacon_block_root.map(Into::into),
        receipts_root: header.receipts_root.into(),
        requests_hash: header.requests_hash.map(Into::into),
        sha3_uncles: header.ommers_hash.into(),
        state_root: header.state_root.into(),
        transactions_root: header.transactions_root.into(),
        withdrawals_root: header.withdrawals_root.map(Into::into),
        ..BlockHeader::default()
    };
    for header in [shanghai, cancun, prague.clone()] {
        assert_eq!(response(&header).header(), Ok(header.clone()));
        let forged = BlockHeader { timestamp: 1.into(), ..response(&header) };
        assert!(matches!(forged.header(), Err(InvalidBlock::OtherHash { .. })));
    }
    let pending = BlockHeader { hash: None, ..response(&prague) };
    assert_eq!(pending.header(), Err(InvalidBlock::Pending));
    let impossible = BlockHeader { excess_blob_gas: None, ..response(&prague) };
    assert_eq!(impossible.header(), Err(InvalidBlock::MissingField));
}
