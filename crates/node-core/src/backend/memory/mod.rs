//! The reference backend: everything in memory, nothing clever.

mod chain;
mod state;
mod versions;

use super::{BackendError, HeadChange, HeadListener, Record, RecordKind, RecordWrite, StateBackend, View};
use crate::block::ExecutedBlock;
use chain::Chain;
use node_types::BlockNumber;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keeps a chain in memory, with every state it ever had.
///
/// The chain is one persistent value. A view is a reference to the value that is current; a change is made to a copy,
/// which shares all but what changes, and takes effect when the copy takes the place of the value. Old states are read
/// from versions of each account and slot; proofs of them are made from tries that are built for the purpose.
///
/// Listeners are called under the lock of writers, which gives them the order of the changes: they may read and write
/// records, but must not change the chain. Records are not durable.
pub struct MemoryBackend {
    current: RwLock<Arc<Chain>>,
    writer: Mutex<()>,
    listeners: RwLock<Vec<Arc<dyn HeadListener>>>,
    records: RwLock<Records>,
}

/// The values of records by kind and key.
type Records = BTreeMap<(RecordKind, Vec<u8>), Vec<u8>>;

impl MemoryBackend {
    /// A chain of `genesis` alone, whose changes are laid over an empty state.
    pub fn new(genesis: ExecutedBlock) -> Result<Self, BackendError> {
        Ok(Self {
            current: RwLock::new(Arc::new(Chain::new(genesis)?)),
            writer: Mutex::default(),
            listeners: RwLock::default(),
            records: RwLock::default(),
        })
    }

    /// Makes a change to a copy of the chain, publishes that, and tells the listeners.
    fn change(
        &self,
        change: impl FnOnce(&mut Chain) -> Result<HeadChange, BackendError>,
    ) -> Result<HeadChange, BackendError> {
        let _writer = self.writer.lock();
        let mut chain = Chain::clone(&self.current.read());
        let change = change(&mut chain)?;
        // The old chain may be freed here, which is done after the lock is.
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

    fn append(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.change(|chain| chain.append(block)).map(drop)
    }

    fn switch(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError> {
        self.change(|chain| chain.switch(ancestor, branch))
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        let keep = |chain: &mut Chain| {
            chain.keep_side_block(block);
            Ok(HeadChange { removed: Vec::new(), added: Vec::new() })
        };
        self.change(keep).map(drop)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.listeners.write().push(listener);
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        let mut records = self.records.write();
        for write in writes {
            match write.clone() {
                RecordWrite::Put(kind, Record { key, value }) => records.insert((kind, key), value),
                RecordWrite::Delete(kind, key) => records.remove(&(kind, key)),
            };
        }
        Ok(())
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        let records = self.records.read();
        let of_kind = records.range((kind, Vec::new())..).take_while(|((other, _), _)| *other == kind);
        Ok(of_kind.map(|((_, key), value)| Record { key: key.clone(), value: value.clone() }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::{self, Random};
    use node_types::consensus::Header;

    fn open(genesis: ExecutedBlock) -> Box<dyn StateBackend> {
        Box::new(MemoryBackend::new(genesis).unwrap())
    }

    #[test]
    fn passes_the_suite() {
        suite::run(&open);
    }

    #[test]
    fn a_chain_begins_with_a_genesis_block() {
        let chain = Random(1).chain(1);
        let refused = MemoryBackend::new(chain.head().clone()).err();
        assert!(matches!(refused, Some(BackendError::NotGenesis(block)) if block.number == 1), "{refused:?}");

        let mut genesis = chain.blocks()[0].clone();
        let header = Header { state_root: Default::default(), ..genesis.header.header.clone() };
        genesis.header = Arc::new(crate::block::SealedHeader { header, ..(*genesis.header).clone() });
        let refused = MemoryBackend::new(genesis).err();
        assert!(matches!(refused, Some(BackendError::StateRootMismatch { block: 0, .. })), "{refused:?}");
    }
}
