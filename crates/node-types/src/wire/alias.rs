//! Short names for the wrapper types. Fields are declared with these, because the schema derive macro cannot resolve
//! generic arguments from other crates.

use super::{Data, Quantity};
use crate::consensus::{BlockNonce, Bloom};
use crate::{Address, Bytes, H256, U256};

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
