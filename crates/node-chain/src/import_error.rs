//! Why a block was not imported.

use crate::validation::BlockError;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Interrupted;
use node_types::H256;

/// Why a block was not imported, or a head not set. The chain is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The bytes are no block.
    #[error("the block cannot be decoded")]
    Decode(#[source] node_types::consensus::DecodeError),
    /// Nothing is known of the parent.
    #[error("block {block}: its parent {parent:#x} is not known")]
    UnknownParent {
        /// The block.
        block: BlockRef,
        /// Its parent.
        parent: H256,
    },
    /// The block breaks a rule.
    #[error("block {block} is invalid")]
    Invalid {
        /// The block.
        block: BlockRef,
        /// The rule.
        #[source]
        source: BlockError,
    },
    /// No block has this hash.
    #[error("no block has the hash {0:#x}")]
    UnknownBlock(H256),
    /// The backend did not answer.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The import was called off.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
