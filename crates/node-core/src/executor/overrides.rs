//! Overrides of the state and of the block environment, for calls and simulations.

use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::collections::BTreeMap;

/// Overrides of the state for one call, by address.
pub type StateOverrides = BTreeMap<Address, AccountOverride>;

/// Overrides of one account. `None` keeps the account's own value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// Balance in wei.
    pub balance: Option<U256>,
    pub code: Option<Bytes>,
    pub nonce: Option<u64>,
    pub storage: StorageOverride,
    /// Address to which the precompile at this account's address is moved. The account then executes its own code.
    pub move_precompile_to: Option<Address>,
}

/// Overrides of the storage of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorageOverride {
    /// Keeps all slots.
    #[default]
    Keep,
    /// Sets these slots and keeps all others.
    Patch(BTreeMap<H256, U256>),
    /// Sets these slots and clears all others.
    Replace(BTreeMap<H256, U256>),
}

/// Overrides of the block environment of a call. `None` keeps the block's own value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockOverrides {
    /// NUMBER. Does not change which state the call reads.
    pub number: Option<BlockNumber>,
    /// DIFFICULTY before the merge. After it the opcode returns `prev_randao`.
    pub difficulty: Option<U256>,
    /// TIMESTAMP, in Unix seconds.
    pub time: Option<u64>,
    pub gas_limit: Option<u64>,
    pub fee_recipient: Option<Address>,
    pub prev_randao: Option<H256>,
    /// BASEFEE, in wei per gas.
    pub base_fee_per_gas: Option<u64>,
    /// BLOBBASEFEE, in wei per blob gas. It is not part of a header.
    pub blob_base_fee: Option<U256>,
    /// Root of the parent beacon block. Only simulated blocks use it.
    pub beacon_root: Option<H256>,
    /// Withdrawals. Only simulated blocks use them.
    pub withdrawals: Option<Vec<Withdrawal>>,
}

impl BlockOverrides {
    /// Sets the overridden fields of `header`.
    pub fn apply(&self, header: &mut Header) {
        set(&mut header.number, self.number);
        set(&mut header.difficulty, self.difficulty);
        set(&mut header.timestamp, self.time);
        set(&mut header.gas_limit, self.gas_limit);
        set(&mut header.beneficiary, self.fee_recipient);
        set(&mut header.mix_hash, self.prev_randao);
        if self.base_fee_per_gas.is_some() {
            header.base_fee_per_gas = self.base_fee_per_gas;
        }
    }
}

fn set<T: Copy>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// An invalid override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverrideError {
    #[error("account {0:#x} is not a precompile")]
    NotAPrecompile(Address),
    #[error("precompile {0:#x} is moved to itself")]
    MovedToItself(Address),
    #[error("account {0:#x} is overridden, and a precompile cannot be moved to it")]
    DestinationOverridden(Address),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_values_that_are_not_overridden() {
        let header = Header { number: 1, timestamp: 2, gas_limit: 3, base_fee_per_gas: Some(4), ..Header::default() };
        let mut got = header.clone();
        BlockOverrides::default().apply(&mut got);
        assert_eq!(got, header);
        let overrides = BlockOverrides {
            number: Some(11),
            difficulty: Some(12.into()),
            time: Some(13),
            gas_limit: Some(14),
            fee_recipient: Some(Address::repeat_byte(15)),
            prev_randao: Some(H256::repeat_byte(16)),
            base_fee_per_gas: Some(17),
            ..BlockOverrides::default()
        };
        overrides.apply(&mut got);
        let expected = Header {
            number: 11,
            difficulty: 12.into(),
            timestamp: 13,
            gas_limit: 14,
            beneficiary: Address::repeat_byte(15),
            mix_hash: H256::repeat_byte(16),
            base_fee_per_gas: Some(17),
            ..Header::default()
        };
        assert_eq!(got, expected);
    }
}
