//! Results of JSON-RPC methods. Numbers and byte strings are those of [`node_types::wire`].

mod block;
mod proof;
mod receipt;
mod transaction;

pub(crate) use block::{BlockContents, header};
pub(crate) use proof::AccountProofJson;
pub(crate) use receipt::ReceiptJson;
pub(crate) use transaction::transaction;
