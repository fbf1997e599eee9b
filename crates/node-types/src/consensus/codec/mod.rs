//! A strict reading of RLP (Yellow Paper, appendix B) and what the `rlp` crate lacks for writing it.
//!
//! The crate's own decoder tolerates surplus items, trailing bytes and items that reach beyond their list. Here every
//! value has exactly one encoding, so that what was decoded encodes to the same bytes and therefore the same hash.

mod decode;
mod encode;
mod error;

pub(super) use decode::Items;
pub(super) use encode::{append_bytes, append_hashes, append_receiver};
pub use error::DecodeError;

/// Makes a type whose inherent `decode` is strict usable where the `rlp` crate wants its `Decodable`.
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
