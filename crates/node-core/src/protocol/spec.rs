//! The schedule by which a chain activates forks.

use super::gas::{MAX_INIT_CODE_SIZE, TRANSACTION_GAS_CAP};
use super::{Activation, BlobParams, Fork, Relaxations, UPGRADES};
use node_types::consensus::Header;
use node_types::{Address, BlockNumber, U256};

/// The parameters that distinguish one chain from another: its id and its schedule of forks.
///
/// The default is a chain that stays at [`Fork::Frontier`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainSpec {
    /// Chain id (EIP-155).
    pub chain_id: u64,
    /// The forks before the merge with the first block of each, ascending. [`Fork::Frontier`] is implied.
    pub block_forks: Vec<(Fork, BlockNumber)>,
    /// How the chain treats the DAO fork (EIP-779). `None` if it ignores the fork.
    pub dao_fork: Option<DaoFork>,
    /// Terminal total difficulty: the child of a block that reaches it follows [`Fork::Paris`] (EIP-3675). `None` if
    /// the chain never merges.
    pub terminal_total_difficulty: Option<U256>,
    /// The forks after the merge with the first timestamp of each in Unix seconds, ascending.
    pub time_forks: Vec<(Fork, u64)>,
    /// Blob parameters, ascending by their first timestamps.
    pub blob_schedule: Vec<BlobEntry>,
    /// Merge netsplit block, which is part of fork identifiers (EIP-2124) although it changes no rules.
    pub merge_netsplit: Option<BlockNumber>,
    /// Deposit contract, whose logs are deposit requests (EIP-6110). `None` if the chain has no deposits.
    pub deposit_contract: Option<Address>,
    /// The rules in which a development chain is less strict than the protocol.
    pub relaxations: Relaxations,
}

/// Blob parameters and when they become active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobEntry {
    /// The name of the [`Upgrade`](super::Upgrade) that sets the parameters.
    pub upgrade: &'static str,
    pub params: BlobParams,
    /// The first timestamp in Unix seconds.
    pub time: u64,
}

/// How a chain treats the DAO fork (EIP-779).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaoFork {
    pub block: BlockNumber,
    /// Whether that block moves the balances of the DAO to the refund contract. If so, this block and the nine after
    /// it must have the extra data of the fork; otherwise they must not.
    pub supported: bool,
}

impl ChainSpec {
    /// Returns the specification of a chain on which every upgrade up to `fork` is active from genesis, with
    /// mainnet's blob parameters.
    ///
    /// Upgrades that only change blob parameters are not active.
    pub fn at_genesis(chain_id: u64, fork: Fork) -> Self {
        let mut spec = Self { chain_id, ..Self::default() };
        for upgrade in UPGRADES.iter().filter(|upgrade| upgrade.fork <= fork) {
            match upgrade.activation {
                Activation::Genesis | Activation::BlobTime { .. } => continue,
                Activation::Block { .. } => spec.block_forks.push((upgrade.fork, 0)),
                Activation::TotalDifficulty { .. } => spec.terminal_total_difficulty = Some(U256::zero()),
                Activation::Time { .. } => spec.time_forks.push((upgrade.fork, 0)),
            }
            let entry = |params| BlobEntry { upgrade: upgrade.name, params, time: 0 };
            spec.blob_schedule.extend(upgrade.blob_params.map(entry));
        }
        spec
    }

    /// Returns the fork in force in the block `header`. A difficulty of zero marks a block after the merge.
    pub fn fork(&self, header: &Header) -> Fork {
        self.fork_at(header.number, header.timestamp, header.difficulty.is_zero())
    }

    /// Returns the fork in force at a block number and a timestamp in Unix seconds. `merged` is whether the block is
    /// after the merge.
    pub fn fork_at(&self, number: BlockNumber, timestamp: u64, merged: bool) -> Fork {
        if merged {
            last_active(&self.time_forks, timestamp).unwrap_or(Fork::Paris)
        } else {
            last_active(&self.block_forks, number).unwrap_or(Fork::Frontier)
        }
    }

    /// Returns whether `fork`, which comes after the merge, is active at a timestamp in Unix seconds.
    pub fn is_active_at(&self, fork: Fork, timestamp: u64) -> bool {
        last_active(&self.time_forks, timestamp).is_some_and(|active| active >= fork)
    }

