//! A strict decoder of RLP (Yellow Paper, appendix B), and fast writing of strings.
//!
//! The decoder of the `rlp` crate accepts surplus items, trailing bytes and items that extend beyond their list. This
//! one accepts exactly one encoding of each value, so a decoded object encodes to the same bytes and has the same
//! hash.

mod decode;
mod error;
mod record;

pub(super) use decode::Items;
pub use error::DecodeError;
pub(super) use record::{Fields, Item, append_bytes, items, objects, record};

objects! {
    super::Account: "account",
    super::Block: "block",
    super::Header: "header",
    super::Log: "log",
    super::Withdrawal: "withdrawal"
}
