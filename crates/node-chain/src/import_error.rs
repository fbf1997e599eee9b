//! Why a block was not imported.

use crate::validation::BlockError;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Interrupted;
use node_types::H256;

/// Why a block was not imported, or the head could not be set. The chain is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ImportError {
    /// The bytes are not a block.
    #[error("the block cannot be decoded")]
    Decode(#[source] node_types::consensus::DecodeError),
    /// The parent is not stored.
    #[error("block {block}: its parent {parent:#x} is not known")]
    UnknownParent { block: BlockRef, parent: H256 },
    /// The first block of another chain.
    #[error("block 1 follows the genesis block {parent:#x}, but that of this chain is {genesis:#x}")]
    OtherGenesis { parent: H256, genesis: H256 },
    /// The block breaks a rule.
    #[error("block {block} is invalid")]
    Invalid { block: BlockRef, source: BlockError },
    /// No block has this hash.
    #[error("no block has the hash {0:#x}")]
    UnknownBlock(H256),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The context interrupted the import.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The executor has a bug.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}
