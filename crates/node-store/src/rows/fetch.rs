//! Fetching rows of runs on another machine together, before they are read one after the other.

use super::tables::{Part, Tables};
use crate::error::StoreError;
use crate::keys::{Key, LogId, Suffix, Table};
use crate::runs::{Handle, Known, Run, RunId};
use node_core::{remote, waiting};
use node_types::BlockNumber;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::thread;

/// Maximum number of steps: one for each level of an index, its last level with the filter, and the rows.
const STEPS: usize = 8;

/// The frames to read, by run.
type Missing = BTreeMap<RunId, (Arc<Run>, BTreeSet<Handle>)>;

impl Tables {
    /// Reads the rows at the same time that [`newest`](Self::newest) and the other methods would read for these keys and
    /// versions, so that they find them in the cache. The version of a key without one does not matter.
    ///
    /// Does nothing if all runs are on this machine, or if this thread must not wait: work that then needs another
    /// machine is repeated on a thread that may wait.
    pub(crate) fn fetch(&self, wanted: &[(Key, u64)]) -> Result<(), StoreError> {
        if !self.may_fetch() {
            return Ok(());
        }
        for _ in 0..STEPS {
            let mut missing = Missing::new();
            for (key, version) in wanted {
                self.find_missing(key, *version, &mut missing).map_err(StoreError::File)?;
            }
            if missing.is_empty() {
                break;
            }
            read(missing).map_err(StoreError::File)?;
        }
        Ok(())
    }

    /// Like [`fetch`](Self::fetch), for the rows of blocks in these tables.
    pub(crate) fn fetch_blocks(
        &self,
        tables: &[Table],
        numbers: impl IntoIterator<Item = BlockNumber>,
    ) -> Result<(), StoreError> {
        if self.may_fetch() {
            let of_block = |number| tables.iter().map(move |table| (Key::of_block(*table, number), 0));
            return self.fetch(&numbers.into_iter().flat_map(of_block).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Returns whether reads may need another machine, and this thread may wait for it.
    fn may_fetch(&self) -> bool {
        self.is_remote && waiting::is_allowed()
    }

    /// Adds the frames to `missing` that the read of a key needs next.
    fn find_missing(&self, key: &Key, version: u64, missing: &mut Missing) -> io::Result<()> {
        let table = key.table();
        let parts = self.parts_of(table);
        let candidates: Box<dyn Iterator<Item = (&Part, u64)>> = match table.suffix() {
            _ if table.is_numbered() => {
                Box::new(self.part_of_block(key.block_number()).into_iter().map(|part| (part, 0)))
            }
            Suffix::None => Box::new(parts.iter().rev().map(|part| (part, 0))),
            Suffix::Block => {
                let of_part = move |part: &Part| version.min(part.limit);
                Box::new(
                    parts.iter().rev().map(move |part| (part, of_part(part))).filter(|(part, at)| part.first() <= *at),
                )
            }
            Suffix::Log => {
                let block = LogId(version).position().block;
                Box::new(parts.iter().filter(move |part| block <= part.limit).map(move |part| (part, version)))
            }
        };
        // A node of a trie may be a change of one in an older run.
        let mut rows = if table == Table::Trie { 2 } else { 1 };
        let part_of_key = (!table.is_numbered()).then(|| key.as_slice());
        for (Part { run, .. }, version) in candidates {
            let mut add = |frames: &[Handle]| {
                let (_, all) = missing.entry(run.id()).or_insert_with(|| (Arc::clone(run), BTreeSet::new()));
                all.extend(frames);
            };
            match run.known(part_of_key, &key.versioned(version))? {
                Known::Absent => {}
                Known::Unknown(frames) => add(&frames),
                Known::Likely(frame) => {
                    frame.iter().for_each(|frame| add(&[*frame]));
                    rows -= 1;
                    if rows == 0 {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads frames of several runs at the same time.
fn read(missing: Missing) -> io::Result<()> {
    let fetch = |(run, frames): &(Arc<Run>, BTreeSet<Handle>)| {
        let frames: Vec<_> = frames.iter().copied().collect();
        remote::reads_of(|| run.fetch(&frames))
    };
    let runs: Vec<_> = missing.into_values().collect();
    let Some((first, others)) = runs.split_first() else { return Ok(()) };
    let done: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|run| scope.spawn(|| fetch(run))).collect();
        let first = fetch(first);
        let panicked = || (Err(io::Error::other("a read panicked")), Default::default());
        std::iter::once(first)
            .chain(others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())))
            .collect()
    });
    remote::record_step(done.iter().map(|(_, reads)| reads.reads).sum());
    done.into_iter().try_for_each(|(result, _)| result)
}
