//! Failures of a backend.

use crate::block::BlockRef;
use crate::context::Interrupted;
use crate::sources::Sources;
use node_types::{BlockNumber, H256};
use std::io;
use std::path::PathBuf;

/// Why a backend could not read or change its chain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    #[error("block {0} is beyond the head")]
    UnknownBlock(BlockNumber),
    #[error("the state as of block {block} is not kept; the earliest kept is that of block {earliest}")]
    StatePruned { block: BlockNumber, earliest: BlockNumber },
    /// The backend makes proofs only for canonical blocks that it stores.
    #[error("there are no proofs for block {0}, which is not on the canonical chain")]
    NoProofs(BlockNumber),
    /// The account was changed after the block was sealed, so no header commits to it.
    #[error("no header commits to the account after block {0}")]
    Uncommitted(BlockNumber),
    #[error("block {0} is not a genesis block")]
    NotGenesis(BlockRef),
    /// The folder contains a chain with a different id, so its transactions are not valid for the expected one.
    #[error("the chain has the id {found}, expected {expected}")]
    OtherChainId { found: u64, expected: u64 },
    /// A system contract of the active fork is missing or fails.
    #[error("no block can follow the genesis block: {0}")]
    NoFirstBlock(String),
    #[error("block {block} does not follow block {parent}")]
    NotAChild { block: BlockRef, parent: BlockRef },
    #[error("block {block} has state root {header:#x}, its changes produce {computed:#x}")]
    StateRootMismatch { block: BlockNumber, header: H256, computed: H256 },
    /// The thread that produces blocks at intervals.
    #[error("cannot start the thread that produces blocks")]
    NoThread(#[source] io::Error),
    /// Another process, or another part of this process, has opened the folder.
    #[error("the folder is in use by another process")]
    Locked { path: PathBuf },
    /// Something that is not stored here cannot be read from the chain that this one continues.
    #[error("the upstream cannot be read")]
    Upstream(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Something that is not stored here cannot be read from the chain that this one continues, and neither could it be if
    /// the read was repeated: there is no upstream, or it answers and the thing cannot be asked for.
    #[error("the upstream cannot be read")]
    Unobtainable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The block has no [state root](node_types::consensus::Header::has_state_root), so nothing can be proven about the state after it.
    #[error(
        "there are no proofs for block {block}: the blocks from {first} on have no state root, because {}",
        Sources(&**reason)
    )]
    NoStateRoot {
        block: BlockNumber,
        /// The first block without a state root.
        first: BlockNumber,
        /// What was needed for the state root of that block.
        reason: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The chain that this one continues is read without proofs.
    #[error(
        "there are no proofs for block {0}: the states of the chain that this one continues are read without them (`fork-trust`)"
    )]
    Unproven(BlockNumber),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// This process no longer writes the chain: another one does, or the store for which it wrote has disappeared.
    #[error(transparent)]
    NotWriter(Box<dyn std::error::Error + Send + Sync>),
    #[error("storage failure")]
    Storage(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Something was asked for by its hash alone, in a chain that continues another one: it is not part of what was read or
/// changed, which does not mean that it does not exist. [`BackendError::Upstream`] contains this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {hash:#x} is not part of what was read or changed; the chain that this one continues may have it")]
pub struct NotRead {
    pub what: &'static str,
    pub hash: H256,
}
