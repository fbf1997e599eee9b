//! Writing a run.

use super::block::BlockBuilder;
use super::filter;
use super::format::{FOOTER, Handle, RunId, footer, put_frame};
use super::{Properties, TableSize};
use crate::codec::put_varint;
use crate::files::{File, Folder};
use crate::keys::filter_part;
use node_types::BlockNumber;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Sizes of the parts of a run.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Size of a block of rows in bytes, unless a single row is longer.
    pub(super) rows: usize,
    /// Size of a block of last keys of partitions in bytes, unless a single entry is longer. Most runs have only one,
    /// the root, which is always in memory.
    pub(super) index: usize,
    /// Number of blocks of rows in a partition.
    pub(super) partition: usize,
}

const SIZES: Sizes = Sizes { rows: 8 << 10, index: 64 << 10, partition: 64 };

/// Number of bytes written at a time.
const WRITE: usize = 1 << 20;

/// Writes ascending rows to a new file.
///
/// Every 64 blocks of rows are followed by their index and the filter of their keys; together they are a *partition*.
/// The last keys of the partitions are in index blocks, which are indexed in the same way, up to a single block, the
/// root. For a run of any size, only the root has to be in memory.
pub(crate) struct RunWriter {
    file: Arc<dyn File>,
    id: RunId,
    sizes: Sizes,
    /// Offset of `unwritten` in the file.
    offset: u64,
    unwritten: Vec<u8>,
    rows: BlockBuilder,
    /// Last keys of the blocks of rows of this partition, with their handles.
    index: BlockBuilder,
    blocks: usize,
    /// Hashes of the keys of this partition. Equal hashes are adjacent.
    hashes: Vec<u64>,
    /// The levels above the partitions: last keys with handles.
    levels: Vec<BlockBuilder>,
    tables: Vec<TableSize>,
}

impl RunWriter {
    pub(crate) fn create(folder: &dyn Folder, id: RunId) -> io::Result<Self> {
        Self::with_sizes(folder, id, SIZES)
    }

    pub(super) fn with_sizes(folder: &dyn Folder, id: RunId, sizes: Sizes) -> io::Result<Self> {
        Ok(Self {
            file: folder.create(&id.file_name())?,
            id,
            sizes,
            offset: 0,
            unwritten: Vec::new(),
            rows: BlockBuilder::default(),
            index: BlockBuilder::default(),
            blocks: 0,
            hashes: Vec::new(),
            levels: vec![BlockBuilder::default()],
            tables: Vec::new(),
        })
    }

    /// Returns the number of rows added so far.
    pub(crate) fn count(&self) -> u64 {
        self.tables.iter().map(|size| size.rows).sum()
    }

    /// Adds a row. Its key, which begins with the number of its table, must be above all others.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if let Some(part) = filter_part(key) {
            let hash = filter::hash(part);
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        let table = usize::from(key.first().copied().unwrap_or_default());
        if self.tables.len() <= table {
            self.tables.resize(table + 1, TableSize::default());
        }
        self.tables[table].rows += 1;
        // Like statistics, this does not count the number of the table.
        self.tables[table].bytes += (key.len() - 1 + value.len()) as u64;
        self.rows.add(key, value);
        if self.rows.len() >= self.sizes.rows { self.end_block() } else { Ok(()) }
    }

    /// Writes the rest. The run is durable when this returns, except for its name.
    pub(crate) fn finish(mut self, blocks: RangeInclusive<BlockNumber>) -> io::Result<()> {
        self.end_partition()?;
        let mut level = 0;
        while level + 1 < self.levels.len() {
            self.end_index_block(level)?;
            level += 1;
        }
        let root = self.levels[level].finish();
        let root = self.frame(&root)?;
        let mut properties = Vec::new();
        root.put(&mut properties);
        Properties { blocks, levels: self.levels.len(), tables: self.tables.clone() }.put(&mut properties);
        let handle = self.frame(&properties)?;
        let footer: [u8; FOOTER] = footer(self.id, handle);
        self.unwritten.extend_from_slice(&footer);
        self.write()?;
        self.file.sync_data()
    }

    fn end_block(&mut self) -> io::Result<()> {
        let block = self.rows.finish();
        let mut value = Vec::new();
        self.frame_of_rows(&block)?.put(&mut value);
        self.index.add(self.rows.last(), &value);
        self.blocks += 1;
        if self.blocks == self.sizes.partition { self.end_partition() } else { Ok(()) }
    }

    fn end_partition(&mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            // Avoids ending the partition again.
            self.blocks = 0;
            self.end_block()?;
        }
        if self.index.is_empty() {
            return Ok(());
        }
        self.blocks = 0;
        let index = self.index.finish();
        let mut value = Vec::new();
        self.frame_of_rows(&index)?.put(&mut value);
        if !self.hashes.is_empty() {
            let filter = filter::build(&self.hashes);
            self.hashes.clear();
            self.frame_of_rows(&filter)?.put(&mut value);
        }
        self.levels[0].add(self.index.last(), &value);
        let mut level = 0;
        // With blocks of one entry, the level above would be as long as this one, and there would be no end of
        // levels.
        while self.levels[level].len() >= self.sizes.index && self.levels[level].has_many() {
            self.end_index_block(level)?;
            level += 1;
        }
        Ok(())
    }

    /// Moves the block at `level` to the file, and its last key to the level above.
    fn end_index_block(&mut self, level: usize) -> io::Result<()> {
        if level + 1 == self.levels.len() {
            self.levels.push(BlockBuilder::default());
        }
        if self.levels[level].is_empty() {
            return Ok(());
        }
        let block = self.levels[level].finish();
        let mut value = Vec::new();
        self.frame(&block)?.put(&mut value);
        let [own, above] = &mut self.levels[level..level + 2] else { return Ok(()) };
        above.add(own.last(), &value);
        Ok(())
    }

    /// Writes a block, index or filter. Its size is counted for the table of the last row, although it may have rows
    /// of several tables.
    fn frame_of_rows(&mut self, content: &[u8]) -> io::Result<Handle> {
        let handle = self.frame(content)?;
        if let Some(size) = self.tables.last_mut() {
            size.disk += handle.length;
        }
        Ok(handle)
    }

    fn frame(&mut self, content: &[u8]) -> io::Result<Handle> {
        let start = self.unwritten.len();
        let offset = self.offset + start as u64;
        put_frame(&mut self.unwritten, self.id, offset, content);
        let length = (self.unwritten.len() - start) as u64;
        if self.unwritten.len() >= WRITE {
            self.write()?;
        }
        Ok(Handle { offset, length })
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(self.offset, &self.unwritten)?;
        self.offset += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }
}

impl Properties {
    fn put(&self, out: &mut Vec<u8>) {
        for number in [*self.blocks.start(), *self.blocks.end(), self.levels as u64, self.tables.len() as u64] {
            put_varint(out, number);
        }
        for size in &self.tables {
            put_varint(out, size.rows);
            put_varint(out, size.bytes);
            put_varint(out, size.disk);
        }
    }
}
