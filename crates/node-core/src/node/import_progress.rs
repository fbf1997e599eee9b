//! How far an import is.

use node_types::BlockNumber;

/// Progress of an import, of which a client sees what is done already.
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

/// What an import has reported.
pub(super) struct Importing {
    pub(super) starting_block: BlockNumber,
    /// `None` if it is not known yet.
    pub(super) highest_block: Option<BlockNumber>,
}
