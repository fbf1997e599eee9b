//! Moving rows from memory to runs, on a separate thread.

use super::archive::NewRows;
use super::manifest::Meta;
use super::records::RecordId;
use super::{Shared, Writer, WriterState};
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::journal::kind_byte;
use crate::keys::{RowKey, Table, number_of};
use crate::postings;
use crate::rows::{DELETED, Generation, PRESENT, Value};
use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_core::sources::Sources;
use node_types::BlockNumber;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Number of side blocks in memory at which they are written to a run. Each takes about 15 KB of memory, or more if
/// it is large.
const SIDE_BLOCKS_IN_MEMORY: usize = 1_000;

/// A set of rows that are written to runs together.
struct Batch {
    /// The chain whose old generation is written.
    chain: Arc<ChainVersion>,
    /// After the commit, all log entries up to this one are in runs.
    logged: Sequence,
    /// The records that changed, with their current values.
    records: Vec<(RecordId, Option<Vec<u8>>)>,
}

impl Shared {
    /// Moves all rows, records and side blocks to runs.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        let wanted = self.log.last();
        loop {
            self.wait_for_flusher(&mut writer);
            self.check(&writer)?;
            // The log was not read to its end, so not all of its changes are in memory.
            if writer.replaying.is_some() {
                return Err(StoreError::Poisoned);
            }
            if writer.logged >= wanted {
                return Ok(());
            }
            self.age(&mut writer);
        }
    }

    /// If the young generation is full, sends it to a run. Waits for the previous one to be written.
    pub(super) fn flush_when_full(&self, writer: &mut MutexGuard<'_, Writer>) {
        let full = || {
            let chain = self.current.read();
            let young_blocks = chain.head.number - chain.old_end;
            self.log_is_long()
                || chain.side_blocks.in_memory() >= SIDE_BLOCKS_IN_MEMORY
                || chain.rows.young.count() >= self.options.commit_rows && young_blocks >= self.options.blocks_in_memory
        };
        while full() && writer.is_ready() {
            if !writer.flushing {
                return self.age(writer);
            }
            self.turn.wait(writer);
        }
    }

    /// Like [`Self::flush_when_full`], for changes that add no rows. Does nothing if the chain is being changed,
    /// because that change will call [`Self::flush_when_full`].
    pub(super) fn flush_when_log_is_long(&self) {
        if self.log_is_long()
            && let Some(mut writer) = self.writer.try_lock()
            && !writer.flushing
            && writer.is_ready()
        {
            self.age(&mut writer);
        }
    }

    fn log_is_long(&self) -> bool {
        self.log_bytes.load(Ordering::Relaxed) >= self.options.memory_bytes
    }

    pub(super) fn wait_for_flusher(&self, writer: &mut MutexGuard<'_, Writer>) {
        while writer.flushing {
            self.turn.wait(writer);
        }
    }

    /// Turns the young generation into the old one and wakes the flusher, which must be idle.
    pub(super) fn age(&self, writer: &mut Writer) {
        let mut chain = ChainVersion::clone(&self.current.read());
        chain.age();
        self.publish(chain);
        self.log_bytes.store(0, Ordering::Relaxed);
        writer.flushing = true;
        self.turn.notify_all();
    }

    /// Runs the flusher's thread until the store is closed.
    pub(super) fn run_flusher(&self) {
        let mut writer = self.writer.lock();
        let mut healed = Instant::now();
        loop {
            if writer.flushing {
                let done = catch_unwind(AssertUnwindSafe(|| self.flush_old(&mut writer)));
                writer.flushing = false;
                if let Err(error) = done.unwrap_or(Err(StoreError::Poisoned)) {
                    self.commit_failed(&mut writer, &error);
                }
                self.turn.notify_all();
            } else if self.merged.swap(false, Ordering::SeqCst) {
                self.use_merged_runs(&mut writer);
            } else if writer.closing {
                return;
            } else if let Some(left) = self.options.retry.checked_sub(healed.elapsed()) {
                self.turn.wait_for(&mut writer, left);
            } else {
                if let Err(error) = self.heal(&mut writer) {
                    self.failed_writes.lock().reason = Some(Sources(&error).to_string());
                }
                healed = Instant::now();
            }
        }
    }

    /// Prepares the next attempt after a commit has failed with `error`.
    pub(super) fn commit_failed(&self, writer: &mut Writer, error: &StoreError) {
        self.note_failure(error);
        // Acknowledged changes are in the log, so nothing is lost.
        writer.state = match error {
            StoreError::Poisoned => WriterState::Poisoned,
            _ => WriterState::Retrying,
        };
    }

    /// Moves the old generation to a run, and drops the log entries that are in runs. Does not hold the writer's lock
    /// most of the time.
    pub(super) fn flush_old(&self, writer: &mut MutexGuard<'_, Writer>) -> Result<(), StoreError> {
        self.check(writer)?;
        let batch = self.batch(writer)?;
        match MutexGuard::unlocked(writer, || self.commit(&batch)) {
            Ok(meta) => {
                let mut chain = ChainVersion::clone(&self.current.read());
                self.moved_to_runs(writer, &mut chain, &batch, &meta);
                self.publish(chain);
            }
            Err(error) => {
                self.records.write().dirty.extend(batch.records.into_iter().map(|(id, _)| id));
                return Err(error);
            }
        }
        MutexGuard::unlocked(writer, || self.drop_log(batch.logged))
    }

    /// Drops the log entries up to `logged`, all of which are in runs, except those that the shared store may lack.
    pub(super) fn drop_log(&self, logged: Sequence) -> Result<(), StoreError> {
        let kept_after = *self.kept_after.lock();
        Ok(self.log.drop_through(logged.min(kept_after))?)
    }

    fn batch(&self, writer: &Writer) -> Result<Batch, StoreError> {
        let mut records = self.records.write();
        // Records are logged under the lock of `records`, so `records` has all entries up to this one.
        let last = writer.replaying.unwrap_or_else(|| self.log.last());
        // Runs must not contain changes that a crash or a failure could remove from the log. The lock prevents the
        // log from being rolled back before this returns.
        self.log.sync_through(last)?;
        let records = &mut *records;
        let dirty = std::mem::take(&mut records.dirty).into_iter();
        let records = dirty.map(|id| (id.clone(), records.values.get(&id).cloned())).collect();
        let chain = self.chain();
        // An entry may contain blocks of both generations.
        let young = writer.entries.iter().find(|(number, _)| *number > chain.old_end);
        let logged = young.map_or(last, |(_, sequence)| sequence.previous());
        Ok(Batch { chain, logged, records })
    }

    /// Writes a batch to runs. Returns the data about the chain for the manifest.
    fn commit(&self, batch: &Batch) -> Result<Meta, StoreError> {
        let Batch { chain, .. } = batch;
        let missing = StoreError::Missing { table: Table::Headers.name() };
        let (Some(genesis), Some(hash)) = (chain.canonical(chain.first)?, chain.canonical(chain.old_end)?) else {
            return Err(missing);
        };
        let head = BlockRef { number: chain.old_end, hash };
        let base = chain.rows.base.is_some().then_some(chain.first);
        let meta = Meta { genesis, base, head, earliest: chain.earliest, logged: batch.logged };
        let [numbered, keyed] = sorted_rows(&chain.rows.old)?;
        let others = other_rows(batch);
        let rows = NewRows {
            blocks: if numbered.is_empty() {
                chain.old_end + 1..=chain.old_end
            } else {
                first_of(&numbered)..=chain.old_end
            },
            numbered: &mut numbered.iter().map(|(key, value)| (&**key, &**value)),
            keyed: &mut keyed
                .iter()
                .map(|(key, value)| (&**key, &**value))
                .chain(others.iter().map(|(key, value)| (&**key, &**value))),
        };
        if self.options.merge {
            self.archive.keep_up();
        }
        self.archive.add(rows, chain.rows.limit, meta)?;
        // Under the lock, so that a merger that has just found nothing to do is already waiting.
        drop(self.merges_end.lock());
        self.merge_turn.notify_all();
        // Files that cannot be removed now are removed next time.
        let _ = self.archive.remove_unlisted();
        Ok(meta)
    }

    /// Updates the writer and the chain after the old generation was written to a run.
    fn moved_to_runs(&self, writer: &mut Writer, chain: &mut ChainVersion, batch: &Batch, meta: &Meta) {
        writer.logged = meta.logged;
        chain.mark_old_as_in_runs(&batch.chain, self.archive.tables());
        let in_memory = writer.entries.partition_point(|(number, _)| *number <= chain.rows.limit);
        writer.entries.drain(..in_memory);
    }
}

