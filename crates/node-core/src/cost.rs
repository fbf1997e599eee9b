//! The cost of operations, by which a server chooses the thread that runs them.
//!
//! All interfaces of a node share these costs. JSON-RPC assumes in addition that any request with the parameter `pending`
//! has to build the pending block.

use crate::node::FeeHistory;
use node_types::{BlockId, BlockNumberOrTag};

/// Maximum number of storage slots whose proofs are quick.
const FEW_SLOTS: usize = 4;

/// Number of storage slots from which on proofs take milliseconds.
const MANY_SLOTS: usize = 64;

/// Length of a request, in bytes, up to which preparing its call takes microseconds.
const SHORT_CALL: usize = 4 << 10;

/// How long an operation takes, from the cheapest to the most expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// A few microseconds.
    Instant,
    /// Usually short. The operation checks its context, so it can be interrupted and restarted on another thread.
    Brief,
    /// A search for logs: usually short, but sometimes much longer than other requests should wait. It can be
    /// interrupted and restarted as well.
    Search,
    /// Execution of code that clients supply, usually short. It can be interrupted and restarted as well.
    BriefCode,
    /// Possibly long.
    Long,
    /// Reading so much that other requests should come first: proofs of many slots, and searches that are not short.
    Bulk,
    /// As long as the execution of code that clients supply: calls, estimates, and building the pending block. Other
    /// requests come first.
    Code,
}

impl Cost {
    /// Reading a block that exists, or all its receipts.
    pub const BLOCK: Self = Self::Brief;
    /// Creating, polling or removing a filter.
    pub const FILTER: Self = Self::Long;
    /// Searching logs of mined blocks.
    pub const LOGS: Self = Self::Search;
    /// Reading all transactions in the pool.
    pub const POOL_CONTENT: Self = Self::Long;
    /// Sending a transaction, including the wait for the disk.
    pub const SEND: Self = Self::Long;
    /// Completing, signing and sending a transaction, which estimates its gas.
    pub const SEND_UNSIGNED: Self = Self::Code;
    /// Controlling a chain that this node produces.
    pub const CONTROL: Self = Self::Long;

    /// Returns the cost of reading a value as of `block`. The pending block has to be built first.
    pub fn of_reading(block: impl Into<BlockId>) -> Self {
        if block.into().is_pending() { Self::Code } else { Self::Instant }
    }

    /// Returns the cost of reading a block, or all its receipts.
    pub fn of_block(block: impl Into<BlockId>) -> Self {
        Self::of_reading(block).max(Self::BLOCK)
    }

    /// Returns the cost of summing up the fees of `blocks` blocks.
    pub fn of_fee_history(blocks: u64) -> Self {
        if blocks > FeeHistory::FEW_BLOCKS { Self::Long } else { Self::Brief }
    }

    /// Returns the cost of searching the logs between two bounds, either of which may be absent.
    pub fn of_logs(bounds: [Option<BlockNumberOrTag>; 2]) -> Self {
        if bounds.contains(&Some(BlockNumberOrTag::Pending)) { Self::Code } else { Self::LOGS }
    }

    /// Returns the cost of a call or an estimate that `length` bytes of JSON describe.
    pub fn of_call(length: usize) -> Self {
        if length <= SHORT_CALL { Self::BriefCode } else { Self::Code }
    }

    /// Returns the cost of proving an account and `slots` of its storage slots. `quick` is whether the backend proves
    /// within microseconds.
    pub fn of_proof(quick: bool, slots: usize) -> Self {
        match slots {
            ..=FEW_SLOTS if quick => Self::Instant,
            ..MANY_SLOTS => Self::Long,
            MANY_SLOTS.. => Self::Bulk,
        }
    }

    /// Returns the cost of the same work where it must not be restarted because it takes long, as in a batch whose other
    /// requests make changes.
    pub fn without_restart(self) -> Self {
        match self {
            Self::Brief => Self::Long,
            Self::Search => Self::Bulk,
            Self::BriefCode => Self::Code,
            cost => cost,
        }
    }
}
