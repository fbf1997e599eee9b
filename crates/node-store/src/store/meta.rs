//! Data about a chain besides its rows, which the manifest stores.

use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_types::{BlockNumber, H256};

/// Data about a chain besides its rows, which the manifest stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Hash of the genesis block.
    pub(crate) genesis: H256,
    /// The newest block in runs.
    pub(crate) head: BlockRef,
    /// The earliest block whose state is stored.
    pub(crate) earliest: BlockNumber,
    /// The last log entry that is in runs.
    pub(crate) logged: Sequence,
}
