//! State edits that are not made by transactions, for development chains.

mod record;

pub use record::{Edits, count_pending_edits, edited_blocks, first_edited_block, pending_changes};
pub(crate) use record::{block_edits, decode_changes, encode_changes};

use crate::backend::{
    BackendError, BackendHealth, CacheUse, HeadChange, HeadListener, LayeredView, Record, RecordKind, RecordWrite,
    StateBackend, View,
};
use crate::block::{BlockRef, ExecutedBlock};
use crate::state::StateChanges;
use node_types::{BlockNumber, H256};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

/// Wraps a backend and adds edits to it: changes to the head's state that no transaction made.
///
/// Views show the head's state with its edits, to which no header commits. The next block includes the edits in its own
/// changes, so that headers commit to the states of all blocks below the head. Edits are durable when
/// [`edit`](Self::edit) returns. They are discarded when the head moves back or to another branch.
///
/// Each change of the head is one durable write together with that of the edits.
pub struct EditableBackend {
    inner: Arc<dyn StateBackend>,
    /// Held while the head or its edits change.
    writing: Mutex<()>,
    edits: RwLock<HeadEdits>,
    /// The newest block that comes from a dump, canonical or not.
    loaded: RwLock<Option<BlockRef>>,
}

/// The edits of the head.
#[derive(Default)]
struct HeadEdits {
    /// Edits that are recorded.
    pending: Option<Pending>,
    /// During a switch: the edits of the new head. Views show them once it is the head.
    next: Option<Pending>,
}

impl HeadEdits {
    /// Returns the pending edits of the block `head`, or `None` if there are none.
    fn of(&self, head: H256) -> Option<&Arc<StateChanges>> {
        let both = self.pending.iter().chain(&self.next);
        both.filter(|pending| pending.head == head).map(|pending| &pending.changes).next()
    }
}

/// Pending edits, which no block includes yet.
#[derive(Clone)]
struct Pending {
    /// Hash of the block whose state they change.
    head: H256,
    changes: Arc<StateChanges>,
    /// Number of records in which they are stored.
    count: u64,
}

impl Pending {
    fn of(head: H256) -> Self {
        Self { head, changes: Arc::default(), count: 0 }
    }

    /// Adds an edit that has been recorded.
    fn add(&mut self, changes: &StateChanges) {
        Arc::make_mut(&mut self.changes).merge(changes);
        self.count += 1;
    }
}