type SortedRows = Vec<(RowKey, Value)>;

/// Returns the rows of side blocks and records that differ from those in runs.
fn other_rows(batch: &Batch) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let side_blocks = batch.chain.side_blocks.new_rows().map(|(key, value)| (key.as_slice().to_vec(), value));
    let records = batch.records.iter().map(|((kind, key), value)| {
        let key = [&[Table::Records as u8, kind_byte(*kind)][..], key].concat();
        (key, value.as_ref().map_or(vec![DELETED], |value| [&[PRESENT], &value[..]].concat()))
    });
    side_blocks.chain(records).collect()
}

/// Returns all rows of a generation in the order of their keys: those that are keyed by block numbers, and all others.
fn sorted_rows(generation: &Generation) -> Result<[SortedRows; 2], StoreError> {
    let (mut numbered, mut keyed) = (Vec::new(), Vec::with_capacity(generation.count()));
    generation.for_each(|key, rows| {
        let list = if key.table().is_numbered() { &mut numbered } else { &mut keyed };
        if key.table() == Table::Postings {
            for (last, chunk) in postings::join(rows)? {
                list.push((key.versioned(last.0), chunk.as_slice().into()));
            }
        } else {
            list.extend(rows.iter().map(|(version, value)| (key.versioned(*version), value.clone())));
        }
        Ok::<_, StoreError>(())
    })?;
    for list in [&mut numbered, &mut keyed] {
        list.sort_unstable_by(|(a, _), (b, _)| a.order(b));
    }
    Ok([numbered, keyed])
}

