//! Faults of a request: the invalid field, and the reason.

use super::Limit;
use std::fmt;

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub field: Field,
    pub message: String,
    /// The limit that the field exceeds; `None` for other faults.
    pub limit: Option<Limit>,
}

impl Fault {
    /// Returns a fault of `field` that is not caused by a limit.
    pub fn new(field: Field, message: impl Into<String>) -> Self {
        Self { field, message: message.into(), limit: None }
    }

    /// Returns the fault of a list with `got` items of which at most `most` are allowed.
    pub(super) fn too_many(field: Field, got: usize, most: usize, items: &str, limit: Limit) -> Self {
        Self { field, message: format!("expected at most {most} {items}, got {got}"), limit: Some(limit) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Field::Request => f.write_str(&self.message),
            field => write!(f, "{field:?}: {}", self.message),
        }
    }
}

/// A field of a request. Each interface has its own names of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Request,
    /// All addresses of a log filter.
    Address,
    /// Base fee of the next block.
    BaseFee,
    /// The versioned hash at this index, of a transaction or of the one that a call simulates.
    BlobVersionedHash(usize),
    /// Number of blocks of a fee history.
    BlockCount,
    /// The hash of the block whose logs are searched.
    BlockHash,
    /// The block whose state, receipts or body is read.
    BlockNumber,
    /// Number of blocks to mine or to replace.
    Blocks,
    /// The cursor of a page of logs.
    Cursor,
    ExtraData,
    FilterId,
    /// First block of a range.
    FromBlock,
    Hash,
    /// Seconds between mined blocks.
    Interval,
    /// The last event that a client has received.
    LastEventId,
    /// Newest block of a fee history.
    NewestBlock,
    /// Parent of a block to build.
    ParentHash,
    /// One percentile of a fee history.
    RewardPercentile(usize),
    /// All percentiles of a fee history.
    RewardPercentiles,
    /// Seconds by which the chain's clock is advanced.
    Seconds,
    SnapshotId,
    /// Storage slots of a proof.
    StorageKeys,
    Timestamp,
    /// Last block of a range.
    ToBlock,
    /// The words at one topic position of a log filter.
    Topic(usize),
    /// All topic positions of a log filter.
    Topics,
    /// A transaction, or the transaction that a call simulates.
    Transaction,
    /// A property of a transaction, or of the one that a call simulates.
    Property(Property),
    /// One transaction of a block to build.
    TransactionAt(usize),
    TransactionIndex,
    Withdrawals,
}

/// A property of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Authorizations of EIP-7702.
    AuthorizationList,
    BlobVersionedHashes,
    /// Input data, or the initialization code of a contract.
    Data,
    From,
    Gas,
    /// Price per gas of a transaction without fee caps.
    GasPrice,
    /// Fee cap per blob gas.
    MaxFeePerBlobGas,
    /// Fee cap per gas.
    MaxFeePerGas,
    /// Tip cap per gas.
    MaxPriorityFeePerGas,
    Nonce,
    To,
    /// Value in wei.
    Value,
}
