//! Changes of the chain, side blocks and records.

use super::reading::{filled, one_change};
use super::sentence::{Exists, Succeeds, equals, fails, returns};
use super::{Content, Open, Random, TestChain, check_view};
use crate::backend::{BackendError, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend};
use crate::block::{BlockRef, ExecutedBlock, SealedHeader};
use crate::state::{AccountChange, AccountState};
use node_types::consensus::Header;
use node_types::{Address, H256, U256};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Returns `block` with its header changed by `edit`.
fn with_header(block: &ExecutedBlock, edit: impl FnOnce(&mut Header)) -> ExecutedBlock {
    let mut header = block.header.header.clone();
    edit(&mut header);
    let sealed = SealedHeader { hash: header.hash(), header, ..(*block.header).clone() };
    ExecutedBlock { header: Arc::new(sealed), ..block.clone() }
}

fn references(blocks: &[ExecutedBlock]) -> Vec<BlockRef> {
    blocks.iter().map(|block| block.header.block_ref()).collect()
}

/// Returns a chain and another that branches off from it after block `fork`.
fn fork(seed: u64, length: u64, fork: u64, branch: u64) -> (TestChain, TestChain) {
    let mut random = Random(seed);
    let main = random.chain(length);
    let mut side = main.up_to(fork);
    random.extend(&mut side, branch);
    (main, side)
}

pub(super) fn a_wrong_state_root_changes_nothing(open: Open<'_>) {
    let chain = Random(20).chain(6);
    let kept = chain.up_to(5);
    let backend = filled(open, &kept);
    let wrong = H256::repeat_byte(7);
    let expected = chain.head().header.header.state_root;
    let appended = backend.append(with_header(chain.head(), |header| header.state_root = wrong));
    let error = format!("StateRootMismatch for block 6 with the roots {wrong:#x} and {expected:#x}");
    fails(
        "appending block 6 with a wrong state root",
        appended,
        &error,
        |error| matches!(error, BackendError::StateRootMismatch { block: 6, header, computed } if (*header, *computed) == (wrong, expected)),
    );
    check_view(&*backend.view().succeeds(), &kept);
    backend.append(chain.head().clone()).succeeds();
    check_view(&*backend.view().succeeds(), &chain);
}

pub(super) fn rejects_blocks_with_another_parent(open: Open<'_>) {
    let chain = Random(21).chain(6);
    let kept = chain.up_to(4);
    let backend = filled(open, &kept);
    let strangers = [
        chain.blocks()[6].clone(),
        chain.blocks()[4].clone(),
        with_header(&chain.blocks()[5], |header| header.parent_hash = H256::repeat_byte(3)),
        with_header(&chain.blocks()[5], |header| header.number = 6),
        with_header(&chain.blocks()[5], |header| header.number = u64::MAX),
    ];
    for stranger in strangers {
        let (reference, head) = (stranger.header.block_ref(), kept.head().header.block_ref());
        let error = format!("NotAChild for that block and its supposed parent {head}");
        fails(
            format_args!("appending block {reference} to another"),
            backend.append(stranger),
            &error,
            |error| matches!(error, BackendError::NotAChild { block, parent } if (*block, *parent) == (reference, head)),
        );
        check_view(&*backend.view().succeeds(), &kept);
    }
}

pub(super) fn switching(open: Open<'_>) {
    for seed in 30..40 {
        let (main, side) = fork(seed, 20, 12, 10);
        let backend = filled(open, &main);
        let removed = references(&main.above(12)).into_iter().rev().collect();
        let change = HeadChange { removed, added: references(&side.above(12)) };
        returns("the change by a switch to another branch", backend.switch(12, side.above(12)), change);
        let view = backend.view().succeeds();
        check_view(&*view, &side);
        for block in main.above(12) {
            for transaction in &block.body.transactions {
                let what = format_args!("the position of transaction {:#x} of a removed block", transaction.hash);
                returns(what, view.transaction_position(transaction.hash), None);
            }
            let kept = view.side_block(block.header.hash).succeeds().exists("a removed block as a side block");
            equals("the header of a removed block", kept.header, block.header);
            equals("the changes of a removed block", kept.changes, block.changes);
        }
        backend.switch(12, main.above(12)).succeeds();
        check_view(&*backend.view().succeeds(), &main);
    }
}

pub(super) fn switching_to_an_empty_branch(open: Open<'_>) {
    let chain = Random(41).chain(10);
    let backend = filled(open, &chain);
    let nothing = HeadChange { removed: Vec::new(), added: Vec::new() };
    returns("the change by a switch to the head itself", backend.switch(10, Vec::new()), nothing);
    check_view(&*backend.view().succeeds(), &chain);
    for ancestor in [6, 0] {
        backend.switch(ancestor, Vec::new()).succeeds();
        check_view(&*backend.view().succeeds(), &chain.up_to(ancestor));
    }
    backend.switch(0, chain.above(0)).succeeds();
    check_view(&*backend.view().succeeds(), &chain);
}

