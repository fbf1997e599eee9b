//! The data types of an Ethereum execution node: consensus objects with their RLP encodings, and the requests and
//! responses of its HTTP interface with their JSON encodings.
//!
//! * [`consensus`] defines the objects that Ethereum hashes, signs and stores: headers, transactions, receipts,
//!   accounts.
//! * [`rlp`] writes RLP strings and list headers, for tries and consensus objects.
//! * [`trie`] checks proofs that a Merkle Patricia trie contains, or lacks, a key.
//! * [`wire`] defines the requests and responses of the HTTP interface.
//! * [`proof`] verifies responses against a header: see [`verify_proof`].
//!
//! The crate does no I/O and links no C code, so it suffices for building a client, including for
//! `wasm32-unknown-unknown`.
//!
//! # Examples
//! ```
//! use node_types::consensus::Header;
//! use node_types::wire::GetProofInput;
//! use node_types::{BlockId, U256};
//!
//! let header = Header { number: 7, ..Header::default() };
//! let request = GetProofInput {
//!     address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse()?,
//!     storage_keys: vec!["0x1".parse()?],
//!     block_number: BlockId::Hash(header.hash()),
//! };
//! let json = serde_json::to_string(&request)?;
//! assert_eq!(serde_json::from_str::<GetProofInput>(&json)?, request);
//!
//! // Accounts have no balance in the empty state.
//! let empty: [&[u8]; 0] = [];
//! let account = node_types::proof::prove_account(node_types::consensus::EMPTY_ROOT, *request.address, &empty)?;
//! assert_eq!(account.unwrap_or_default().balance, U256::zero());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! No feature is enabled by default.
//!
//! * `alloy`: conversions to and from alloy's types; see the module `alloy`.
//! * `schema`: a JSON Schema for every wire type; see the module `wire::schema`.
//! * `serde`: `Serialize` and `Deserialize` for [`Address`], [`H256`] and [`U256`], as `0x` and hex digits, for use
//!   in your own types. The feature does not affect the encodings of [`wire`].

#![cfg_attr(docsrs, feature(doc_cfg))]

/// Declares an enum without fields and its constant `ALL`: all variants in the order of their declaration.
#[doc(hidden)]
#[macro_export]
macro_rules! listed_enum {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$attribute])*
        $visibility enum $name { $($(#[$of_variant])* $variant),+ }

        impl $name {
            /// All variants, in the order of their declaration.
            $visibility const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];
        }
    };
}

#[cfg(feature = "alloy")]
pub mod alloy;
mod block_id;
pub mod buffer;
mod bytes;
mod checksum;
pub mod consensus;
mod convert;
mod event_id;
mod keccak;
mod number;
pub mod proof;
pub mod rlp;
pub mod trie;
pub mod wire;

pub use crate::block_id::{BlockId, BlockNumberOrTag};
pub use crate::bytes::Bytes;
pub use crate::checksum::Checksummed;
pub use crate::event_id::{ChainEventId, EventId};
pub use crate::keccak::{KECCAK_EMPTY, keccak256, keccak256_all};
pub use crate::number::{DigitsError, parse_digits};
pub use crate::proof::verify_proof;
pub use primitive_types::{H160, H256, U256};

/// A 20-byte account address.
///
/// `FromStr` accepts it with or without `0x`. It implements serde's traits only with the feature `serde`;
/// [`wire::AddressData`] always does.
pub type Address = H160;

/// Height of a block; the genesis block has number 0.
pub type BlockNumber = u64;
