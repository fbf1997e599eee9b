//! Changing a chain in memory.

use super::Chain;
use crate::block_bytes::BlockBytes;
use crate::error::StoreError;
use crate::keys::{Key, LogId, MAX_BLOCK, Table};
use crate::postings;
use crate::rows::{Generation, Value, first_version_above};
use crate::state::{self, NodeCache};
use crate::values;
use crate::wal::Sequence;
use node_core::backend::{BackendError, View, fee_row};
use node_core::block::{BlockId, BlockRef, ExecutedBlock};
use node_core::state::StateChanges;
use rpds::VectorSync;
use std::sync::Arc;

impl Chain {
    /// Adds the first block to a chain that has none; `self.head` is ignored.
    pub(crate) fn begin(&mut self, genesis: &ExecutedBlock, bytes: &BlockBytes) -> Result<(), BackendError> {
        let new = state::apply(&self.rows, None, None, 0, &genesis.changes)?;
        self.push(genesis, bytes, new)
    }

    /// Adds `block`, whose parts `bytes` are, behind the head. `nodes` are those of the head's state.
    pub(crate) fn extend(
        &mut self,
        block: &ExecutedBlock,
        bytes: &BlockBytes,
        nodes: &mut NodeCache,
    ) -> Result<(), BackendError> {
        let (reference, parent) = (block.header.block_ref(), self.head);
        if parent.number.checked_add(1) != Some(reference.number) || block.header.header.parent_hash != parent.hash {
            return Err(BackendError::NotAChild { block: reference, parent });
        }
        if reference.number > MAX_BLOCK {
            return Err(StoreError::BeyondLimits(reference).into());
        }
        let new = state::apply(&self.rows, Some(&mut *nodes), Some(parent.number), reference.number, &block.changes)?;
        let written = new.nodes.clone();
        self.push(block, bytes, new)?;
        written.into_iter().for_each(|(trie, path, stored)| nodes.insert((trie, path), stored));
        Ok(())
    }

    /// Adds the rows of `block` and of its state.
    fn push(&mut self, block: &ExecutedBlock, bytes: &BlockBytes, new: state::NewState) -> Result<(), BackendError> {
        let BlockRef { number, hash } = block.header.block_ref();
        let (header, computed) = (block.header.header.state_root, new.root);
        if computed != header {
            return Err(BackendError::StateRootMismatch { block: number, header, computed });
        }
        let terms =
            postings::terms_of(number, &block.receipts).ok_or(StoreError::BeyondLimits(block.header.block_ref()))?;
        let positions: Vec<_> = new.nodes.iter().map(|(trie, path, _)| (*trie, *path)).collect();
        let changes = values::encode_changes_row(&bytes.accounts, &block.changes.code, &new.tries, &positions);
        let fees = fee_row(block);
        let tips = values::encode_tips(&fees.tips);

        let young = &mut self.rows.young;
        let mut put = |key, value: Value| young.put(key, number, value);
        new.rows.into_iter().for_each(|(key, value)| put(key, value));
        put(Key::of_block(Table::Headers, number), bytes.header.as_slice().into());
        put(Key::of_block(Table::Bodies, number), bytes.body.as_slice().into());
        put(Key::of_block(Table::Receipts, number), bytes.receipts.as_slice().into());
        put(Key::of_block(Table::Changes, number), changes.into());
        put(Key::of_block(Table::Fees, number), tips.as_slice().into());
        put(Key::of_hash(Table::Numbers, hash), values::encode_number(number).into());
        for (index, transaction) in block.body.transactions.iter().enumerate() {
            let key = Key::of_hash(Table::Transactions, transaction.hash);
            put(key, values::encode_position(number, index).into());
        }
        for (key, ids) in terms {
            young.put(key, ids[0].0, postings::encode(&ids).into());
        }
        for (code_hash, code) in &block.changes.code {
            let key = Key::of_hash(Table::Code, *code_hash);
            if !self.rows.contains(&key)? {
                self.rows.young.put(key, number, Value::from(&**code));
            }
        }

        self.caches.headers.insert(hash, Arc::clone(&block.header), bytes.header.len());
        self.caches.bodies.insert(hash, Arc::clone(&block.body), bytes.body.len());
        self.caches.receipts.insert(hash, Arc::clone(&block.receipts), bytes.receipts.len());
        self.caches.tips.insert(hash, fees.tips, tips.len());
        self.head = BlockRef { number, hash };
        self.side_blocks.remove(self.head);
        Ok(())
    }

