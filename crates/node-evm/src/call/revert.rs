//! Decoding of revert reasons in Solidity's encoding.

use std::fmt::Write;

/// Selector of `Error(string)`.
const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];

/// Selector of `Panic(uint256)`.
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// Maximum length of a reason in bytes, because code may return any data.
const MAX_REASON: usize = 1024;

/// Returns the reason if `output` encodes an `Error(string)` or a `Panic(uint256)`, and `custom error 0x` with the
/// selector for any other error. Returns `None` for fewer than four bytes and for a malformed `Error` or `Panic`.
/// Invalid UTF-8 is replaced, and reasons of more than 1,024 bytes are truncated.
pub fn reason(output: &[u8]) -> Option<String> {
    Some(match decode(output)? {
        Reason::Error(text) => text,
        Reason::Panic(code) => panic(code, output.get(4..36)?),
        Reason::Custom([a, b, c, d]) => format!("custom error 0x{a:02x}{b:02x}{c:02x}{d:02x}"),
    })
}

/// A decoded reason.
pub(crate) enum Reason {
    /// The text of an `Error(string)`.
    Error(String),
    /// The code of a `Panic(uint256)`; `None` if it is large.
    Panic(Option<usize>),
    /// The selector of any other error.
    Custom([u8; 4]),
}

/// Decodes the output of code that reverted, as [`reason`] does.
pub(crate) fn decode(output: &[u8]) -> Option<Reason> {
    let (selector, arguments) = output.split_first_chunk::<4>()?;
    match *selector {
        ERROR => error(arguments).map(Reason::Error),
        PANIC => Some(Reason::Panic(number(arguments.get(..32)?))),
        other => Some(Reason::Custom(other)),
    }
}

fn error(arguments: &[u8]) -> Option<String> {
    let offset = number(arguments.get(..32)?)?;
    let tail = arguments.get(offset..)?;
    let (length, text) = tail.split_at_checked(32)?;
    let text = text.get(..number(length)?)?;
    if text.len() <= MAX_REASON {
        return Some(String::from_utf8_lossy(text).into_owned());
    }
    // A character that the truncation splits is replaced.
    Some(String::from_utf8_lossy(&text[..MAX_REASON]).into_owned() + "…")
}

fn panic(code: Option<usize>, word: &[u8]) -> String {
    let meaning = match code {
        Some(0x00) => "generic panic",
        Some(0x01) => "assertion failed",
        Some(0x11) => "arithmetic overflow or underflow",
        Some(0x12) => "division or modulo by zero",
        Some(0x21) => "value out of range of the enum",
        Some(0x22) => "storage byte array wrongly encoded",
        Some(0x31) => "pop from an empty array",
        Some(0x32) => "array index out of bounds",
        Some(0x41) => "out of memory",
        Some(0x51) => "call of an uninitialized function",
        _ => "unknown panic",
    };
    format!("panic: {meaning} (0x{:0>2})", digits(word))
}

/// Returns a big-endian word as hex digits without leading zeros.
pub(crate) fn digits(word: &[u8]) -> String {
    let digits = word.iter().fold(String::new(), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    digits.trim_start_matches('0').to_owned()
}

/// Returns a big-endian word as a length, or `None` if it exceeds the address space.
fn number(word: &[u8]) -> Option<usize> {
    let (high, low) = word.split_last_chunk::<8>()?;
    if high.iter().any(|byte| *byte != 0) {
        return None;
    }
    usize::try_from(u64::from_be_bytes(*low)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(number: u64) -> Vec<u8> {
        [vec![0; 24], number.to_be_bytes().to_vec()].concat()
    }

    fn encoded(text: &[u8]) -> Vec<u8> {
        [ERROR.to_vec(), word(32), word(text.len() as u64), text.to_vec()].concat()
    }

    #[test]
    fn decodes_reasons() {
        let long = "x".repeat(2000);
        for (name, output, expected) in [
            ("nothing", vec![], None),
            ("half a selector", ERROR[..3].to_vec(), None),
            ("only a selector", ERROR.to_vec(), None),
            ("a custom error", [vec![1, 2, 0xab, 4], word(32)].concat(), Some("custom error 0x0102ab04".to_owned())),
            ("a reason", encoded(b"not the owner"), Some("not the owner".to_owned())),
            ("an empty reason", encoded(b""), Some(String::new())),
            ("not UTF-8", encoded(b"a\xffb"), Some("a\u{fffd}b".to_owned())),
            ("a long reason", encoded(long.as_bytes()), Some(format!("{}…", &long[..1024]))),
            ("without its text", encoded(b"x")[..68].to_vec(), None),
            ("an endless text", [ERROR.to_vec(), word(32), word(u64::MAX)].concat(), None),
            ("an endless offset", [ERROR.to_vec(), word(u64::MAX), word(0)].concat(), None),
            ("a number beyond 64 bits", [ERROR.to_vec(), vec![0xff; 64]].concat(), None),
            (
                "a panic",
                [PANIC.to_vec(), word(0x11)].concat(),
                Some("panic: arithmetic overflow or underflow (0x11)".to_owned()),
            ),
            ("an assertion", [PANIC.to_vec(), word(1)].concat(), Some("panic: assertion failed (0x01)".to_owned())),
            ("panic zero", [PANIC.to_vec(), word(0)].concat(), Some("panic: generic panic (0x00)".to_owned())),
            (
                "an unknown panic",
                [PANIC.to_vec(), word(0x999)].concat(),
                Some("panic: unknown panic (0x999)".to_owned()),
            ),
            ("half a panic", [PANIC.to_vec(), vec![0; 31]].concat(), None),
        ] {
            assert_eq!(reason(&output), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(selector in prop_oneof![Just(ERROR), Just(PANIC)], tail in any::<Vec<u8>>()) {
            if let Some(reason) = reason(&[selector.to_vec(), tail].concat()) {
                prop_assert!(reason.len() <= 3 * MAX_REASON + 3);
            }
        }
    }
}
