//! The genesis of development chains.

use crate::Hardfork;
use crate::contracts::contracts;
use node_chain::genesis::GenesisAccount;
use node_chain::{Genesis, dev_genesis};
use node_core::protocol::gas::BLOCK_GAS_LIMITS;
use node_core::protocol::{ChainSpec, Fork};
use node_types::consensus::{Header, HeaderField};
use node_types::{Address, U256};
use std::ops::RangeInclusive;

/// Valid chain ids, limited so that the `v` of a signature fits into 64 bits (EIP-2294).
const CHAIN_IDS: RangeInclusive<u64> = 1..=u64::MAX / 2 - 36;

/// Base fees in wei, up to one ether: far above realistic ones, and far below an overflow.
const BASE_FEES: RangeInclusive<u64> = 0..=1_000_000_000_000_000_000;

/// Timestamps in Unix seconds, up to the end of the year 9999, which leaves room for later blocks.
const TIMESTAMPS: RangeInclusive<u64> = 0..=253_402_300_799;

/// The lowest difficulty of a block before the merge.
const DIFFICULTY: u64 = 131_072;

/// Options of a development chain's genesis. The default is the built-in [`dev_genesis`].
///
/// Forks up to [`hardfork`](Self::hardfork) are active from block 0, later ones never. Chains with a fork before the
/// merge start with the lowest difficulty. The protocol's system contracts exist under all forks, although early
/// forks do not call them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevGenesis {
    pub chain_id: u64,
    /// Balance of each account in ether.
    pub balance: u64,
    /// Gas limit of the genesis block and all later blocks.
    pub gas_limit: u64,
    /// Base fee of the genesis block in wei per gas. `None` for 1 gwei, or for no base fee before London.
    pub base_fee: Option<u64>,
    /// The newest upgrade, which is active from block 0.
    pub hardfork: Hardfork,
    /// Timestamp of the genesis block in Unix seconds; `None` for the beginning of 2025.
    pub timestamp: Option<u64>,
    /// Beneficiary of the genesis block and all later blocks.
    pub coinbase: Address,
    /// Whether Multicall3, Permit2, CreateX, EntryPoint 0.6 to 0.9 (ERC-4337), the registry of ERC-1820, and the
    /// factories of EIP-2470 and Safe are deployed at their addresses on mainnet. The CREATE2 deployer always is.
    pub contracts: bool,
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
            contracts: false,
        }
    }
}

impl DevGenesis {
    /// Builds the genesis, in which each of `accounts` has the configured balance.
    ///
    /// # Errors
    /// [`DevGenesisError`] if a value is out of range.
    pub fn build(&self, accounts: impl IntoIterator<Item = Address>) -> Result<Genesis, DevGenesisError> {
        let fork = self.hardfork.fork();
        check_chain_id(self.chain_id)?;
        check_extendable(self.gas_limit, self.timestamp.unwrap_or_default())?;
        within("base fee", self.base_fee.unwrap_or_default(), &BASE_FEES)?;
        if self.base_fee.is_some() && fork < Fork::London {
            return Err(DevGenesisError::BaseFeeBeforeLondon { hardfork: self.hardfork });
        }
        let Genesis { header, mut alloc, state_root, .. } = dev_genesis();
        let spec = ChainSpec { chain_id: self.chain_id, ..self.hardfork.spec() };

        // 64 bits of ether easily fit into 256 bits of wei, and so does the sum over all accounts.
        let balance = U256::from(self.balance) * U256::exp10(18);
        // Keeps the contracts of the built-in genesis, and replaces its accounts.
        alloc.retain(|_, account| !account.code.is_empty());
        if self.contracts {
            let deployed = |(address, code)| (address, GenesisAccount { code, nonce: 1, ..Default::default() });
            alloc.extend(contracts().map(deployed));
        }
        alloc.extend(accounts.into_iter().map(|address| (address, GenesisAccount { balance, ..Default::default() })));
        Ok(Genesis { spec, header: self.header(header), alloc, state_root })
    }

    /// Returns the header of the built-in genesis, adapted to the fork.
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

/// Checks that valid blocks can follow a genesis block with this gas limit and timestamp.
pub(crate) fn check_extendable(gas_limit: u64, timestamp: u64) -> Result<(), DevGenesisError> {
    within("gas limit", gas_limit, &BLOCK_GAS_LIMITS)?;
    within("timestamp", timestamp, &TIMESTAMPS)
}

/// Checks that a chain can have this id.
///
/// # Errors
/// [`DevGenesisError`] if it is zero, or so large that the `v` of a signature would not fit into 64 bits (EIP-2294).
pub fn check_chain_id(id: u64) -> Result<(), DevGenesisError> {
    within("chain id", id, &CHAIN_IDS)
}

fn within(what: &'static str, got: u64, bounds: &RangeInclusive<u64>) -> Result<(), DevGenesisError> {
    if bounds.contains(&got) {
        return Ok(());
    }
    Err(DevGenesisError::OutOfBounds { what, got, least: *bounds.start(), most: *bounds.end() })
}

/// Why a genesis could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevGenesisError {
    #[error("the {what} must be from {least} to {most}, not {got}")]
    OutOfBounds { what: &'static str, got: u64, least: u64, most: u64 },
    #[error("{hardfork} has no base fee: the first fork with one is london")]
    BaseFeeBeforeLondon { hardfork: Hardfork },
}

#[cfg(test)]
mod tests;