    /// Makes the head, which is not genesis, a side block.
    pub(crate) fn pop(&mut self) -> Result<BlockRef, BackendError> {
        let removed = self.head;
        let row =
            values::decode_changes_row(&self.block_row(Table::Changes, removed.number)?).map_err(StoreError::from)?;
        let block = self.executed(removed, &row)?;
        let parent = BlockRef { number: removed.number - 1, hash: block.header.header.parent_hash };
        if removed.number > self.rows.limit {
            for key in keys_of_block(&block, &row)? {
                let version = first_version_above(&key, parent.number);
                self.rows.young.drop_from(&key, version);
                self.rows.old.drop_from(&key, version);
            }
            self.sequences.drop_last_mut();
        } else {
            self.rows.limit = parent.number;
        }
        self.old_end = self.old_end.min(parent.number);
        self.head = parent;
        self.side_blocks.insert(block);
        Ok(removed)
    }

    /// The canonical block `reference` as it was appended; `row` says what it changed.
    fn executed(&self, reference: BlockRef, row: &values::ChangesRow) -> Result<ExecutedBlock, BackendError> {
        let id = BlockId::Hash(reference.hash);
        let missing = |table: Table| StoreError::Missing { table: table.name() };
        let mut changes = StateChanges { accounts: row.accounts.clone(), ..StateChanges::default() };
        for hash in &row.code {
            changes.code.insert(*hash, self.code(*hash)?.ok_or(missing(Table::Code))?);
        }
        Ok(ExecutedBlock {
            header: self.header(id)?.ok_or(missing(Table::Headers))?,
            body: self.body(id)?.ok_or(missing(Table::Bodies))?,
            receipts: self.receipts(id)?.ok_or(missing(Table::Receipts))?,
            changes: Arc::new(changes),
        })
    }

    /// Notes the entry of the log that holds the newest blocks.
    pub(crate) fn stamp(&mut self, sequence: Sequence) {
        let in_memory = self.head.number - self.rows.limit;
        while (self.sequences.len() as u64) < in_memory {
            self.sequences.push_back_mut(sequence);
        }
    }

    /// The log entry of the last block of the old generation; none if that is empty.
    pub(crate) fn old_sequence(&self) -> Option<Sequence> {
        let count = self.old_end.checked_sub(self.rows.limit)?.checked_sub(1)?;
        self.sequences.get(usize::try_from(count).ok()?).copied()
    }

    /// The chain after its old generation went to the database, of which `database` is a snapshot.
    pub(crate) fn old_is_in_database(&mut self, database: Arc<crate::rows::Tables>) {
        let flushed = (self.old_end - self.rows.limit) as usize;
        self.sequences = self.sequences.iter().skip(flushed).copied().collect::<VectorSync<_>>();
        self.rows.database = database;
        self.rows.limit = self.old_end;
        self.rows.old = Generation::new();
    }

    /// Makes the young generation old. There must be no block in the old one.
    pub(crate) fn age(&mut self) {
        debug_assert_eq!(self.old_end, self.rows.limit);
        // Code that was deployed by blocks which were taken back stays.
        for (key, versions) in self.rows.old.iter() {
            if let [(version, code)] = versions[..]
                && self.rows.young.newest(key, u64::MAX).is_none()
            {
                self.rows.young.put(*key, version, Arc::clone(code));
            }
        }
        self.rows.old = std::mem::replace(&mut self.rows.young, Generation::new());
        self.old_end = self.head.number;
    }
}

/// All rows that a block wrote, but for code.
pub(crate) fn keys_of_block(block: &ExecutedBlock, row: &values::ChangesRow) -> Result<Vec<Key>, StoreError> {
    let BlockRef { number, hash } = block.header.block_ref();
    let mut keys = state::keys_of(row);
    keys.extend(
        [Table::Headers, Table::Bodies, Table::Receipts, Table::Changes, Table::Fees]
            .map(|table| Key::of_block(table, number)),
    );
    keys.push(Key::of_hash(Table::Numbers, hash));
    keys.extend(block.body.transactions.iter().map(|tx| Key::of_hash(Table::Transactions, tx.hash)));
    let terms = postings::terms_of(number, &block.receipts);
    keys.extend(terms.ok_or(StoreError::BeyondLimits(block.header.block_ref()))?.into_keys());
    Ok(keys)
}

/// The first log that belongs to blocks above `limit`.
pub(crate) fn first_log_above(limit: u64) -> LogId {
    LogId::first_of(limit + 1)
}
