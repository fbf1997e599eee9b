//! Numbers in the formats that clients of development chains use, and strict objects.

use node_types::U256;
use node_types::wire::{Integer, Quantity};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// A number: a JSON integer, or a string of `0x` and hex digits or of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loose<T>(pub(crate) T);

impl<'de, T: Integer> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData))
    }
}

struct LooseVisitor<T>(PhantomData<T>);

impl<T: Integer> Visitor<'_> for LooseVisitor<T> {
    type Value = Loose<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a string that holds one")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        T::try_from(U256::from(number)).map(Loose).map_err(|_| E::custom("number too large"))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // serde_json decodes integers of 2^64 and more as floats.
        let mut exact =
            Some(number).filter(|number| number.fract() == 0.0 && *number >= 0.0 && *number < 2f64.powi(256));
        let mut shift = 0usize;
        while let Some(large) = exact.filter(|large| *large >= 2f64.powi(64)) {
            exact = Some(large / 2.0);
            shift += 1;
        }
        let number = exact.map(|small| U256::from(small as u64) << shift);
        number.and_then(|number| T::try_from(number).ok()).map(Loose).ok_or_else(|| E::custom("not a whole number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse::<Quantity<T>>().map(|number| Loose(number.0)).map_err(E::custom)
    }
}

/// A JSON object. Without this wrapper, serde would also accept an array of the values.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        if !raw.get().starts_with('{') {
            return Err(D::Error::custom("expected an object"));
        }
        let read = serde_json::from_str(raw.get()).map(Self);
        read.map_err(|error| D::Error::custom(crate::error::plain(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read() {
        let read = |json: &str| serde_json::from_str::<Loose<u64>>(json).ok().map(|number| number.0);
        for json in ["16", r#""16""#, r#""0x10""#, r#""0x0010""#, "16.0", "1.6e1"] {
            assert_eq!(read(json), Some(16), "{json}");
        }
        for json in [r#""""#, r#""0x""#, r#""ten""#, "-1", "1.5", "null", "true", "[]", "{}", "18446744073709551616"] {
            assert_eq!(read(json), None, "{json}");
        }
        let wide = |json: &str| serde_json::from_str::<Loose<U256>>(json).ok().map(|number| number.0);
        // A hundred thousand ether, which clients write as a JavaScript number.
        assert_eq!(wide("1e+23"), Some(U256::from(99_999_999_999_999_991_611_392u128)));
        assert_eq!(wide("18446744073709551616"), Some(U256::one() << 64));
        assert_eq!(wide(&format!("\"{}\"", U256::exp10(70))), Some(U256::exp10(70)));
        assert_eq!(wide("1e80"), None);
    }
}
