//! Runs: immutable sorted files of rows.
//!
//! A run holds the rows that consecutive blocks wrote. Runs are written when memory is full, and merged into larger ones
//! in the background. Reading looks into the run that has the block, and into older ones.

mod block;
mod cache;
mod failures;
mod filter;
mod format;
mod merge;
mod run;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use format::RunId;
pub(crate) use merge::{Ascending, Merged};
pub(crate) use run::{Cursor, Run, RunsShared};
pub(crate) use writer::RunWriter;

use node_types::BlockNumber;
use std::io;
use std::ops::RangeInclusive;

/// What is known of a run without reading its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The blocks whose rows it has; empty if it has only others.
    pub(crate) blocks: RangeInclusive<BlockNumber>,
    /// Number of levels of the index above the partitions.
    levels: usize,
    /// Sizes of the tables, by their numbers.
    pub(crate) tables: Vec<TableSize>,
}

/// The size of a table in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableSize {
    pub(crate) rows: u64,
    /// Bytes of keys and values.
    pub(crate) bytes: u64,
    /// Bytes of the frames, with indexes and filters.
    pub(crate) disk: u64,
}

/// Returns the error for a file that is damaged.
fn damage(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
