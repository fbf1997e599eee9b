//! Comparison of a view with the model.

use super::sentence::{Succeeds, equals, returns};
use super::{ModelState, Random, TestChain};
use crate::backend::{BackendError, View, has_storage_after};
use crate::block::{BlockHashOrNumber, BlockLog, BlockLogs, TransactionPosition};
use crate::state::StateChanges;

/// Panics unless `view` shows exactly the canonical chain `chain` with all its states.
pub fn check_view(view: &dyn View, chain: &TestChain) {
    equals("the head", view.head(), chain.head().header.block_ref());
    check_blocks(view, chain);
    for block in chain.blocks() {
        check_state(view, chain, block.header.header.number);
    }
}

fn check_blocks(view: &dyn View, chain: &TestChain) {
    for block in chain.blocks() {
        let reference = block.header.block_ref();
        for id in [BlockHashOrNumber::Number(reference.number), BlockHashOrNumber::Hash(reference.hash)] {
            let (number, by) = (reference.number, spelled(id));
            returns(format_args!("the header of block {number} by {by}"), view.header(id), Some(block.header.clone()));
            returns(format_args!("the body of block {number} by {by}"), view.body(id), Some(block.body.clone()));
            let receipts = Some(block.receipts.clone());
            returns(format_args!("the receipts of block {number} by {by}"), view.receipts(id), receipts);
        }
        let hash = view.canonical_hash(reference.number);
        returns(format_args!("the hash of block {}", reference.number), hash, Some(reference.hash));
        let mut expected = Vec::new();
        for (index, receipt) in block.receipts.iter().enumerate() {
            let transaction = block.body.transactions[index].hash;
            expected.extend(receipt.logs.iter().map(|log| (index, transaction, log.clone())));
        }
        let logs = view.logs(&[reference.number]).map(|blocks| {
            let of_log = |log: BlockLog<'_>| (log.transaction_index, log.transaction_hash, log.log.to_log());
            let of_block = |logs: &BlockLogs| (logs.hash, logs.timestamp, logs.iter().map(of_log).collect());
            blocks.iter().map(of_block).collect()
        });
        let expected = vec![(reference.hash, block.header.header.timestamp, expected)];
        returns(format_args!("the logs of block {}", reference.number), logs, expected);
        let is_side_block = view.side_block(reference.hash).map(|block| block.is_some());
        returns(format_args!("whether the canonical block {reference} is a side block"), is_side_block, false);
        for (index, transaction) in block.body.transactions.iter().enumerate() {
            let position = TransactionPosition { block: reference.number, index };
            let what = format_args!("the position of transaction {:#x}", transaction.hash);
            returns(what, view.transaction_position(transaction.hash), Some(position));
        }
        let state = view.state(reference.number).succeeds();
        for (hash, code) in &block.changes.code {
            returns(format_args!("the code with the hash {hash:#x}"), state.code(*hash), Some(code.clone()));
        }
    }
    let beyond = chain.head().header.header.number + 1;
    returns(format_args!("the hash of block {beyond}, above the head"), view.canonical_hash(beyond), None);
    let logs = view.logs(&[beyond - 1, beyond]);
    assert!(matches!(logs, Err(BackendError::UnknownBlock(number)) if number == beyond), "{logs:?} above the head");
}

/// Describes the id of a block for a failure message.
fn spelled(id: BlockHashOrNumber) -> String {
    match id {
        BlockHashOrNumber::Number(_) => "number".to_owned(),
        BlockHashOrNumber::Hash(hash) => format!("the hash {hash:#x}"),
    }
}

fn check_state(view: &dyn View, chain: &TestChain, at: u64) {
    let (state, actual) = (chain.state(at), view.state(at).succeeds());
    for address in Random::addresses() {
        let model = state.get(&address);
        let of = format_args!("{address:#x} as of block {at}");
        returns(format_args!("the account {of}"), actual.account(address), model.map(|model| model.account));
        for slot in Random::slots() {
            let expected = model.and_then(|model| model.storage.get(&slot)).copied().unwrap_or_default();
            returns(format_args!("slot {slot:#x} of {of}"), actual.storage(address, slot), expected);
        }
        let has_storage = |state: &ModelState| state.get(&address).is_some_and(|model| !model.storage.is_empty());
        returns(format_args!("whether {of} has storage"), actual.has_storage(address), has_storage(state));
        let next = chain.blocks().get(at as usize + 1);
        if let Some(change) = next.and_then(|next| next.changes.accounts.get(&address)) {
            let got = has_storage_after(&*actual, address, change);
            let what = format_args!("whether {of} has storage after the changes of the next block");
            returns(what, got, has_storage(chain.state(at + 1)));
        }
    }
    let root = chain.blocks()[at as usize].header.header.state_root;
    returns(format_args!("the state root as of block {at}"), actual.root_after(&StateChanges::default()), root);
    if let Some(next) = chain.blocks().get(at as usize + 1) {
        let root = next.header.header.state_root;
        let what = format_args!("the state root as of block {at} after the changes of the next block");
        returns(what, actual.root_after(&next.changes), root);
    }
}
