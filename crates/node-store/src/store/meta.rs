//! The table `meta`, and the tables whose rows do not belong to canonical blocks.

use crate::codec::{Malformed, Reader, put_varint};
use crate::error::StoreError;
use crate::rows::Definition;
use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_types::{BlockNumber, H256};
use redb::{ReadableTable, TableDefinition};

/// Version of the layout that this version reads and writes. docs/storage.md says when to raise it.
pub(crate) const LAYOUT: u64 = 1;

pub(super) const META: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("meta");

/// The row of [`META`] with the number of a block (varint): the earliest state was checked against its header when it was
/// that of this block or an earlier one. Missing means 0. Versions that could damage a state when they were killed while
/// pruning did not write it.
pub(super) const CHECKED_FLOOR: &str = "checked_floor";

/// The row of [`META`] with the genesis file, which the users of a store read and write.
pub(super) const GENESIS_FILE: &str = "genesis_file";

/// Block number and hash to side block.
pub(super) const SIDE_BLOCKS: Definition = TableDefinition::new("side_blocks");

/// Kind and key to value of a record.
pub(super) const RECORDS: Definition = TableDefinition::new("records");

/// The row `chain` of the table `meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    /// Hash of the genesis block.
    pub(super) genesis: H256,
    /// The newest block in the database.
    pub(super) head: BlockRef,
    /// The earliest block whose state is stored.
    pub(super) earliest: BlockNumber,
    /// The database has all entries of the log up to this one.
    pub(super) logged: Sequence,
}

impl Meta {
    /// Reads the table. `None` if it is empty.
    pub(super) fn read(table: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Option<Self>, StoreError> {
        let Some(layout) = table.get("layout")? else { return Ok(None) };
        let found = Reader::new(layout.value(), "the layout").varint()?;
        if found != LAYOUT {
            return Err(StoreError::UnsupportedLayout { found, supported: LAYOUT });
        }
        let chain = table.get("chain")?.ok_or(Malformed("the table meta"))?;
        let mut reader = Reader::new(chain.value(), "the table meta");
        let meta = Self {
            genesis: reader.h256()?,
            head: BlockRef { number: reader.varint()?, hash: reader.h256()? },
            earliest: reader.varint()?,
            logged: Sequence(reader.varint()?),
        };
        reader.finish()?;
        Ok(Some(meta))
    }

    /// Returns the rows of the table.
    pub(super) fn rows(&self) -> [(&'static str, Vec<u8>); 2] {
        let mut layout = Vec::new();
        put_varint(&mut layout, LAYOUT);
        let mut chain = self.genesis.as_bytes().to_vec();
        put_varint(&mut chain, self.head.number);
        chain.extend_from_slice(self.head.hash.as_bytes());
        put_varint(&mut chain, self.earliest);
        put_varint(&mut chain, self.logged.0);
        [("layout", layout), ("chain", chain)]
    }
}

/// Encodes the row [`CHECKED_FLOOR`].
pub(super) fn encode_floor(floor: BlockNumber) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, floor);
    out
}

/// Reads the row [`CHECKED_FLOOR`].
pub(super) fn checked_floor(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<BlockNumber, StoreError> {
    match table.get(CHECKED_FLOOR)? {
        Some(row) => Ok(Reader::new(row.value(), "the checked floor").varint()?),
        None => Ok(0),
    }
}

pub(super) fn side_block_key(block: BlockRef) -> Vec<u8> {
    [&block.number.to_be_bytes()[..], block.hash.as_bytes()].concat()
}
