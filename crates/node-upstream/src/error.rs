//! Why something could not be read.

use crate::message;
use node_core::context::Interrupted;
use node_types::consensus::DecodeError;
use node_types::proof::InvalidProof;
use node_types::{Address, BlockId, BlockNumber, H256};
use std::fmt;

/// Why something could not be read from an upstream.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// No endpoint responded properly, however often it was asked.
    #[error("the upstream is unavailable: {reason}; needed: {needed}")]
    Unavailable { needed: Needed, reason: String },
    /// The request that needs it had no more time; why there is no response yet.
    #[error("the upstream did not respond in time: {reason}; needed: {needed}")]
    TimedOut { needed: Needed, reason: String },
    /// Every endpoint returned an error; this is the first one.
    #[error("{endpoint} refuses {needed}: {message} (code {code})")]
    Refused { needed: Needed, endpoint: String, code: i64, message: String },
    /// Nothing that an endpoint returned was right; this is the first thing that was wrong.
    #[error("{endpoint} returned something wrong for {needed}")]
    Wrong { needed: Needed, endpoint: String, source: Box<Wrong> },
    /// The response is longer than this crate or the endpoint allows.
    #[error("the response with {needed} is too large")]
    TooLarge { needed: Needed },
    /// No endpoint has it.
    #[error("the upstream does not have {needed}")]
    NotFound { needed: Needed },
    /// It exists, but is of a kind that this node does not know.
    #[error("{needed} cannot be read: {unknown} is not supported")]
    Unsupported { needed: Needed, unknown: String },
    /// The request that needs it ended.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The thread may not wait; see [`node_core::waiting`].
    #[error("this thread may not wait for an upstream")]
    MayNotWait,
}

impl UpstreamError {
    /// Returns whether an endpoint says that it does not have the state of a block any longer. Another one at the same URL
    /// may have it.
    pub fn says_that_the_state_is_gone(&self) -> bool {
        matches!(self, Self::Refused { code, message, .. } if message::says_that_the_state_is_gone(*code, message))
    }

    /// Returns whether the request ended, so that nothing else may be read for it.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Interrupted(_) | Self::MayNotWait)
    }

    /// Returns this error, or a later one if this one only says that an endpoint does not have something.
    pub(crate) fn or(self, later: Self) -> Self {
        if matches!(self, Self::NotFound { .. }) { later } else { self }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needed {
    Header(BlockId),
    /// Transactions, ommers and withdrawals of a block.
    Body(H256),
    Receipts(H256),
    /// An account, and a number of its slots, as of a block.
    Account {
        address: Address,
        slots: usize,
        block: H256,
    },
    /// The code of an account as of a block.
    Code {
        address: Address,
        block: H256,
    },
    /// The result of a method.
    Result {
        method: String,
    },
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(block) => write!(f, "the header of block {block}"),
            Self::Body(block) => write!(f, "the body of block {block:#x}"),
            Self::Receipts(block) => write!(f, "the receipts of block {block:#x}"),
            Self::Account { address, slots: 0, block } => write!(f, "account {address:#x} as of block {block:#x}"),
            Self::Account { address, slots, block } => {
                write!(f, "account {address:#x} and {slots} of its slots as of block {block:#x}")
            }
            Self::Code { address, block } => write!(f, "the code of account {address:#x} as of block {block:#x}"),
            Self::Result { method } => write!(f, "the result of {method}"),
        }
    }
}

/// What is wrong about a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// It is not what the method returns.
    #[error("malformed: {0}")]
    Malformed(String),
    /// The fields of the header have another hash. `unknown` are the names of fields that this node does not know: those of
    /// a later fork, or of another kind of network.
    #[error("the header has the hash {computed:#x}, expected {expected:#x}{}", listed(unknown))]
    HeaderHash { computed: H256, expected: H256, unknown: Vec<String> },
    #[error("the header has the number {got}, expected {expected}")]
    HeaderNumber { got: BlockNumber, expected: BlockNumber },
    /// What a header commits to.
    #[error("the {part} have the root {computed:#x}, expected {expected:#x}")]
    Root { part: &'static str, computed: H256, expected: H256 },
    #[error("account {address:#x} is not proven by the state root {root:#x}")]
    Account { address: Address, root: H256, source: InvalidProof },
    #[error("slot {slot:#x} of account {address:#x} is not proven by the storage root {root:#x}")]
    Slot { address: Address, slot: H256, root: H256, source: InvalidProof },
    #[error("the code of account {address:#x} has the hash {computed:#x}, expected {expected:#x}")]
    Code { address: Address, computed: H256, expected: H256 },
    #[error("a transaction is invalid")]
    Transaction(#[from] DecodeError),
}

/// Describes unknown fields.
fn listed(unknown: &[String]) -> String {
    if unknown.is_empty() { String::new() } else { format!("; fields that are not known here: {}", unknown.join(", ")) }
}
