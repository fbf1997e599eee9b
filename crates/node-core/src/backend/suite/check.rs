//! Comparison of a view with the model.

use super::{ModelState, Random, Succeeds, TestChain};
use crate::backend::{View, has_storage_after};
use crate::block::{BlockHashOrNumber, BlockLog, BlockLogs, TransactionPosition};
use crate::state::StateChanges;
use node_types::U256;

/// Panics unless `view` shows exactly the canonical chain `chain` with all its states.
pub fn check_view(view: &dyn View, chain: &TestChain) {
    assert_eq!(view.head(), chain.head().header.block_ref(), "head");
    check_blocks(view, chain);
    for block in chain.blocks() {
        check_state(view, chain, block.header.header.number);
    }
}

fn check_blocks(view: &dyn View, chain: &TestChain) {
    for block in chain.blocks() {
        let reference = block.header.block_ref();
        for id in [BlockHashOrNumber::Number(reference.number), BlockHashOrNumber::Hash(reference.hash)] {
            assert_eq!(view.header(id).succeeds().as_deref(), Some(&*block.header), "header {id:?}");
            assert_eq!(view.body(id).succeeds().as_deref(), Some(&*block.body), "body {id:?}");
            assert_eq!(view.receipts(id).succeeds().as_deref(), Some(&*block.receipts), "receipts {id:?}");
        }
        assert_eq!(view.canonical_hash(reference.number).succeeds(), Some(reference.hash), "hash of {reference}");
        let mut logs = Vec::new();
        for (index, receipt) in block.receipts.iter().enumerate() {
            let transaction_hash = block.body.transactions[index].hash;
            let of_receipt = receipt.logs.iter().cloned();
            logs.extend(of_receipt.map(|log| BlockLog { transaction_index: index, transaction_hash, log }));
        }
        let expected = BlockLogs { hash: reference.hash, timestamp: block.header.header.timestamp, logs };
        assert_eq!(view.logs(reference.number).succeeds().as_deref(), Some(&expected), "logs of {reference}");
        assert!(view.side_block(reference.hash).succeeds().is_none(), "{reference} is canonical");
        for (index, transaction) in block.body.transactions.iter().enumerate() {
            let position = TransactionPosition { block: reference.number, index };
            assert_eq!(view.transaction_position(transaction.hash).succeeds(), Some(position));
        }
        let state = view.state(reference.number).succeeds();
        for (hash, code) in &block.changes.code {
            assert_eq!(state.code(*hash).succeeds().as_ref(), Some(code), "code {hash:#x}");
        }
    }
    let beyond = chain.head().header.header.number + 1;
    assert_eq!((view.canonical_hash(beyond).succeeds(), view.logs(beyond).succeeds()), (None, None));
}

fn check_state(view: &dyn View, chain: &TestChain, at: u64) {
    let (state, actual) = (chain.state(at), view.state(at).succeeds());
    for address in Random::addresses() {
        let model = state.get(&address);
        assert_eq!(actual.account(address).succeeds(), model.map(|model| model.account), "{address:#x} as of {at}");
        for slot in Random::slots() {
            let expected = model.and_then(|model| model.storage.get(&slot)).copied().unwrap_or_default();
            let got: U256 = actual.storage(address, slot).succeeds();
            assert_eq!(got, expected, "slot {slot:#x} of {address:#x} as of {at}");
        }
        let has_storage = |state: &ModelState| state.get(&address).is_some_and(|model| !model.storage.is_empty());
        let got = actual.has_storage(address).succeeds();
        assert_eq!(got, has_storage(state), "storage of {address:#x} as of {at}");
        let next = chain.blocks().get(at as usize + 1);
        if let Some(change) = next.and_then(|next| next.changes.accounts.get(&address)) {
            let got = has_storage_after(&*actual, address, change).succeeds();
            assert_eq!(got, has_storage(chain.state(at + 1)), "storage of {address:#x} as of {at} with {change:?}");
        }
    }
    let root = chain.blocks()[at as usize].header.header.state_root;
    assert_eq!(actual.root_after(&StateChanges::default()).succeeds(), root, "state root as of {at}");
    if let Some(next) = chain.blocks().get(at as usize + 1) {
        let root = actual.root_after(&next.changes).succeeds();
        assert_eq!(root, next.header.header.state_root, "state root of block {} over {at}", at + 1);
    }
}
