//! Verification that the stored rows are exactly those that the blocks of the chain require.
//!
//! Every block is checked against its header. Its rows are computed again; those of its state are computed from the
//! previous state. The earliest stored state is computed from its leaves. At the end rows are counted, to find those
//! that belong to no block.

mod base;
mod blocks;
mod content;
mod counts;
mod difference;
mod floor;
mod states;
#[cfg(test)]
mod tests;

pub use difference::{Difference, RowFault};

use super::Store;
use crate::block_bytes::{BlockBytes, decode_block};
use crate::codec::Reader;
use crate::error::StoreError;
use crate::keys::{Key, Table};
use crate::rows::PRESENT;
use crate::state::StateParts;
use base::{Base, stored};
use counts::{Counts, Range};
use difference::Stop;
use floor::Earliest;
use node_core::backend::{BackendError, first_without_state_root};
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::edits::edited_blocks;
use node_types::BlockNumber;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Number of consecutive blocks that one thread checks. The first ones read more, because nothing of the state before
/// them is cached.
const CHUNK: u64 = 512;

/// Number of blocks after which a thread adds to the progress.
const STEP: u64 = 16;

/// Time between two calls with the progress.
const REPORT: Duration = Duration::from_millis(100);

/// What to verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// The first block to check. Of those before it, and of rows that belong to no block, nothing is checked unless it
    /// is at most the first one of the chain.
    pub from: BlockNumber,
    /// The number of blocks to check, which are chosen at random; `None` for all.
    pub sample: Option<NonZeroU64>,
}

/// The progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Number of blocks that were checked.
    pub blocks: u64,
    /// Number of blocks to check. After that, tables are searched for rows that belong to no block.
    pub of: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The newest block.
    pub head: BlockRef,
    /// The earliest block whose state is stored and was checked.
    pub earliest_state: BlockNumber,
    /// The canonical blocks with edits: they contain changes that other nodes would reject.
    pub edited: Vec<BlockNumber>,
    /// The first canonical block without a [state root](node_types::consensus::Header::has_state_root); all later ones have
    /// none either. Their accounts and slots were checked, and there are no tries. `None` if all blocks have one.
    pub first_without_state_root: Option<BlockNumber>,
    /// Number of blocks that were checked, unless there is a difference.
    pub blocks: u64,
    /// The first difference. `None` if there is none.
    pub difference: Option<Difference>,
}

impl Store {
    /// Checks every row by computing the rows of each block again, up to the first difference, on all cores. Of the state
    /// that the chain continues, only what later blocks changed is checked.
    ///
    /// First moves everything to runs. Takes time in proportion to the size of the store, and little memory.
    /// Calls `progress` regularly.
    ///
    /// # Errors
    /// [`BackendError::Interrupted`] if `context` is interrupted, and errors of reading. A difference is not an
    /// error.
    pub fn verify(
        &mut self,
        options: VerifyOptions,
        context: &Context,
        senders: &dyn SenderRecovery,
        mut progress: impl FnMut(VerifyProgress),
    ) -> Result<Verified, BackendError> {
        self.flush()?;
        let chain = self.shared.chain();
        let edited = edited_blocks(self)?.into_iter().map(|(block, edits)| (block.hash, edits)).collect();
        let base = Base { chain: &chain, context, senders, edited };
        let plan = Plan::new(options, chain.first, chain.head.number);
        let cache = self.shared.options.cache_bytes / 8;
        let checked = base.check_chain(&plan, cache, &mut progress).and_then(|()| self.check_others(&base));
        let difference = match checked {
            Ok(()) => None,
            Err(Stop::Difference(difference)) => Some(*difference),
            Err(Stop::Failed(error)) => return Err(error),
        };
        let mut edited = Vec::new();
        for (block, _) in edited_blocks(self)? {
            if chain.canonical(block.number)? == Some(block.hash) {
                edited.push(block.number);
            }
        }
        let (head, earliest_state, blocks) = (chain.head, chain.earliest, plan.blocks);
        // After a difference, headers need not be readable.
        let first_without_state_root = match &difference {
            None => first_without_state_root(&*chain, head.number)?,
            Some(_) => None,
        };
        Ok(Verified { head, earliest_state, edited, first_without_state_root, blocks, difference })
    }

