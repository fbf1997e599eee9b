//! One version of a chain.

mod next;
mod view;
mod write;

pub(crate) use next::NextState;

use crate::caches::Caches;
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::{Rows, Tables, Value};
use crate::side_blocks::SideBlocks;
use crate::values;
use node_core::backend::{BackendError, BaseState};
use node_core::block::{BlockHashOrNumber, BlockRef, SealedHeader};
use node_types::{BlockNumber, H256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// An immutable version of the chain, which is also a view of it. Cheap to clone, because clones share their content.
///
/// Changes are made to a clone, because a failed method leaves the chain partly changed. Blocks that are appended to
/// a clone go to the young generation, which both share; the original ignores rows above its own head.
#[derive(Clone)]
pub(crate) struct ChainVersion {
    pub(crate) head: BlockRef,
    /// The number of the first block: 0, unless the chain has a base.
    pub(crate) first: BlockNumber,
    /// The earliest block whose state is stored.
    pub(crate) earliest: BlockNumber,
    pub(crate) rows: Rows,
    /// The last block of the old generation. Runs have the blocks up to `rows.limit`, the young generation those
    /// after `old_end`.
    pub(crate) old_end: BlockNumber,
    pub(crate) side_blocks: SideBlocks,
    pub(crate) caches: Arc<Caches>,
}

impl ChainVersion {
    /// Returns a chain without a base whose blocks up to `head` are all in runs.
    pub(crate) fn in_runs(
        head: BlockRef,
        earliest: BlockNumber,
        tables: Arc<Tables>,
        side_blocks: SideBlocks,
        caches: Arc<Caches>,
    ) -> Self {
        let (young, old) = Default::default();
        Self {
            head,
            first: 0,
            earliest,
            rows: Rows { head: head.number, young, old, tables, limit: head.number, base: None },
            old_end: head.number,
            side_blocks,
            caches,
        }
    }

    /// Returns this chain with its first block and its base.
    pub(crate) fn with_base(mut self, first: BlockNumber, base: Option<Arc<dyn BaseState>>) -> Self {
        (self.first, self.rows.base) = (first, base);
        self
    }

    /// Returns the number of a canonical block and the hash of the header with that number, or `None` for side blocks
    /// and unknown blocks.
    pub(crate) fn locate(&self, id: BlockHashOrNumber) -> Result<Option<(BlockNumber, H256)>, StoreError> {
        match id {
            BlockHashOrNumber::Number(number) => Ok(self.canonical(number)?.map(|hash| (number, hash))),
            BlockHashOrNumber::Hash(hash) => match self.rows.get(&Key::of_hash(Table::Numbers, hash))? {
                Some(value) => Ok(Some((values::decode_number(&value)?, hash))),
                None => Ok(None),
            },
        }
    }

    /// Returns the hash of the canonical block `number`.
    pub(crate) fn canonical(&self, number: BlockNumber) -> Result<Option<H256>, StoreError> {
        if !(self.first..=self.head.number).contains(&number) {
            return Ok(None);
        }
        // Blocks in runs up to the limit are canonical.
        if number <= self.rows.limit {
            let tables = &self.rows.tables;
            let read = |range: RangeInclusive<BlockNumber>| -> Result<Arc<[H256]>, StoreError> {
                tables.fetch_blocks(&[Table::Headers], range.clone())?;
                let mut headers = tables.of_blocks(Table::Headers);
                // Those of the blocks before the first one are never read.
                let missing = self.first.saturating_sub(*range.start());
                let mut hashes = vec![H256::zero(); missing as usize];
                for number in range.skip(missing as usize) {
                    let Some(header) = headers.get(number)? else { break };
                    hashes.push(values::header_hash(header)?);
                }
                Ok(hashes.into())
            };
            if let Some(hash) = self.caches.hashes.get(tables.id(), number, read)? {
                return Ok(Some(hash));
            }
        }
        Ok(Some(values::header_hash(&self.block_row(Table::Headers, number)?)?))
    }

    /// Returns a row that every canonical block has.
    pub(crate) fn block_row(&self, table: Table, number: BlockNumber) -> Result<Value, StoreError> {
        self.rows.get(&Key::of_block(table, number))?.ok_or(StoreError::Missing { table: table.name() })
    }

    /// Returns the header of the canonical block `number`, which must not be above the head.
    pub(crate) fn canonical_header(&self, number: BlockNumber) -> Result<Arc<SealedHeader>, StoreError> {
        let hash = self.canonical(number)?.ok_or(StoreError::Missing { table: Table::Headers.name() })?;
        self.caches.headers.get_or(hash, || {
            let row = self.block_row(Table::Headers, number)?;
            Ok((Arc::new(values::decode_header(&row)?), row.len()))
        })
    }

    /// Fails for blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head.number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }

    /// Fails for blocks above the head, and for those before the first one.
    fn check_block(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number < self.first { Err(BackendError::UnknownBlock(number)) } else { self.check(number) }
    }

    /// Fails for blocks whose state is not stored.
    fn check_state(&self, block: BlockNumber) -> Result<(), BackendError> {
        self.check(block)?;
        let earliest = self.earliest;
        if block < earliest { Err(BackendError::StatePruned { block, earliest }) } else { Ok(()) }
    }
}
