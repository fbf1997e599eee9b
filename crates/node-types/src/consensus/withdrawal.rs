//! Withdrawals from the consensus layer (EIP-4895).

use super::codec::record;
use crate::Address;

record! {
    /// A withdrawal from the beacon chain: the consensus layer has the execution layer credit an account. Its encoding
    /// is the value in the withdrawals trie.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Withdrawal {
        /// Number of the withdrawal, ascending over all blocks.
        pub index: u64 = "withdrawal index";
        /// Index of the validator.
        pub validator_index: u64 = "withdrawal validator index";
        /// Recipient.
        pub address: Address = "withdrawal address";
        /// Amount in gwei.
        pub amount: u64 = "withdrawal amount";
    }
}
