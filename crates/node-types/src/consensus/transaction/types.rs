//! The signed fields of each transaction type.

use super::{Authorization, TransactionType};
use crate::consensus::codec::{DecodeError, Item, Items, items, record};
use crate::{Address, Bytes, H256, U256};

record! {
    /// An entry of an access list: an account and some of its storage slots (EIP-2930).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AccessListItem {
        pub address: Address = "access list address";
        pub storage_keys: Vec<H256> = "access list storage keys";
    }
}

items!(AccessListItem: "access list item");

record! {
    /// Type 0: the format before EIP-2718.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LegacyTransaction {
        /// Chain id, which is encoded as part of `v`. `None` without replay protection (EIP-155).
        pub chain_id: Option<u64>;
        pub nonce: u64 = "transaction nonce";
        /// Price in wei per gas.
        pub gas_price: U256 = "transaction gas price";
        pub gas_limit: u64 = "transaction gas limit";
        /// Recipient. `None` for a contract creation.
        pub to: Option<Address> = "transaction to";
        /// Transferred amount in wei.
        pub value: U256 = "transaction value";
        /// Call data, or the init code of a contract creation.
        pub input: Bytes = "transaction input";
    }
}

record! {
    /// Type 1: with an access list (EIP-2930).
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct AccessListTransaction {
        pub chain_id: u64 = "transaction chain id";
        pub nonce: u64 = "transaction nonce";
        /// Price in wei per gas.
        pub gas_price: U256 = "transaction gas price";
        pub gas_limit: u64 = "transaction gas limit";
        /// Recipient. `None` for a contract creation.
        pub to: Option<Address> = "transaction to";
        /// Transferred amount in wei.
        pub value: U256 = "transaction value";
        /// Call data, or the init code of a contract creation.
        pub input: Bytes = "transaction input";
        /// Accounts and slots to warm.
        pub access_list: Vec<AccessListItem> = "transaction access list";
    }
}

/// Declares a transaction with a fee cap and a tip cap (EIP-1559): its recipient, and the fields that follow the common
/// ones.
macro_rules! fee_market {
    (
        $(#[$meta:meta])* pub struct $name:ident {
            $(#[$to_meta:meta])* pub to: $to:ty $(, $read:expr)?;
            $($own:tt)*
        }
    ) => {
        record! {
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                pub chain_id: u64 = "transaction chain id";
                pub nonce: u64 = "transaction nonce";
                /// Maximum priority fee in wei per gas.
                pub max_priority_fee_per_gas: U256 = "transaction max priority fee per gas";
                /// Maximum of base fee and priority fee together, in wei per gas.
                pub max_fee_per_gas: U256 = "transaction max fee per gas";
                pub gas_limit: u64 = "transaction gas limit";
                $(#[$to_meta])*
                pub to: $to = "transaction to" $(, $read)?;
                /// Transferred amount in wei.
                pub value: U256 = "transaction value";
                /// Call data, or the init code of a contract creation.
                pub input: Bytes = "transaction input";
                /// Accounts and slots to warm.
                pub access_list: Vec<AccessListItem> = "transaction access list";
                $($own)*
            }
        }
    };
}

fee_market! {
    /// Type 2: with a fee cap and a tip cap (EIP-1559).
    pub struct DynamicFeeTransaction {
        /// Recipient. `None` for a contract creation.
        pub to: Option<Address>;
    }
}

fee_market! {
    /// Type 3: carrying blobs (EIP-4844).
    pub struct BlobTransaction {
        /// Recipient. A blob transaction cannot create a contract.
        pub to: Address, |items, name| recipient(items, name, TransactionType::Blob);
        /// Maximum blob base fee in wei per blob gas.
        pub max_fee_per_blob_gas: U256 = "transaction max fee per blob gas";
        pub blob_versioned_hashes: Vec<H256> = "transaction blob versioned hashes";
    }
}

fee_market! {
    /// Type 4: setting the code of accounts (EIP-7702).
    pub struct SetCodeTransaction {
        /// Recipient. A set-code transaction cannot create a contract.
        pub to: Address, |items, name| recipient(items, name, TransactionType::SetCode);
        /// Authorizations to apply before execution.
        pub authorization_list: Vec<Authorization> = "transaction authorization list";
    }
}

/// Reads the recipient of a transaction whose type cannot create contracts.
fn recipient(
    items: &mut Items<'_>,
    name: &'static str,
    transaction_type: TransactionType,
) -> Result<Address, DecodeError> {
    Option::<Address>::read(items, name)?.ok_or(DecodeError::ContractCreation { transaction_type })
}
