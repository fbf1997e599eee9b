//! Versions of the storage layout.

/// A storage layout that this program reads and writes. A folder keeps the layout with which it was created.
/// docs/storage.md specifies when to add one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each leaf of a trie has a row.
    V2,
    /// Up to [`MAX_LEAVES`] leaves below a position share one row.
    V3,
}

/// Maximum number of leaves in a row of a trie, in any layout. The branches above them are computed when they are
/// needed: the row changes only if a leaf is added or removed, but to prove one leaf, the values of all are read.
pub(crate) const MAX_LEAVES: usize = 4;

impl Layout {
    /// The oldest layout.
    pub(crate) const OLDEST: Self = Self::V2;

    /// The layout of new folders.
    pub(crate) const NEWEST: Self = Self::V3;

    /// Returns the layout with this version, or `None` if it is not supported.
    pub(crate) fn of(version: u64) -> Option<Self> {
        [Self::V2, Self::V3].into_iter().find(|layout| layout.version() == version)
    }

    pub(crate) fn version(self) -> u64 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    /// Returns the maximum number of leaves in a row of a trie.
    pub(crate) fn max_leaves(self) -> usize {
        match self {
            Self::V2 => 1,
            Self::V3 => MAX_LEAVES,
        }
    }
}
