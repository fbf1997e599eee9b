//! The progress of an import.

use node_types::BlockNumber;

/// Progress of an import during which reads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportProgress {
    /// The head when the import began.
    pub starting_block: BlockNumber,
    /// The head now.
    pub current_block: BlockNumber,
    /// The highest block that the import will reach, as far as that is known, and at least the head.
    pub highest_block: BlockNumber,
}

/// The state of the running import.
pub(super) struct Importing {
    pub(super) starting_block: BlockNumber,
    /// `None` if it is not known yet.
    pub(super) highest_block: Option<BlockNumber>,
}
