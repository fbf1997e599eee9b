//! Balance changes outside of transactions: block rewards before the merge, and withdrawals since Shanghai.

use crate::convert::{ToEvm, ToNode};
use crate::state::{DatabaseError, StateDb};
use node_core::protocol::Fork;
use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, U256};

const GWEI: u64 = 1_000_000_000;
const ETHER: u64 = 1_000_000_000_000_000_000;

/// Pays the rewards for a block and its ommers (Yellow Paper, section 11.3). There are none after the merge.
pub(crate) fn pay_rewards(
    db: &mut StateDb<'_>,
    fork: Fork,
    header: &Header,
    ommers: &[Header],
) -> Result<(), DatabaseError> {
    for (address, amount) in rewards(fork, header, ommers) {
        add_balance(db, fork, address, amount)?;
    }
    Ok(())
}

/// Credits the withdrawals of a block (EIP-4895).
pub(crate) fn pay_withdrawals(
    db: &mut StateDb<'_>,
    fork: Fork,
    withdrawals: &[Withdrawal],
) -> Result<(), DatabaseError> {
    for withdrawal in withdrawals {
        add_balance(db, fork, withdrawal.address, U256::from(withdrawal.amount) * U256::from(GWEI))?;
    }
    Ok(())
}

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

/// Returns the beneficiaries and their rewards in wei. The reward of an ommer is reduced by an eighth of the block
/// reward per generation, and the including block gets an additional thirty-second of the block reward per ommer.
fn rewards(fork: Fork, header: &Header, ommers: &[Header]) -> Vec<(Address, U256)> {
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

/// Increases a balance and touches the account; since EIP-161, this deletes an account that is still empty.
fn add_balance(db: &mut StateDb<'_>, fork: Fork, address: Address, amount: U256) -> Result<(), DatabaseError> {
    let address = address.to_evm();
    let mut info = db.account(address)?.cloned().unwrap_or_default();
    info.balance = info.balance.to_node().saturating_add(amount).to_evm();
    let removed = fork >= Fork::SpuriousDragon && info.is_empty();
    db.set_account(address, (!removed).then_some(info))
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
