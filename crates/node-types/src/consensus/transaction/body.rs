//! The unsigned part of a transaction, whatever its type.

use super::fields::Fields;
use super::{
    AccessListItem, AccessListTransaction, Authorization, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction, TransactionType,
};
use crate::{Address, Bytes, H256, U256};

/// What a sender signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionBody {
    /// Type 0.
    Legacy(LegacyTransaction),
    /// Type 1.
    AccessList(AccessListTransaction),
    /// Type 2.
    DynamicFee(DynamicFeeTransaction),
    /// Type 3.
    Blob(BlobTransaction),
    /// Type 4.
    SetCode(SetCodeTransaction),
}

/// Reads a field that every type has.
macro_rules! common {
    ($body:expr, $field:ident) => {
        match $body {
            TransactionBody::Legacy(tx) => &tx.$field,
            TransactionBody::AccessList(tx) => &tx.$field,
            TransactionBody::DynamicFee(tx) => &tx.$field,
            TransactionBody::Blob(tx) => &tx.$field,
            TransactionBody::SetCode(tx) => &tx.$field,
        }
    };
}

impl TransactionBody {
    /// The type.
    pub fn transaction_type(&self) -> TransactionType {
        match self {
            Self::Legacy(_) => TransactionType::Legacy,
            Self::AccessList(_) => TransactionType::AccessList,
            Self::DynamicFee(_) => TransactionType::DynamicFee,
            Self::Blob(_) => TransactionType::Blob,
            Self::SetCode(_) => TransactionType::SetCode,
        }
    }

    /// The chain id; none for a legacy transaction without replay protection.
    pub fn chain_id(&self) -> Option<u64> {
        match self {
            Self::Legacy(tx) => tx.chain_id,
            Self::AccessList(tx) => Some(tx.chain_id),
            Self::DynamicFee(tx) => Some(tx.chain_id),
            Self::Blob(tx) => Some(tx.chain_id),
            Self::SetCode(tx) => Some(tx.chain_id),
        }
    }

    /// The sender's nonce.
    pub fn nonce(&self) -> u64 {
        *common!(self, nonce)
    }

    /// Upper bound of the gas used.
    pub fn gas_limit(&self) -> u64 {
        *common!(self, gas_limit)
    }

    /// Wei to transfer.
    pub fn value(&self) -> U256 {
        *common!(self, value)
    }

    /// Call data, or creation code.
    pub fn input(&self) -> &Bytes {
        common!(self, input)
    }

    /// Receiver; none creates a contract.
    pub fn to(&self) -> Option<Address> {
        match self {
            Self::Legacy(tx) => tx.to,
            Self::AccessList(tx) => tx.to,
            Self::DynamicFee(tx) => tx.to,
            Self::Blob(tx) => Some(tx.to),
            Self::SetCode(tx) => Some(tx.to),
        }
    }

    /// Accounts and slots to warm.
    pub fn access_list(&self) -> &[AccessListItem] {
        match self {
            Self::Legacy(_) => &[],
            Self::AccessList(tx) => &tx.access_list,
            Self::DynamicFee(tx) => &tx.access_list,
            Self::Blob(tx) => &tx.access_list,
            Self::SetCode(tx) => &tx.access_list,
        }
    }

    /// The most the sender pays, in wei per gas: the gas price of types 0 and 1, the fee cap of the others.
    pub fn max_fee_per_gas(&self) -> U256 {
        match self {
            Self::Legacy(tx) => tx.gas_price,
            Self::AccessList(tx) => tx.gas_price,
            Self::DynamicFee(tx) => tx.max_fee_per_gas,
            Self::Blob(tx) => tx.max_fee_per_gas,
            Self::SetCode(tx) => tx.max_fee_per_gas,
        }
    }

    /// The most the producer gets, in wei per gas: the gas price of types 0 and 1, the tip cap of the others.
    pub fn max_priority_fee_per_gas(&self) -> U256 {
        match self {
            Self::Legacy(tx) => tx.gas_price,
            Self::AccessList(tx) => tx.gas_price,
            Self::DynamicFee(tx) => tx.max_priority_fee_per_gas,
            Self::Blob(tx) => tx.max_priority_fee_per_gas,
            Self::SetCode(tx) => tx.max_priority_fee_per_gas,
        }
    }

    /// What is paid in wei per gas in a block with `base_fee` (EIP-1559); none where the fee cap is below it.
    pub fn effective_gas_price(&self, base_fee: u64) -> Option<U256> {
        let tip = self.effective_tip(base_fee)?;
        Some(tip + U256::from(base_fee))
    }

    /// What the producer gets in wei per gas in a block with `base_fee`; none where the fee cap is below it.
    pub fn effective_tip(&self, base_fee: u64) -> Option<U256> {
        let room = self.max_fee_per_gas().checked_sub(base_fee.into())?;
        Some(room.min(self.max_priority_fee_per_gas()))
    }

    /// The blobs' versioned hashes.
    pub fn blob_versioned_hashes(&self) -> &[H256] {
        match self {
            Self::Blob(tx) => &tx.blob_versioned_hashes,
            _ => &[],
        }
    }

    /// Delegations to set.
    pub fn authorization_list(&self) -> &[Authorization] {
        match self {
            Self::SetCode(tx) => &tx.authorization_list,
            _ => &[],
        }
    }

    /// The payload with its fields in the order of the encoding.
    pub(super) fn fields(&self) -> &dyn Fields {
        match self {
            Self::Legacy(tx) => tx,
            Self::AccessList(tx) => tx,
            Self::DynamicFee(tx) => tx,
            Self::Blob(tx) => tx,
            Self::SetCode(tx) => tx,
        }
    }
}
