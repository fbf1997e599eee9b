//! Where a development chain begins.

use crate::Hardfork;
use node_chain::genesis::GenesisAccount;
use node_chain::{Genesis, dev_genesis};
use node_core::forks::Fork;
use node_types::consensus::{Header, HeaderField};
use node_types::{Address, U256};
use std::ops::RangeInclusive;

/// EIP-2294, so that the `v` of a signature has 64 bits everywhere.
const CHAIN_IDS: RangeInclusive<u64> = 1..=u64::MAX / 2 - 36;

/// What a valid header may hold.
const GAS_LIMITS: RangeInclusive<u64> = 5_000..=i64::MAX as u64;

/// In wei, up to one ether: far above what anybody pays, and far below what could overflow.
const BASE_FEES: RangeInclusive<u64> = 0..=1_000_000_000_000_000_000;

/// In Unix seconds, up to the end of the year 9999, so that there is time left for blocks.
const TIMESTAMPS: RangeInclusive<u64> = 0..=253_402_300_799;

/// The least difficulty that a block from before the merge can have.
const DIFFICULTY: u64 = 131_072;

/// What can be chosen about a development chain's first block. The default is the built-in [`dev_genesis`].
///
/// Forks up to [`hardfork`](Self::hardfork) are in force from block 0 on, and no others ever. Chains with a fork from before the merge begin
/// with the least difficulty there is. Contracts of the protocol are there under all forks; earlier ones do not call them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevGenesis {
    /// Chain id.
    pub chain_id: u64,
    /// Balance of each account in ether.
    pub balance: u64,
    /// Gas limit of the first block, which its successors keep.
    pub gas_limit: u64,
    /// Base fee of the first block in wei; none for 1 gwei, or none at all before London.
    pub base_fee: Option<u64>,
    /// The newest rules.
    pub hardfork: Hardfork,
    /// Time of the first block in Unix seconds; none for the beginning of 2025.
    pub timestamp: Option<u64>,
    /// Who gets the fees of the first block's successors.
    pub coinbase: Address,
}

impl Default for DevGenesis {
    fn default() -> Self {
        Self {
            chain_id: 31337,
            balance: 10_000,
            gas_limit: 30_000_000,
            base_fee: None,
            hardfork: Hardfork::default(),
            timestamp: None,
            coinbase: Address::zero(),
        }
    }
}

impl DevGenesis {
    /// The genesis in which each of `accounts` has its balance.
    ///
    /// # Errors
    /// When a number is out of its bounds.
    pub fn build(&self, accounts: impl IntoIterator<Item = Address>) -> Result<Genesis, DevGenesisError> {
        let fork = self.hardfork.fork();
        within("chain id", self.chain_id, &CHAIN_IDS)?;
        within("gas limit", self.gas_limit, &GAS_LIMITS)?;
        within("base fee", self.base_fee.unwrap_or_default(), &BASE_FEES)?;
        within("timestamp", self.timestamp.unwrap_or_default(), &TIMESTAMPS)?;
        if self.base_fee.is_some() && fork < Fork::London {
            return Err(DevGenesisError::BaseFeeBeforeLondon { hardfork: self.hardfork });
        }
        let Genesis { mut spec, header, mut alloc } = dev_genesis();
        spec.chain_id = self.chain_id;
        spec.block_forks.retain(|(known, _)| *known <= fork);
        spec.time_forks.retain(|(known, _)| *known <= fork);
        // The built-in genesis has blob parameters for each upgrade since Cancun.
        let blob_upgrades = self.hardfork.upgrades().iter().filter(|upgrade| upgrade.fork >= Fork::Cancun);
        spec.blob_schedule.truncate(blob_upgrades.count());
        spec.terminal_total_difficulty = spec.terminal_total_difficulty.filter(|_| fork >= Fork::Paris);

        // 64 bits of ether are far below 256 bits of wei, as is their sum over all accounts.
        let balance = U256::from(self.balance) * U256::exp10(18);
        // Contracts stay; the accounts are these.
        alloc.retain(|_, account| !account.code.is_empty());
        alloc.extend(accounts.into_iter().map(|address| (address, GenesisAccount { balance, ..Default::default() })));
        Ok(Genesis { spec, header: self.header(header), alloc })
    }

    /// The header of the newest rules, changed to those of the fork.
    fn header(&self, newest: Header) -> Header {
        let fork = self.hardfork.fork();
        let mut header = Header {
            beneficiary: self.coinbase,
            difficulty: if fork < Fork::Paris { DIFFICULTY.into() } else { U256::zero() },
            gas_limit: self.gas_limit,
            timestamp: self.timestamp.unwrap_or(newest.timestamp),
            base_fee_per_gas: self.base_fee.or(newest.base_fee_per_gas),
            ..newest
        };
        HeaderField::ALL.into_iter().filter(|field| !fork.has(*field)).for_each(|field| field.remove(&mut header));
        header
    }
}

fn within(what: &'static str, got: u64, bounds: &RangeInclusive<u64>) -> Result<(), DevGenesisError> {
    if bounds.contains(&got) {
        return Ok(());
    }
    Err(DevGenesisError::OutOfBounds { what, got, least: *bounds.start(), most: *bounds.end() })
}

/// Why there is no such genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DevGenesisError {
    /// A number is too low or too high.
    #[error("{what} {got}, expected {least} to {most}")]
    OutOfBounds {
        /// Which number.
        what: &'static str,
        /// The number.
        got: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// A base fee under rules that know none.
    #[error("a base fee is given, and {hardfork} has none: the first with one is london")]
    BaseFeeBeforeLondon {
        /// The rules.
        hardfork: Hardfork,
    },
}

#[cfg(test)]
mod tests;
