//! Which block a request asks about.

use super::decode::{Decode, Faults, Input};
use super::text::{self, TextError};
use super::{Data, HashData, Quantity};
use crate::{BlockNumber, H256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A block by number, by hash or by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockArgument {
    /// The canonical block of this height.
    Number(BlockNumber),
    /// The block with this hash.
    Hash(H256),
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

/// A block by number or by name, where a hash has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BlockTag {
    /// The canonical block of this height.
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

impl From<BlockTag> for BlockArgument {
    fn from(tag: BlockTag) -> Self {
        match tag {
            BlockTag::Number(number) => Self::Number(number),
            BlockTag::Earliest => Self::Earliest,
            BlockTag::Latest => Self::Latest,
            BlockTag::Pending => Self::Pending,
            BlockTag::Safe => Self::Safe,
            BlockTag::Finalized => Self::Finalized,
        }
    }
}

impl From<BlockNumber> for BlockTag {
    fn from(number: BlockNumber) -> Self {
        Self::Number(number)
    }
}

impl From<BlockNumber> for BlockArgument {
    fn from(number: BlockNumber) -> Self {
        Self::Number(number)
    }
}

impl fmt::Display for BlockTag {
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

impl FromStr for BlockTag {
    type Err = TextError;

    /// Hex of exactly 64 digits is a hash, even where the number would be small, and refused.
    fn from_str(text: &str) -> Result<Self, TextError> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            "pending" => Ok(Self::Pending),
            "safe" => Ok(Self::Safe),
            "finalized" => Ok(Self::Finalized),
            hash if hash.parse::<HashData>().is_ok() => Err(TextError::BlockTag),
            number => match number.parse::<Quantity<BlockNumber>>() {
                Ok(number) => Ok(Self::Number(number.0)),
                Err(TextError::Number) => Err(TextError::BlockTag),
                Err(error) => Err(error),
            },
        }
    }
}

impl fmt::Display for BlockArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hash(hash) => Data(*hash).fmt(f),
            Self::Number(number) => BlockTag::Number(*number).fmt(f),
            Self::Earliest => BlockTag::Earliest.fmt(f),
            Self::Latest => BlockTag::Latest.fmt(f),
            Self::Pending => BlockTag::Pending.fmt(f),
            Self::Safe => BlockTag::Safe.fmt(f),
            Self::Finalized => BlockTag::Finalized.fmt(f),
        }
    }
}

impl FromStr for BlockArgument {
    type Err = TextError;

    /// Hex of exactly 64 digits is a hash, shorter or longer hex a number.
    fn from_str(text: &str) -> Result<Self, TextError> {
        if let Ok(hash) = text.parse::<HashData>() {
            return Ok(Self::Hash(hash.0));
        }
        match text.parse::<BlockTag>() {
            Ok(tag) => Ok(tag.into()),
            Err(TextError::BlockTag) => Err(TextError::BlockArgument),
            Err(error) => Err(error),
        }
    }
}

/// Both kinds travel as strings; JSON integers are read too.
macro_rules! travel_as_text {
    ($($argument:ty),+) => {$(
        impl Serialize for $argument {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $argument {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text::deserialize(deserializer)
            }
        }

        impl Decode for $argument {
            fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
                input.text_or_integer(faults)
            }
        }
    )+};
}

travel_as_text!(BlockTag, BlockArgument);
