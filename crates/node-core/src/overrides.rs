//! What a call sees different from the chain: in the state, and in the block that it runs in.

use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::collections::BTreeMap;

/// Changes to the state that only one call sees.
pub type StateOverrides = BTreeMap<Address, AccountOverride>;

/// What one call sees different in one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// Balance in wei.
    pub balance: Option<U256>,
    /// Code.
    pub code: Option<Bytes>,
    /// Nonce.
    pub nonce: Option<u64>,
    /// Storage.
    pub storage: StorageOverride,
    /// Where the precompiled contract of this address is found instead. The account then runs its own code.
    pub move_precompile_to: Option<Address>,
}

/// What one call sees different in the storage of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorageOverride {
    /// Nothing.
    #[default]
    Keep,
    /// These slots; all others as they are.
    Patch(BTreeMap<H256, U256>),
    /// These slots; all others are zero.
    Replace(BTreeMap<H256, U256>),
}

/// What a call sees different in its block. What is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockOverrides {
    /// NUMBER. The state stays that of the block which was asked for.
    pub number: Option<BlockNumber>,
    /// DIFFICULTY, where it is not PREVRANDAO.
    pub difficulty: Option<U256>,
    /// TIMESTAMP, in Unix seconds.
    pub time: Option<u64>,
    /// GASLIMIT.
    pub gas_limit: Option<u64>,
    /// COINBASE.
    pub fee_recipient: Option<Address>,
    /// PREVRANDAO.
    pub prev_randao: Option<H256>,
    /// BASEFEE, in wei per gas.
    pub base_fee_per_gas: Option<u64>,
    /// BLOBBASEFEE, in wei per blob gas. No header holds it.
    pub blob_base_fee: Option<U256>,
    /// Root of the parent beacon block. Counts only where a whole block is simulated.
    pub beacon_root: Option<H256>,
    /// Withdrawals. Count only where a whole block is simulated.
    pub withdrawals: Option<Vec<Withdrawal>>,
}

impl BlockOverrides {
    /// Writes into `header` what it holds of these.
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

/// An override that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// There is nothing to move.
    #[error("account {0:#x} is not a precompile")]
    NotAPrecompile(Address),
    /// It would stay where it is.
    #[error("precompile {0:#x} is moved to itself")]
    MovedToItself(Address),
    /// A precompile is moved to an account that is overridden itself.
    #[error("account {0:#x} is overridden, and a precompile cannot be moved to it")]
    DestinationOverridden(Address),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_overridden_stays() {
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
