//! Why a block was not imported.

use crate::validation::BlockError;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Interrupted;
use node_types::H256;

/// Why a block was not imported, or the head could not be set. The chain is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    #[error("the block cannot be decoded")]
    Decode(#[source] node_types::consensus::DecodeError),
    #[error("block {block}: its parent {parent:#x} is not known")]
    UnknownParent { block: BlockRef, parent: H256 },
    #[error("block 1 follows the genesis block {parent:#x}, but that of this chain is {genesis:#x}")]
    OtherGenesis { parent: H256, genesis: H256 },
    #[error("block {block} is invalid")]
    Invalid { block: BlockRef, source: BlockError },
    #[error("no block has the hash {0:#x}")]
    UnknownBlock(H256),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}