pub(super) fn switching_restores_deleted_accounts(open: Open<'_>) {
    let address = Address::repeat_byte(1);
    let account = Some(AccountState { nonce: 1, ..AccountState::default() });
    let storage = [(H256::zero(), U256::one())].into();
    let mut chain = TestChain::new(one_change(address, AccountChange { account, storage, storage_cleared: false }));
    let cleared = AccountChange { account, storage_cleared: true, ..AccountChange::default() };
    for change in [AccountChange::default(), cleared.clone(), cleared] {
        let mut longer = chain.clone();
        longer.push(one_change(address, change));
        let backend = filled(open, &longer);
        backend.switch(chain.head().header.header.number, Vec::new()).succeeds();
        check_view(&*backend.view().succeeds(), &chain);
        let storage = [(H256::from_low_u64_be(2), U256::one())].into();
        chain.push(one_change(address, AccountChange { account, storage, storage_cleared: false }));
    }
}

pub(super) fn a_switch_that_fails_changes_nothing(open: Open<'_>) {
    let (main, side) = fork(50, 10, 4, 8);
    let backend = filled(open, &main);
    let branch = side.above(4);
    let mut wrong_root = branch.clone();
    wrong_root[7] = with_header(&branch[7], |header| header.state_root = H256::repeat_byte(7));
    let mut gap = branch.clone();
    gap.remove(3);
    for (name, ancestor, branch) in [
        ("a wrong state root", 4, wrong_root),
        ("a gap", 4, gap),
        ("another ancestor", 3, branch.clone()),
        ("an ancestor above the head", 11, branch),
    ] {
        fails(format_args!("a switch with {name}"), backend.switch(ancestor, branch), "of the contract", |_| true);
        let view = backend.view().succeeds();
        check_view(&*view, &main);
        let stored = view.side_block(side.blocks()[5].header.hash).map(|block| block.is_some());
        returns(format_args!("whether a switch that failed because of {name} stored a block"), stored, false);
    }
}

pub(super) fn side_blocks(open: Open<'_>) {
    let (main, side) = fork(60, 10, 6, 2);
    let backend = filled(open, &main);
    for block in side.above(6) {
        backend.keep_side_block(block).succeeds();
    }
    backend.keep_side_block(main.blocks()[5].clone()).succeeds();
    let view = backend.view().succeeds();
    check_view(&*view, &main);
    for block in side.above(6) {
        let kept = view.side_block(block.header.hash).succeeds().exists("a side block");
        equals("the header of a side block", &kept.header, &block.header);
        equals("the body of a side block", &kept.body, &block.body);
        equals("the receipts of a side block", &kept.receipts, &block.receipts);
        equals("the changes of a side block", &kept.changes, &block.changes);
        let id = block.header.hash.into();
        returns("the header of a side block by its hash", view.header(id), Some(block.header));
        returns("the body of a side block by its hash", view.body(id), Some(block.body));
        returns("the receipts of a side block by its hash", view.receipts(id), Some(block.receipts));
    }
    backend.switch(6, side.above(6)).succeeds();
    check_view(&*backend.view().succeeds(), &side);
}

pub(super) fn old_side_blocks_are_kept(open: Open<'_>) {
    let mut main = TestChain::new(Content::default());
    let side = main.clone().push(Content { salt: 1, ..Content::default() });
    let backend = open(main.blocks()[0].clone());
    for _ in 0..1_500 {
        backend.append(main.push(Content::default())).succeeds();
    }
    backend.keep_side_block(side.clone()).succeeds();
    backend.append(main.push(Content::default())).succeeds();
    let kept = backend.view().succeeds().side_block(side.header.hash).map(|kept| kept.map(|block| block.header));
    returns("a side block 1500 blocks below the head", kept, Some(side.header));
}

pub(super) fn views_do_not_change(open: Open<'_>) {
    let (main, side) = fork(70, 12, 5, 9);
    let backend = open(main.blocks()[0].clone());
    let mut views = vec![(backend.view().succeeds(), main.up_to(0))];
    for block in main.above(0) {
        let number = block.header.header.number;
        backend.append(block).succeeds();
        views.push((backend.view().succeeds(), main.up_to(number)));
    }
    backend.switch(5, side.above(5)).succeeds();
    views.push((backend.view().succeeds(), side));
    backend.switch(0, Vec::new()).succeeds();
    for (view, chain) in views {
        check_view(&*view, &chain);
    }
}

/// Records all changes.
#[derive(Default)]
struct Notes(Mutex<Vec<HeadChange>>);

impl HeadListener for Notes {
    fn head_changed(&self, change: &HeadChange) {
        self.0.lock().push(change.clone());
    }
}

