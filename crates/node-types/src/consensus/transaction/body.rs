//! The unsigned part of transactions of all types.

use super::{
    AccessListItem, AccessListTransaction, Authorization, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction, TransactionType,
};
use crate::consensus::codec::Fields;
use crate::{Address, Bytes, H256, U256};

/// The part of a transaction that the sender signs.
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

/// Returns a field that all types have.
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
    /// Returns the type of the transaction (EIP-2718).
    pub fn transaction_type(&self) -> TransactionType {
        match self {
            Self::Legacy(_) => TransactionType::Legacy,
            Self::AccessList(_) => TransactionType::AccessList,
            Self::DynamicFee(_) => TransactionType::DynamicFee,
            Self::Blob(_) => TransactionType::Blob,
            Self::SetCode(_) => TransactionType::SetCode,
        }
    }

    /// Returns the chain id, or `None` for a legacy transaction without replay protection.
    pub fn chain_id(&self) -> Option<u64> {
        match self {
            Self::Legacy(tx) => tx.chain_id,
            Self::AccessList(tx) => Some(tx.chain_id),
            Self::DynamicFee(tx) => Some(tx.chain_id),
            Self::Blob(tx) => Some(tx.chain_id),
            Self::SetCode(tx) => Some(tx.chain_id),
        }
    }

    /// Returns the sender's nonce.
    pub fn nonce(&self) -> u64 {
        *common!(self, nonce)
    }

    /// Returns the gas limit.
    pub fn gas_limit(&self) -> u64 {
        *common!(self, gas_limit)
    }

    /// Returns the transferred amount in wei.
    pub fn value(&self) -> U256 {
        *common!(self, value)
    }

    /// Returns the call data, or the init code of a contract creation.
    pub fn input(&self) -> &Bytes {
        common!(self, input)
    }

    /// Returns the recipient, or `None` for a contract creation.
    pub fn to(&self) -> Option<Address> {
        match self {
            Self::Legacy(tx) => tx.to,
            Self::AccessList(tx) => tx.to,
            Self::DynamicFee(tx) => tx.to,
            Self::Blob(tx) => Some(tx.to),
            Self::SetCode(tx) => Some(tx.to),
        }
    }

    /// Returns the accounts and storage slots that are warm from the start (EIP-2930); empty for legacy transactions.
    pub fn access_list(&self) -> &[AccessListItem] {
        match self {
            Self::Legacy(_) => &[],
            Self::AccessList(tx) => &tx.access_list,
            Self::DynamicFee(tx) => &tx.access_list,
            Self::Blob(tx) => &tx.access_list,
            Self::SetCode(tx) => &tx.access_list,
        }
    }

    /// Returns the most that the sender pays, in wei per gas: the gas price of types 0 and 1, the fee cap of the
    /// others.
    pub fn max_fee_per_gas(&self) -> U256 {
        match self {
            Self::Legacy(tx) => tx.gas_price,
            Self::AccessList(tx) => tx.gas_price,
            Self::DynamicFee(tx) => tx.max_fee_per_gas,
            Self::Blob(tx) => tx.max_fee_per_gas,
            Self::SetCode(tx) => tx.max_fee_per_gas,
        }
    }

    /// Returns the most that the beneficiary receives, in wei per gas: the gas price of types 0 and 1, the tip cap of
    /// the others.
    pub fn max_priority_fee_per_gas(&self) -> U256 {
        match self {
            Self::Legacy(tx) => tx.gas_price,
            Self::AccessList(tx) => tx.gas_price,
            Self::DynamicFee(tx) => tx.max_priority_fee_per_gas,
            Self::Blob(tx) => tx.max_priority_fee_per_gas,
            Self::SetCode(tx) => tx.max_priority_fee_per_gas,
        }
    }

    /// Returns the price in wei per gas that is paid in a block with `base_fee`, which is `None` before London
    /// (EIP-1559). The result is `None` if the fee cap is below the base fee.
    pub fn effective_gas_price(&self, base_fee: Option<u64>) -> Option<U256> {
        let tip = self.effective_tip(base_fee)?;
        Some(tip + U256::from(base_fee.unwrap_or(0)))
    }

    /// Returns the effective tip in wei per gas in a block with `base_fee`, which is `None` before London. The result
    /// is `None` if the fee cap is below the base fee.
    pub fn effective_tip(&self, base_fee: Option<u64>) -> Option<U256> {
        let room = self.max_fee_per_gas().checked_sub(base_fee.unwrap_or(0).into())?;
        Some(room.min(self.max_priority_fee_per_gas()))
    }

    /// Returns the versioned hashes of the blobs. Empty except for type 3.
    pub fn blob_versioned_hashes(&self) -> &[H256] {
        match self {
            Self::Blob(tx) => &tx.blob_versioned_hashes,
            _ => &[],
        }
    }

    /// Returns the authorizations. Empty except for type 4.
    pub fn authorization_list(&self) -> &[Authorization] {
        match self {
            Self::SetCode(tx) => &tx.authorization_list,
            _ => &[],
        }
    }

    /// Returns the fields in the order of the encoding.
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
