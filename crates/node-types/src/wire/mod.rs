//! Requests and responses of the HTTP interface, with their JSON encodings.
//!
//! Requests and responses implement `Serialize` and `Deserialize`, so servers and clients can share these types.
//! Requests are read as a whole from JSON, to report all errors at once; they cannot be parts of types with
//! `#[serde(flatten)]` or `#[serde(untagged)]`.
//!
//! Hashes, addresses, byte strings, and numbers that are encoded as strings have wrapper types that define the
//! encoding: a [`Quantity`] is a decimal string, [`Data`] is lower-case hex, and a [`Word`] is 32 bytes in hex. They
//! convert from and to the wrapped values with `from` and `into`, and dereference to them. JSON booleans, JSON
//! numbers and texts have plain types, and so do the contents of types with their own encoding, such as
//! [`BlockId`](crate::BlockId) and [`AddressFilter`].
//!
//! # Examples
//! ```
//! use node_types::BlockNumberOrTag;
//! use node_types::wire::{BodyError, GetLogsInput, decode_body};
//!
//! let input: GetLogsInput = decode_body(br#"{"FromBlock": "0x1b"}"#)?;
//! assert_eq!(input.from_block, Some(BlockNumberOrTag::Number(27)));
//!
//! // All faults of a request are reported at once.
//! let Err(BodyError::Invalid(faults)) = decode_body::<GetLogsInput>(br#"{"FromBlock": -1, "Topics": [7]}"#) else {
//!     panic!("the request is invalid");
//! };
//! let locations: Vec<_> = faults.iter().map(|fault| fault.location.as_str()).collect();
//! assert_eq!(locations, ["body.FromBlock", "body.Topics[0]"]);
//! # Ok::<(), BodyError>(())
//! ```

mod block;
mod call;
mod chain;
mod control;
mod data;
mod decode;
mod event;
mod fault;
mod fee_history;
mod filter;
mod header;
mod json;
mod log;
mod parameters;
mod problem;
mod proof;
mod quantity;
mod receipt;
#[cfg(feature = "schema")]
pub mod schema;
mod state_override;
#[cfg(test)]
mod tests;
mod text;
mod transaction;

pub use crate::buffer::{Allowance, BufferFull, JsonBuffer};
pub use block::*;
pub use call::*;
pub use chain::*;
pub use control::*;
pub use data::{ByteString, Data, Word};
pub use decode::{
    BodyError, Decode, Faults, Faulty, Input, ListLimit, Location, ObjectDecoder, RequestLimits, decode_body,
    decode_body_within, decode_fields,
};
pub use event::*;
pub use fee_history::*;
pub use filter::*;
pub use header::HeaderMember;
pub use json::{JsonArray, JsonObject, append_data, append_digits, append_json};
pub use log::*;
pub use parameters::*;
pub use problem::*;
pub use proof::*;
pub use quantity::{Integer, Quantity};
pub use receipt::*;
pub use state_override::*;
pub use text::TextError;
pub use transaction::*;

use crate::consensus::{BlockNonce, Bloom};
use crate::{Address, Bytes, H256, U256};

// Fields are declared with these names, because the schema derive macro cannot resolve generic arguments from other
// crates.

/// A 32-byte hash or topic.
pub type HashData = Data<H256>;
/// An account address.
pub type AddressData = Data<Address>;
/// Bytes of any length.
pub type BytesData = Data<Bytes>;
/// A bloom filter.
pub type BloomData = Data<Bloom>;
/// The nonce of a block.
pub type NonceData = Data<BlockNonce>;
/// A number below 2^64.
pub type Quantity64 = Quantity<u64>;
/// A number below 2^256.
pub type Quantity256 = Quantity<U256>;
