//! Layers and forks on top of a backend's views.

use super::reading::{filled, one_change};
use super::sentence::{Exists, Succeeds, equals, fails, returns};
use super::{Content, Open, Random, TestChain, check_view};
use crate::backend::{BackendError, LayeredView, LogFilter, LogSearch, View};
use crate::block::LogPosition;
use crate::context::Context;
use crate::state::{AccountChange, AccountState};
use node_types::{Address, H256, U256};

/// Returns a chain of 14 blocks, a second chain that branches off after block 8 and has six more blocks, and a
/// layered view of the second chain.
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
        for (first, last) in [(0, 14), (10, 12)] {
            let rows = appended.fee_rows(first..=last).succeeds();
            returns(format_args!("the fee rows of blocks {first} to {last}"), layered.fee_rows(first..=last), rows);
        }
        let context = Context::unbounded();
        for (from, to, limit) in [(0, 14, 1000), (0, 14, 5), (9, 12, 1000), (7, 10, 3), (12, 9, 1000)] {
            let from = LogPosition { block: from, log_index: 1 };
            let search = LogSearch { filter: &LogFilter::default(), from, to, limit };
            let logs = |view: &dyn View| view.log_candidates(&context, search);
            let what = format_args!("at most {limit} log candidates from {from:?} up to block {to}");
            returns(what, logs(&layered), logs(&*appended).succeeds());
        }
        let (address, slots) = (Random::addresses()[0], Random::slots());
        let proof = |view: &dyn View| view.state(8).succeeds().proof(address, &slots);
        returns("a proof as of block 8, below all layers", proof(&layered), proof(&*appended).succeeds());
    }
}

/// Also passes for backends that do not support [`View::fork`](crate::backend::View::fork).
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
        fails("a fork with a gap after its ancestor", base.fork(8, &side.above(9)), "NotAChild", |_| true);
        fails("a fork of block 15, above the head", base.fork(15, &[]), "UnknownBlock(15)", |_| true);
    }
}

pub(super) fn layers_hide_the_blocks_of_the_base(open: Open<'_>) {
    let (main, _, layered) = layered(open, 120);
    for block in main.above(8) {
        let reference = block.header.block_ref();
        let is_canonical = layered.canonical_hash(reference.number).map(|hash| hash == Some(reference.hash));
        returns(format_args!("whether block {reference}, under a layer, is canonical"), is_canonical, false);
        let what = format_args!("the header of block {reference}, under a layer, by its hash");
        returns(what, layered.header(reference.hash.into()), Some(block.header));
        for transaction in &block.body.transactions {
            let what = format_args!("the position of transaction {:#x}, under a layer", transaction.hash);
            returns(what, layered.transaction_position(transaction.hash), None);
        }
    }
    returns("the header of block 15, above the head", layered.header(15.into()), None);
    fails("the state as of block 15, above the head", layered.state(15), "UnknownBlock(15)", |error| {
        matches!(error, BackendError::UnknownBlock(15))
    });
    let proof = layered.state(9).succeeds().proof(Address::zero(), &[]);
    fails("a proof as of block 9, in a layer", proof, "NoProofs(9)", |error| {
        matches!(error, BackendError::NoProofs(9))
    });
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
        let expected = std::iter::once(false).chain(blocks.iter().map(|(_, expected)| *expected));
        for (at, expected) in (0..).zip(expected) {
            let what =
                format_args!("whether an account has storage as of block {at}, with layers over block {ancestor}");
            returns(what, view.state(at).succeeds().has_storage(address), expected);
        }
        fails("the state as of block 11, above the head", view.state(11), "UnknownBlock(11)", |error| {
            matches!(error, BackendError::UnknownBlock(11))
        });
    }
}

pub(super) fn layers_must_follow_the_ancestor(open: Open<'_>) {
    let (main, side, _) = layered(open, 121);
    let base = filled(open, &main).view().succeeds();
    let view = |ancestor, layers| LayeredView::new(base.clone(), ancestor, layers);
    equals("the head of six layers over block 8", view(8, side.above(8)).succeeds().head().number, 14);
    let empty = view(8, Vec::new()).succeeds();
    check_view(&empty, &main.up_to(8));
    for (name, ancestor, layers) in [("another ancestor", 7, side.above(8)), ("a gap", 8, side.above(9))] {
        fails(format_args!("layers with {name}"), view(ancestor, layers), "NotAChild", |error| {
            matches!(error, BackendError::NotAChild { .. })
        });
    }
    fails("layers over block 15, above the head", view(15, Vec::new()), "UnknownBlock(15)", |error| {
        matches!(error, BackendError::UnknownBlock(15))
    });
}
