//! Byte strings.

use super::Quantity;
use super::decode::{Decode, Faults, Input};
use super::json;
use super::text::{self, TextError};
use crate::consensus::{BlockNonce, Bloom};
use crate::{Address, Bytes, H256, U256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// Bytes that are encoded as `0x` and lower-case hex digits. Hex digits of either case are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Data<T>(pub T);

/// A number that is encoded as `0x` and 64 hex digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub U256);

/// The byte strings that [`Data`] can hold.
pub trait ByteString: Sized {
    /// The length in bytes; `None` for types of variable length.
    const LENGTH: Option<usize>;

    /// Returns the bytes.
    fn as_slice(&self) -> &[u8];

    /// Converts bytes. Returns `None` if their length is wrong.
    fn from_vec(bytes: Vec<u8>) -> Option<Self>;
}

/// Implements [`ByteString`] for tuple structs of an array.
macro_rules! fixed {
    ($($type:ty: $length:literal),+) => {$(
        impl ByteString for $type {
            const LENGTH: Option<usize> = Some($length);

            fn as_slice(&self) -> &[u8] {
                &self.0
            }

            fn from_vec(bytes: Vec<u8>) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }
        }
    )+};
}

fixed!(H256: 32, Address: 20, Bloom: 256);

impl ByteString for Bytes {
    const LENGTH: Option<usize> = None;

    fn as_slice(&self) -> &[u8] {
        self
    }

    fn from_vec(bytes: Vec<u8>) -> Option<Self> {
        Some(bytes.into())
    }
}

impl ByteString for BlockNonce {
    const LENGTH: Option<usize> = Some(8);

    fn as_slice(&self) -> &[u8] {
        self
    }

    fn from_vec(bytes: Vec<u8>) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl<T> Deref for Data<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Data<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl From<Vec<u8>> for Data<Bytes> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl<T: ByteString> fmt::Display for Data<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&const_hex::encode_prefixed(self.0.as_slice()))
    }
}

impl<T: ByteString> FromStr for Data<T> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let expected = T::LENGTH.map_or(TextError::Data, |bytes| TextError::FixedData { digits: 2 * bytes });
        let digits = text.strip_prefix("0x").ok_or(expected)?;
        if T::LENGTH.is_some_and(|bytes| digits.len() != 2 * bytes) || digits.starts_with("0x") {
            return Err(expected);
        }
        const_hex::decode(digits).ok().and_then(T::from_vec).map(Self).ok_or(expected)
    }
}

impl<T: ByteString> Serialize for Data<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if json::writes_bytes_as_hex::<S>() {
            return serializer.serialize_bytes(self.0.as_slice());
        }
        serializer.collect_str(self)
    }
}

impl<'de, T: ByteString> Deserialize<'de> for Data<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize(deserializer)
    }
}

impl<T: ByteString> Decode for Data<T> {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        input.text(faults)
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Data(H256(self.0.to_big_endian())).serialize(serializer)
    }
}

/// In requests a word may also be encoded like a number.
impl Decode for Word {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        Quantity::<U256>::decode(input, faults).map(|number| Self(number.0))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Data::<H256>::deserialize(deserializer).map(|word| Self(U256::from_big_endian(word.as_bytes())))
    }
}
