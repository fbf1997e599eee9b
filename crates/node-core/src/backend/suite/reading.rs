//! States and proofs.

use super::{Content, Open, Random, Succeeds, TestChain, check_view};
use crate::backend::{AccountProof, BackendError, StateBackend, View};
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
        assert_eq!(view.earliest_state(), 0);
    }
    let chain = TestChain::new(Content::default());
    let view = filled(open, &chain).view().succeeds();
    assert_eq!(view.state(0).succeeds().root_after(&StateChanges::default()).succeeds(), EMPTY_ROOT);
    let proof = view.state(0).succeeds().proof(Address::zero(), &[]).succeeds();
    assert_eq!(proof, AccountProof { account: None, proof: Vec::new(), storage: Vec::new() });
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
        let got = [old, new].map(|slot| view.state(at).succeeds().storage(address, slot).succeeds());
        assert_eq!(got, expected.map(U256::from), "as of {at}");
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
    assert_eq!(proof.account, account, "{address:#x} as of {at}");

    let root = chain.blocks()[at as usize].header.header.state_root;
    let leaf = account.map(|account| rlp::encode(&account).to_vec().into());
    let key = keccak256(address);
    assert_eq!(verify_proof(root, key.as_bytes(), &proof.proof), Ok(leaf), "{address:#x} as of {at}");

    let storage_root = account.map_or(EMPTY_ROOT, |account| account.storage_root);
    assert_eq!(proof.storage.iter().map(|storage| storage.slot).collect::<Vec<_>>(), slots);
    for storage in &proof.storage {
        let value = model.and_then(|model| model.storage.get(&storage.slot)).copied();
        assert_eq!(storage.value, value.unwrap_or_default(), "slot {:#x} of {address:#x} as of {at}", storage.slot);
        let leaf = value.map(|value| rlp::encode(&value).to_vec().into());
        let key = keccak256(storage.slot);
        assert_eq!(verify_proof(storage_root, key.as_bytes(), &storage.proof), Ok(leaf));
        assert_eq!(storage.proof.is_empty(), storage_root == EMPTY_ROOT);
    }
}

pub(super) fn blocks_above_the_head_are_unknown(open: Open<'_>) {
    let chain = Random(12).chain(3);
    let view = filled(open, &chain).view().succeeds();
    let from = LogPosition { block: 0, log_index: 0 };
    for at in [4, 5, u64::MAX] {
        let results = [
            view.state(at).err(),
            view.log_candidates(&Context::unbounded(), &Default::default(), from, at, 1).err(),
            view.fee_rows(2..=at).err(),
        ];
        for (index, result) in results.iter().enumerate() {
            let unknown = matches!(result, Some(BackendError::UnknownBlock(number)) if *number == at);
            assert!(unknown, "read {index} of block {at}: {result:?}");
        }
        assert!(view.header(at.into()).succeeds().is_none());
        assert!(view.body(at.into()).succeeds().is_none());
        assert!(view.receipts(at.into()).succeeds().is_none());
        assert!(view.canonical_hash(at).succeeds().is_none());
    }
    let unknown = H256::repeat_byte(0xee);
    assert!(view.header(unknown.into()).succeeds().is_none());
    assert!(view.transaction_position(unknown).succeeds().is_none());
    assert!(view.state(3).succeeds().code(unknown).succeeds().is_none());
    assert!(view.side_block(unknown).succeeds().is_none());
}
