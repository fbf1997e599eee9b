//! Numbers.

use super::decode::{Decode, Faults, Input};
use super::text::{self, TextError};
use crate::{DigitsError, U256, parse_digits};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// A number that is encoded as a decimal string.
///
/// Decimal strings, `0x` hex strings and JSON integers are accepted. Leading zeros are allowed; signs and blanks are
/// not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity<T>(pub T);

/// The integers that a [`Quantity`] can hold.
pub trait Integer: Copy + TryFrom<U256> + Into<U256> {
    /// The size of the integer in bits.
    const BITS: usize;
}

impl Integer for u64 {
    const BITS: usize = 64;
}

impl Integer for U256 {
    const BITS: usize = 256;
}

impl<T> Deref for Quantity<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Quantity<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Integer> fmt::Display for Quantity<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(self.0.into(), f)
    }
}

impl<T: Integer> FromStr for Quantity<T> {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => parse_digits(digits, 16),
            None => parse_digits(text, 10),
        };
        match number.map(T::try_from) {
            Ok(Ok(number)) => Ok(Self(number)),
            Err(DigitsError::Digit) => Err(TextError::Number),
            Ok(Err(_)) | Err(DigitsError::Overflow) => Err(TextError::Overflow { bits: T::BITS }),
        }
    }
}

impl<T: Integer> Serialize for Quantity<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: U256 = self.0.into();
        // Most numbers are short, and `Display` is slow compared with writing their digits.
        if value.bits() <= 64 {
            serializer.serialize_str(itoa::Buffer::new().format(value.low_u64()))
        } else if value.bits() <= 128 {
            serializer.serialize_str(itoa::Buffer::new().format(value.low_u128()))
        } else {
            serializer.collect_str(self)
        }
    }
}

impl<'de, T: Integer> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text::deserialize(deserializer)
    }
}

impl<T: Integer> Decode for Quantity<T> {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        input.text_or_integer(faults)
    }
}

/// Writes `value` in decimal, 38 digits at a time, because division of 256-bit numbers is slow.
fn write_decimal(value: U256, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if value.bits() <= 64 {
        return write!(f, "{}", value.low_u64());
    }
    if value.bits() <= 128 {
        return write!(f, "{}", value.low_u128());
    }
    let (high, low) = value.div_mod(U256::exp10(38));
    write_decimal(high, f)?;
    write!(f, "{:038}", low.low_u128())
}