impl EditableBackend {
    /// Wraps `inner`, and restores the pending edits from its records.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn open(inner: Arc<dyn StateBackend>) -> Result<Self, BackendError> {
        let head = inner.view()?.head().hash;
        let mut pending: Option<Pending> = None;
        let mut stale = Vec::new();
        for record in inner.records(RecordKind::PendingEdit)? {
            let (edited, changes) = record::decode_pending(&record)?;
            if edited != head {
                // They were included in a block, or the head is now another block.
                stale.push(RecordWrite::Delete(RecordKind::PendingEdit, record.key));
                continue;
            }
            pending.get_or_insert_with(|| Pending::of(head)).add(&changes);
        }
        if !stale.is_empty() {
            inner.write_records(&stale)?;
        }
        let loaded = last_loaded(&*inner)?;
        let edits = RwLock::new(HeadEdits { pending, next: None });
        Ok(Self { inner, writing: Mutex::default(), edits, loaded: RwLock::new(loaded) })
    }

    /// Applies the changes that `change` returns for the current view to the head's state.
    ///
    /// # Errors
    /// The error of `change`, and failures of the backend.
    pub fn edit<E: From<BackendError>>(
        &self,
        change: impl FnOnce(&dyn View) -> Result<StateChanges, E>,
    ) -> Result<(), E> {
        let _writing = self.writing.lock();
        let view = self.view()?;
        let changes = change(&*view)?;
        let head = view.head().hash;
        drop(view);
        Ok(self.add(head, &changes)?)
    }

    /// Returns the pending edits of the head.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn pending_edits(&self) -> Result<StateChanges, BackendError> {
        let _writing = self.writing.lock();
        let head = self.inner.view()?.head().hash;
        Ok(self.edits_of(head).map(|changes| (*changes).clone()).unwrap_or_default())
    }

    /// Returns about how many bytes of memory the pending edits of the block `head` take.
    pub(crate) fn pending_memory(&self, head: H256) -> usize {
        self.edits.read().of(head).map_or(0, |changes| changes.memory())
    }

    /// Returns whether the block `head` has pending edits.
    pub(crate) fn has_edits(&self, head: H256) -> bool {
        self.edits_of(head).is_some()
    }

    /// Returns the pending edits of the block `head`, or `None` if there are none.
    fn edits_of(&self, head: H256) -> Option<Arc<StateChanges>> {
        self.edits.read().of(head).cloned()
    }

    /// Switches to a branch, makes `changes` the pending edits of its head, and applies `writes`. If the head stays as it
    /// is, the changes replace its edits. Listeners that are notified of the switch already see the edits and records.
    /// On an error nothing has changed.
    ///
    /// # Errors
    /// Those of [`StateBackend::switch`].
    pub fn switch_edited(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        changes: &StateChanges,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        let _writing = self.writing.lock();
        let head = match branch.last() {
            Some(block) => block.header.hash,
            None => self.inner.view()?.canonical_hash(ancestor)?.ok_or(BackendError::UnknownBlock(ancestor))?,
        };
        let mut all = self.delete_pending();
        let next = (*changes != StateChanges::default()).then(|| {
            all.push(record::pending_record(head, 0, changes));
            Pending { head, changes: Arc::new(changes.clone()), count: 1 }
        });
        all.extend_from_slice(writes);
        self.edits.write().next = next;
        let switched = self.inner.switch_recording(ancestor, branch, &all);
        let mut edits = self.edits.write();
        let next = edits.next.take();
        if switched.is_ok() {
            edits.pending = next;
        }
        switched
    }

    /// Appends a block that includes the pending edits, and applies `writes`. `edits` describes what else makes the
    /// block invalid for other nodes; its `state` is ignored. On an error nothing has changed.
    ///
    /// # Errors
    /// Those of [`StateBackend::append`].
    pub fn append_edited(
        &self,
        mut block: ExecutedBlock,
        edits: Edits,
        writes: &[RecordWrite],
    ) -> Result<(), BackendError> {
        let _writing = self.writing.lock();
        let edits = Edits { state: self.include_edits(&mut block), ..edits };
        let reference = block.header.block_ref();
        let mut all = self.delete_pending();
        // A side block may have the same hash but other edits, for example one that set a balance to the value that it
        // had. This block replaces it, so its record does, too.
        let before = record::block_record(&*self.inner, reference)?;
        let after = (!edits.is_empty()).then(|| record::encode_edits(&edits));
        if after != before {
            all.push(record::set_block_record(reference, after));
        }
        all.extend_from_slice(writes);
        self.inner.append_recording(block, &all)?;
        self.edits.write().pending = None;
        Ok(())
    }

    /// Puts blocks that come from a dump on the canonical block `ancestor`, in one durable write. The states before the
    /// last of them cannot be read any more, while it is canonical.
    ///
    /// # Errors
    /// Those of [`StateBackend::switch`].
    pub(crate) fn load(&self, ancestor: BlockNumber, branch: Vec<ExecutedBlock>) -> Result<HeadChange, BackendError> {
        let edits = |block: &ExecutedBlock| {
            let unsigned = block.body.transactions.iter().any(|transaction| transaction.is_impersonating());
            Edits { loaded: true, unsigned, ..Edits::default() }
        };
        let writes: Vec<_> = branch.iter().map(|block| block_edits(block.header.block_ref(), &edits(block))).collect();
        let last = branch.last().map(|block| block.header.block_ref());
        // Before the switch, of which listeners are notified: until the block is canonical, this has no effect.
        let before = mem::replace(&mut *self.loaded.write(), last);
        let switched = self.switch_edited(ancestor, branch, &StateChanges::default(), &writes);
        if switched.is_err() {
            *self.loaded.write() = before;
        }
        switched
    }

    /// Returns the earliest block whose state is known, given that of the inner backend: that of the newest block of a
    /// dump, if it is canonical.
    fn floor(&self, view: &dyn View) -> Result<Option<BlockNumber>, BackendError> {
        let Some(BlockRef { number, hash }) = *self.loaded.read() else { return Ok(None) };
        Ok((view.canonical_hash(number)? == Some(hash)).then_some(number))
    }

    /// Adds the pending edits of its parent to the changes of `block`, and returns them.
    fn include_edits(&self, block: &mut ExecutedBlock) -> StateChanges {
        let Some(edits) = self.edits_of(block.header.header.parent_hash) else { return StateChanges::default() };
        let mut changes = (*edits).clone();
        changes.merge(&block.changes);
        block.changes = Arc::new(changes);
        // The record contains only hashes of code; the bytes are among the block's changes.
        StateChanges { accounts: edits.accounts.clone(), code: BTreeMap::new() }
    }

    fn add(&self, head: H256, changes: &StateChanges) -> Result<(), BackendError> {
        let same_head = |pending: &&Pending| pending.head == head;
        let sequence = self.edits.read().pending.as_ref().filter(same_head).map(|pending| pending.count);
        let mut writes = if sequence.is_none() { self.delete_pending() } else { Vec::new() };
        writes.push(record::pending_record(head, sequence.unwrap_or_default(), changes));
        self.inner.write_records(&writes)?;
        let mut edits = self.edits.write();
        if sequence.is_none() {
            edits.pending = None;
        }
        edits.pending.get_or_insert_with(|| Pending::of(head)).add(changes);
        Ok(())
    }

    /// Returns the writes that delete the records of the pending edits.
    fn delete_pending(&self) -> Vec<RecordWrite> {
        let edits = self.edits.read();
        let Some(Pending { head, count, .. }) = &edits.pending else { return Vec::new() };
        (0..*count).map(|sequence| record::delete_pending(*head, sequence)).collect()
    }
}

