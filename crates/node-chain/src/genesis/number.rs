//! Keys, numbers and bytes in the formats that genesis files use.

use super::{GenesisError, NumberError};
use const_hex::FromHexError;
use node_types::{Address, Bytes, DigitsError, H256, U256, parse_digits};
use serde_json::value::RawValue;

/// Refuses a key of the object at `path` that differs from a known one only in case: geth would accept it, so ignoring
/// it would start another chain.
pub(super) fn check_spelling(
    path: &str,
    key: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Result<(), GenesisError> {
    match known.into_iter().find(|known| known.eq_ignore_ascii_case(key)) {
        Some(known) if known != key => Err(GenesisError::Spelling { key: format!("{path}{key}"), known }),
        _ => Ok(()),
    }
}

/// Parses a JSON integer of any length, a decimal string, or a hex string with 0x. An empty string is zero, as in geth.
pub(super) fn u256(field: &str, value: &RawValue) -> Result<U256, GenesisError> {
    let text = value.get();
    let parsed = if text.starts_with('"') {
        u256_text(&string(field, value)?)
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        u256_text(text)
    } else {
        Err(NumberError::NotANumber)
    };
    parsed.map_err(|source| malformed(field, source))
}

/// Like [`u256`], with at most 64 bits.
pub(super) fn u64(field: &str, value: &RawValue) -> Result<u64, GenesisError> {
    u64::try_from(u256(field, value)?).map_err(|_| malformed(field, NumberError::Overflow { bits: 64 }))
}

/// Parses a JSON string.
pub(super) fn string(field: &str, value: &RawValue) -> Result<String, GenesisError> {
    typed(field, value)
}

/// Parses a value of any type that serde deserializes.
pub(super) fn typed<'a, T: serde::Deserialize<'a>>(field: &str, value: &'a RawValue) -> Result<T, GenesisError> {
    serde_json::from_str(value.get()).map_err(|source| GenesisError::Type { field: field.to_owned(), source })
}

/// Parses bytes in hex, with or without 0x.
pub(super) fn bytes(field: &str, text: &str) -> Result<Bytes, GenesisError> {
    let decoded = const_hex::decode(text).map_err(|error| match error {
        FromHexError::OddLength => NumberError::OddDigits { digits: text.strip_prefix("0x").unwrap_or(text).len() },
        _ => NumberError::Digit,
    });
    decoded.map(Bytes::from).map_err(|source| malformed(field, source))
}

/// Parses 32 bytes in hex, with or without 0x. Fewer digits are padded on the left.
pub(super) fn h256(field: &str, text: &str) -> Result<H256, GenesisError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if digits.len() > 64 {
        return Err(malformed(field, NumberError::Overflow { bits: 256 }));
    }
    let number = digits_to_u256(digits, 16).map_err(|source| malformed(field, source))?;
    Ok(H256(number.to_big_endian()))
}

/// Parses 20 bytes in hex, with or without 0x.
pub(super) fn address(field: &str, text: &str) -> Result<Address, GenesisError> {
    let bytes = bytes(field, text)?;
    match <[u8; 20]>::try_from(bytes.as_ref()) {
        Ok(bytes) => Ok(Address::from(bytes)),
        Err(_) => Err(malformed(field, NumberError::Length { got: bytes.len(), expected: 20 })),
    }
}

/// Parses a decimal number, or a hex number after 0x.
fn u256_text(text: &str) -> Result<U256, NumberError> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => digits_to_u256(digits, 16),
        None => digits_to_u256(text, 10),
    }
}

/// Parses digits. An empty string is zero.
fn digits_to_u256(digits: &str, radix: u32) -> Result<U256, NumberError> {
    if digits.is_empty() {
        return Ok(U256::zero());
    }
    parse_digits(digits, radix).map_err(|error| match error {
        DigitsError::Digit => NumberError::Digit,
        DigitsError::Overflow => NumberError::Overflow { bits: 256 },
    })
}

fn malformed(field: &str, source: NumberError) -> GenesisError {
    GenesisError::Number { field: field.to_owned(), source }
}
