//! The reference backend, in memory.

mod chain;
mod state;
mod stored;
mod versions;

use super::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, Record, RecordKind, RecordValues, RecordWrite,
    StateBackend, View, records_of_kind,
};
use crate::block::ExecutedBlock;
use chain::MemoryChain;
use node_types::BlockNumber;
use parking_lot::{Mutex, RwLock};
use std::cell::Cell;
use std::sync::Arc;

/// Stores a chain with all its states in memory.
///
/// The chain is an immutable value, and a view is a reference to it. Changes are made to a copy that shares all
/// unchanged parts, and the copy then replaces the value. Old states are read from the versions of each account and
/// slot; proofs of old states rebuild the tries that they need.
///
/// Listeners are called while the writer lock is held, in the order of the changes. They may read the chain and write
/// records, but must not change the chain. Records are not durable.
///
/// A durable backend can use this one for reads, and change it with [`append_with`](Self::append_with) and similar
/// methods: they call a closure that stores the change after it was checked and before it becomes visible.
pub struct MemoryBackend {
    current: RwLock<Arc<MemoryChain>>,
    writer: Mutex<()>,
    listeners: RwLock<Vec<Arc<dyn HeadListener>>>,
    records: RwLock<RecordValues>,
}

impl MemoryBackend {
    /// Creates a chain with only the genesis block, whose changes must be the whole genesis state.
    ///
    /// # Errors
    /// [`BackendError::NotGenesis`] unless `genesis` has number 0, and [`BackendError::StateRootMismatch`] if its
    /// changes do not produce its state root.
    pub fn new(genesis: ExecutedBlock) -> Result<Self, BackendError> {
        Ok(Self {
            current: RwLock::new(Arc::new(MemoryChain::new(genesis)?)),
            writer: Mutex::default(),
            listeners: RwLock::default(),
            records: RwLock::default(),
        })
    }

    /// Appends `block` like [`append`](StateBackend::append). Calls `commit` once the block is accepted, before it
    /// becomes visible to readers.
    ///
    /// # Errors
    /// Those of `append`, and the error of `commit`. On an error nothing has changed.
    pub fn append_with(
        &self,
        block: ExecutedBlock,
        commit: impl FnOnce() -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        self.change(|chain| chain.append(block), commit).map(drop)
    }

    /// Replaces the blocks above `ancestor` like [`switch`](StateBackend::switch). Calls `commit` once all blocks are
    /// accepted, before they become visible to readers.
    ///
    /// # Errors
    /// Those of `switch`, and the error of `commit`. On an error nothing has changed.
    pub fn switch_with(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        commit: impl FnOnce() -> Result<(), BackendError>,
    ) -> Result<HeadChange, BackendError> {
        self.change(|chain| chain.switch(ancestor, branch), commit)
    }

    /// Stores a side block like [`keep_side_block`](StateBackend::keep_side_block). Calls `commit` before the block
    /// becomes visible to readers, but not for a canonical block, which is ignored.
    ///
    /// # Errors
    /// The error of `commit`. On an error nothing has changed.
    pub fn keep_side_block_with(
        &self,
        block: ExecutedBlock,
        commit: impl FnOnce() -> Result<(), BackendError>,
    ) -> Result<(), BackendError> {
        let is_new = Cell::new(false);
        let keep = |chain: &mut MemoryChain| {
            is_new.set(chain.keep_side_block(block));
            Ok(HeadChange { removed: Vec::new(), added: Vec::new() })
        };
        self.change(keep, || if is_new.get() { commit() } else { Ok(()) }).map(drop)
    }

    /// Changes a copy of the chain, calls the commit closure, publishes the copy, and notifies listeners.
    fn change(
        &self,
        change: impl FnOnce(&mut MemoryChain) -> Result<HeadChange, BackendError>,
        commit: impl FnOnce() -> Result<(), BackendError>,
    ) -> Result<HeadChange, BackendError> {
        let _writer = self.writer.lock();
        let mut chain = MemoryChain::clone(&self.current.read());
        let change = change(&mut chain)?;
        commit()?;
        // Dropped after the lock is released, since this may free the old chain.
        let _old = std::mem::replace(&mut *self.current.write(), Arc::new(chain));
        if !change.removed.is_empty() || !change.added.is_empty() {
            let listeners = self.listeners.read().clone();
            listeners.iter().for_each(|listener| listener.head_changed(&change));
        }
        Ok(change)
    }
}