impl StateBackend for EditableBackend {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        // Held so that the edits are those of the head, whatever switches meanwhile.
        let edits = self.edits.read();
        let view = self.inner.view()?;
        let BlockRef { number, hash } = view.head();
        let floor = self.floor(&*view)?;
        Ok(match (edits.of(hash), floor) {
            (Some(changes), floor) => {
                Arc::new(LayeredView::with_edits(view, number, changes.clone()).with_floor(floor.unwrap_or_default()))
            }
            (None, Some(floor)) => Arc::new(LayeredView::new(view, number, Vec::new())?.with_floor(floor)),
            (None, None) => view,
        })
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.append_edited(block, Edits::default(), writes)
    }

    fn switch_recording(
        &self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
        writes: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        self.switch_edited(ancestor, branch, &StateChanges::default(), writes)
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.inner.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.inner.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.inner.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.inner.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.inner.sync_records()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.inner.write_records(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.inner.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.inner.records(kind)
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.inner.caches()
    }

    fn health(&self) -> BackendHealth {
        self.inner.health()
    }
}

/// Returns the earliest block whose state is known: blocks that come from a dump were not executed, so that the states
/// before the last of them are not.
///
/// # Errors
/// Failures of the backend.
pub fn earliest_known_state(backend: &dyn StateBackend) -> Result<BlockNumber, BackendError> {
    let loaded = last_loaded(backend)?.map_or(0, |block| block.number);
    Ok(backend.view()?.earliest_state().max(loaded))
}

/// Returns the newest canonical block that comes from a dump, or `None` if there is none.
fn last_loaded(backend: &dyn StateBackend) -> Result<Option<BlockRef>, BackendError> {
    let view = backend.view()?;
    for (block, edits) in edited_blocks(backend)?.into_iter().rev() {
        if edits.loaded && view.canonical_hash(block.number)? == Some(block.hash) {
            return Ok(Some(block));
        }
    }
    Ok(None)
}

