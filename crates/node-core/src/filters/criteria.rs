//! What a filter selects, and what it reports.

use super::{ChainPosition, KeptFilter};
use crate::block::BlockRef;
use crate::logs::FoundLog;
use crate::pool::Arrival;
use node_types::BlockNumber;

/// The objects that a filter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterCriteria {
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
    pub filter: KeptFilter,
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
    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Logs(logs) => logs.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
            Self::Transactions(arrivals) => arrivals.is_empty(),
        }
    }
}

/// A log that was added to the chain or removed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLog {
    pub found: FoundLog,
    /// Whether its block left the chain.
    pub removed: bool,
    /// The cursor after this log; `None` if further removed logs must be reported first.
    pub reached: Option<ChainPosition>,
}
