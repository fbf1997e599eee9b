//! Changing a chain in memory.

use super::ChainVersion;
use crate::block_bytes::BlockBytes;
use crate::error::StoreError;
use crate::keys::{Key, MAX_BLOCK, MAX_BLOCK_WITH_BASE, Table};
use crate::postings;
use crate::rows::{BlockRows, Tables};
use crate::state::{self, Before};
use crate::values;
use node_core::backend::{BackendError, View, fee_row};
use node_core::block::{BlockHashOrNumber, BlockRef, ExecutedBlock};
use node_core::state::StateChanges;
use node_types::{BlockNumber, H256};
use std::sync::Arc;

impl ChainVersion {
    /// Adds the genesis block to an empty chain, ignoring `self.head`.
    pub(crate) fn begin(&mut self, genesis: &ExecutedBlock, bytes: &BlockBytes) -> Result<(), BackendError> {
        let new = state::apply(&self.rows, None, Before::NOTHING, 0, &genesis.changes)?;
        self.push(genesis, bytes, new, true)
    }

    /// Adds the first block to a chain that has its state, with the root `root`, in runs or in its base.
    pub(crate) fn begin_with_state(
        &mut self,
        first: &ExecutedBlock,
        bytes: &BlockBytes,
        root: H256,
    ) -> Result<(), BackendError> {
        // The row of changes would contain the whole state.
        self.push(first, bytes, state::NewState { root, ..state::NewState::default() }, false)
    }

    /// Has the base, if there is one, fetch what it must know to append `block` to the head.
    pub(crate) fn fetch(&self, block: &ExecutedBlock) -> Result<(), StoreError> {
        match block.header.header.parent_hash == self.head.hash && block.header.header.has_state_root() {
            true => state::fetch(&self.rows, None, self.head.number, &block.changes),
            false => Ok(()),
        }
    }

    /// Appends `block` to the head. `bytes` is its encoding. If the chain has a base, the block may lack a state root, and must
    /// lack it if its parent does. There are no tries of its state then.
    pub(crate) fn extend(&mut self, block: &ExecutedBlock, bytes: &BlockBytes) -> Result<(), BackendError> {
        let (reference, parent) = (block.header.block_ref(), self.head);
        if parent.number.checked_add(1) != Some(reference.number) || block.header.header.parent_hash != parent.hash {
            return Err(BackendError::NotAChild { block: reference, parent });
        }
        if reference.number > if self.rows.base.is_some() { MAX_BLOCK_WITH_BASE } else { MAX_BLOCK } {
            return Err(StoreError::BeyondLimits(reference).into());
        }
        if self.rows.base.is_some() {
            if !block.header.header.has_state_root() {
                let new = state::apply_flat(&self.rows, parent.number, &block.changes)?;
                return self.push(block, bytes, new, true);
            }
            if !self.canonical_header(parent.number)?.header.has_state_root() {
                let (block, header) = (reference.number, block.header.header.state_root);
                return Err(BackendError::StateRootMismatch { block, header, computed: H256::zero() });
            }
        }
        let caches = Arc::clone(&self.caches);
        let mut next = caches.next.lock();
        let mut new = next.after(&self.rows, parent, &block.changes)?;
        let changed = std::mem::take(&mut new.changed);
        self.push(block, bytes, new, true)?;
        next.appended(reference.hash, changed);
        *caches.next_usage.lock() = next.usage();
        Ok(())
    }

