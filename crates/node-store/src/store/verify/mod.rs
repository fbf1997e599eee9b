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
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::edits::edited_blocks;
use node_types::BlockNumber;
use std::ops::RangeInclusive;
use std::thread;

/// Number of blocks between two reports of progress. Their rows of the state are checked on one thread, and all
/// others on a second thread.
const STEP: u64 = 256;

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The newest block.
    pub head: BlockRef,
    /// The earliest block whose state is stored and was checked.
    pub earliest_state: BlockNumber,
    /// The canonical blocks with edits: they contain changes that other nodes would reject.
    pub edited: Vec<BlockNumber>,
    /// The first difference. `None` if there is none.
    pub difference: Option<Difference>,
}

impl Store {
    /// Checks every row by computing the rows of each block again, up to the first difference.
    ///
    /// First moves everything to runs. Takes time in proportion to the size of the store, and little memory.
    /// Calls `progress` regularly with the last block that was checked.
    ///
    /// # Errors
    /// [`BackendError::Interrupted`] if `context` is interrupted, and errors of reading. A difference is not an
    /// error.
    pub fn verify(
        &mut self,
        context: &Context,
        senders: &dyn SenderRecovery,
        mut progress: impl FnMut(BlockNumber),
    ) -> Result<Verified, BackendError> {
        self.flush()?;
        let chain = self.shared.chain();
        let edited = edited_blocks(self)?.into_iter().map(|(block, edits)| (block.hash, edits)).collect();
        let base = Base { chain: &chain, context, senders, edited };
        let parts = StateParts::new(self.shared.options.cache_bytes / 8);
        let checked = base.check_chain(parts, &mut progress).and_then(|()| self.check_others(&base));
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
        Ok(Verified { head: chain.head, earliest_state: chain.earliest, edited, difference })
    }

    /// Checks the tables that are not part of the canonical chain.
    fn check_others(&self, base: &Base<'_>) -> Result<(), Stop> {
        let meta = self.shared.archive.meta().ok_or(StoreError::NoChain)?;
        let name = |fault: RowFault| fault.at(None, "meta", b"chain".to_vec());
        let genesis = blocks::hash_of(base.tables(), 0)?.unwrap_or_default();
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

impl Base<'_> {
    fn check_chain(&self, mut parts: StateParts, progress: &mut dyn FnMut(BlockNumber)) -> Result<(), Stop> {
        let (head, earliest) = (self.chain.head.number, self.chain.earliest);
        // The rows of the genesis block are computed like those of other blocks, unless they were pruned.
        let whole = earliest == 0 && stored(self.tables(), &Key::of_block(Table::Changes, 0), 0)?.is_some();
        let first = if whole { 0 } else { earliest + 1 };
        if !whole {
            let state = Earliest { rows: &self.chain.rows, block: earliest, context: self.context };
            floor::check(
                state,
                &mut |key, version, found| Err(RowFault::Surplus { found }.of(earliest, key, version)),
            )?;
        }
        let (mut of_blocks, mut of_states) = (Counts::default(), Counts::default());
        let mut parent = None;
        let mut check_blocks = |range: RangeInclusive<BlockNumber>| -> Result<(), Stop> {
            for number in range {
                self.context.check()?;
                blocks::check(self, number, &mut parent, &mut of_blocks)?;
            }
            Ok(())
        };
        for start in (0..=head).step_by(STEP as usize) {
            let range = start..=head.min(start + STEP - 1);
            let (blocks, states) = thread::scope(|scope| {
                let blocks = scope.spawn(|| check_blocks(range.clone()));
                let states = self.check_states(range.clone(), first, &mut parts, &mut of_states);
                (blocks.join(), states)
            });
            let blocks = blocks.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            earlier(blocks, states)?;
            progress(*range.end());
        }
        counts::check(self, Range { first, last: head }, &of_blocks, &of_states)
    }

    fn check_states(
        &self,
        range: RangeInclusive<BlockNumber>,
        first: BlockNumber,
        parts: &mut StateParts,
        counts: &mut Counts,
    ) -> Result<(), Stop> {
        for number in range.filter(|number| *number >= first) {
            self.context.check()?;
            let checked = states::check(self, number, parts, counts);
            if let (Err(Stop::Difference(_)), Some(last)) = (&checked, number.checked_sub(1)) {
                // If an earlier block has a surplus row, that row is the cause of this difference.
                counts::check_state(self, Range { first, last }, counts)?;
            }
            checked?;
        }
        Ok(())
    }
}

/// Returns the earlier difference of two checks of the same blocks.
fn earlier(blocks: Result<(), Stop>, states: Result<(), Stop>) -> Result<(), Stop> {
    match (blocks, states) {
        (Err(Stop::Difference(a)), Err(Stop::Difference(b))) => {
            Err(Stop::Difference(if b.block < a.block { b } else { a }))
        }
        (Err(stop), Ok(()) | Err(Stop::Difference(_))) | (_, Err(stop)) => Err(stop),
        (Ok(()), Ok(())) => Ok(()),
    }
}