/// Returns `view` with the state on which `block` was executed: the state as of its parent with the edits that the
/// block includes.
///
/// # Errors
/// Failures of the backend.
pub fn as_edited(
    backend: &dyn StateBackend,
    view: Arc<dyn View>,
    block: BlockRef,
) -> Result<Arc<dyn View>, BackendError> {
    let (Some(parent), Some(changes)) = (block.number.checked_sub(1), record::state_edits(backend, block)?) else {
        return Ok(view);
    };
    Ok(Arc::new(LayeredView::with_edits(view, parent, Arc::new(changes))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{MemoryBackend, suite};
    use crate::state::{AccountChange, AccountState};
    use crate::test_chain::{account, address, backend, child, word};
    use node_types::{Bytes, U256};

    fn balance(number: u8, balance: u64) -> StateChanges {
        account(number, 0, balance, &[])
    }

    fn read(backend: &EditableBackend, number: u8, at: BlockNumber) -> u64 {
        let account = backend.view().unwrap().state(at).unwrap().account(address(number)).unwrap();
        account.map_or(0, |account| account.balance.low_u64())
    }

    #[test]
    fn passes_the_backend_suite_without_edits() {
        suite::run(&|genesis| {
            let inner = MemoryBackend::new(genesis).unwrap();
            Box::new(EditableBackend::open(Arc::new(inner)).unwrap())
        });
    }

    #[test]
    fn the_next_block_includes_edits_and_older_states_stay_unchanged() {
        let inner = backend();
        let editable = EditableBackend::open(inner.clone()).unwrap();
        editable.append(child(&*editable.view().unwrap(), 0, 0, Vec::new(), balance(1, 5))).unwrap();
        editable.edit::<BackendError>(|_| Ok(balance(1, 7))).unwrap();
        editable.edit::<BackendError>(|_| Ok(balance(2, 9))).unwrap();
        assert_eq!((read(&editable, 1, 1), read(&editable, 2, 1)), (7, 9));
        // As after a restart.
        let editable = EditableBackend::open(inner.clone()).unwrap();
        assert_eq!((read(&editable, 1, 1), read(&editable, 2, 1)), (7, 9));
        let view = editable.view().unwrap();
        assert!(matches!(view.state(1).unwrap().proof(address(1), &[]), Err(BackendError::Uncommitted(1))));
        view.state(1).unwrap().proof(address(3), &[]).unwrap();

        let block = child(&*view, 1, 0, Vec::new(), balance(3, 1));
        let reference = block.header.block_ref();
        editable.append(block).unwrap();
        assert_eq!((read(&editable, 1, 1), read(&editable, 2, 1)), (5, 0));
        assert_eq!((read(&editable, 1, 2), read(&editable, 2, 2), read(&editable, 3, 2)), (7, 9, 1));
        editable.view().unwrap().state(2).unwrap().proof(address(1), &[]).unwrap();
        let mut state = balance(1, 7);
        state.merge(&balance(2, 9));
        assert_eq!(edited_blocks(&editable).unwrap(), [(reference, Edits { state, ..Edits::default() })]);
        assert_eq!(inner.records(RecordKind::PendingEdit).unwrap(), []);
        assert_eq!(first_edited_block(&editable, 1).unwrap(), None);
        assert_eq!(first_edited_block(&editable, 2).unwrap(), Some(reference));

        // When the block leaves the chain, so do its edits; they do not become pending again.
        editable.switch(1, Vec::new()).unwrap();
        assert_eq!((read(&editable, 1, 1), read(&editable, 2, 1)), (5, 0));
        assert_eq!(first_edited_block(&editable, 9).unwrap(), None);
    }

    #[test]
    fn a_block_has_only_its_own_edits_even_if_a_side_block_has_the_same_hash() {
        let inner = backend();
        let editable = EditableBackend::open(inner.clone()).unwrap();
        editable.append(child(&*editable.view().unwrap(), 0, 0, Vec::new(), balance(1, 5))).unwrap();
        let block = child(&*editable.view().unwrap(), 1, 0, Vec::new(), balance(3, 1));
        let reference = block.header.block_ref();
        // An edit without effect: the block has the same state root, and so the same hash, with and without it.
        editable.edit::<BackendError>(|_| Ok(balance(1, 5))).unwrap();
        editable.append(block.clone()).unwrap();
        let edited = [(reference, Edits { state: balance(1, 5), ..Edits::default() })];
        assert_eq!(edited_blocks(&editable).unwrap(), edited);

        // A block that is refused changes nothing; the side block may still become canonical again.
        editable.switch(0, Vec::new()).unwrap();
        editable.append(block.clone()).unwrap_err();
        editable.append_edited(block.clone(), Edits { unsigned: true, ..Edits::default() }, &[]).unwrap_err();
        assert_eq!(edited_blocks(&editable).unwrap(), edited);

        editable.append(child(&*editable.view().unwrap(), 0, 0, Vec::new(), balance(1, 5))).unwrap();
        editable.append(block).unwrap();
        assert_eq!(editable.view().unwrap().head(), reference);
        assert_eq!(edited_blocks(&editable).unwrap(), []);
    }

    /// Records the balance of an account that a listener sees on each change.
    struct Seen(Mutex<Vec<u64>>, Mutex<std::sync::Weak<EditableBackend>>);

    impl HeadListener for Seen {
        fn head_changed(&self, _change: &HeadChange) {
            let backend = self.1.lock().upgrade().unwrap();
            let head = backend.view().unwrap().head().number;
            self.0.lock().push(read(&backend, 1, head));
        }
    }

    #[test]
    fn a_switch_sets_its_edits_or_changes_nothing() {
        let inner = backend();
        let editable = Arc::new(EditableBackend::open(inner.clone()).unwrap());
        editable.append(child(&*editable.view().unwrap(), 0, 0, Vec::new(), balance(1, 5))).unwrap();
        let sibling = child(&*editable.view().unwrap(), 0, 1, Vec::new(), balance(1, 6));
        editable.edit::<BackendError>(|_| Ok(balance(1, 7))).unwrap();
        let seen = Arc::new(Seen(Mutex::default(), Mutex::new(Arc::downgrade(&editable))));
        editable.subscribe(seen.clone());

        editable.switch_edited(7, vec![sibling.clone()], &balance(1, 8), &[]).unwrap_err();
        assert_eq!((read(&editable, 1, 1), inner.records(RecordKind::PendingEdit).unwrap().len()), (7, 1));
        editable.switch_edited(0, vec![sibling], &balance(1, 8), &[]).unwrap();
        assert_eq!((read(&editable, 1, 1), &*seen.0.lock()), (8, &vec![8]));
        assert_eq!(inner.records(RecordKind::PendingEdit).unwrap().len(), 1);
        // The same with an empty branch, and after a restart.
        editable.switch_edited(0, Vec::new(), &balance(1, 9), &[]).unwrap();
        assert_eq!((read(&editable, 1, 0), &*seen.0.lock()), (9, &vec![8, 9]));
        assert_eq!(read(&EditableBackend::open(inner).unwrap(), 1, 0), 9);
    }

    #[test]
    fn edits_of_storage_and_code() {
        let inner = backend();
        let editable = EditableBackend::open(inner).unwrap();
        editable.append(child(&*editable.view().unwrap(), 0, 0, Vec::new(), account(1, 1, 1, &[(1, 5)]))).unwrap();
        let code_hash = node_types::keccak256([1]);
        let account = AccountState { nonce: 1, balance: 1.into(), code_hash };
        let storage = [(word(1), U256::zero()), (word(2), 6.into())].into();
        let change = AccountChange { account: Some(account), storage_cleared: false, storage };
        let changes =
            StateChanges { accounts: [(address(1), change)].into(), code: [(code_hash, vec![1].into())].into() };
        editable.edit::<BackendError>(|_| Ok(changes.clone())).unwrap();
        let view = editable.view().unwrap();
        let state = view.state(1).unwrap();
        let slot = |slot| state.storage(address(1), word(slot)).unwrap();
        assert_eq!((slot(1), slot(2)), (U256::zero(), 6.into()));
        assert_eq!(state.code(code_hash).unwrap().unwrap(), Bytes::from(vec![1]));
        assert!(state.has_storage(address(1)).unwrap());
    }
}