/// Returns the first block of numbered rows. Every block has a row in each numbered table.
fn first_of(numbered: &SortedRows) -> BlockNumber {
    numbered.first().map_or(0, |(key, _)| number_of(key))
}

#[cfg(test)]
mod tests {
    use crate::files::faults::FaultyDisk;
    use crate::wal::Sequence;
    use crate::{Options, Store};
    use node_core::backend::StateBackend;
    use node_core::backend::suite::Random;

    #[test]
    fn flushing_fails_if_the_log_was_not_read_to_its_end() {
        let chain = Random(1).chain(10);
        let disk = FaultyDisk::new();
        let store = Store::open_in(disk.folder(), chain.blocks()[0].clone(), Options::default()).unwrap();
        chain.above(0).into_iter().for_each(|block| store.append(block).unwrap());
        assert_eq!(store.shared.log.last(), Sequence(10));
        let mut writer = store.shared.writer.lock();
        writer.replaying = Some(Sequence(4));
        store.shared.age(&mut writer);
        store.shared.wait_for_flusher(&mut writer);
        assert!(writer.is_ready());
        assert_eq!(writer.logged, Sequence(4));
        assert_eq!(store.shared.log.entries_after(writer.logged).count(), 6);
        writer.replaying = None;
    }

    #[test]
    fn a_side_block_leaves_memory_when_it_is_in_a_run_and_can_become_canonical_and_return() {
        let mut random = Random(1);
        let main = random.chain(6);
        let mut other = main.up_to(3);
        random.extend(&mut other, 4);
        let folder = FaultyDisk::new().folder();
        let store = Store::open_in(folder, main.blocks()[0].clone(), Options::default()).unwrap();
        main.above(0).into_iter().for_each(|block| store.append(block).unwrap());

        for (canonical, side) in [(&other, &main), (&main, &other), (&other, &main)] {
            store.switch(3, canonical.above(3)).unwrap();
            assert_eq!(store.shared.chain().side_blocks.in_memory(), side.above(3).len());
            store.flush().unwrap();
            assert_eq!(store.shared.chain().side_blocks.in_memory(), 0);
            let view = store.view().unwrap();
            for block in side.above(3) {
                let found = view.side_block(block.header.hash).unwrap().unwrap();
                assert_eq!((found.header, found.body, found.changes), (block.header, block.body, block.changes));
            }
            for block in canonical.above(3) {
                assert!(view.side_block(block.header.hash).unwrap().is_none());
            }
        }
    }
}
