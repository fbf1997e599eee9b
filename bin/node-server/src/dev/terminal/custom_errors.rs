//! Errors of contracts that many projects use, by name.
//!
//! `errors.txt` has the signatures of those of OpenZeppelin's contracts 5, Solady, ERC-721A, Permit2, CreateX, and the
//! EntryPoints of ERC-4337.

use super::abi::{self, Type};
use super::console_format::Value;
use super::escape::escaped;
use node_types::keccak256;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What the text of a failure has before the selector of an error.
const UNKNOWN: &str = "custom error 0x";

struct Signature {
    text: &'static str,
    name: &'static str,
    types: Vec<Type>,
}

/// The errors by selector.
static SIGNATURES: LazyLock<HashMap<[u8; 4], Signature>> = LazyLock::new(|| {
    let signature = |text: &'static str| {
        let (name, types) = text.strip_suffix(')')?.split_once('(')?;
        let types = types.split(',').filter(|name| !name.is_empty()).map(Type::parse).collect::<Option<_>>()?;
        let [a, b, c, d, ..] = keccak256(text.as_bytes()).0;
        Some(([a, b, c, d], Signature { text, name, types }))
    };
    include_str!("errors.txt").lines().filter_map(signature).collect()
});

/// Returns the error with this data as a call, such as `OwnableUnauthorizedAccount(0x…)`, or `None` if it is not
/// known.
pub(super) fn named(data: &[u8]) -> Option<String> {
    let (selector, arguments) = data.split_first_chunk::<4>()?;
    let Signature { name, types, .. } = SIGNATURES.get(selector)?;
    let values = types.iter().enumerate().map(|(index, kind)| abi::value(*kind, arguments, index));
    let shown = |value: &Value| match value {
        Value::Text(text) => format!("\"{text}\""),
        value => value.to_string(),
    };
    let values: Vec<_> = values.collect::<Option<Vec<_>>>()?.iter().map(shown).collect();
    Some(escaped(&format!("{name}({})", values.join(", "))))
}

/// Replaces the selector of a known error in the text of a failure with its signature.
pub(super) fn with_name(failure: &str) -> String {
    let replaced = || {
        let (before, after) = failure.split_once(UNKNOWN)?;
        let (selector, rest) = after.split_at_checked(8)?;
        let selector = <[u8; 4]>::try_from(const_hex::decode(selector).ok()?).ok()?;
        Some(format!("{before}{}{rest}", SIGNATURES.get(&selector)?.text))
    };
    replaced().unwrap_or_else(|| failure.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_complete() {
        assert_eq!(SIGNATURES.len(), include_str!("errors.txt").lines().count());
    }

    #[test]
    fn known_errors_have_their_name_and_arguments() {
        let word = |number: u64| format!("{number:064x}");
        let cases = [
            // ERC-6093.
            (
                "e450d38c",
                vec![word(0xaa), word(3), word(5)],
                "ERC20InsufficientBalance(0x00000000000000000000000000000000000000AA, 3, 5)",
            ),
            ("118cdaa7", vec![word(0xaa)], "OwnableUnauthorizedAccount(0x00000000000000000000000000000000000000AA)"),
            ("3ee5aeb5", vec![], "ReentrancyGuardReentrantCall()"),
            ("82b42900", vec![], "Unauthorized()"),
            // FailedOp(uint256,string) of ERC-4337.
            ("220266b6", vec![word(1), word(64), word(2), format!("{:0<64}", "610a")], r#"FailedOp(1, "a\n")"#),
        ];
        for (selector, words, expected) in cases {
            let data = format!("{selector}{}", words.concat());
            assert_eq!(named(&const_hex::decode(&data).unwrap()).as_deref(), Some(expected));
        }
        let failure = |error| format!("execution reverted: {error} (3)");
        assert_eq!(with_name(&failure("custom error 0x118cdaa7")), failure("OwnableUnauthorizedAccount(address)"));
        // Too few arguments, and another selector.
        for data in ["118cdaa7", "deadbeef", "11"] {
            assert_eq!(named(&const_hex::decode(data).unwrap()), None);
        }
        for failure in ["execution reverted: custom error 0xdeadbeef", "custom error 0x11", "custom error 0xü2345678"]
        {
            assert_eq!(with_name(failure), failure);
        }
    }
}
