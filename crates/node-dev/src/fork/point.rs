//! The block of another chain that a fork begins with.

use super::OpenForkError;
use node_core::context::Context;
use node_types::{BlockId, BlockNumberOrTag, H256};
use node_upstream::{HashedHeader, Upstream};
use std::fmt;
use std::str::FromStr;

/// The block of another chain that a fork begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// The block with this number, hash or tag.
    Block(BlockId),
    /// The block this many blocks before the newest one.
    Back(u64),
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
        Self::Block(BlockId::latest())
    }
}

impl ForkPoint {
    /// Returns whether this may be `start`, as far as can be known without asking a server.
    pub(super) fn may_be(self, start: &Start) -> bool {
        let block = &start.block;
        match self {
            Self::Before(transaction) => start.before.as_ref().is_some_and(|before| before.transaction == transaction),
            Self::Block(BlockId::Hash(hash)) => hash == block.hash(),
            Self::Block(BlockId::Number(BlockNumberOrTag::Number(number))) => number == block.header().number,
            Self::Block(BlockId::Number(_)) | Self::Back(_) => true,
        }
    }

    /// Finds the block.
    pub(super) fn find(self, upstream: &Upstream, context: &Context) -> Result<Start, OpenForkError> {
        let mut before = None;
        let block = match self {
            Self::Block(BlockId::Number(BlockNumberOrTag::Pending)) => return Err(OpenForkError::Pending),
            Self::Block(block) => upstream.header(context, block)?,
            Self::Back(blocks) => {
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
            Self::Block(block) => block.fmt(f),
            Self::Back(blocks) => write!(f, "-{blocks}"),
            Self::Before(transaction) => write!(f, "the one before transaction {transaction:#x}"),
        }
    }
}

impl FromStr for ForkPoint {
    type Err = String;

    /// Parses a number, a hash, a tag, or a negative number that counts from the newest block.
    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected the number or hash of a block, a tag such as latest or finalized, or a negative number";
        if let Some(blocks) = text.strip_prefix('-') {
            return blocks.parse().map(Self::Back).map_err(|_| EXPECTED.to_owned());
        }
        text.parse().map(Self::Block).map_err(|_| EXPECTED.to_owned())
    }
}

/// A URL, with the block to begin with if it ends with `@` and one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkUrl {
    pub url: String,
    pub point: Option<ForkPoint>,
}

impl FromStr for ForkUrl {
    type Err = InvalidForkUrl;

    fn from_str(text: &str) -> Result<Self, InvalidForkUrl> {
        // A URL may also have an @ after a name and a password.
        match text.rsplit_once('@') {
            Some((url, point)) if let Ok(point) = point.parse() => Ok(Self { url: url.to_owned(), point: Some(point) }),
            _ => Ok(Self { url: text.to_owned(), point: None }),
        }
    }
}

/// The text is no URL of a server. The error does not repeat it, because it may contain a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a URL such as https://rpc.example.org, with or without @ and a block")]
pub struct InvalidForkUrl;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_numbers_hashes_tags_or_count_from_the_head() {
        let hash = H256::repeat_byte(7);
        for (text, expected) in [
            ("17", ForkPoint::Block(BlockId::number(17))),
            ("0x11", ForkPoint::Block(BlockId::number(17))),
            ("finalized", ForkPoint::Block(BlockId::finalized())),
            ("-3", ForkPoint::Back(3)),
            (&format!("{hash:#x}"), ForkPoint::Block(BlockId::Hash(hash))),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", "-", "--1", "-0x1", "newest", "1.5", "0x"] {
            assert!(text.parse::<ForkPoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn urls_may_end_with_a_block() {
        let parse = |text: &str| text.parse::<ForkUrl>().unwrap();
        let with = |url: &str, point| ForkUrl { url: url.to_owned(), point };
        assert_eq!(parse("http://a"), with("http://a", None));
        assert_eq!(parse("http://a@17"), with("http://a", Some(ForkPoint::Block(BlockId::number(17)))));
        assert_eq!(parse("https://name:word@a.example/x"), with("https://name:word@a.example/x", None));
        assert_eq!(parse("https://name:word@a@-5"), with("https://name:word@a", Some(ForkPoint::Back(5))));
    }
}
