//! States and proofs.

use super::sentence::{Succeeds, equals, fails, returns};
use super::{Content, Open, Random, TestChain, check_view};
use crate::backend::{AccountProof, BackendError, LogSearch, StateBackend, View};
use crate::block::LogPosition;
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use crate::trie::verify_proof;
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, H256, U256, keccak256};

/// Returns a backend that stores `chain`.
pub(super) fn filled(open: Open<'_>, chain: &TestChain) -> Box<dyn StateBackend> {
    let backend = open(chain.blocks()[0].clone());
    for block in chain.above(0) {
        backend.append(block).succeeds();
    }
    backend
}

/// Returns a block that changes one account.
pub(super) fn one_change(address: Address, change: AccountChange) -> Content {
    Content {
        changes: StateChanges { accounts: [(address, change)].into(), ..Default::default() },
        ..Content::default()
    }
}

pub(super) fn genesis(open: Open<'_>) {
    for seed in 0..5 {
        let chain = Random(seed).chain(0);
        let view = filled(open, &chain).view().succeeds();
        check_view(&*view, &chain);
        equals("the earliest state of a new chain", view.earliest_state(), 0);
    }
    let chain = TestChain::new(Content::default());
    let view = filled(open, &chain).view().succeeds();
    let state = view.state(0).succeeds();
    returns("the state root of an empty state", state.root_after(&StateChanges::default()), EMPTY_ROOT);
    let none = AccountProof { account: None, proof: Vec::new(), storage: Vec::new() };
    returns("the proof of an account in an empty state", state.proof(Address::zero(), &[]), none);
}

pub(super) fn every_state_at_every_height(open: Open<'_>) {
    for seed in 0..10 {
        let chain = Random(seed).chain(40);
        let view = filled(open, &chain).view().succeeds();
        check_view(&*view, &chain);
    }
}

pub(super) fn recreated_accounts_have_new_storage(open: Open<'_>) {
    let address = Address::repeat_byte(1);
    let [old, new] = [1, 2].map(H256::from_low_u64_be);
    let stored = |slot, value: u64| AccountChange {
        account: Some(AccountState { nonce: value, ..AccountState::default() }),
        storage: [(slot, U256::from(value))].into(),
        storage_cleared: false,
    };
    let blocks = [
        stored(old, 1),
        AccountChange::default(),
        stored(new, 3),
        AccountChange { storage_cleared: true, ..stored(new, 4) },
        AccountChange { storage_cleared: true, ..stored(old, 5) },
        stored(old, 0),
    ];
    let mut chain = TestChain::new(Content::default());
    blocks.into_iter().for_each(|change| drop(chain.push(one_change(address, change))));
    let view = filled(open, &chain).view().succeeds();
    for (at, expected) in [(0, [0, 0]), (1, [1, 0]), (2, [0, 0]), (3, [0, 3]), (4, [0, 4]), (5, [5, 0]), (6, [0, 0])] {
        let state = view.state(at).succeeds();
        for (slot, expected) in [old, new].into_iter().zip(expected) {
            let what = format_args!("slot {slot:#x} of an account that is deleted and created again, as of block {at}");
            returns(what, state.storage(address, slot), U256::from(expected));
        }
        check_proof(&*view, &chain, at, address, &[old, new]);
    }
}

pub(super) fn proofs_verify_at_every_height(open: Open<'_>) {
    let chain = Random(11).chain(30);
    let view = filled(open, &chain).view().succeeds();
    for at in 0..=30 {
        for address in Random::addresses() {
            check_proof(&*view, &chain, at, address, &Random::slots());
        }
    }
}

/// Checks the proof of an account and of slots against the state root in the header, and its values against the model.
fn check_proof(view: &dyn View, chain: &TestChain, at: u64, address: Address, slots: &[H256]) {
    let model = chain.state(at).get(&address);
    let account = model.map(|model| model.with_storage_root());
    let proof = view.state(at).succeeds().proof(address, slots).succeeds();
    let of = format_args!("{address:#x} as of block {at}");
    equals(format_args!("the account in the proof of {of}"), proof.account, account);

    let root = chain.blocks()[at as usize].header.header.state_root;
    let leaf = account.map(|account| rlp::encode(&account).to_vec().into());
    let key = keccak256(address);
    equals(format_args!("what the proof of {of} proves"), verify_proof(root, key.as_bytes(), &proof.proof), Ok(leaf));

    let storage_root = account.map_or(EMPTY_ROOT, |account| account.storage_root);
    let proven: Vec<_> = proof.storage.iter().map(|storage| storage.slot).collect();
    equals(format_args!("the slots in the proof of {of}"), &proven[..], slots);
    for storage in &proof.storage {
        let value = model.and_then(|model| model.storage.get(&storage.slot)).copied();
        let slot = format_args!("slot {:#x} of {of}", storage.slot);
        equals(format_args!("the value in the proof of {slot}"), storage.value, value.unwrap_or_default());
        let leaf = value.map(|value| rlp::encode(&value).to_vec().into());
        let key = keccak256(storage.slot);
        let verified = verify_proof(storage_root, key.as_bytes(), &storage.proof);
        equals(format_args!("what the proof of {slot} proves"), verified, Ok(leaf));
        let is_empty = storage.proof.is_empty();
        equals(format_args!("whether the proof of {slot} is empty"), is_empty, storage_root == EMPTY_ROOT);
    }
}

pub(super) fn blocks_above_the_head_are_unknown(open: Open<'_>) {
    let chain = Random(12).chain(3);
    let view = filled(open, &chain).view().succeeds();
    let from = LogPosition { block: 0, log_index: 0 };
    for at in [4, 5, u64::MAX] {
        let error = format!("UnknownBlock({at})");
        let is_right = |error: &BackendError| matches!(error, BackendError::UnknownBlock(number) if *number == at);
        fails(format_args!("the state as of block {at}"), view.state(at), &error, is_right);
        let candidates = view
            .log_candidates(&Context::unbounded(), LogSearch { filter: &Default::default(), from, to: at, limit: 1 });
        fails(format_args!("the log candidates up to block {at}"), candidates, &error, is_right);
        fails(format_args!("the fee rows of blocks 2 to {at}"), view.fee_rows(2..=at), &error, is_right);
        returns(format_args!("the header of block {at}"), view.header(at.into()), None);
        returns(format_args!("the body of block {at}"), view.body(at.into()), None);
        returns(format_args!("the receipts of block {at}"), view.receipts(at.into()), None);
        returns(format_args!("the hash of block {at}"), view.canonical_hash(at), None);
    }
    let unknown = H256::repeat_byte(0xee);
    returns("the header with an unknown hash", view.header(unknown.into()), None);
    returns("the position of an unknown transaction", view.transaction_position(unknown), None);
    returns("the code with an unknown hash", view.state(3).succeeds().code(unknown), None);
    returns(
        "whether an unknown hash is that of a side block",
        view.side_block(unknown).map(|block| block.is_some()),
        false,
    );
}
