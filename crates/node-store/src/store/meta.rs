//! What a store knows of its chain besides rows.

use crate::wal::Sequence;
use node_core::block::BlockRef;
use node_types::{BlockNumber, H256};

/// Version of the layout that this version reads and writes. docs/storage.md says when to raise it.
pub(crate) const LAYOUT: u64 = 2;

/// What a store knows of its chain besides rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Hash of the genesis block.
    pub(crate) genesis: H256,
    /// The newest block in runs.
    pub(crate) head: BlockRef,
    /// The earliest block whose state is stored.
    pub(crate) earliest: BlockNumber,
    /// Runs have all entries of the log up to this one.
    pub(crate) logged: Sequence,
}
