//! Block headers of all forks.

use super::Bloom;
use super::codec::{DecodeError, Items, append_bytes};
use crate::{Address, BlockNumber, Bytes, H256, U256, keccak256};
use rlp::{Encodable, RlpStream};
use std::fmt;

/// The hash of an empty list of ommers: keccak of the RLP empty list.
pub const EMPTY_OMMERS_HASH: H256 = H256([
    0x1d, 0xcc, 0x4d, 0xe8, 0xde, 0xc7, 0x5d, 0x7a, 0xab, 0x85, 0xb5, 0x67, 0xb6, 0xcc, 0xd4, 0x1a, 0xd3, 0x12, 0x45,
    0x1b, 0x94, 0x8a, 0x74, 0x13, 0xf0, 0xa1, 0x42, 0xfd, 0x40, 0xd4, 0x93, 0x47,
]);

/// The nonce of a proof-of-work block. Zero since the merge (EIP-3675).
pub type BlockNonce = [u8; 8];

/// A block header (Yellow Paper, section 4.3, and the EIPs mentioned at the optional fields).
///
/// The encoding contains optional fields in the order of declaration. A field can only be present if all optional fields
/// before it are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Hash of the parent's header.
    pub parent_hash: H256,
    /// Keccak of the RLP list of ommer headers.
    pub ommers_hash: H256,
    /// Recipient of the fees.
    pub beneficiary: Address,
    /// Root of the state trie after execution of this block.
    pub state_root: H256,
    /// Root of the trie of this block's transactions.
    pub transactions_root: H256,
    /// Root of the trie of this block's receipts.
    pub receipts_root: H256,
    /// Bloom filter of all logs of this block.
    pub logs_bloom: Bloom,
    /// Proof-of-work difficulty. Zero since the merge.
    pub difficulty: U256,
    /// Height of this block.
    pub number: BlockNumber,
    /// Maximum gas of all transactions.
    pub gas_limit: u64,
    /// Gas used by all transactions.
    pub gas_used: u64,
    /// Unix time in seconds.
    pub timestamp: u64,
    /// Up to 32 bytes chosen by the producer.
    pub extra_data: Bytes,
    /// Proof-of-work mix hash; PREVRANDAO since the merge (EIP-4399).
    pub mix_hash: H256,
    /// Proof-of-work nonce.
    pub nonce: BlockNonce,
    /// Base fee in wei per gas (EIP-1559).
    pub base_fee_per_gas: Option<u64>,
    /// Root of the trie of withdrawals (EIP-4895).
    pub withdrawals_root: Option<H256>,
    /// Blob gas used by all transactions (EIP-4844).
    pub blob_gas_used: Option<u64>,
    /// Running total of blob gas used in excess of the target (EIP-4844).
    pub excess_blob_gas: Option<u64>,
    /// Root of the parent beacon block (EIP-4788).
    pub parent_beacon_block_root: Option<H256>,
    /// Hash of the execution requests (EIP-7685).
    pub requests_hash: Option<H256>,
}

impl Header {
    /// Returns the hash of the encoding, which is the hash of the block.
    pub fn hash(&self) -> H256 {
        keccak256(self.rlp_bytes())
    }

    /// Returns the RLP encoding.
    pub fn encode(&self) -> Vec<u8> {
        self.rlp_bytes().into()
    }

    /// Decodes the RLP encoding.
    ///
    /// # Errors
    ///
    /// Fails if `bytes` is not exactly one canonical encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Items::exactly(bytes, "header", Self::decode_item)
    }

    pub(super) fn decode_item(items: &mut Items<'_>) -> Result<Self, DecodeError> {
        items.record("header", |fields| {
            Ok(Self {
                parent_hash: fields.h256("header parent hash")?,
                ommers_hash: fields.h256("header ommers hash")?,
                beneficiary: fields.address("header beneficiary")?,
                state_root: fields.h256("header state root")?,
                transactions_root: fields.h256("header transactions root")?,
                receipts_root: fields.h256("header receipts root")?,
                logs_bloom: Bloom(fields.fixed("header logs bloom")?),
                difficulty: fields.u256("header difficulty")?,
                number: fields.u64("header number")?,
                gas_limit: fields.u64("header gas limit")?,
                gas_used: fields.u64("header gas used")?,
                timestamp: fields.u64("header timestamp")?,
                extra_data: fields.bytes("header extra data")?.into(),
                mix_hash: fields.h256("header mix hash")?,
                nonce: fields.fixed("header nonce")?,
                base_fee_per_gas: fields.optional("header base fee per gas", Items::u64)?,
                withdrawals_root: fields.optional("header withdrawals root", Items::h256)?,
                blob_gas_used: fields.optional("header blob gas used", Items::u64)?,
                excess_blob_gas: fields.optional("header excess blob gas", Items::u64)?,
                parent_beacon_block_root: fields.optional("header parent beacon block root", Items::h256)?,
                requests_hash: fields.optional("header requests hash", Items::h256)?,
            })
        })
    }

    /// Returns the number of optional fields before the first that is `None`.
    fn optional_count(&self) -> usize {
        let present = HeaderField::ALL.map(|field| field.is_present(self));
        let count = present.iter().take_while(|present| **present).count();
        debug_assert!(!present[count..].contains(&true), "an optional header field lacks one before it");
        count
    }

    /// Appends the optional fields before the first that is `None`.
    fn append_optional(&self, stream: &mut RlpStream) -> Option<()> {
        stream.append(&self.base_fee_per_gas?);
        append_bytes(stream, self.withdrawals_root?.as_bytes());
        stream.append(&self.blob_gas_used?);
        stream.append(&self.excess_blob_gas?);
        append_bytes(stream, self.parent_beacon_block_root?.as_bytes());
        append_bytes(stream, self.requests_hash?.as_bytes());
        Some(())
    }
}

