//! Why something that a fork needs is not available.

use node_core::backend::BackendError;
use node_types::trie::NibblePath;
use node_types::{Address, BlockNumber, H256};
use node_upstream::UpstreamError;
use std::fmt;

/// Why something that a fork needs is not available. [`BackendError::Upstream`] and [`BackendError::Unobtainable`] contain
/// this error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForkError {
    /// The endpoints of the upstream do not return it, or not as the block commits to it.
    #[error(transparent)]
    Upstream(UpstreamError),
    /// It was not fetched before, and the fork has no upstream.
    #[error("the fork is offline; needed: {needed}")]
    Offline { needed: Needed },
    /// It was not fetched before, and the endpoints do not have the state any longer that the fork begins with.
    #[error("this state is not available any longer ({reason}); needed: {needed}")]
    Gone { needed: Needed, reason: String },
    /// The upstream does not have it, although it exists.
    #[error("the upstream does not have {0}")]
    Missing(Needed),
    /// An endpoint returned something else.
    #[error("the upstream returned something else for {needed}: {reason}")]
    Malformed { needed: Needed, reason: String },
    /// It took too long, whatever time the request has.
    #[error("the upstream did not respond within {seconds} seconds; needed: {needed}")]
    TimedOut { needed: Needed, seconds: u64 },
    /// A proof of the key that was found does not contain the node, so the node is not at this position.
    #[error("{0} is not in the trie")]
    NotThere(MissingNode),
    /// A change of the trie needs a node to which no known key leads, and none was found.
    #[error("no key leads to a trie node, because {reason}; needed: {node}")]
    NoKey { node: MissingNode, reason: &'static str },
    /// It needs trie nodes, and the fork reads states without proofs.
    #[error("the state that the fork begins with is read without proofs, so there are none of states on top of it")]
    Unproven,
    /// The names of accounts or slots that were read could not be kept.
    #[error("more was read than is kept (`fork-cache-mb`), so it is not known any more what")]
    Unnamed,
    /// Something was fetched and is lost, because neither the folder nor the memory has space for it.
    #[error("{0} was fetched and could not be kept")]
    Lost(Needed),
}

/// What is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needed {
    /// Accounts and slots as of a block. The first of them is named.
    State { address: Address, slot: Option<H256>, others: usize, block: BlockNumber },
    /// The code of an account.
    Code { address: Address, block: BlockNumber },
    /// A trie node.
    Node(MissingNode),
    /// A trie node of a proof.
    NodeHash(H256),
    /// The block with a number.
    BlockNumber(BlockNumber),
    /// The block with a hash, or a part of it.
    Block(H256),
    /// The receipts of a block.
    Receipts(H256),
    /// The position of a transaction.
    Transaction(H256),
    /// The logs of blocks, both ends included.
    Logs { from: BlockNumber, to: BlockNumber },
}

impl fmt::Display for Needed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State { address, slot, others, block } => {
                if let Some(slot) = slot {
                    write!(f, "slot {slot:#x} of ")?;
                }
                write!(f, "account {address:#x} as of block {block}")?;
                if *others > 0 { write!(f, " (and {others} more)") } else { Ok(()) }
            }
            Self::Code { address, block } => write!(f, "the code of account {address:#x} as of block {block}"),
            Self::Node(node) => node.fmt(f),
            Self::NodeHash(hash) => write!(f, "the trie node {hash:#x}"),
            Self::BlockNumber(number) => write!(f, "block {number}"),
            Self::Block(hash) => write!(f, "block {hash:#x}"),
            Self::Receipts(hash) => write!(f, "the receipts of block {hash:#x}"),
            Self::Transaction(hash) => write!(f, "transaction {hash:#x}"),
            Self::Logs { from, to } => write!(f, "the logs of blocks {from} to {to}"),
        }
    }
}

/// A trie node, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingNode {
    /// The account whose storage has the node, or `None` if it is in the account trie.
    pub account: Option<Address>,
    pub position: NibblePath,
    pub hash: H256,
}

impl fmt::Display for MissingNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, position, hash } = self;
        write!(f, "the trie node {hash:#x} at ")?;
        match position.len() {
            0 => f.write_str("the root")?,
            length => (0..length).try_for_each(|index| write!(f, "{:x}", position.nibble(index)))?,
        }
        match account {
            Some(account) => write!(f, " in the storage of account {account:#x}"),
            None => f.write_str(" in the account trie"),
        }
    }
}

impl From<ForkError> for BackendError {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Upstream(UpstreamError::Interrupted(interrupted)) => Self::Interrupted(interrupted),
            // None would change if the read was repeated. What the endpoints refuse in other words, they may return later:
            // behind one URL may be servers of which some are behind.
            error @ (ForkError::Offline { .. }
            | ForkError::Gone { .. }
            | ForkError::NoKey { .. }
            | ForkError::Unproven) => Self::Unobtainable(Box::new(error)),
            error => Self::Upstream(Box::new(error)),
        }
    }
}

/// Converts a failure of the folder.
pub(crate) fn storage(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::Storage(Box::new(error))
}

/// Returns whether the endpoints refused a request, as those do that no longer have a state, or not a method.
pub(crate) fn is_refusal(error: &BackendError) -> bool {
    let (BackendError::Upstream(error) | BackendError::Unobtainable(error)) = error else { return false };
    matches!(error.downcast_ref(), Some(ForkError::Upstream(UpstreamError::Refused { .. }) | ForkError::Gone { .. }))
}
