//! Layers and forks on top of a backend's views.

use super::reading::{filled, one_change};
use super::{Content, Exists, Open, Random, Succeeds, TestChain, check_view};
use crate::backend::{BackendError, LayeredView, LogFilter, View};
use crate::block::LogPosition;
use crate::context::Context;
use crate::state::{AccountChange, AccountState};
use node_types::{Address, H256, U256};

/// Returns a chain of 14 blocks, another that leaves it after block 8 and has six more, and a layered view of the
/// latter.
fn layered(open: Open<'_>, seed: u64) -> (TestChain, TestChain, LayeredView) {
    let mut random = Random(seed);
    let main = random.chain(14);
    let mut side = main.up_to(8);
    random.extend(&mut side, 6);
    let base = filled(open, &main).view().succeeds();
    let view = LayeredView::new(base, 8, side.above(8)).succeeds();
    (main, side, view)
}

pub(super) fn layers_equal_appended_blocks(open: Open<'_>) {
    for seed in 110..120 {
        let (_, side, layered) = layered(open, seed);
        check_view(&layered, &side);

        let appended = filled(open, &side).view().succeeds();
        assert_eq!(layered.fee_rows(0..=14).succeeds(), appended.fee_rows(0..=14).succeeds());
        assert_eq!(layered.fee_rows(10..=12).succeeds(), appended.fee_rows(10..=12).succeeds());
        let context = Context::unbounded();
        for (from, to, limit) in [(0, 14, 1000), (0, 14, 5), (9, 12, 1000), (7, 10, 3), (12, 9, 1000)] {
            let from = LogPosition { block: from, log_index: 1 };
            let logs =
                |view: &dyn View| view.log_candidates(&context, &LogFilter::default(), from, to, limit).succeeds();
            assert_eq!(logs(&layered), logs(&*appended), "from {from:?} to {to}, at most {limit}");
        }
        let (address, slots) = (Random::addresses()[0], Random::slots());
        let proof = |view: &dyn View| view.state(8).succeeds().proof(address, &slots).succeeds();
        assert_eq!(proof(&layered), proof(&*appended));
    }
}

/// Passes for backends without forks of views.
pub(super) fn forks_equal_switched_chains(open: Open<'_>) {
    for seed in 140..150 {
        let mut random = Random(seed);
        let main = random.chain(14);
        let mut side = main.up_to(8);
        random.extend(&mut side, 6);
        let base = filled(open, &main).view().succeeds();
        let Some(fork) = base.fork(8, &side.above(8)).succeeds() else { return };
        check_view(&*fork, &side);
        check_view(&*base, &main);
        random.extend(&mut side, 1);
        check_view(&*fork.fork(14, &side.above(14)).succeeds().exists("a fork of a fork"), &side);
        check_view(&*fork.fork(3, &[]).succeeds().exists("a shorter fork"), &side.up_to(3));
        assert!(base.fork(8, &side.above(9)).is_err(), "a gap");
        assert!(base.fork(15, &[]).is_err(), "an ancestor above the head");
    }
}

pub(super) fn layers_hide_the_blocks_of_the_base(open: Open<'_>) {
    let (main, _, layered) = layered(open, 120);
    for block in main.above(8) {
        let reference = block.header.block_ref();
        assert_ne!(layered.canonical_hash(reference.number).succeeds(), Some(reference.hash));
        assert_eq!(layered.header(reference.hash.into()).succeeds(), Some(block.header), "by hash it is found");
        for transaction in &block.body.transactions {
            assert_eq!(layered.transaction_position(transaction.hash).succeeds(), None);
        }
    }
    assert!(layered.header(15.into()).succeeds().is_none());
    assert!(matches!(layered.state(15).err(), Some(BackendError::UnknownBlock(15))));
    let proof = layered.state(9).succeeds().proof(Address::zero(), &[]);
    assert!(matches!(proof, Err(BackendError::NoProofs(9))));
}

pub(super) fn layers_fill_free_and_clear_storage(open: Open<'_>) {
    let (address, [one, two]) = (Address::repeat_byte(1), [1, 2].map(H256::from_low_u64_be));
    let account = Some(AccountState { nonce: 1, ..AccountState::default() });
    let change = |storage: &[(H256, u64)]| AccountChange {
        account,
        storage: storage.iter().map(|(slot, value)| (*slot, U256::from(*value))).collect(),
        storage_cleared: false,
    };
    let cleared = AccountChange { storage_cleared: true, ..change(&[]) };
    let blocks = [
        (change(&[(one, 1), (two, 2)]), true),
        (change(&[(one, 0)]), true),
        (change(&[(two, 0)]), false),
        (change(&[(one, 0), (two, 0)]), false),
        (change(&[(two, 3)]), true),
        (change(&[]), true),
        (cleared.clone(), false),
        (AccountChange { storage: change(&[(one, 4)]).storage, ..cleared }, true),
        (AccountChange::default(), false),
        (change(&[]), false),
    ];
    let mut chain = TestChain::new(Content::default());
    for (change, _) in &blocks {
        chain.push(one_change(address, change.clone()));
    }
    for ancestor in 0..=10 {
        let base = filled(open, &chain.up_to(ancestor)).view().succeeds();
        let view = LayeredView::new(base, ancestor, chain.above(ancestor)).succeeds();
        for (at, (change, expected)) in (1..).zip(&blocks) {
            let got = view.state(at).succeeds().has_storage(address).succeeds();
            assert_eq!(got, *expected, "as of {at}, after {change:?}, layered over {ancestor}");
        }
        assert!(!view.state(0).succeeds().has_storage(address).succeeds(), "before, layered over {ancestor}");
        assert!(matches!(view.state(11).err(), Some(BackendError::UnknownBlock(11))));
    }
}

pub(super) fn layers_must_follow_the_ancestor(open: Open<'_>) {
    let (main, side, _) = layered(open, 121);
    let base = filled(open, &main).view().succeeds();
    let view = |ancestor, layers| LayeredView::new(base.clone(), ancestor, layers);
    assert_eq!(view(8, side.above(8)).succeeds().head().number, 14);
    let empty = view(8, Vec::new()).succeeds();
    check_view(&empty, &main.up_to(8));
    for (name, ancestor, layers) in [("another ancestor", 7, side.above(8)), ("a gap", 8, side.above(9))] {
        let refused = view(ancestor, layers).err();
        assert!(matches!(refused, Some(BackendError::NotAChild { .. })), "{name}: {refused:?}");
    }
    assert!(matches!(view(15, Vec::new()).err(), Some(BackendError::UnknownBlock(15))));
}