    /// Checks the tables that are not part of the canonical chain.
    fn check_others(&self, base: &Base<'_>) -> Result<(), Stop> {
        let meta = self.shared.archive.meta().ok_or(StoreError::NoChain)?;
        let name = |fault: RowFault| fault.at(None, "meta", b"chain".to_vec());
        let genesis = blocks::hash_of(base.tables(), base.chain.first)?.unwrap_or_default();
        RowFault::unless_equal("genesis", genesis, meta.genesis).map_err(name)?;
        RowFault::unless_equal("head", base.chain.head.hash, meta.head.hash).map_err(name)?;

        let mut rows = base.tables().scan(Table::SideBlocks)?;
        while let Some((key, value)) = rows.next()? {
            base.context.check()?;
            let Some((&PRESENT, found)) = value.split_first() else { continue };
            let block = decode_block(&mut Reader::new(found, "a side block"))?;
            let reference = block.header.block_ref();
            let at = |fault: RowFault| fault.at(Some(reference.number), "side_blocks", key[1..].to_vec());
            RowFault::unless_equal("key", Key::of_side_block(reference).as_slice(), key).map_err(at)?;
            let mut expected = Vec::new();
            BlockBytes::encode(&block).append(&block, &mut expected);
            RowFault::unless_equal("value", &*expected, found).map_err(at)?;
            content::check(&block, base.senders, base.edits(reference.hash)).map_err(|(_, fault)| at(fault))?;
            if base.chain.locate(reference.hash.into())?.is_some() {
                return Err(at(RowFault::Surplus { found: found.to_vec() }));
            }
        }
        Ok(())
    }
}

/// The blocks to check.
struct Plan {
    /// Ranges of consecutive blocks, ascending.
    chunks: Vec<RangeInclusive<BlockNumber>>,
    /// The number of blocks in them.
    blocks: u64,
    /// Whether they are all blocks, so that rows that belong to none of them are surplus.
    is_whole: bool,
}

impl Plan {
    fn new(VerifyOptions { from, sample }: VerifyOptions, first: BlockNumber, head: BlockNumber) -> Self {
        let from = from.clamp(first, head);
        let count = head - from + 1;
        let (chunks, blocks): (Vec<_>, _) = match sample.filter(|sample| sample.get() < count) {
            None => {
                let starts = (from..=head).step_by(CHUNK as usize);
                (starts.map(|start| start..=head.min(start + CHUNK - 1)).collect(), count)
            }
            Some(sample) => {
                // One of each of as many parts of about the same length.
                let sample = sample.get();
                let start = |part: u64| from + (u128::from(count) * u128::from(part) / u128::from(sample)) as u64;
                let random = |part| start(part) + random() % (start(part + 1) - start(part));
                ((0..sample).map(random).map(|block| block..=block).collect(), sample)
            }
        };
        Self { chunks, blocks, is_whole: blocks == head - first + 1 }
    }
}

/// Returns the number of threads for this many tasks.
fn cores(tasks: usize) -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(tasks).max(1)
}

/// Returns a random number.
fn random() -> u64 {
    // The keys of its hasher are the standard library's only source of random numbers.
    RandomState::new().build_hasher().finish()
}

/// What a thread has found in a chunk.
struct Checked {
    counts: Counts,
    /// The first difference or failure, with the block whose state has it, if it is in a state.
    stop: Option<(Stop, Option<BlockNumber>)>,
}

