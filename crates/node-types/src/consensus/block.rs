//! Whole blocks.

use super::codec::record;
use super::{Header, Transaction, Withdrawal};
use crate::H256;

record! {
    /// A block: a header, and a body of transactions, ommers and withdrawals.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Block {
        /// The header.
        pub header: Header = "block header";
        /// Transactions in the order of execution.
        pub transactions: Vec<Transaction> = "block transactions";
        /// Headers of ommers. Empty since the merge.
        pub ommers: Vec<Header> = "block ommers";
        /// Withdrawals. `None` before Shanghai (EIP-4895).
        pub withdrawals: Option<Vec<Withdrawal>> = "block withdrawals";
    }
}

impl Block {
    /// Returns the hash of the header.
    pub fn hash(&self) -> H256 {
        self.header.hash()
    }

    /// Returns the length of the encoding in bytes. This encodes the whole block.
    pub fn encoded_len(&self) -> usize {
        rlp::Encodable::rlp_bytes(self).len()
    }
}
