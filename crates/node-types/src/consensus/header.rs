//! Block headers of all forks.

use super::Bloom;
use super::codec::record;
use crate::{Address, BlockNumber, Bytes, H256, U256, keccak256};
use rlp::Encodable;
use std::fmt;

/// The hash of an empty list of ommers: keccak of the RLP empty list.
pub const EMPTY_OMMERS_HASH: H256 = H256([
    0x1d, 0xcc, 0x4d, 0xe8, 0xde, 0xc7, 0x5d, 0x7a, 0xab, 0x85, 0xb5, 0x67, 0xb6, 0xcc, 0xd4, 0x1a, 0xd3, 0x12, 0x45,
    0x1b, 0x94, 0x8a, 0x74, 0x13, 0xf0, 0xa1, 0x42, 0xfd, 0x40, 0xd4, 0x93, 0x47,
]);

/// The nonce of a proof-of-work block. Zero since the merge (EIP-3675).
pub type BlockNonce = [u8; 8];

record! {
    /// A block header (Yellow Paper, section 4.3, and the EIPs mentioned at the optional fields).
    ///
    /// The encoding contains optional fields in the order of declaration. A field can only be present if all optional
    /// fields before it are present.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Header {
        pub parent_hash: H256 = "header parent hash";
        /// Keccak of the RLP list of ommer headers.
        pub ommers_hash: H256 = "header ommers hash";
        /// Recipient of the fees.
        pub beneficiary: Address = "header beneficiary";
        /// Root of the state trie after execution of this block.
        pub state_root: H256 = "header state root";
        /// Root of the trie of this block's transactions.
        pub transactions_root: H256 = "header transactions root";
        /// Root of the trie of this block's receipts.
        pub receipts_root: H256 = "header receipts root";
        /// Bloom filter of all logs of this block.
        pub logs_bloom: Bloom = "header logs bloom";
        /// Proof-of-work difficulty. Zero since the merge.
        pub difficulty: U256 = "header difficulty";
        /// Height of this block.
        pub number: BlockNumber = "header number";
        /// Maximum gas of all transactions.
        pub gas_limit: u64 = "header gas limit";
        /// Gas used by all transactions.
        pub gas_used: u64 = "header gas used";
        /// Unix time in seconds.
        pub timestamp: u64 = "header timestamp";
        /// Up to 32 bytes chosen by the producer.
        pub extra_data: Bytes = "header extra data";
        /// Proof-of-work mix hash; PREVRANDAO since the merge (EIP-4399).
        pub mix_hash: H256 = "header mix hash";
        /// Proof-of-work nonce.
        pub nonce: BlockNonce = "header nonce";
        /// Base fee in wei per gas (EIP-1559).
        pub base_fee_per_gas: Option<u64> = "header base fee per gas";
        /// Root of the trie of withdrawals (EIP-4895).
        pub withdrawals_root: Option<H256> = "header withdrawals root";
        /// Blob gas used by all transactions (EIP-4844).
        pub blob_gas_used: Option<u64> = "header blob gas used";
        /// Running total of blob gas used in excess of the target (EIP-4844).
        pub excess_blob_gas: Option<u64> = "header excess blob gas";
        /// Root of the parent beacon block (EIP-4788).
        pub parent_beacon_block_root: Option<H256> = "header parent beacon block root";
        /// Hash of the execution requests (EIP-7685).
        pub requests_hash: Option<H256> = "header requests hash";
    }
}

impl Header {
    /// Returns whether the header commits to the state after the block. If a chain continues the state of another one, and
    /// trie nodes cannot be had that a block changes, its state root is zero, and so are those of all blocks after it.
    pub fn has_state_root(&self) -> bool {
        !self.state_root.is_zero()
    }

    /// Returns the hash of the encoding, which is the hash of the block.
    pub fn hash(&self) -> H256 {
        debug_assert!(
            HeaderField::ALL.is_sorted_by_key(|field| !field.is_present(self)),
            "an optional header field lacks one before it"
        );
        keccak256(self.rlp_bytes())
    }
}

/// Declares the optional header fields.
macro_rules! optional_fields {
    ($($(#[$meta:meta])* $variant:ident: $field:ident = $name:literal),+) => {
        /// An optional header field: absent from the headers of earlier forks. Variants are in the order of the RLP
        /// encoding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum HeaderField {
            $($(#[$meta])* $variant,)+
        }

        impl HeaderField {
            /// Every optional field, in the order of the encoding.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns whether `header` has the field.
            pub fn is_present(self, header: &Header) -> bool {
                match self {
                    $(Self::$variant => header.$field.is_some(),)+
                }
            }

            /// Removes the field from `header`.
            pub fn remove(self, header: &mut Header) {
                match self {
                    $(Self::$variant => header.$field = None,)+
                }
            }
        }

        impl fmt::Display for HeaderField {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)+
                })
            }
        }
    };
}

optional_fields! {
    /// EIP-1559.
    BaseFeePerGas: base_fee_per_gas = "base fee",
    /// EIP-4895.
    WithdrawalsRoot: withdrawals_root = "withdrawals root",
    /// EIP-4844.
    BlobGasUsed: blob_gas_used = "blob gas used",
    /// EIP-4844.
    ExcessBlobGas: excess_blob_gas = "excess blob gas",
    /// EIP-4788.
    ParentBeaconBlockRoot: parent_beacon_block_root = "parent beacon block root",
    /// EIP-7685.
    RequestsHash: requests_hash = "requests hash"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_ommers_hash_is_the_hash_of_the_empty_list() {
        assert_eq!(EMPTY_OMMERS_HASH, keccak256(rlp::encode_list::<Header, Header>(&[])));
    }
}
