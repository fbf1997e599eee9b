//! The header fields that forks added after Frontier.

use super::Header;
use std::fmt;

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
