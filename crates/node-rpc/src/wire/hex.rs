//! Numbers as `0x` and hex digits.

use node_types::U256;
use node_types::wire::{HeaderMember, Integer, Quantity, TextError};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// A number that is encoded as `0x` and hex digits without leading zeros. Decoding accepts leading zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hex<T>(pub(crate) T);

impl<T: Clone> HeaderMember<T> for Hex<T> {
    fn of(field: &T) -> Self {
        Self(field.clone())
    }

    fn read(&self) -> Option<T> {
        Some(self.0.clone())
    }
}

impl<T: Integer> Serialize for Hex<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: U256 = self.0.into();
        if value.bits() > 64 {
            return serializer.collect_str(&format_args!("{value:#x}"));
        }
        serializer.serialize_str(HexDigits::of(value.low_u64()).as_str())
    }
}

/// The text of a number. Most numbers are short, for which `fmt` is slower than this.
pub(super) struct HexDigits {
    text: [u8; 18],
    start: usize,
}

impl HexDigits {
    pub(super) fn of(number: u64) -> Self {
        let (mut text, mut start, mut rest) = ([0; 18], 18, number);
        loop {
            start -= 1;
            text[start] = b"0123456789abcdef"[(rest & 0xf) as usize];
            rest >>= 4;
            if rest == 0 {
                break;
            }
        }
        start -= 2;
        text[start..start + 2].copy_from_slice(b"0x");
        Self { text, start }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[self.start..]).unwrap_or_default()
    }
}

impl<'de, T: Integer> Deserialize<'de> for Hex<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer).map_err(|_| D::Error::custom(NON_STRING))?;
        parse(&text).map(Self).map_err(D::Error::custom)
    }
}

/// geth's message for a JSON value of the wrong type.
pub(super) const NON_STRING: &str = "cannot unmarshal non-string";

/// Parses `0x` and hex digits. Errors have geth's text.
pub(crate) fn parse<T: Integer>(text: &str) -> Result<T, String> {
    match text.strip_prefix("0x") {
        None if text.is_empty() => return Err("empty hex string".to_owned()),
        None => return Err("hex string without 0x prefix".to_owned()),
        Some("") => return Err("hex string \"0x\"".to_owned()),
        Some(_) => {}
    }
    text.parse::<Quantity<T>>().map(|number| number.0).map_err(|error| match error {
        TextError::Overflow { bits } => format!("hex number > {bits} bits"),
        _ => "invalid hex string".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        for (number, text) in [(0, "0x0"), (1, "0x1"), (0xf0, "0xf0"), (u64::MAX, "0xffffffffffffffff")] {
            assert_eq!(serde_json::to_string(&Hex(number)).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::to_string(&Hex(U256::from(number))).unwrap(), format!("\"{text}\""));
        }
        let long = Hex(U256::from(u64::MAX) + 1);
        assert_eq!(serde_json::to_string(&long).unwrap(), "\"0x10000000000000000\"");
    }

    #[test]
    fn what_is_read() {
        for (json, expected) in [(r#""0x0""#, Some(0)), (r#""0x10""#, Some(16)), (r#""0x007""#, Some(7))] {
            assert_eq!(serde_json::from_str::<Hex<u64>>(json).ok().map(|hex| hex.0), expected, "{json}");
        }
        for json in
            [r#""16""#, "16", r#""0x""#, r#""0xg""#, r#""0x10000000000000000""#, "null", "[]", "{}", "true", "1e3"]
        {
            assert!(serde_json::from_str::<Hex<u64>>(json).is_err(), "{json}");
        }
        let words = ["", "7", "0x", "0xg", "0x10000000000000000"].map(|text| parse::<u64>(text).unwrap_err());
        let expected = [
            "empty hex string",
            "hex string without 0x prefix",
            "hex string \"0x\"",
            "invalid hex string",
            "hex number > 64 bits",
        ];
        assert_eq!(words, expected);
    }
}