impl StateBackend for MemoryBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        Ok(Arc::clone(&*self.current.read()) as Arc<dyn View>)
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.append_with(block, || self.write_records_unsynced(writes))
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.switch_with(ancestor, branch, || self.write_records_unsynced(writes))
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.keep_side_block_with(block, || Ok(()))
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.listeners.write().push(listener);
    }

    fn proves_quickly(&self) -> bool {
        false
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        let mut records = self.records.write();
        writes.iter().cloned().for_each(|write| write.apply(&mut records));
        Ok(())
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        Ok(self.records.read().get(&(kind, key.to_vec())).cloned())
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        Ok(records_of_kind(&self.records.read(), kind))
    }

    fn caches(&self) -> Vec<CacheUse> {
        Vec::new()
    }

    fn health(&self) -> BackendHealth {
        BackendHealth::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::{self, Random};
    use crate::state::StateChanges;
    use crate::test_chain::{self, account, address, child, word};
    use node_types::consensus::Header;

    fn open(genesis: ExecutedBlock) -> Box<dyn StateBackend> {
        Box::new(MemoryBackend::new(genesis).unwrap())
    }

    #[test]
    fn passes_the_suite() {
        suite::run(&open);
    }

    #[test]
    fn a_change_that_cannot_be_committed_changes_nothing() {
        let mut random = Random(2);
        let main = random.chain(6);
        let mut side = main.up_to(3);
        random.extend(&mut side, 4);
        let kept = main.up_to(5);
        let backend = MemoryBackend::new(main.blocks()[0].clone()).unwrap();
        kept.above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        let fail = || {
            // What is being committed cannot be read yet.
            suite::check_view(&*backend.view().unwrap(), &kept);
            Err(BackendError::Storage("the disk is full".into()))
        };
        assert!(matches!(backend.append_with(main.head().clone(), fail), Err(BackendError::Storage(_))));
        assert!(matches!(backend.switch_with(3, side.above(3), fail), Err(BackendError::Storage(_))));
        assert!(matches!(backend.keep_side_block_with(side.head().clone(), fail), Err(BackendError::Storage(_))));
        let view = backend.view().unwrap();
        suite::check_view(&*view, &kept);
        assert!(view.side_block(side.head().header.hash).unwrap().is_none());
        backend.switch_with(3, side.above(3), || Ok(())).unwrap();
        suite::check_view(&*backend.view().unwrap(), &side);
    }

    #[test]
    fn what_is_refused_or_ignored_is_not_committed() {
        let chain = Random(3).chain(6);
        let backend = MemoryBackend::new(chain.blocks()[0].clone()).unwrap();
        chain.up_to(4).above(0).into_iter().for_each(|block| backend.append(block).unwrap());
        let never = || panic!("must not be called");
        assert!(backend.append_with(chain.head().clone(), never).is_err());
        assert!(backend.switch_with(3, chain.above(4), never).is_err());
        backend.keep_side_block_with(chain.blocks()[2].clone(), never).unwrap();
    }

    #[test]
    fn rejects_an_invalid_genesis_block() {
        let chain = Random(1).chain(1);
        let refused = MemoryBackend::new(chain.head().clone()).err();
        assert!(matches!(refused, Some(BackendError::NotGenesis(block)) if block.number == 1), "{refused:?}");

        let mut genesis = chain.blocks()[0].clone();
        let header = Header { state_root: Default::default(), ..genesis.header.header.clone() };
        genesis.header = Arc::new(crate::block::SealedHeader { header, ..(*genesis.header).clone() });
        let refused = MemoryBackend::new(genesis).err();
        assert!(matches!(refused, Some(BackendError::StateRootMismatch { block: 0, .. })), "{refused:?}");
    }

    #[test]
    fn a_block_is_compared_with_its_own_root_whatever_was_computed_before() {
        let backend = test_chain::backend();
        let changes = |balance| account(1, 0, balance, &[(1, balance)]);
        let next = |balance| {
            let view = backend.view().unwrap();
            child(&*view, view.head().number, 0, Vec::new(), changes(balance))
        };
        for balance in [5, 6] {
            let block = next(balance);
            let other = next(balance + 10);
            let forged = ExecutedBlock { changes: Arc::clone(&block.changes), ..other.clone() };
            assert!(matches!(backend.append(forged), Err(BackendError::StateRootMismatch { .. })));
            let forged = ExecutedBlock { changes: other.changes, ..block.clone() };
            assert!(matches!(backend.append(forged), Err(BackendError::StateRootMismatch { .. })));
            let root = block.header.header.state_root;
            backend.append(block).unwrap();
            let view = backend.view().unwrap();
            let state = view.state(view.head().number).unwrap();
            assert_eq!(state.root_after(&StateChanges::default()).unwrap(), root);
            assert_eq!(state.storage(address(1), word(1)).unwrap(), balance.into());
        }
    }
}
