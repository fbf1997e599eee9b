//! Changes of the chain, side blocks and records.

use super::reading::{filled, one_change};
use super::{Content, Exists, Open, Random, Succeeds, TestChain, check_view};
use crate::backend::{BackendError, HeadChange, HeadListener, Record, RecordKind, RecordWrite};
use crate::block::{BlockRef, ExecutedBlock, SealedHeader};
use crate::state::{AccountChange, AccountState};
use node_types::consensus::Header;
use node_types::{Address, H256, U256};
use parking_lot::Mutex;
use std::sync::Arc;

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

/// Returns a chain and another that leaves it after block `fork`.
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
    match backend.append(with_header(chain.head(), |header| header.state_root = wrong)) {
        Err(BackendError::StateRootMismatch { block: 6, header, computed }) => {
            assert_eq!((header, computed), (wrong, expected));
        }
        other => panic!("{other:?}"),
    }
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
        let reference = stranger.header.block_ref();
        match backend.append(stranger) {
            Err(BackendError::NotAChild { block, parent }) => {
                assert_eq!((block, parent), (reference, kept.head().header.block_ref()));
            }
            other => panic!("{reference}: {other:?}"),
        }
        check_view(&*backend.view().succeeds(), &kept);
    }
}

pub(super) fn switching(open: Open<'_>) {
    for seed in 30..40 {
        let (main, side) = fork(seed, 20, 12, 10);
        let backend = filled(open, &main);
        let change = backend.switch(12, side.above(12)).succeeds();
        let removed = references(&main.above(12)).into_iter().rev().collect();
        assert_eq!(change, HeadChange { removed, added: references(&side.above(12)) });
        let view = backend.view().succeeds();
        check_view(&*view, &side);
        for block in main.above(12) {
            for transaction in &block.body.transactions {
                assert_eq!(view.transaction_position(transaction.hash).succeeds(), None, "it was taken back");
            }
            let kept = view.side_block(block.header.hash).succeeds().exists("a block that was taken back");
            assert_eq!((&kept.header, &kept.changes), (&block.header, &block.changes));
        }
        backend.switch(12, main.above(12)).succeeds();
        check_view(&*backend.view().succeeds(), &main);
    }
}

pub(super) fn switching_to_an_empty_branch(open: Open<'_>) {
    let chain = Random(41).chain(10);
    let backend = filled(open, &chain);
    let nothing = HeadChange { removed: Vec::new(), added: Vec::new() };
    assert_eq!(backend.switch(10, Vec::new()).succeeds(), nothing);
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
        assert!(backend.switch(ancestor, branch).is_err(), "{name}");
        let view = backend.view().succeeds();
        check_view(&*view, &main);
        assert!(view.side_block(side.blocks()[5].header.hash).succeeds().is_none(), "{name} stored a block");
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
        assert_eq!((&kept.header, &kept.body), (&block.header, &block.body));
        assert_eq!((&kept.receipts, &kept.changes), (&block.receipts, &block.changes));
        let id = block.header.hash.into();
        assert_eq!(view.header(id).succeeds(), Some(block.header));
        assert_eq!(view.body(id).succeeds(), Some(block.body));
        assert_eq!(view.receipts(id).succeeds(), Some(block.receipts));
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
    let kept = backend.view().succeeds().side_block(side.header.hash).succeeds();
    assert_eq!(kept.map(|block| block.header), Some(side.header));
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
    backend.append(three.clone()).unwrap_err();
    let switched = backend.switch(1, side.above(1)).succeeds();
    backend.switch(7, Vec::new()).unwrap_err();
    backend.keep_side_block(two.clone()).succeeds();
    let cut = backend.switch(0, Vec::new()).succeeds();

    let appended = |block| HeadChange { removed: Vec::new(), added: references(&[block]) };
    let all = [appended(two), appended(three), switched, cut];
    assert_eq!(*first.0.lock(), all);
    assert_eq!(*second.0.lock(), all[1..]);
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
    assert_eq!(backend.records(Filter).succeeds(), [record(b"", b"2"), record(b"aa", b"3"), record(b"b", b"1")]);
    assert_eq!(backend.records(PoolTransaction).succeeds(), [record(b"b", b"4")]);
    backend
        .write_records(&[
            put(Filter, b"aa", b""),
            RecordWrite::Delete(Filter, b"b".to_vec()),
            RecordWrite::Delete(Filter, b"b".to_vec()),
            RecordWrite::Delete(PoolTransaction, b"none".to_vec()),
        ])
        .succeeds();
    assert_eq!(backend.records(Filter).succeeds(), [record(b"", b"2"), record(b"aa", b"")]);
    assert_eq!(backend.records(PoolTransaction).succeeds(), [record(b"b", b"4")]);
}
