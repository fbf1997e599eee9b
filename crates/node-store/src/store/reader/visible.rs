//! The chain that is visible, and newer versions of it.

use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::rows::{Part, Tables};
use crate::side_blocks::SideBlocks;
use crate::store::open::{Logged, apply, read_records};
use node_core::backend::{
    BackendError, HeadChange, HeadListener, LayeredView, RecordKind, RecordValues, RecordWrite, View, records_of_kind,
};
use node_core::block::BlockRef;
use node_core::edits::pending_changes;
use node_core::state::StateChanges;
use node_types::BlockNumber;
use parking_lot::RwLock;
use std::io;
use std::sync::Arc;

/// The kinds of records that belong to the chain. Others belong to the process that wrote them: its pool and filters.
const CHAIN_RECORDS: [RecordKind; 3] = [RecordKind::ChainId, RecordKind::EditedBlock, RecordKind::PendingEdit];

/// What a reader shows: the chain and its records.
pub(super) struct Visible {
    current: RwLock<Current>,
    pub(super) records: RwLock<RecordValues>,
    pub(super) listeners: RwLock<Vec<Arc<dyn HeadListener>>>,
}

#[derive(Clone)]
struct Current {
    chain: Arc<ChainVersion>,
    /// Edits of the state of its head that no block includes yet.
    edits: Option<Arc<StateChanges>>,
}

impl Visible {
    pub(super) fn new(chain: ChainVersion, records: RecordValues) -> Result<Self, StoreError> {
        let current = Current { edits: edits(&records, chain.head)?, chain: Arc::new(chain) };
        Ok(Self { current: RwLock::new(current), records: RwLock::new(records), listeners: RwLock::default() })
    }

    pub(super) fn chain(&self) -> Arc<ChainVersion> {
        Arc::clone(&self.current.read().chain)
    }

    /// Returns the chain, with the edits of its head.
    pub(super) fn view(&self) -> Arc<dyn View> {
        let Current { chain, edits } = self.current.read().clone();
        let head = chain.head.number;
        match edits {
            Some(edits) => Arc::new(LayeredView::with_edits(chain, head, edits)),
            None => chain,
        }
    }

    /// Replaces the runs by others with the same rows. Returns the chain.
    pub(super) fn replace_runs(&self, numbered: Vec<Part>, keyed: Vec<Part>) -> Arc<ChainVersion> {
        let mut chain = ChainVersion::clone(&self.chain());
        chain.rows.tables = Arc::new(chain.rows.tables.with_same_rows(numbered, keyed));
        let chain = Arc::new(chain);
        self.current.write().chain = Arc::clone(&chain);
        chain
    }

    /// Removes the rows of blocks that a newer version was to have, but does not.
    pub(super) fn forget_above_head(&self) {
        let mut chain = ChainVersion::clone(&self.chain());
        chain.forget_above_head();
        self.current.write().chain = Arc::new(chain);
    }

    /// Replaces the records of the chain by `replaced`, if it is given, and applies `writes` to them. Returns the edits of
    /// the block `head` among them.
    fn write(
        &self,
        replaced: Option<RecordValues>,
        writes: Vec<RecordWrite>,
        head: BlockRef,
    ) -> Result<Option<Arc<StateChanges>>, StoreError> {
        let mut records = self.records.write();
        if let Some(replaced) = replaced {
            records.retain(|(kind, _), _| !CHAIN_RECORDS.contains(kind));
            records.extend(replaced);
        }
        let of_chain = writes.into_iter().filter(|write| CHAIN_RECORDS.contains(&write.kind()));
        of_chain.for_each(|write| write.apply(&mut records));
        edits(&records, head)
    }
}

/// A version of the chain that is not visible yet.
pub(super) struct Newer {
    pub(super) chain: ChainVersion,
    /// The records of the chain in its runs, if it was read from runs.
    pub(super) replaced: Option<RecordValues>,
    /// Changes of records since.
    pub(super) writes: Vec<RecordWrite>,
}

