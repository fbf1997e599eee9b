//! Runs: immutable sorted files of rows.
//!
//! A run contains the rows that consecutive blocks wrote. Runs are written when memory is full, and merged into
//! larger ones in the background. Reads search the run that has the block, and older ones.

mod block;
mod cache;
mod ending;
mod failures;
mod fetch;
mod filter;
mod format;
mod merge;
#[cfg(any(test, feature = "test-faults"))]
mod resealed;
mod run;
#[cfg(test)]
mod tests;
mod warm;
mod writer;

pub(crate) use ending::ending;
pub(crate) use fetch::Known;
pub(crate) use format::{Handle, RunId};
pub(crate) use merge::{Ascending, Merged};
#[cfg(any(test, feature = "test-faults"))]
pub(crate) use resealed::read_run;
pub(crate) use run::{Cursor, Run, RunsShared};
pub(crate) use writer::RunWriter;

use node_types::BlockNumber;
use std::ops::RangeInclusive;

/// The properties of a run that are known without reading its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The blocks whose rows it has; empty if its rows do not belong to blocks.
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
