//! The objects that Ethereum hashes, signs and stores, with their RLP encodings.
//!
//! # Examples
//! ```
//! use node_types::consensus::{Header, Transaction};
//!
//! let header = Header { number: 7, ..Header::default() };
//! assert_eq!(Header::decode(&header.encode()).unwrap(), header);
//!
//! let error = Transaction::decode(&[0x02]).unwrap_err();
//! assert_eq!(error.to_string(), "transaction is cut off");
//! ```

mod account;
mod block;
mod bloom;
mod codec;
mod header;
mod receipt;
mod request;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
mod transaction;

pub use account::{Account, EMPTY_ROOT};
pub use block::{Block, Withdrawal};
pub use bloom::Bloom;
pub use codec::DecodeError;
pub use header::{BlockNonce, EMPTY_OMMERS_HASH, Header, HeaderField};
pub use receipt::{Log, Receipt, ReceiptOutcome};
pub use request::{EMPTY_REQUESTS_HASH, Request, RequestType, requests_hash};
pub use transaction::{
    AccessListItem, AccessListTransaction, Authorization, BlobSidecar, BlobTransaction, DynamicFeeTransaction,
    LegacyTransaction, PooledTransaction, SetCodeTransaction, Signature, Transaction, TransactionBody, TransactionType,
    split_v, versioned_hash,
};
