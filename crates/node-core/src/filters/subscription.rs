//! The criteria of a subscription with its cursor.

use super::{ChangesError, FilterChanges, FilterCriteria, walk};
use crate::backend::View;
use crate::block::{BlockRef, LogPosition};
use crate::context::Context;
use crate::logs::PageSize;
use crate::pool::Pool;

/// The state of a filter or an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub criteria: FilterCriteria,
    /// The position up to which it was reported.
    pub cursor: Cursor,
}

/// The position up to which a filter or stream has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// For logs and blocks.
    Chain(ChainPosition),
    /// For transactions: up to but excluding this arrival number of the pool.
    Arrival(u64),
}

impl Cursor {
    /// Returns whether everything up to the end of `head` was reported. This is always so for transactions, which are
    /// not part of a chain.
    pub fn is_at(&self, head: BlockRef) -> bool {
        match self {
            Self::Chain(position) => *position == ChainPosition::end_of(head),
            Self::Arrival(_) => true,
        }
    }
}

/// A position in the chain, up to which, inclusive, everything was reported. The block may no longer be canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainPosition {
    /// The last block that was reported completely or in part.
    pub block: BlockRef,
    /// Index of its last reported log; `None` if the whole block was reported.
    pub log_index: Option<u64>,
}

impl ChainPosition {
    /// Returns the position at the end of a block.
    pub fn end_of(block: BlockRef) -> Self {
        Self { block, log_index: None }
    }

    /// Returns the position of the first log after it on the same branch.
    pub(super) fn next_log(&self) -> LogPosition {
        match self.log_index {
            Some(index) => LogPosition { block: self.block.number, log_index: index.saturating_add(1) },
            None => LogPosition { block: self.block.number.saturating_add(1), log_index: 0 },
        }
    }

    /// Returns whether the log with the given index in its block was reported.
    pub(super) fn covers(&self, index: u64) -> bool {
        self.log_index.is_none_or(|last| index <= last)
    }
}

impl Subscription {
    /// Returns the changes between the cursor and the head of `view`, at most one page, and the cursor after them.
    ///
    /// After a reorganization the removed logs come first, in chain order. If they do not fit on one page, the first
    /// page has those that were reported last. If very many blocks were removed, a page may be short or even empty
    /// although more follows: everything was returned only once the cursor [is at](Cursor::is_at) the head of `view`.
    ///
    /// # Errors
    /// Errors of reading the chain. The cursor is not changed.
    pub fn next(
        &self,
        context: &Context,
        view: &dyn View,
        pool: &Pool,
        page: PageSize,
    ) -> Result<(FilterChanges, Cursor), ChangesError> {
        // An empty page would never make progress.
        let page = PageSize { entries: page.entries.max(1), bytes: page.bytes.max(1) };
        match (self.cursor, &self.criteria) {
            (Cursor::Arrival(since), _) => {
                let arrivals = pool.arrivals(since, page.entries);
                Ok((FilterChanges::Transactions(arrivals.transactions), Cursor::Arrival(arrivals.next)))
            }
            (Cursor::Chain(position), FilterCriteria::Logs(criteria)) => {
                let (logs, reached) = walk::log_changes(context, view, criteria, position, page)?;
                Ok((FilterChanges::Logs(logs), Cursor::Chain(reached)))
            }
            (Cursor::Chain(position), FilterCriteria::Blocks | FilterCriteria::PendingTransactions) => {
                let (blocks, reached) = walk::block_changes(context, view, position, page.entries)?;
                Ok((FilterChanges::Blocks(blocks), Cursor::Chain(reached)))
            }
        }
    }
}
