//! Message calls outside transactions.

use crate::executor::{BlockOverrides, StateOverrides};
use crate::protocol::Fork;
use crate::protocol::fees::GAS_PER_BLOB;
use node_types::consensus::{
    AccessListItem, AccessListTransaction, Authorization, BlobTransaction, DynamicFeeTransaction, LegacyTransaction,
    SetCodeTransaction, TransactionBody, TransactionType,
};
use node_types::{Address, Bytes, H256, U256};

/// A message call that is not a transaction, but can have all fields of a transaction.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Sender. No signature is needed.
    pub from: Address,
    /// Recipient. If `None`, `input` is executed as creation code.
    pub to: Option<Address>,
    /// Gas limit; `None` for the highest allowed.
    pub gas: Option<u64>,
    /// Price in wei per gas, or the fee cap if a tip cap is set. Zero disables all fee checks.
    pub gas_price: U256,
    /// Tip cap in wei per gas; `None` for a call with a gas price. Before London, a call with a tip cap has no price, as
    /// in geth.
    pub max_priority_fee_per_gas: Option<U256>,
    /// Value to transfer, in wei.
    pub value: U256,
    /// Call data, or creation code.
    pub input: Bytes,
    /// Nonce; `None` for the sender's next nonce. Used only when a whole block is simulated.
    pub nonce: Option<u64>,
    /// Accounts and slots to warm (EIP-2930).
    pub access_list: Vec<AccessListItem>,
    /// Blob fee cap in wei per blob gas. Zero disables its check.
    pub max_fee_per_blob_gas: U256,
    /// Versioned hashes of its blobs (EIP-4844).
    pub blob_versioned_hashes: Vec<H256>,
    /// Authorizations that delegate accounts to code (EIP-7702).
    pub authorization_list: Vec<Authorization>,
    /// Overrides of accounts before the call.
    pub overrides: StateOverrides,
    pub block_overrides: BlockOverrides,
}

impl Call {
    /// Returns the type of the transaction that corresponds to this call under `fork`.
    pub fn transaction_type(&self, fork: Fork) -> TransactionType {
        if !self.authorization_list.is_empty() {
            TransactionType::SetCode
        } else if !self.blob_versioned_hashes.is_empty() {
            TransactionType::Blob
        } else if self.max_priority_fee_per_gas.is_some() && fork >= Fork::London {
            TransactionType::DynamicFee
        } else if !self.access_list.is_empty() {
            TransactionType::AccessList
        } else {
            TransactionType::Legacy
        }
    }

    /// Returns the maximum tip of the sender, in wei per gas.
    pub fn tip_cap(&self) -> U256 {
        self.max_priority_fee_per_gas.unwrap_or(self.gas_price)
    }

    /// Returns whether the gas price is zero.
    pub fn is_free(&self) -> bool {
        self.gas_price.is_zero() && self.tip_cap().is_zero()
    }

    /// Returns the maximum cost of the blobs in wei, or `None` if it exceeds 256 bits.
    pub fn highest_blob_fees(&self) -> Option<U256> {
        let blob_gas = U256::from(GAS_PER_BLOB) * U256::from(self.blob_versioned_hashes.len());
        blob_gas.checked_mul(self.max_fee_per_blob_gas)
    }

    /// Converts the call to the body of the corresponding transaction under `fork`. Returns `None` if the call
    /// creates a contract but the transaction's type cannot.
    pub fn into_body(self, fork: Fork, chain_id: u64, nonce: u64, gas_limit: u64) -> Option<TransactionBody> {
        let transaction_type = self.transaction_type(fork);
        self.into_body_of(transaction_type, fork, chain_id, nonce, gas_limit)
    }

    /// Converts the call to the body of a transaction of the given type under `fork`, bound to one chain as soon as
    /// that is possible (EIP-155). Fields that the type does not have are dropped. Returns `None` if the call creates a
    /// contract but the type cannot.
    pub fn into_body_of(
        self,
        transaction_type: TransactionType,
        fork: Fork,
        chain_id: u64,
        nonce: u64,
        gas_limit: u64,
    ) -> Option<TransactionBody> {
        let (max_fee_per_gas, max_priority_fee_per_gas) = (self.gas_price, self.tip_cap());
        let Self { to, value, input, access_list, .. } = self;
        Some(match transaction_type {
            TransactionType::Legacy => TransactionBody::Legacy(LegacyTransaction {
                chain_id: (fork >= Fork::SpuriousDragon).then_some(chain_id),
                nonce,
                gas_price: max_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
            }),
            TransactionType::AccessList => TransactionBody::AccessList(AccessListTransaction {
                chain_id,
                nonce,
                gas_price: max_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                access_list,
            }),
            TransactionType::DynamicFee => TransactionBody::DynamicFee(DynamicFeeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to,
                value,
                input,
                access_list,
            }),
            TransactionType::Blob => TransactionBody::Blob(BlobTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: to?,
                value,
                input,
                access_list,
                max_fee_per_blob_gas: self.max_fee_per_blob_gas,
                blob_versioned_hashes: self.blob_versioned_hashes,
            }),
            TransactionType::SetCode => TransactionBody::SetCode(SetCodeTransaction {
                chain_id,
                nonce,
                max_priority_fee_per_gas,
                max_fee_per_gas,
                gas_limit,
                to: to?,
                value,
                input,
                access_list,
                authorization_list: self.authorization_list,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_type_follows_from_the_fields() {
        let to = Some(Address::repeat_byte(1));
        let call = || Call { to, gas_price: 7.into(), ..Call::default() };
        let capped = || Call { max_priority_fee_per_gas: Some(2.into()), ..call() };
        let warm = vec![AccessListItem { address: Address::zero(), storage_keys: Vec::new() }];
        let cases = [
            (call(), Fork::Frontier, TransactionType::Legacy),
            (call(), Fork::Osaka, TransactionType::Legacy),
            (Call { access_list: warm.clone(), ..call() }, Fork::Osaka, TransactionType::AccessList),
            (capped(), Fork::Osaka, TransactionType::DynamicFee),
            (capped(), Fork::Berlin, TransactionType::Legacy),
            (Call { access_list: warm, ..capped() }, Fork::Osaka, TransactionType::DynamicFee),
            (Call { blob_versioned_hashes: vec![H256::zero()], ..capped() }, Fork::Osaka, TransactionType::Blob),
            (
                Call { authorization_list: vec![Authorization::default()], ..call() },
                Fork::Osaka,
                TransactionType::SetCode,
            ),
        ];
        for (call, fork, expected) in cases {
            let body = call.clone().into_body(fork, 9, 4, 50_000).unwrap();
            assert_eq!(body.transaction_type(), expected, "{call:?} in {fork:?}");
            assert_eq!((body.nonce(), body.gas_limit(), body.to()), (4, 50_000, to), "{call:?}");
            assert_eq!(body.max_fee_per_gas(), 7.into(), "{call:?}");
            let chain_id = (fork >= Fork::SpuriousDragon).then_some(9);
            assert_eq!(body.chain_id(), chain_id, "{call:?}");
        }
        let creation = Call { to: None, blob_versioned_hashes: vec![H256::zero()], ..capped() };
        assert_eq!(creation.into_body(Fork::Osaka, 9, 4, 50_000), None);
    }
}