pub(super) fn listeners_receive_changes_in_order(open: Open<'_>) {
    let (main, side) = fork(80, 3, 1, 1);
    let backend = filled(open, &main.up_to(1));
    let [first, second] = [Arc::new(Notes::default()), Arc::new(Notes::default())];
    backend.subscribe(first.clone());
    let [two, three] = [2, 3].map(|number| main.blocks()[number].clone());
    backend.append(two.clone()).succeeds();
    backend.subscribe(second.clone());
    backend.append(three.clone()).succeeds();
    fails("appending block 3 again", backend.append(three.clone()), "NotAChild", |_| true);
    let switched = backend.switch(1, side.above(1)).succeeds();
    fails("a switch to block 7, above the head", backend.switch(7, Vec::new()), "UnknownBlock(7)", |_| true);
    backend.keep_side_block(two.clone()).succeeds();
    let cut = backend.switch(0, Vec::new()).succeeds();

    let appended = |block| HeadChange { removed: Vec::new(), added: references(&[block]) };
    let all = [appended(two), appended(three), switched, cut];
    equals("the changes that a listener received", &first.0.lock()[..], &all[..]);
    equals("the changes that a later listener received", &second.0.lock()[..], &all[1..]);
}

pub(super) fn records(open: Open<'_>) {
    use RecordKind::{Filter, PoolTransaction};
    let backend = filled(open, &Random(90).chain(0));
    let record = |key: &[u8], value: &[u8]| Record { key: key.to_vec(), value: value.to_vec() };
    let put = |kind, key: &[u8], value: &[u8]| RecordWrite::Put(kind, record(key, value));
    backend
        .write_records(&[
            put(Filter, b"b", b"1"),
            put(Filter, b"", b"2"),
            put(Filter, b"aa", b"3"),
            put(PoolTransaction, b"b", b"4"),
            put(Filter, b"c", b"5"),
            RecordWrite::Delete(Filter, b"c".to_vec()),
        ])
        .succeeds();
    let filters = vec![record(b"", b"2"), record(b"aa", b"3"), record(b"b", b"1")];
    returns("the records of filters, by key", backend.records(Filter), filters);
    returns("the records of the pool", backend.records(PoolTransaction), vec![record(b"b", b"4")]);
    returns("the record of a filter", backend.record(Filter, b"aa"), Some(b"3".to_vec()));
    returns("a record that was deleted", backend.record(Filter, b"c"), None);
    backend
        .write_records(&[
            put(Filter, b"aa", b""),
            RecordWrite::Delete(Filter, b"b".to_vec()),
            RecordWrite::Delete(Filter, b"b".to_vec()),
            RecordWrite::Delete(PoolTransaction, b"none".to_vec()),
        ])
        .succeeds();
    let filters = vec![record(b"", b"2"), record(b"aa", b"")];
    returns("the records of filters after one was deleted", backend.records(Filter), filters);
    returns(
        "the records of the pool after those of filters changed",
        backend.records(PoolTransaction),
        vec![record(b"b", b"4")],
    );
}

/// Notes the value of a record on each change.
struct RecordsSeen(Weak<dyn StateBackend>, Mutex<Vec<Option<Vec<u8>>>>);

impl HeadListener for RecordsSeen {
    fn head_changed(&self, _: &HeadChange) {
        let backend = self.0.upgrade().exists("the backend");
        self.1.lock().push(backend.record(RecordKind::Filter, b"a").succeeds());
    }
}

pub(super) fn records_change_with_the_chain(open: Open<'_>) {
    let (main, side) = fork(91, 6, 3, 2);
    let backend: Arc<dyn StateBackend> = filled(open, &main.up_to(5)).into();
    let seen = Arc::new(RecordsSeen(Arc::downgrade(&backend), Mutex::default()));
    backend.subscribe(seen.clone());
    let put = |value: &[u8]| RecordWrite::Put(RecordKind::Filter, Record { key: b"a".to_vec(), value: value.to_vec() });
    let delete = RecordWrite::Delete(RecordKind::Filter, b"a".to_vec());
    let now = || backend.record(RecordKind::Filter, b"a");

    let refused = backend.append_recording(side.head().clone(), &[put(b"0")]);
    fails("appending a block to another with a record", refused, "NotAChild", |_| true);
    returns("the record of a block that was refused", now(), None);
    backend.append_recording(main.head().clone(), &[put(b"1")]).succeeds();
    returns("the record written with a block", now(), Some(b"1".to_vec()));
    let refused = backend.switch_recording(7, Vec::new(), &[put(b"0")]);
    fails("a switch to block 7 with a record", refused, "UnknownBlock(7)", |_| true);
    returns("the record after a switch that was refused", now(), Some(b"1".to_vec()));
    backend.switch_recording(3, side.above(3), &[delete, put(b"2"), put(b"3")]).succeeds();
    returns("the record written last with a switch", now(), Some(b"3".to_vec()));
    backend.switch_recording(5, Vec::new(), &[put(b"4")]).succeeds();
    returns("the record written with a switch to the head itself", now(), Some(b"4".to_vec()));
    check_view(&*backend.view().succeeds(), &side);
    equals("the records that listeners saw", seen.1.lock().clone(), vec![Some(b"1".to_vec()), Some(b"3".to_vec())]);
}
