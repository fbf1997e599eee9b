//! What a filter selects, and what it reports.

use super::ChainPosition;
use crate::backend::LogFilter;
use crate::block::BlockRef;
use crate::logs::FoundLog;
use crate::pool::Arrival;
use node_types::BlockNumber;

/// The objects that a filter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterCriteria {
    /// Logs.
    Logs(LogCriteria),
    /// Hashes of new blocks.
    Blocks,
    /// Hashes of transactions that entered the pool.
    PendingTransactions,
}

/// The logs that a filter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCriteria {
    /// Addresses and topics.
    pub filter: LogFilter,
    /// First block, inclusive. May be above the head.
    pub from: BlockNumber,
    /// Whether changes below `from` are reported as well. There are some if `from` is the head at installation, and a
    /// reorganization later goes below it.
    pub open_below: bool,
    /// Last block, inclusive. May be above the head; `None` if there is no upper bound.
    pub to: Option<BlockNumber>,
}

impl LogCriteria {
    /// Returns the first block whose changes are reported.
    pub(super) fn first_changed(&self) -> BlockNumber {
        if self.open_below { 0 } else { self.from }
    }
}

/// Changes since the last successful poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterChanges {
    /// For a log filter: the logs of blocks that left the chain, then those of blocks that joined it, both in chain
    /// order.
    Logs(Vec<ChangedLog>),
    /// For a block filter: the blocks that joined the chain, oldest first.
    Blocks(Vec<BlockRef>),
    /// For a filter of pending transactions: those that entered the pool, oldest first.
    Transactions(Vec<Arrival>),
}

impl FilterChanges {
    /// Maximum number of bytes of the logs' data on a page.
    const PAGE_BYTES: usize = 4 << 20;

    /// If there is more data than fits on a page, returns the number of entries that fit even if all have as much data as
    /// the largest. At least one always fits.
    pub(super) fn shorter_page(&self) -> Option<usize> {
        let Self::Logs(logs) = self else { return None };
        let lengths = || logs.iter().map(|change| change.found.log.data.len());
        let largest = lengths().max()?;
        (logs.len() > 1 && lengths().sum::<usize>() > Self::PAGE_BYTES).then(|| (Self::PAGE_BYTES / largest).max(1))
    }
}

/// A log that was added to the chain or removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLog {
    /// The log with its position.
    pub found: FoundLog,
    /// Whether its block left the chain.
    pub removed: bool,
    /// The cursor after this log; `None` if further removed logs must be reported first.
    pub reached: Option<ChainPosition>,
}
