//! The data types of an Ethereum execution node: consensus objects with their RLP encodings, and the requests and
//! responses of its HTTP interface with their JSON encodings.
//!
//! * [`consensus`] holds the objects that Ethereum hashes, signs and stores: headers, transactions, receipts, accounts.
//! * [`rlp`] writes strings and list headers, for tries and for objects alike.
//! * [`wire`] holds the requests and responses of the HTTP interface.
//!
//! The crate does no I/O and links no C code, so a client can be built on it alone.

mod block_id;
mod bytes;
pub mod consensus;
mod event_id;
mod keccak;
mod number;
pub mod rlp;
pub mod wire;

pub use crate::block_id::{BlockId, BlockNumberOrTag};
pub use crate::bytes::Bytes;
pub use crate::event_id::{ChainEventId, EventId};
pub use crate::keccak::{KECCAK_EMPTY, keccak256};
pub use crate::number::{DigitsError, parse_digits};
pub use primitive_types::{H160, H256, U256};

/// A 20-byte account address.
pub type Address = H160;

/// Height of a block; the genesis block has number 0.
pub type BlockNumber = u64;