    /// Returns the maximum gas limit of a transaction under the rules of `fork`, or `None` if only that of the block
    /// applies.
    pub fn transaction_gas_cap(&self, fork: Fork) -> Option<u64> {
        (fork >= Fork::Osaka && !self.relaxations.no_transaction_gas_cap).then_some(TRANSACTION_GAS_CAP)
    }

    /// Returns the maximum length of init code in bytes under the rules of `fork`, or `None` if it has none.
    pub fn init_code_limit(&self, fork: Fork) -> Option<usize> {
        let twice = |limit: u64| usize::try_from(limit.saturating_mul(2)).unwrap_or(usize::MAX);
        (fork >= Fork::Shanghai).then(|| self.relaxations.code_size_limit.map_or(MAX_INIT_CODE_SIZE, twice))
    }

    /// Returns the lowest timestamp, in Unix seconds, of a block whose parent has the timestamp `parent`.
    pub fn least_timestamp(&self, parent: u64) -> u64 {
        parent.saturating_add(u64::from(!self.relaxations.equal_timestamps))
    }

    /// Returns the blob parameters in force at a timestamp in Unix seconds, or `None` before Cancun.
    pub fn blob_params(&self, timestamp: u64) -> Option<BlobParams> {
        self.blob_schedule.iter().rev().find(|entry| entry.time <= timestamp).map(|entry| entry.params)
    }
}

/// Returns the last entry of an ascending schedule that starts at or before `now`.
fn last_active<T: Copy>(schedule: &[(T, u64)], now: u64) -> Option<T> {
    schedule.iter().rev().find(|(_, start)| *start <= now).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_numbers_and_timestamps_select_the_fork() {
        let spec = ChainSpec {
            chain_id: 1,
            block_forks: vec![
                (Fork::Homestead, 2),
                (Fork::TangerineWhistle, 4),
                (Fork::Byzantium, 4),
                (Fork::London, 9),
            ],
            terminal_total_difficulty: Some(100.into()),
            time_forks: vec![(Fork::Shanghai, 50), (Fork::Cancun, 60)],
            blob_schedule: vec![
                BlobEntry { upgrade: "cancun", params: BlobParams::CANCUN, time: 60 },
                BlobEntry { upgrade: "prague", params: BlobParams::PRAGUE, time: 70 },
            ],
            ..ChainSpec::default()
        };
        // Block number, timestamp, merged; the fork in force.
        let cases = [
            (0, 0, false, Fork::Frontier),
            (1, 0, false, Fork::Frontier),
            (2, 0, false, Fork::Homestead),
            (3, 0, false, Fork::Homestead),
            // The later of two forks at the same block applies.
            (4, 0, false, Fork::Byzantium),
            (u64::MAX, u64::MAX, false, Fork::London),
            (0, 0, true, Fork::Paris),
            (9, 49, true, Fork::Paris),
            (9, 50, true, Fork::Shanghai),
            (0, 60, true, Fork::Cancun),
        ];
        for (number, timestamp, merged, expected) in cases {
            let got = spec.fork_at(number, timestamp, merged);
            assert_eq!(got, expected, "block {number} at {timestamp}, merged: {merged}");
        }
        for (timestamp, expected) in [(59, None), (60, Some(BlobParams::CANCUN)), (70, Some(BlobParams::PRAGUE))] {
            assert_eq!(spec.blob_params(timestamp), expected, "at {timestamp}");
        }
        assert!(spec.is_active_at(Fork::Shanghai, 60) && !spec.is_active_at(Fork::Cancun, 59));
    }
    #[test]
    fn a_chain_with_all_forks_at_genesis_starts_at_the_newest() {
        for upgrade in UPGRADES {
            let spec = ChainSpec::at_genesis(1, upgrade.fork);
            assert_eq!(spec.fork_at(0, 0, upgrade.fork >= Fork::Paris), upgrade.fork);
        }
        let blobs = |fork| ChainSpec::at_genesis(1, fork).blob_params(0);
        assert_eq!(
            [Fork::Shanghai, Fork::Cancun, Fork::Osaka].map(blobs),
            [None, Some(BlobParams::CANCUN), Some(BlobParams::PRAGUE)]
        );
    }
}
