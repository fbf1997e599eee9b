//! Whole blocks, and the withdrawals in them (EIP-4895).

use super::codec::record;
use super::{Header, Transaction};
use crate::{Address, H256};

record! {
    /// A block: a header, and a body of transactions, ommers and withdrawals.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Block {
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

record! {
    /// A withdrawal from the beacon chain: the consensus layer has the execution layer credit an account. Its encoding
    /// is the value in the withdrawals trie.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Withdrawal {
        /// Number of the withdrawal, ascending over all blocks.
        pub index: u64 = "withdrawal index";
        pub validator_index: u64 = "withdrawal validator index";
        pub address: Address = "withdrawal address";
        /// Amount in gwei.
        pub amount: u64 = "withdrawal amount";
    }
}
