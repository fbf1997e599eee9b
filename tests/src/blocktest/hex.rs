//! Hex strings with `0x`, as serde field types.

use node_types::{Bytes, H256, U256};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A byte string.
#[derive(Clone, Debug, Default)]
pub(super) struct Data(pub(super) Bytes);

/// A number of at most 256 bits; `0x` is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(pub(super) U256);

impl Number {
    /// The number as 32 bytes.
    pub(super) fn word(self) -> H256 {
        H256(self.0.to_big_endian())
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = const_hex::decode(&text).map_err(|error| D::Error::custom(format!("{text:.40}: {error}")))?;
        Ok(Self(bytes.into()))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        if digits.is_empty() {
            return Ok(Self::default());
        }
        let number =
            U256::from_str_radix(digits, 16).map_err(|error| D::Error::custom(format!("{text:.80}: {error}")))?;
        Ok(Self(number))
    }
}