impl Newer {
    /// Begins with the visible chain.
    pub(super) fn after(chain: &ChainVersion) -> Self {
        Self { chain: chain.clone(), replaced: None, writes: Vec::new() }
    }

    /// Begins with a chain that is in runs.
    pub(super) fn in_runs(
        head: BlockRef,
        earliest: BlockNumber,
        tables: Arc<Tables>,
        caches: &Arc<Caches>,
    ) -> Result<Self, StoreError> {
        let side_blocks = SideBlocks::read(&tables)?;
        let mut records = read_records(&tables)?.values;
        records.retain(|(kind, _), _| CHAIN_RECORDS.contains(kind));
        let chain = ChainVersion::in_runs(head, earliest, tables, side_blocks, Arc::clone(caches));
        Ok(Self { chain, replaced: Some(records), writes: Vec::new() })
    }

    /// Applies an entry of the log. After an error, the chain may have rows of blocks that it does not have.
    pub(super) fn apply(&mut self, payload: &[u8]) -> Result<(), StoreError> {
        let mut chain = self.chain.clone();
        let Logged { records, .. } = apply(&mut chain, payload).map_err(unwrap)?;
        self.chain = chain;
        self.writes.extend(records);
        Ok(())
    }

    /// Makes the chain visible, and notifies the listeners of what has changed.
    pub(super) fn publish(&mut self, visible: &Visible) -> Result<(), StoreError> {
        let old = visible.chain();
        let change = if old.head == self.chain.head { None } else { Some(difference(&old, &self.chain)?) };
        let edits = if change.is_none() && self.replaced.is_none() && self.writes.is_empty() {
            visible.current.read().edits.clone()
        } else {
            visible.write(self.replaced.take(), std::mem::take(&mut self.writes), self.chain.head)?
        };
        *visible.current.write() = Current { chain: Arc::new(self.chain.clone()), edits };
        if let Some(change) = change {
            let listeners = visible.listeners.read().clone();
            listeners.iter().for_each(|listener| listener.head_changed(&change));
        }
        Ok(())
    }
}

/// Returns the edits of the block `head` that no block includes yet.
fn edits(records: &RecordValues, head: BlockRef) -> Result<Option<Arc<StateChanges>>, StoreError> {
    let pending = records_of_kind(records, RecordKind::PendingEdit);
    Ok(pending_changes(&pending, head.hash).map_err(unwrap)?.map(Arc::new))
}

/// Returns the blocks that left the chain and those that joined it.
fn difference(old: &ChainVersion, new: &ChainVersion) -> Result<HeadChange, StoreError> {
    let missing = || StoreError::Missing { table: crate::keys::Table::Headers.name() };
    let mut ancestor = old.head.number.min(new.head.number);
    while old.canonical(ancestor)? != new.canonical(ancestor)? {
        ancestor = ancestor.checked_sub(1).ok_or_else(missing)?;
    }
    let block = |chain: &ChainVersion, number: BlockNumber| -> Result<BlockRef, StoreError> {
        Ok(BlockRef { number, hash: chain.canonical(number)?.ok_or_else(missing)? })
    };
    let removed = (ancestor + 1..=old.head.number).rev().map(|number| block(old, number));
    let added = (ancestor + 1..=new.head.number).map(|number| block(new, number));
    Ok(HeadChange { removed: removed.collect::<Result<_, _>>()?, added: added.collect::<Result<_, _>>()? })
}

/// Returns the error of this crate within an error of applying an entry.
pub(in crate::store) fn unwrap(error: BackendError) -> StoreError {
    match error {
        BackendError::Storage(source) => match source.downcast::<StoreError>() {
            Ok(error) => *error,
            Err(other) => StoreError::File(io::Error::other(other)),
        },
        other => StoreError::File(io::Error::other(other)),
    }
}
