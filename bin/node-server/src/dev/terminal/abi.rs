//! Decoding of ABI-encoded arguments.

use super::console_format::Value;
use node_dev::Checksummed;
use node_types::{Address, U256};

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Uint,
    Int,
    Bool,
    Address,
    String,
    Bytes,
    /// `bytes1` to `bytes32`.
    Fixed(usize),
}

impl Type {
    /// Parses the name of a type, such as `uint256`. Returns `None` for arrays, tuples and unknown types.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let is_number = |digits: &str| digits.parse::<u16>().is_ok();
        Some(match name {
            "bool" => Self::Bool,
            "address" => Self::Address,
            "string" => Self::String,
            "bytes" => Self::Bytes,
            _ => {
                if let Some(length) = name.strip_prefix("bytes") {
                    Self::Fixed(length.parse().ok().filter(|length| (1..=32).contains(length))?)
                } else if name.strip_prefix("uint").is_some_and(is_number) {
                    Self::Uint
                } else {
                    name.strip_prefix("int").filter(|digits| is_number(digits)).map(|_| Self::Int)?
                }
            }
        })
    }
}

/// Decodes the argument at a position.
pub(super) fn value(kind: Type, arguments: &[u8], index: usize) -> Option<Value> {
    let word = arguments.get(32 * index..32 * index + 32)?;
    let number = U256::from_big_endian(word);
    Some(match kind {
        Type::Int if word[0] & 0x80 != 0 => {
            Value::Number { is_negative: true, magnitude: (!number).overflowing_add(U256::one()).0 }
        }
        Type::Int | Type::Uint => Value::Number { is_negative: false, magnitude: number },
        Type::Bool => Value::Bool(!number.is_zero()),
        Type::Address => Value::Hex(Checksummed(Address::from_slice(&word[12..])).to_string()),
        Type::Fixed(length) => Value::Hex(const_hex::encode_prefixed(&word[..length])),
        Type::String => Value::Text(String::from_utf8_lossy(dynamic(arguments, number)?).into_owned()),
        Type::Bytes => Value::Hex(const_hex::encode_prefixed(dynamic(arguments, number)?)),
    })
}

/// Returns the bytes at an offset, which follow their length.
fn dynamic(arguments: &[u8], offset: U256) -> Option<&[u8]> {
    let tail = arguments.get(usize::try_from(offset).ok()?..)?;
    let (length, bytes) = tail.split_at_checked(32)?;
    bytes.get(..usize::try_from(U256::from_big_endian(length)).ok()?)
}
