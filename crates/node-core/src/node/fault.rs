//! Faults of a request: the invalid field, and the reason.

use super::Limit;
use std::fmt;

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub field: Field,
    /// What is wrong with it.
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
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

/// A field of a request. `Display` is its name in camel case, as JSON-RPC spells it: `fromBlock`, `topics[1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The request as a whole; displayed as the empty string.
    Request,
    /// Addresses of a log filter.
    Address,
    /// Base fee of the next block.
    BaseFee,
    /// One blob of the transaction that a call simulates.
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
    /// Extra data of a block.
    ExtraData,
    /// The id of a filter.
    FilterId,
    /// First block of a range.
    FromBlock,
    /// Hash of a block.
    Hash,
    /// Seconds between mined blocks.
    Interval,
    /// The last event that a client has received.
    LastEventId,
    /// Newest block of a fee history.
    NewestBlock,
    /// Nonce of an account.
    Nonce,
    /// Parent of a block to build.
    ParentHash,
    /// One percentile of a fee history.
    RewardPercentile(usize),
    /// All percentiles of a fee history.
    RewardPercentiles,
    /// Seconds by which the chain's clock is advanced.
    Seconds,
    /// Sender of a transaction.
    Sender,
    /// The id of a snapshot.
    SnapshotId,
    /// Storage slots of a proof.
    StorageKeys,
    /// Timestamp of a block.
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
    /// Position of a transaction in a block.
    TransactionIndex,
    /// Withdrawals of a block.
    Withdrawals,
}

/// A property of a transaction. `Display` is its name in camel case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Authorizations of EIP-7702.
    AuthorizationList,
    /// Versioned hashes of the blobs.
    BlobVersionedHashes,
    /// Input data, or the initialization code of a contract.
    Data,
    /// Sender.
    From,
    /// Gas limit.
    Gas,
    /// Price per gas of a transaction without fee caps.
    GasPrice,
    /// Fee cap per blob gas.
    MaxFeePerBlobGas,
    /// Fee cap per gas.
    MaxFeePerGas,
    /// Tip cap per gas.
    MaxPriorityFeePerGas,
    /// Nonce of the sender.
    Nonce,
    /// Recipient.
    To,
    /// Value in wei.
    Value,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AuthorizationList => "authorizationList",
            Self::BlobVersionedHashes => "blobVersionedHashes",
            Self::Data => "data",
            Self::From => "from",
            Self::Gas => "gas",
            Self::GasPrice => "gasPrice",
            Self::MaxFeePerBlobGas => "maxFeePerBlobGas",
            Self::MaxFeePerGas => "maxFeePerGas",
            Self::MaxPriorityFeePerGas => "maxPriorityFeePerGas",
            Self::Nonce => "nonce",
            Self::To => "to",
            Self::Value => "value",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "",
            Self::Address => "address",
            Self::BaseFee => "baseFee",
            Self::BlobVersionedHash(index) => return write!(f, "transaction.blobVersionedHashes[{index}]"),
            Self::BlockCount => "blockCount",
            Self::BlockHash => "blockHash",
            Self::BlockNumber => "blockNumber",
            Self::Blocks => "blocks",
            Self::Cursor => "cursor",
            Self::ExtraData => "extraData",
            Self::FilterId => "filterId",
            Self::FromBlock => "fromBlock",
            Self::Hash => "hash",
            Self::Interval => "interval",
            Self::LastEventId => "lastEventId",
            Self::NewestBlock => "newestBlock",
            Self::Nonce => "nonce",
            Self::ParentHash => "parentHash",
            Self::RewardPercentile(index) => return write!(f, "rewardPercentiles[{index}]"),
            Self::RewardPercentiles => "rewardPercentiles",
            Self::Seconds => "seconds",
            Self::Sender => "from",
            Self::SnapshotId => "snapshotId",
            Self::StorageKeys => "storageKeys",
            Self::Timestamp => "timestamp",
            Self::ToBlock => "toBlock",
            Self::Topic(position) => return write!(f, "topics[{position}]"),
            Self::Topics => "topics",
            Self::Transaction => "transaction",
            Self::Property(property) => return write!(f, "transaction.{property}"),
            Self::TransactionAt(index) => return write!(f, "transactions[{index}]"),
            Self::TransactionIndex => "txIndex",
            Self::Withdrawals => "withdrawals",
        })
    }
}
