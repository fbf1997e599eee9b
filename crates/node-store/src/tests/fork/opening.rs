//! Opening folders whose chain has a base.

use super::fork_at;
use crate::shared::FolderObjects;
use crate::tests::small;
use crate::{Options, PublishOptions, Store, StoreError, StoreReader, SyncPolicy};
use node_core::backend::suite::{Random, TestChain};
use node_core::backend::{BackendError, StateBackend};
use node_core::block::BlockHashOrNumber;
use node_core::context::Context;
use std::sync::Arc;

const FIRST: u64 = 10;

fn store_error<T>(result: Result<T, BackendError>) -> StoreError {
    match result.map(drop).unwrap_err() {
        BackendError::Storage(error) => *error.downcast().unwrap(),
        error => panic!("{error}"),
    }
}

fn options() -> Options {
    small(3, SyncPolicy::Always)
}

fn chain() -> TestChain {
    Random(7).chain(30)
}

#[test]
fn a_folder_is_opened_only_with_its_base() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fork");
    let chain = chain();
    let (base, first) = fork_at(&chain, FIRST);
    let base = Arc::new(base);
    let store = Store::open_fork(&path, first.clone(), base.clone(), options()).unwrap();
    chain.above(FIRST).into_iter().for_each(|block| store.append(block).unwrap());
    let objects = Arc::new(FolderObjects::new(folder.path().join("shared")));
    let refused = store_error(store.publish(objects, PublishOptions::default()));
    assert!(matches!(refused, StoreError::Unpublishable), "{refused:?}");
    let copy = folder.path().join("copy");
    store.backup(&copy, &Context::unbounded(), |_| {}).unwrap();
    drop(store);

    for refused in [
        store_error(Store::open_existing(&path, options())),
        store_error(Store::open_snapshot(&path, options())),
        store_error(StoreReader::open(&path, options())),
    ] {
        assert!(matches!(refused, StoreError::NeedsBase(FIRST)), "{refused:?}");
        let text = refused.to_string();
        assert_eq!(text, "the chain continues the state of another one as of block 10, with which it must be opened");
    }
    let genesis = chain.blocks()[0].clone();
    let refused = store_error(Store::open(&path, genesis.clone(), options()));
    assert!(matches!(refused, StoreError::OtherGenesis { .. }), "{refused:?}");
    let (other, other_first) = fork_at(&chain, FIRST + 1);
    let refused = store_error(Store::open_fork(&path, other_first, Arc::new(other.clone()), options()));
    assert!(matches!(refused, StoreError::OtherGenesis { .. }), "{refused:?}");
    for refused in [
        Store::open_fork(&path, first.clone(), Arc::new(other.clone()), options()).map(drop),
        Store::open_existing_fork(&path, Arc::new(other.clone()), options()).map(drop),
        Store::fork_in_memory(first.clone(), Arc::new(other), options()).map(drop),
    ] {
        assert!(matches!(refused, Err(BackendError::StateRootMismatch { block: FIRST, .. })), "{refused:?}");
    }

    for store in [
        Store::open_fork_snapshot(&path, || Ok(base.clone()), options()).unwrap(),
        Store::open_existing_fork(&path, base.clone(), options()).unwrap(),
        Store::open_fork(&copy, first, base.clone(), options()).unwrap(),
    ] {
        assert_eq!(store.view().unwrap().head(), chain.head().header.block_ref());
        assert_eq!(store.stats().unwrap().first_block, FIRST);
    }

    let full = folder.path().join("full");
    drop(Store::open(&full, genesis, options()).unwrap());
    let refused = store_error(Store::open_existing_fork(&full, base, options()));
    assert!(matches!(refused, StoreError::NoBase), "{refused:?}");
}

#[test]
fn a_block_with_a_number_needs_a_base() {
    let (_, first) = fork_at(&chain(), FIRST);
    let refused = Store::in_memory(first, options()).map(drop);
    assert!(matches!(refused, Err(BackendError::NotGenesis(block)) if block.number == FIRST), "{refused:?}");
}

#[test]
fn earlier_blocks_are_unknown() {
    let chain = chain();
    let (base, first) = fork_at(&chain, FIRST);
    let store = Store::fork_in_memory(first, Arc::new(base), options()).unwrap();
    chain.above(FIRST).into_iter().for_each(|block| store.append(block).unwrap());
    let view = store.view().unwrap();
    assert_eq!(view.earliest_state(), FIRST);
    for number in 0..FIRST {
        let hash = chain.blocks()[number as usize].header.hash;
        assert_eq!(view.canonical_hash(number).unwrap(), None);
        for id in [BlockHashOrNumber::Number(number), BlockHashOrNumber::Hash(hash)] {
            assert!(view.header(id).unwrap().is_none());
            assert!(view.body(id).unwrap().is_none());
            assert!(view.receipts(id).unwrap().is_none());
        }
        assert!(view.changes(number).unwrap().is_none());
        let state = view.state(number).map(drop);
        let is_pruned =
            |error| matches!(error, BackendError::StatePruned { block, earliest: FIRST } if block == number);
        assert!(state.is_err_and(is_pruned));
        let is_unknown = |error| matches!(error, BackendError::UnknownBlock(found) if found == number);
        assert!(view.logs(&[number]).is_err_and(is_unknown));
        assert!(view.fee_rows(number..=FIRST + 1).is_err_and(is_unknown));
        let switched = store.switch(number, Vec::new());
        assert!(matches!(switched, Err(BackendError::StatePruned { earliest: FIRST, .. })), "{switched:?}");
    }
    assert!(view.changes(FIRST).unwrap().is_none());
    assert_eq!(view.changes(FIRST + 1).unwrap().unwrap(), chain.blocks()[FIRST as usize + 1].changes);
}
