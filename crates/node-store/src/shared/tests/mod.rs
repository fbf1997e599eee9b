//! Tests of the protocol.

pub(super) mod media;
mod model;
pub(super) mod protocol;

use std::fmt::Write;

/// Returns bytes in hexadecimal, 32 in a line.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        line.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    text.trim_end().to_owned()
}
