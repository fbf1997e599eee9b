//! Ways to identify a block.

use crate::wire::{Data, HashData, Quantity, TextError};
use crate::{BlockNumber, H256};
use std::fmt;
use std::str::FromStr;

/// A block by number, by tag or by hash.
///
/// # Examples
/// ```
/// use node_types::{BlockId, BlockNumberOrTag, H256};
///
/// assert_eq!("0x1b".parse(), Ok(BlockId::number(27)));
/// assert_eq!("latest".parse(), Ok(BlockId::from(BlockNumberOrTag::Latest)));
/// assert_eq!(BlockId::Hash(H256::zero()).to_string(), format!("0x{}", "0".repeat(64)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockId {
    /// A canonical block, or the pending one.
    Number(BlockNumberOrTag),
    Hash(H256),
}

/// A block by number or by tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockNumberOrTag {
    Number(BlockNumber),
    /// The genesis block.
    Earliest,
    /// The head of the canonical chain.
    #[default]
    Latest,
    /// The block assembled from the pool on top of the head.
    Pending,
    /// The newest block that the consensus layer considers safe.
    Safe,
    /// The newest block that the consensus layer considers final.
    Finalized,
}

impl BlockId {
    /// Returns the id of the canonical block with this number.
    pub const fn number(number: BlockNumber) -> Self {
        Self::Number(BlockNumberOrTag::Number(number))
    }

    /// Returns the id of the genesis block.
    pub const fn earliest() -> Self {
        Self::Number(BlockNumberOrTag::Earliest)
    }

    /// Returns the id of the head of the canonical chain.
    pub const fn latest() -> Self {
        Self::Number(BlockNumberOrTag::Latest)
    }

    /// Returns the id of the pending block, which is assembled from the pool on top of the head.
    pub const fn pending() -> Self {
        Self::Number(BlockNumberOrTag::Pending)
    }

    /// Returns the id of the newest block that the consensus layer considers safe.
    pub const fn safe() -> Self {
        Self::Number(BlockNumberOrTag::Safe)
    }

    /// Returns the id of the newest block that the consensus layer considers final.
    pub const fn finalized() -> Self {
        Self::Number(BlockNumberOrTag::Finalized)
    }

    /// Returns whether this is [`BlockNumberOrTag::Pending`].
    pub const fn is_pending(&self) -> bool {
        matches!(self, Self::Number(BlockNumberOrTag::Pending))
    }
}

impl Default for BlockId {
    fn default() -> Self {
        Self::latest()
    }
}

impl From<BlockNumberOrTag> for BlockId {
    fn from(tag: BlockNumberOrTag) -> Self {
        Self::Number(tag)
    }
}

impl From<BlockNumber> for BlockNumberOrTag {
    fn from(number: BlockNumber) -> Self {
        Self::Number(number)
    }
}

impl From<BlockNumber> for BlockId {
    fn from(number: BlockNumber) -> Self {
        Self::number(number)
    }
}

impl From<H256> for BlockId {
    fn from(hash: H256) -> Self {
        Self::Hash(hash)
    }
}

impl fmt::Display for BlockNumberOrTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Earliest => f.write_str("earliest"),
            Self::Latest => f.write_str("latest"),
            Self::Pending => f.write_str("pending"),
            Self::Safe => f.write_str("safe"),
            Self::Finalized => f.write_str("finalized"),
        }
    }
}

impl FromStr for BlockNumberOrTag {
    type Err = TextError;

    /// Parses a tag, or a number in decimal or `0x` hex. Rejects exactly 64 hex digits, which are a hash, even if
    /// their value is small.
    fn from_str(text: &str) -> Result<Self, TextError> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            "pending" => Ok(Self::Pending),
            "safe" => Ok(Self::Safe),
            "finalized" => Ok(Self::Finalized),
            hash if hash.parse::<HashData>().is_ok() => Err(TextError::BlockHash),
            number => match number.parse::<Quantity<BlockNumber>>() {
                Ok(number) => Ok(Self::Number(number.0)),
                Err(TextError::Number) => Err(TextError::BlockNumberOrTag),
                Err(error) => Err(error),
            },
        }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(hash) => Data(*hash).fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl FromStr for BlockId {
    type Err = TextError;

    /// Parses exactly 64 hex digits as a hash, anything else as a [`BlockNumberOrTag`].
    fn from_str(text: &str) -> Result<Self, TextError> {
        if let Ok(hash) = text.parse::<HashData>() {
            return Ok(Self::Hash(hash.0));
        }
        match text.parse::<BlockNumberOrTag>() {
            Ok(number) => Ok(number.into()),
            Err(TextError::BlockNumberOrTag) => Err(TextError::BlockId),
            Err(error) => Err(error),
        }
    }
}
