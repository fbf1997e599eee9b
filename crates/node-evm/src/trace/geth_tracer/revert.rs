//! geth's text of revert reasons in traces.

use crate::call::revert::{self, Reason};

/// Returns the reason that geth shows, or `None` if there is none or if it is empty.
pub(super) fn reason(output: &[u8]) -> Option<String> {
    let text = match revert::decode(output)? {
        Reason::Error(text) => text,
        Reason::Panic(Some(code)) => match meaning(code) {
            Some(meaning) => meaning.to_owned(),
            None => format!("unknown panic code: {code:#x}"),
        },
        Reason::Panic(None) => format!("unknown panic code: 0x{}", revert::digits(output.get(4..36)?)),
        Reason::Custom(_) => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Returns what a panic means, in geth's words.
fn meaning(code: usize) -> Option<&'static str> {
    Some(match code {
        0x00 => "generic panic",
        0x01 => "assert(false)",
        0x11 => "arithmetic underflow or overflow",
        0x12 => "division or modulo by zero",
        0x21 => "enum overflow",
        0x22 => "invalid encoded storage byte array accessed",
        0x31 => "out-of-bounds array access; popping on an empty array",
        0x32 => "out-of-bounds access of an array or bytesN",
        0x41 => "out of memory",
        0x51 => "uninitialized function",
        _ => return None,
    })
}
