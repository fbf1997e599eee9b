//! A strict decoder of RLP (Yellow Paper, appendix B), and fast writing of strings.
//!
//! The decoder of the `rlp` crate accepts surplus items, trailing bytes and items that extend beyond their list. Here
//! every value has exactly one encoding, so that a decoded object encodes to the same bytes and has the same hash.

mod decode;
mod encode;
mod error;

pub(super) use decode::Items;
pub(super) use encode::{append_bytes, append_hashes, append_recipient};
pub use error::DecodeError;

/// Implements the `rlp` crate's `Decodable` by the strict inherent `decode`.
macro_rules! impl_decodable {
    ($($name:ty),+) => {
        $(impl rlp::Decodable for $name {
            fn decode(rlp: &rlp::Rlp<'_>) -> Result<Self, rlp::DecoderError> {
                Ok(Self::decode(rlp.as_raw())?)
            }
        })+
    };
}

impl_decodable!(super::Account, super::Block, super::Header, super::Log, super::Withdrawal);