impl Base<'_> {
    fn check_chain(
        &self,
        plan: &Plan,
        cache_bytes: usize,
        progress: &mut dyn FnMut(VerifyProgress),
    ) -> Result<(), Stop> {
        let (head, earliest, has_base) = (self.chain.head.number, self.chain.earliest, self.has_base());
        // The rows of the genesis block are computed like those of other blocks, unless they were pruned.
        let whole = earliest == 0 && stored(self.tables(), &Key::of_block(Table::Changes, 0), 0)?.is_some();
        let first = if whole { 0 } else { earliest + 1 };
        if !whole && plan.is_whole {
            let state = Earliest { rows: &self.chain.rows, block: earliest, context: self.context };
            floor::check(state, &mut |key, version, found| match has_base {
                // Only the nodes that differ from the base were looked at.
                true => Ok(()),
                false => Err(RowFault::Surplus { found }.of(earliest, key, version)),
            })?;
        }
        let counts = self.check_chunks(plan, first, cache_bytes, progress)?;
        if !plan.is_whole {
            return Ok(());
        }
        // The first block of a chain with a base has no rows of its state.
        let first = if has_base && earliest == self.chain.first { earliest } else { first };
        let searches = counts::searches(self, Range { first, last: head }, &counts);
        let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(search) = searches.get(index) else { return };
            if let Err(stop) = search() {
                found.lock().insert(index, stop);
            }
        };
        thread::scope(|scope| (0..cores(searches.len())).for_each(|_| drop(scope.spawn(work))));
        found.into_inner().into_values().next().map_or(Ok(()), Err)
    }

    /// Checks the chunks of `plan` on all cores. Reports the difference in the lowest block, and after one, checks no
    /// later chunks. Returns the number of rows of the blocks.
    fn check_chunks(
        &self,
        plan: &Plan,
        first: BlockNumber,
        cache_bytes: usize,
        progress: &mut dyn FnMut(VerifyProgress),
    ) -> Result<Counts, Stop> {
        let (next, done, stopped) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let checked = Mutex::new(BTreeMap::new());
        let (cores, caller) = (cores(plan.chunks.len()), thread::current());
        let work = || {
            // Chunks are taken in ascending order, so all before one with a difference are checked.
            while !stopped.load(Ordering::SeqCst) {
                let index = next.fetch_add(1, Ordering::SeqCst);
                let Some(chunk) = plan.chunks.get(index) else { break };
                let result = self.check_chunk(chunk.clone(), first, cache_bytes / cores, &done);
                if result.stop.is_some() {
                    stopped.store(true, Ordering::SeqCst);
                }
                checked.lock().insert(index, result);
            }
            caller.unpark();
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            let mut report = || progress(VerifyProgress { blocks: done.load(Ordering::Relaxed), of: plan.blocks });
            while !threads.iter().all(ScopedJoinHandle::is_finished) {
                report();
                thread::park_timeout(REPORT);
            }
            report();
        });
        let mut counts = Counts::starting_at(self.chain.first);
        for (_, Checked { counts: of_chunk, stop }) in checked.into_inner() {
            counts.merge(&of_chunk);
            if let Some((stop, state)) = stop {
                if let (Some(last), true) = (state.and_then(|block| block.checked_sub(1)), plan.is_whole) {
                    // If an earlier block has a surplus row, that row is the cause of this difference.
                    counts::check_state(self, Range { first, last }, &counts)?;
                }
                return Err(stop);
            }
        }
        Ok(counts)
    }

    /// Checks consecutive blocks, and those of their states that are stored, which are those from `first` on.
    fn check_chunk(
        &self,
        chunk: RangeInclusive<BlockNumber>,
        first: BlockNumber,
        cache_bytes: usize,
        done: &AtomicU64,
    ) -> Checked {
        let mut counts = Counts::starting_at(*chunk.start());
        let mut parts = StateParts::new(cache_bytes);
        let mut parent = match blocks::parent_of(self, *chunk.start()) {
            Ok(parent) => parent,
            Err(stop) => return Checked { counts, stop: Some((stop, None)) },
        };
        let mut unreported = 0;
        for number in chunk {
            let block = self
                .context
                .check()
                .map_err(Stop::from)
                .and_then(|()| blocks::check(self, number, &mut parent, &mut counts));
            if let Err(stop) = block {
                return Checked { counts, stop: Some((stop, None)) };
            }
            if number >= first
                && let Err(stop) = states::check(self, number, &mut parts, &mut counts)
            {
                let state = matches!(stop, Stop::Difference(_)).then_some(number);
                return Checked { counts, stop: Some((stop, state)) };
            }
            unreported += 1;
            if unreported == STEP {
                done.fetch_add(std::mem::take(&mut unreported), Ordering::Relaxed);
            }
        }
        done.fetch_add(unreported, Ordering::Relaxed);
        Checked { counts, stop: None }
    }
}
