//! What is wanted, and up to where it was told.

use super::{ChangesError, FilterChanges, FilterCriteria, walk};
use crate::backend::View;
use crate::block::{BlockRef, LogPosition};
use crate::context::Context;
use crate::pool::Pool;

/// What somebody wants to be told, and up to where that has been done. The state of a filter, and of a stream of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// What is wanted.
    pub criteria: FilterCriteria,
    /// Up to where it was told.
    pub cursor: Cursor,
}

/// Up to where something was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// Of logs and blocks.
    Chain(ChainPosition),
    /// Of transactions: up to but excluding this number of arrival in the pool.
    Arrival(u64),
}

/// A place in a chain: everything in it and before it was told. The block need not be canonical any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    /// The last block of which anything was told.
    pub block: BlockRef,
    /// The last log of it that was; none if it was told to its end.
    pub log_index: Option<u64>,
}

impl ChainPosition {
    /// The end of a block.
    pub fn end_of(block: BlockRef) -> Self {
        Self { block, log_index: None }
    }

    /// Where the first log behind it is, if it is on the same branch.
    pub(super) fn next_log(&self) -> LogPosition {
        match self.log_index {
            Some(index) => LogPosition { block: self.block.number, log_index: index.saturating_add(1) },
            None => LogPosition { block: self.block.number.saturating_add(1), log_index: 0 },
        }
    }

    /// Whether the log `index` of its block is in it or before it.
    pub(super) fn covers(&self, index: u64) -> bool {
        self.log_index.is_none_or(|last| index <= last)
    }
}

impl Subscription {
    /// What there is to tell between the cursor and the head of `view`, and where the cursor is then. Where that is more
    /// than `page` entries, the next call goes on.
    ///
    /// After a reorganization the removed logs come first, in the order of the chain; where they are more than a page,
    /// those that were told last come with the first page.
    pub fn next(
        &self,
        context: &Context,
        view: &dyn View,
        pool: &Pool,
        page: usize,
    ) -> Result<(FilterChanges, Cursor), ChangesError> {
        // An empty page would never lead on.
        let page = page.max(1);
        match (self.cursor, &self.criteria) {
            (Cursor::Arrival(since), _) => {
                let arrivals = pool.arrivals(since, page);
                Ok((FilterChanges::Transactions(arrivals.transactions), Cursor::Arrival(arrivals.next)))
            }
            (Cursor::Chain(position), FilterCriteria::Logs(criteria)) => {
                let (logs, reached) = walk::log_changes(context, view, criteria, position, page)?;
                Ok((FilterChanges::Logs(logs), Cursor::Chain(reached)))
            }
            (Cursor::Chain(position), FilterCriteria::Blocks | FilterCriteria::PendingTransactions) => {
                let (blocks, reached) = walk::block_changes(context, view, position, page)?;
                Ok((FilterChanges::Blocks(blocks), Cursor::Chain(reached)))
            }
        }
    }
}
