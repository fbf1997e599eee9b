//! A sent transaction, with what the model needs.

use node_types::consensus::{Transaction, TransactionBody};
use node_types::{Address, H256, U256};

/// A sent transaction.
#[derive(Debug)]
pub(super) struct Sent {
    /// Hash.
    pub(super) hash: H256,
    /// The signer, or the impersonated sender.
    pub(super) sender: Address,
    /// The transaction.
    pub(super) transaction: Transaction,
    /// The authorities of its authorizations.
    pub(super) signers: Vec<Address>,
    /// Whether its sender was impersonated.
    pub(super) unsigned: bool,
}

impl Sent {
    /// The transaction's body.
    pub(super) fn body(&self) -> &TransactionBody {
        &self.transaction.body
    }

    /// Whether it carries blobs.
    pub(super) fn is_blob(&self) -> bool {
        matches!(self.body(), TransactionBody::Blob(_))
    }

    /// The fee cap for blob gas, in wei per gas.
    pub(super) fn blob_fee_cap(&self) -> U256 {
        match self.body() {
            TransactionBody::Blob(body) => body.max_fee_per_blob_gas,
            _ => U256::zero(),
        }
    }

    /// The maximum cost to the sender in wei, or `None` on overflow.
    pub(super) fn cost(&self) -> Option<U256> {
        let body = self.body();
        let gas = U256::from(body.gas_limit()).checked_mul(body.max_fee_per_gas())?;
        let blob_gas = U256::from(super::state::GAS_PER_BLOB) * U256::from(body.blob_versioned_hashes().len());
        gas.checked_add(blob_gas.checked_mul(self.blob_fee_cap())?)?.checked_add(body.value())
    }

    /// Intrinsic gas, as of Osaka.
    pub(super) fn intrinsic_gas(&self) -> u64 {
        let body = self.body();
        let bytes: u64 = body.input().iter().map(|byte| if *byte == 0 { 4 } else { 16 }).sum();
        let creation = match body.to() {
            Some(_) => 0,
            None => 32_000 + 2 * (body.input().len() as u64).div_ceil(32),
        };
        let access_list: u64 =
            body.access_list().iter().map(|item| 2_400 + 1_900 * item.storage_keys.len() as u64).sum();
        21_000 + bytes + creation + access_list + 25_000 * body.authorization_list().len() as u64
    }

    /// The minimum gas for the call data (EIP-7623).
    pub(super) fn floor_gas(&self) -> u64 {
        let tokens: u64 = self.body().input().iter().map(|byte| if *byte == 0 { 1 } else { 4 }).sum();
        21_000 + 10 * tokens
    }
}
