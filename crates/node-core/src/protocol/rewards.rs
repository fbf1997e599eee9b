//! Block rewards before the merge.

use crate::protocol::Fork;
use node_types::consensus::Header;
use node_types::{Address, U256};

const ETHER: u64 = 1_000_000_000_000_000_000;

/// Returns the block reward in wei (EIP-649, EIP-1234, EIP-3675).
fn block_reward(fork: Fork) -> U256 {
    let ether = match fork {
        fork if fork < Fork::Byzantium => 5,
        fork if fork < Fork::Constantinople => 3,
        fork if fork < Fork::Paris => 2,
        _ => 0,
    };
    U256::from(ether * ETHER)
}

/// Returns the beneficiaries and their rewards in wei for a block and its ommers (Yellow Paper, section 11.3): those of the
/// ommers in their order, then that of the block. Empty after the merge.
///
/// The reward of an ommer is reduced by an eighth of the block reward per generation, and the including block gets an
/// additional thirty-second of the block reward per ommer.
pub fn rewards(fork: Fork, header: &Header, ommers: &[Header]) -> Vec<(Address, U256)> {
    let reward = block_reward(fork);
    if reward.is_zero() {
        return Vec::new();
    }
    let mut rewards = Vec::with_capacity(ommers.len() + 1);
    let mut own = reward;
    for ommer in ommers {
        let eighths = (ommer.number.saturating_add(8)).saturating_sub(header.number).min(8);
        rewards.push((ommer.beneficiary, reward * U256::from(eighths) / U256::from(8)));
        own += reward / U256::from(32);
    }
    rewards.push((header.beneficiary, own));
    rewards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_depend_on_the_fork_and_the_age_of_ommers() {
        let [miner, uncle] = [Address::repeat_byte(1), Address::repeat_byte(2)];
        let header = Header { number: 100, beneficiary: miner, ..Header::default() };
        let ommer = |number| Header { number, beneficiary: uncle, ..Header::default() };
        let wei = |eighths_of_ether: u64| U256::from(eighths_of_ether) * U256::from(ETHER / 32);
        // Amounts in 32nds of an ether.
        type Case = (Fork, Vec<Header>, Vec<(Address, U256)>);
        let cases: [Case; 8] = [
            (Fork::Frontier, vec![], vec![(miner, wei(160))]),
            (Fork::SpuriousDragon, vec![], vec![(miner, wei(160))]),
            (Fork::Byzantium, vec![], vec![(miner, wei(96))]),
            (Fork::Constantinople, vec![], vec![(miner, wei(64))]),
            (Fork::GrayGlacier, vec![], vec![(miner, wei(64))]),
            (Fork::Paris, vec![], vec![]),
            (Fork::Homestead, vec![ommer(99)], vec![(uncle, wei(140)), (miner, wei(165))]),
            (Fork::London, vec![ommer(94), ommer(98)], vec![(uncle, wei(16)), (uncle, wei(48)), (miner, wei(68))]),
        ];
        for (fork, ommers, expected) in cases {
            assert_eq!(rewards(fork, &header, &ommers), expected, "{fork:?} with {} ommers", ommers.len());
        }
    }
}
