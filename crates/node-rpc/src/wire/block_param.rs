//! Blocks as parameters.

use super::hex;
use node_types::wire::Data;
use node_types::{BlockId, BlockNumber, BlockNumberOrTag, H256};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::borrow::Cow;

/// Length of a hash with its prefix.
const HASH_LENGTH: usize = 66;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockNumberParam(pub(crate) BlockNumberOrTag);

/// A block by number, by tag, by hash, or by an object with one of these (EIP-1898). The default is the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockParam(pub(crate) BlockId);

/// A hash of 32 bytes.
pub(crate) type Block32 = Data<H256>;

/// The object of EIP-1898.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    block_number: Option<BlockNumberParam>,
    block_hash: Option<Block32>,
    /// Ignored: states of blocks that are not canonical are not kept.
    #[serde(rename = "requireCanonical")]
    _require_canonical: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrObject<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Object(Named),
}

fn tag(text: &str) -> Result<BlockNumberOrTag, String> {
    match text {
        "latest" => Ok(BlockNumberOrTag::Latest),
        "earliest" => Ok(BlockNumberOrTag::Earliest),
        "pending" => Ok(BlockNumberOrTag::Pending),
        "safe" => Ok(BlockNumberOrTag::Safe),
        "finalized" => Ok(BlockNumberOrTag::Finalized),
        number => hex::parse::<BlockNumber>(number).map(BlockNumberOrTag::Number),
    }
}

impl<'de> Deserialize<'de> for BlockNumberParam {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer).map_err(|_| D::Error::custom(hex::NON_STRING))?;
        tag(&text).map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for BlockParam {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Option::<TextOrObject<'_>>::deserialize(deserializer);
        match read
            .map_err(|_| D::Error::custom("expected a block number, a hash, a tag, or an object with one of them"))?
        {
            None => Ok(Self::default()),
            Some(TextOrObject::Text(text)) if text.len() == HASH_LENGTH => {
                text.parse::<Block32>().map(|hash| Self(BlockId::Hash(hash.0))).map_err(D::Error::custom)
            }
            Some(TextOrObject::Text(text)) => tag(&text).map(|tag| Self(tag.into())).map_err(D::Error::custom),
            Some(TextOrObject::Object(named)) => match (named.block_number, named.block_hash) {
                (Some(tag), None) => Ok(Self(tag.0.into())),
                (None, Some(hash)) => Ok(Self(BlockId::Hash(hash.0))),
                (Some(_), Some(_)) => Err(D::Error::custom("cannot specify both blockHash and blockNumber")),
                (None, None) => Err(D::Error::custom("expected blockHash or blockNumber")),
            },
        }
    }
}
