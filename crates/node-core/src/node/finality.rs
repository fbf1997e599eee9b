//! Which blocks count as safe and final without a consensus client.

/// How far below the head the safe and the finalized block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// Both are the head: of an imported chain.
    Head,
    /// They follow the head: of a chain that the node produces itself.
    Behind {
        /// Blocks from the head to the safe block.
        safe: u64,
        /// Blocks from the head to the finalized block.
        finalized: u64,
    },
}

impl Finality {
    /// Of a development chain: one epoch of 32 slots until a block is safe, two until it is final.
    pub const DEVELOPMENT: Self = Self::Behind { safe: 32, finalized: 64 };

    /// Blocks from the head to the safe block; the genesis block where there are fewer.
    pub fn safe_depth(self) -> u64 {
        match self {
            Self::Head => 0,
            Self::Behind { safe, .. } => safe,
        }
    }

    /// Blocks from the head to the finalized block; the genesis block where there are fewer.
    pub fn finalized_depth(self) -> u64 {
        match self {
            Self::Head => 0,
            Self::Behind { finalized, .. } => finalized,
        }
    }
}
