//! One version of a whole chain.

mod view;
mod write;

pub(crate) use write::keys_of_block;

use crate::caches::Caches;
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::{Rows, Tables, Value};
use crate::side_blocks::SideBlocks;
use crate::values;
use node_core::backend::BackendError;
use node_core::block::{BlockHashOrNumber, BlockRef, SealedHeader};
use node_types::{BlockNumber, H256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A chain as of one moment, which is also a view of it. Cloning is cheap, for everything within is shared.
///
/// A method that fails leaves the chain half changed: changes are made to a clone. What a clone appends goes to the
/// young generation that both share, where the original does not see it.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) head: BlockRef,
    /// The lowest block whose state is kept.
    pub(crate) earliest: BlockNumber,
    pub(crate) rows: Rows,
    /// The last block of the old generation. Those of the database end at `rows.limit`; the young one has the rest.
    pub(crate) old_end: BlockNumber,
    pub(crate) side_blocks: SideBlocks,
    pub(crate) caches: Arc<Caches>,
}

impl Chain {
    /// The chain whose blocks up to `head` are all in the database.
    pub(crate) fn in_database(
        head: BlockRef,
        earliest: BlockNumber,
        database: Arc<Tables>,
        side_blocks: SideBlocks,
        caches: Arc<Caches>,
    ) -> Self {
        let (young, old) = Default::default();
        Self {
            head,
            earliest,
            rows: Rows { head: head.number, young, old, database, limit: head.number },
            old_end: head.number,
            side_blocks,
            caches,
        }
    }

    /// The number of a block and the hash of the header that the canonical chain has there; none for side blocks.
    pub(crate) fn locate(&self, id: BlockHashOrNumber) -> Result<Option<(BlockNumber, H256)>, StoreError> {
        match id {
            BlockHashOrNumber::Number(number) => Ok(self.canonical(number)?.map(|hash| (number, hash))),
            BlockHashOrNumber::Hash(hash) => match self.rows.get(&Key::of_hash(Table::Numbers, hash))? {
                Some(value) => Ok(Some((values::decode_number(&value)?, hash))),
                None => Ok(None),
            },
        }
    }

    /// The hash of the canonical block `number`.
    pub(crate) fn canonical(&self, number: BlockNumber) -> Result<Option<H256>, StoreError> {
        if number > self.head.number {
            return Ok(None);
        }
        // Up to the limit, what the database has is canonical.
        if number <= self.rows.limit {
            let database = &self.rows.database;
            let read = |range: RangeInclusive<BlockNumber>| -> Result<Arc<[H256]>, StoreError> {
                let [first, last] = [range.start(), range.end()].map(|number| Key::of_block(Table::Headers, *number));
                let rows = database.table(Table::Headers).range::<&[u8]>(first.prefix()..=last.prefix())?;
                rows.map(|row| Ok(values::header_hash(row?.1.value())?)).collect()
            };
            if let Some(hash) = self.caches.hashes.get(database.id(), number, read)? {
                return Ok(Some(hash));
            }
        }
        Ok(Some(values::header_hash(&self.block_row(Table::Headers, number)?)?))
    }

    /// A row that every canonical block has.
    pub(crate) fn block_row(&self, table: Table, number: BlockNumber) -> Result<Value, StoreError> {
        self.rows.get(&Key::of_block(table, number))?.ok_or(StoreError::Missing { table: table.name() })
    }

    /// The header of the canonical block `number`, not above the head.
    pub(crate) fn canonical_header(&self, number: BlockNumber) -> Result<Arc<SealedHeader>, StoreError> {
        let hash = self.canonical(number)?.ok_or(StoreError::Missing { table: Table::Headers.name() })?;
        self.caches.headers.get_or(hash, || {
            let row = self.block_row(Table::Headers, number)?;
            Ok((Arc::new(values::decode_header(&row)?), row.len()))
        })
    }

    /// Refuses blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head.number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }

    /// Refuses blocks whose state is not there.
    fn check_state(&self, block: BlockNumber) -> Result<(), BackendError> {
        self.check(block)?;
        let earliest = self.earliest;
        if block < earliest { Err(BackendError::StatePruned { block, earliest }) } else { Ok(()) }
    }
}