/// An optional header field: absent from the headers of earlier forks. Variants are in the order of the RLP encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderField {
    /// EIP-1559.
    BaseFeePerGas,
    /// EIP-4895.
    WithdrawalsRoot,
    /// EIP-4844.
    BlobGasUsed,
    /// EIP-4844.
    ExcessBlobGas,
    /// EIP-4788.
    ParentBeaconBlockRoot,
    /// EIP-7685.
    RequestsHash,
}

impl HeaderField {
    /// Every optional field, in the order of the encoding.
    pub const ALL: [Self; 6] = [
        Self::BaseFeePerGas,
        Self::WithdrawalsRoot,
        Self::BlobGasUsed,
        Self::ExcessBlobGas,
        Self::ParentBeaconBlockRoot,
        Self::RequestsHash,
    ];

    /// Returns whether `header` has the field.
    pub fn is_present(self, header: &Header) -> bool {
        match self {
            Self::BaseFeePerGas => header.base_fee_per_gas.is_some(),
            Self::WithdrawalsRoot => header.withdrawals_root.is_some(),
            Self::BlobGasUsed => header.blob_gas_used.is_some(),
            Self::ExcessBlobGas => header.excess_blob_gas.is_some(),
            Self::ParentBeaconBlockRoot => header.parent_beacon_block_root.is_some(),
            Self::RequestsHash => header.requests_hash.is_some(),
        }
    }

    /// Removes the field from `header`.
    pub fn remove(self, header: &mut Header) {
        match self {
            Self::BaseFeePerGas => header.base_fee_per_gas = None,
            Self::WithdrawalsRoot => header.withdrawals_root = None,
            Self::BlobGasUsed => header.blob_gas_used = None,
            Self::ExcessBlobGas => header.excess_blob_gas = None,
            Self::ParentBeaconBlockRoot => header.parent_beacon_block_root = None,
            Self::RequestsHash => header.requests_hash = None,
        }
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BaseFeePerGas => "base fee",
            Self::WithdrawalsRoot => "withdrawals root",
            Self::BlobGasUsed => "blob gas used",
            Self::ExcessBlobGas => "excess blob gas",
            Self::ParentBeaconBlockRoot => "parent beacon block root",
            Self::RequestsHash => "requests hash",
        })
    }
}

impl Encodable for Header {
    fn rlp_append(&self, stream: &mut RlpStream) {
        stream.begin_list(15 + self.optional_count());
        append_bytes(stream, self.parent_hash.as_bytes());
        append_bytes(stream, self.ommers_hash.as_bytes());
        append_bytes(stream, self.beneficiary.as_bytes());
        append_bytes(stream, self.state_root.as_bytes());
        append_bytes(stream, self.transactions_root.as_bytes());
        append_bytes(stream, self.receipts_root.as_bytes());
        append_bytes(stream, &self.logs_bloom.0);
        stream.append(&self.difficulty);
        stream.append(&self.number);
        stream.append(&self.gas_limit);
        stream.append(&self.gas_used);
        stream.append(&self.timestamp);
        append_bytes(stream, &self.extra_data);
        append_bytes(stream, self.mix_hash.as_bytes());
        append_bytes(stream, &self.nonce);
        self.append_optional(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_ommers_hash_is_the_hash_of_the_empty_list() {
        assert_eq!(EMPTY_OMMERS_HASH, keccak256(rlp::encode_list::<Header, Header>(&[])));
    }
}
