//! Parsing of values in strings, path parameters and property names. Block ids and tags are encoded as strings; JSON
//! integers are read as well.

use super::decode::{Decode, Faults, Input};
use crate::{BlockId, BlockNumberOrTag};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

/// Why a text is not the expected value. `Display` states what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// Neither decimal digits nor `0x` and hex digits.
    #[error("expected a number, decimal or 0x hex")]
    Number,
    /// A number that does not fit.
    #[error("expected a number below 2^{bits}")]
    Overflow { bits: usize },
    /// Not `0x` and an even number of hex digits.
    #[error("expected 0x and an even number of hex digits")]
    Data,
    /// Not `0x` and the right number of hex digits.
    #[error("expected 0x and {digits} hex digits")]
    FixedData { digits: usize },
    /// Not a storage slot.
    #[error("expected a decimal number, or 0x and at most 64 hex digits")]
    StorageKey,
    /// Not a block number, hash or tag.
    #[error("expected a block number, a block hash, earliest, latest, pending, safe or finalized")]
    BlockId,
    /// Not a block number or tag.
    #[error("expected a block number, earliest, latest, pending, safe or finalized")]
    BlockNumberOrTag,
    /// The pending block, of which nothing is proven.
    #[error("the pending block has no proofs")]
    PendingProof,
    /// A block hash where only numbers and tags are allowed.
    #[error(
        "0x and 64 hex digits are taken for a block hash, which is not allowed here: expected a block number, earliest, latest, \
         pending, safe or finalized"
    )]
    BlockHash,
    /// Not a kind of event stream.
    #[error("expected logs, blocks or pendingTransactions")]
    EventStream,
    /// Not the id of an event about a log or a block.
    #[error("expected the id of an event: 0x and 64 hex digits, then nothing or a colon and the index of a log")]
    ChainEventId,
    /// Not a boolean.
    #[error("expected true or false")]
    Flag,
}

impl From<Infallible> for TextError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Describes why `text` is not the expected value. For invalid byte strings, the message starts with geth's text.
fn described(text: &str, error: TextError) -> String {
    let digits = text.strip_prefix("0x");
    let words = match (error, digits) {
        (TextError::Data | TextError::FixedData { .. }, None) if text.is_empty() => "empty hex string",
        (TextError::Data | TextError::FixedData { .. }, None) => "hex string without 0x prefix",
        (TextError::Data | TextError::FixedData { .. }, Some(digits)) if digits.len() % 2 == 1 => {
            "hex string of odd length"
        }
        (TextError::FixedData { digits: want }, Some(digits)) if digits.len() != want => {
            return format!("hex string has length {}, want {want}: {error}", digits.len());
        }
        (TextError::Data | TextError::FixedData { .. }, Some(_)) => "invalid hex string",
        _ => return error.to_string(),
    };
    format!("{words}: {error}")
}

/// Deserializes a string or a JSON integer through [`FromStr`].
pub(super) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = TextError>,
{
    struct TextVisitor<T>(PhantomData<T>);

    impl<T: FromStr<Err = TextError>> Visitor<'_> for TextVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(|error| E::custom(described(text, error)))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }
    }

    deserializer.deserialize_any(TextVisitor(PhantomData))
}

macro_rules! encode_as_text {
    ($($argument:ty),+) => {$(
        impl Serialize for $argument {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $argument {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize(deserializer)
            }
        }

        impl Decode for $argument {
            fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
                input.text_or_integer(faults)
            }
        }
    )+};
}

encode_as_text!(BlockNumberOrTag, BlockId);
