//! Which rules are in force at which block.

use node_types::consensus::{Header, TransactionType};
use node_types::{Address, BlockNumber, U256};

/// A set of rules, in the order of their activation on Ethereum's mainnet.
///
/// Changes of blob parameters alone (EIP-7892) are no forks; [`ChainSpec::blob_params`] knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fork {
    /// The rules of genesis.
    Frontier,
    /// EIP-2, 7, 8.
    Homestead,
    /// EIP-150.
    TangerineWhistle,
    /// EIP-155, 160, 161, 170.
    SpuriousDragon,
    /// EIP-100, 140, 196, 197, 198, 211, 214, 649, 658.
    Byzantium,
    /// EIP-145, 1014, 1052, 1234, 1283.
    Constantinople,
    /// Without EIP-1283.
    Petersburg,
    /// EIP-152, 1108, 1344, 1884, 2028, 2200.
    Istanbul,
    /// EIP-2384.
    MuirGlacier,
    /// EIP-2565, 2718, 2929, 2930.
    Berlin,
    /// EIP-1559, 3198, 3529, 3541, 3554.
    London,
    /// EIP-4345.
    ArrowGlacier,
    /// EIP-5133.
    GrayGlacier,
    /// EIP-3675, 4399.
    Paris,
    /// EIP-3651, 3855, 3860, 4895.
    Shanghai,
    /// EIP-1153, 4788, 4844, 5656, 6780, 7516.
    Cancun,
    /// EIP-2537, 2935, 6110, 7002, 7251, 7623, 7685, 7691, 7702, 7840.
    Prague,
    /// EIP-7594, 7642, 7823, 7825, 7883, 7892, 7918, 7934, 7939, 7951.
    Osaka,
}

impl Fork {
    /// The rules that brought a type of transactions.
    pub fn introducing(transaction_type: TransactionType) -> Self {
        match transaction_type {
            TransactionType::Legacy => Self::Frontier,
            TransactionType::AccessList => Self::Berlin,
            TransactionType::DynamicFee => Self::London,
            TransactionType::Blob => Self::Cancun,
            TransactionType::SetCode => Self::Prague,
        }
    }
}

/// Blob parameters (EIP-7840).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobParams {
    /// Blobs a block at which the blob base fee stays as it is.
    pub target: u64,
    /// Most blobs a block.
    pub max: u64,
    /// Denominator of the exponent of the blob base fee.
    pub base_fee_update_fraction: u64,
}

impl BlobParams {
    /// Those of EIP-4844.
    pub const CANCUN: Self = Self { target: 3, max: 6, base_fee_update_fraction: 3_338_477 };
    /// Those of EIP-7691.
    pub const PRAGUE: Self = Self { target: 6, max: 9, base_fee_update_fraction: 5_007_716 };
}

/// What distinguishes one chain from another: its id, and when which rules come into force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    /// Chain id (EIP-155).
    pub chain_id: u64,
    /// Forks from before the merge with the first block of each, ascending. [`Fork::Frontier`] is implied.
    pub block_forks: Vec<(Fork, BlockNumber)>,
    /// Block at which the balances of the DAO move to a refund contract, and whose extra data this chain demands.
    pub dao_fork: Option<BlockNumber>,
    /// Total difficulty from which on the next block is [`Fork::Paris`] (EIP-3675); none if never.
    pub terminal_total_difficulty: Option<U256>,
    /// Forks from after the merge with the first timestamp of each in Unix seconds, ascending.
    pub time_forks: Vec<(Fork, u64)>,
    /// Blob parameters with the first timestamp of each in Unix seconds, ascending.
    pub blob_schedule: Vec<(BlobParams, u64)>,
    /// Heights that count in the identifiers of forks though no rule changes there: of the merge's netsplit, and of a fork of
    /// the DAO that the chain did not take.
    pub silent_forks: Vec<BlockNumber>,
    /// Contract whose logs are deposits (EIP-6110).
    pub deposit_contract: Address,
}

impl ChainSpec {
    /// The rules in force in a block. A block belongs to the merged chain exactly if its difficulty is zero.
    pub fn fork(&self, header: &Header) -> Fork {
        self.fork_at(header.number, header.timestamp, header.difficulty.is_zero())
    }

    /// The rules in force at a height and a time in Unix seconds, after the merge or before.
    pub fn fork_at(&self, number: BlockNumber, timestamp: u64, merged: bool) -> Fork {
        if merged {
            last_active(&self.time_forks, timestamp).unwrap_or(Fork::Paris)
        } else {
            last_active(&self.block_forks, number).unwrap_or(Fork::Frontier)
        }
    }

    /// Whether a fork from after the merge is in force at a time in Unix seconds.
    pub fn is_active_at(&self, fork: Fork, timestamp: u64) -> bool {
        last_active(&self.time_forks, timestamp).is_some_and(|active| active >= fork)
    }

    /// Whether a fork from before the merge has come into force at a height.
    pub fn is_active_from(&self, fork: Fork, number: BlockNumber) -> bool {
        last_active(&self.block_forks, number).is_some_and(|active| active >= fork)
    }

    /// The blob parameters in force at a time in Unix seconds; none before Cancun.
    pub fn blob_params(&self, timestamp: u64) -> Option<BlobParams> {
        last_active(&self.blob_schedule, timestamp)
    }
}

/// The last element of an ascending schedule that has begun at `now`.
fn last_active<T: Copy>(schedule: &[(T, u64)], now: u64) -> Option<T> {
    schedule.iter().rev().find(|(_, start)| *start <= now).map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_and_times_select_the_rules() {
        let spec = ChainSpec {
            chain_id: 1,
            block_forks: vec![
                (Fork::Homestead, 2),
                (Fork::TangerineWhistle, 4),
                (Fork::Byzantium, 4),
                (Fork::London, 9),
            ],
            dao_fork: None,
            terminal_total_difficulty: Some(100.into()),
            time_forks: vec![(Fork::Shanghai, 50), (Fork::Cancun, 60)],
            blob_schedule: vec![(BlobParams::CANCUN, 60), (BlobParams::PRAGUE, 70)],
            silent_forks: Vec::new(),
            deposit_contract: Address::zero(),
        };
        // Height, time, merged; rules.
        let cases = [
            (0, 0, false, Fork::Frontier),
            (1, 0, false, Fork::Frontier),
            (2, 0, false, Fork::Homestead),
            (3, 0, false, Fork::Homestead),
            // Of two forks at one height the later one counts.
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
        assert!(spec.is_active_from(Fork::Homestead, 9) && !spec.is_active_from(Fork::London, 8));
        assert!(spec.is_active_at(Fork::Shanghai, 60) && !spec.is_active_at(Fork::Cancun, 59));
    }
}
