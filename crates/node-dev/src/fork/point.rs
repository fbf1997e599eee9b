//! The block of another chain that a fork begins with.

use super::OpenForkError;
use node_core::context::Context;
use node_core::producer::ForkBlock;
use node_types::{BlockId, BlockNumberOrTag, H256};
use node_upstream::{HashedHeader, Upstream};
use std::fmt;

/// The block of another chain that a fork begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// This block.
    At(ForkBlock),
    /// The parent of the block that contains this transaction. The transactions before it in the block are executed again,
    /// in the first new block of the fork.
    Before(H256),
}

/// Where a fork begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Start {
    /// Its first block.
    pub(super) block: HashedHeader,
    /// The transaction before which it begins, unless it begins after the block.
    pub(super) before: Option<Before>,
}

/// A transaction of the other chain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Before {
    pub(super) transaction: H256,
    /// The block that contains it.
    pub(super) block: HashedHeader,
}

/// The default is the newest block.
impl Default for ForkPoint {
    fn default() -> Self {
        Self::At(ForkBlock::default())
    }
}

impl ForkPoint {
    /// Returns the only one of these, or `None` if there is none.
    ///
    /// # Errors
    /// If they differ, whether or not a server would say that they are the same block.
    pub(super) fn only(points: impl IntoIterator<Item = Self>) -> Result<Option<Self>, OpenForkError> {
        let mut points = points.into_iter();
        let Some(first) = points.next() else { return Ok(None) };
        match points.find(|point| *point != first) {
            Some(second) => Err(OpenForkError::TwoPoints { first, second }),
            None => Ok(Some(first)),
        }
    }

    /// Returns whether this is a fork that begins with `block` and, if that is given, just before a transaction of the next
    /// one. `None` if only a server knows.
    pub(super) fn is(self, block: &HashedHeader, before: Option<&Before>) -> Option<bool> {
        match self {
            Self::Before(transaction) => Some(before.is_some_and(|before| before.transaction == transaction)),
            Self::At(ForkBlock::Id(BlockId::Hash(hash))) => Some(hash == block.hash()),
            Self::At(ForkBlock::Id(BlockId::Number(BlockNumberOrTag::Number(number)))) => {
                Some(number == block.header().number)
            }
            Self::At(ForkBlock::Id(BlockId::Number(_)) | ForkBlock::Back(_)) => None,
        }
    }

    /// Finds the block.
    pub(super) fn find(self, upstream: &Upstream, context: &Context) -> Result<Start, OpenForkError> {
        let mut before = None;
        let block = match self {
            Self::At(ForkBlock::Id(BlockId::Number(BlockNumberOrTag::Pending))) => return Err(OpenForkError::Pending),
            Self::At(ForkBlock::Id(block)) => upstream.header(context, block)?,
            Self::At(ForkBlock::Back(blocks)) => {
                let head = upstream.header(context, BlockId::latest())?.header().number;
                let number = head.checked_sub(blocks).ok_or(OpenForkError::BeforeGenesis { head, blocks })?;
                upstream.header(context, BlockId::number(number))?
            }
            Self::Before(transaction) => {
                let block = upstream.block_of(context, transaction)?.ok_or(OpenForkError::NotMined(transaction))?;
                let block = upstream.header(context, block.into())?;
                let parent = upstream.header(context, block.header().parent_hash.into())?;
                before = Some(Before { transaction, block });
                parent
            }
        };
        Ok(Start { block, before })
    }
}

impl fmt::Display for ForkPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(block) => block.fmt(f),
            Self::Before(transaction) => write!(f, "the one before transaction {transaction:#x}"),
        }
    }
}

impl From<ForkBlock> for ForkPoint {
    fn from(block: ForkBlock) -> Self {
        Self::At(block)
    }
}

impl From<BlockId> for ForkPoint {
    fn from(block: BlockId) -> Self {
        Self::At(ForkBlock::Id(block))
    }
}
