//! Balance changes outside of transactions: block rewards before the merge, and withdrawals since Shanghai.

use crate::convert::{ToEvm, ToNode};
use crate::state::{DatabaseError, StateDb};
use node_core::protocol::Fork;
use node_core::protocol::rewards::rewards;
use node_types::consensus::{Header, Withdrawal};
use node_types::{Address, U256};

const GWEI: u64 = 1_000_000_000;

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

/// Increases a balance and touches the account; since EIP-161, this deletes an account that is still empty.
fn add_balance(db: &mut StateDb<'_>, fork: Fork, address: Address, amount: U256) -> Result<(), DatabaseError> {
    let address = address.to_evm();
    let mut info = db.account(address)?.cloned().unwrap_or_default();
    info.balance = info.balance.to_node().saturating_add(amount).to_evm();
    let removed = fork >= Fork::SpuriousDragon && info.is_empty();
    db.set_account(address, (!removed).then_some(info))
}