    /// Adds the rows of `block` and of its state, and the row of its changes if `keep_changes` is set.
    fn push(
        &mut self,
        block: &ExecutedBlock,
        bytes: &BlockBytes,
        new: state::NewState,
        keep_changes: bool,
    ) -> Result<(), BackendError> {
        let BlockRef { number, hash } = block.header.block_ref();
        let (header, computed) = (block.header.header.state_root, new.root);
        if computed != header {
            return Err(BackendError::StateRootMismatch { block: number, header, computed });
        }
        let terms =
            postings::terms_of(number, &block.receipts).ok_or(StoreError::BeyondLimits(block.header.block_ref()))?;
        let changes = values::encode_changes_row(&bytes.accounts, block.changes.code.keys());
        let fees = fee_row(block);
        let tips = values::encode_tips(&fees.tips);

        let mut rows = BlockRows::default();
        for (code_hash, code) in &block.changes.code {
            let key = Key::of_hash(Table::Code, *code_hash);
            if self.rows.get(&key)?.is_none() {
                rows.add(key, number, code);
            }
        }
        let mut put = |key, value: &[u8]| rows.add(key, number, value);
        new.rows.into_iter().for_each(|(key, value)| put(key, &value));
        put(Key::of_block(Table::Headers, number), &bytes.header);
        put(Key::of_block(Table::Bodies, number), &bytes.body);
        put(Key::of_block(Table::Receipts, number), &bytes.receipts);
        if keep_changes {
            put(Key::of_block(Table::Changes, number), &changes);
        }
        put(Key::of_block(Table::Fees, number), &tips);
        put(Key::of_hash(Table::Numbers, hash), &values::encode_number(number));
        for (index, transaction) in block.body.transactions.iter().enumerate() {
            let key = Key::of_hash(Table::Transactions, transaction.hash);
            put(key, &values::encode_position(number, index));
        }
        for (key, ids) in terms {
            if let Some(last) = ids.last() {
                rows.add(key, last.0, &postings::encode(&ids));
            }
        }

        // Nothing can fail after this point, so no row of a rejected block remains.
        self.rows.young.add(rows);
        self.caches.headers.insert(hash, Arc::clone(&block.header), bytes.header.len());
        self.caches.bodies.insert(hash, Arc::clone(&block.body), bytes.body.len());
        self.caches.receipts.insert(hash, Arc::clone(&block.receipts), bytes.receipts.len());
        self.caches.tips.insert(hash, fees.tips, tips.len());
        self.head = BlockRef { number, hash };
        self.rows.head = number;
        self.side_blocks.remove(self.head);
        Ok(())
    }

    /// Turns the blocks above `ancestor` into side blocks, and returns them, the highest first.
    pub(crate) fn remove_above(&mut self, ancestor: BlockNumber) -> Result<Vec<BlockRef>, BackendError> {
        let mut removed = Vec::new();
        while self.head.number > ancestor {
            let block = self.executed(self.head)?;
            removed.push(self.head);
            self.head = BlockRef { number: self.head.number - 1, hash: block.header.header.parent_hash };
            self.rows.head = self.head.number;
            self.side_blocks.insert(block);
        }
        if !removed.is_empty() {
            // Other versions of the chain keep the generations with all rows.
            self.rows.young = Arc::new(self.rows.young.up_to(ancestor));
            if ancestor < self.old_end {
                self.rows.old = Arc::new(self.rows.old.up_to(ancestor));
            }
            self.rows.limit = self.rows.limit.min(ancestor);
            self.old_end = self.old_end.min(ancestor);
        }
        Ok(removed)
    }

    /// Returns the changes of the canonical block `number`.
    pub(super) fn changes_of(&self, number: BlockNumber) -> Result<StateChanges, BackendError> {
        let row = self.block_row(Table::Changes, number)?;
        let row = values::decode_changes_row(&row).map_err(StoreError::from)?;
        let mut changes = StateChanges { accounts: row.accounts, ..StateChanges::default() };
        for hash in &row.code {
            let missing = StoreError::Missing { table: Table::Code.name() };
            changes.code.insert(*hash, self.code(*hash)?.ok_or(missing)?);
        }
        Ok(changes)
    }

    /// Returns the canonical block `reference` as it was appended.
    fn executed(&self, reference: BlockRef) -> Result<ExecutedBlock, BackendError> {
        let changes = self.changes_of(reference.number)?;
        let id = BlockHashOrNumber::Hash(reference.hash);
        let missing = |table: Table| StoreError::Missing { table: table.name() };
        Ok(ExecutedBlock {
            header: self.header(id)?.ok_or(missing(Table::Headers))?,
            body: self.body(id)?.ok_or(missing(Table::Bodies))?,
            receipts: self.receipts(id)?.ok_or(missing(Table::Receipts))?,
            changes: Arc::new(changes),
        })
    }

    /// Removes rows above the head, which remain after a failed change.
    pub(crate) fn forget_above_head(&mut self) {
        self.rows.young = Arc::new(self.rows.young.up_to(self.head.number));
    }

    /// Records that the old generation and the side blocks of `written`, an earlier version of this chain, were
    /// written to runs, which are in `tables`. Blocks of that generation that have left the chain in the meantime are
    /// hidden.
    pub(crate) fn mark_old_as_in_runs(&mut self, written: &Self, tables: Arc<Tables>) {
        self.side_blocks.mark_as_in_runs(&written.side_blocks);
        self.rows.tables = tables;
        self.rows.limit = self.old_end;
        self.rows.old = Arc::default();
    }

    /// Turns the young generation into the old one, which must be empty.
    pub(crate) fn age(&mut self) {
        debug_assert_eq!(self.old_end, self.rows.limit);
        let young = Arc::new(self.rows.young.next());
        self.rows.old = std::mem::replace(&mut self.rows.young, young);
        self.old_end = self.head.number;
    }
}
