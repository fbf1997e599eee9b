//! What a filter is for, and what it reports.

use super::ChainPosition;
use crate::backend::LogFilter;
use crate::block::BlockRef;
use crate::logs::FoundLog;
use crate::pool::Arrival;
use node_types::BlockNumber;

/// What a filter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterCriteria {
    /// Logs.
    Logs(LogCriteria),
    /// Hashes of new blocks.
    Blocks,
    /// Hashes of transactions that came into the pool.
    PendingTransactions,
}

/// Which logs a filter reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCriteria {
    /// Addresses and topics.
    pub filter: LogFilter,
    /// First block, inclusive. May lie ahead of the head.
    pub from: BlockNumber,
    /// Last block, inclusive, which may lie ahead; none for no end.
    pub to: Option<BlockNumber>,
}

/// What a filter has to report since the last successful poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterChanges {
    /// Of a log filter: first the logs of blocks that left the chain, then those of blocks that joined it, each in the
    /// order of the chain.
    Logs(Vec<ChangedLog>),
    /// Of a block filter: the blocks that joined the chain, oldest first.
    Blocks(Vec<BlockRef>),
    /// Of a filter for pending transactions: those that came into the pool, oldest first.
    Transactions(Vec<Arrival>),
}

/// A log that appeared or disappeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLog {
    /// The log, where it is or was.
    pub found: FoundLog,
    /// Whether its block left the chain.
    pub removed: bool,
    /// Up to where everything is told with this log; none where more logs have to be taken back first.
    pub reached: Option<ChainPosition>,
}
