//! State overrides of calls and simulated blocks.

use crate::convert::{ToEvm, slot_to_evm};
use crate::machine::Machine;
use crate::state::code_cache::analyze;
use crate::state::{DatabaseError, StateDb};
use node_core::executor::{AccountOverride, ExecutionError, OverrideError, StateOverrides, StorageOverride};
use node_types::{Address, H256, U256, keccak256};
use std::collections::BTreeMap;

pub(crate) fn apply(db: &mut StateDb<'_>, overrides: &StateOverrides) -> Result<(), DatabaseError> {
    overrides.iter().try_for_each(|(address, change)| apply_one(db, *address, change))
}

/// Applies `overrides` to the precompiles: moves those with a destination, and disables those whose code is overridden.
pub(crate) fn apply_to_precompiles(
    machine: &mut Machine<'_>,
    overrides: &StateOverrides,
) -> Result<(), ExecutionError> {
    for (address, change) in overrides {
        if let Some(destination) = change.move_precompile_to {
            if !machine.is_precompile(*address) {
                return Err(OverrideError::NotAPrecompile(*address).into());
            }
            if destination == *address {
                return Err(OverrideError::MovedToItself(*address).into());
            }
            if overrides.contains_key(&destination) {
                return Err(OverrideError::DestinationOverridden(destination).into());
            }
            machine.move_precompile(*address, destination);
        } else if change.code.is_some() {
            machine.replace_precompile(*address);
        }
    }
    Ok(())
}

fn apply_one(db: &mut StateDb<'_>, address: Address, change: &AccountOverride) -> Result<(), DatabaseError> {
    let account = address.to_evm();
    let before = db.account(account)?.cloned();
    // Moving a precompile does not change the state.
    let unchanged = AccountOverride { move_precompile_to: change.move_precompile_to, ..AccountOverride::default() };
    if before.is_none() && *change == unchanged {
        return Ok(());
    }
    let mut info = before.unwrap_or_default();
    if let Some(balance) = change.balance {
        info.balance = balance.to_evm();
    }
    if let Some(nonce) = change.nonce {
        info.nonce = nonce;
    }
    if let Some(code) = &change.code {
        info.code_hash = keccak256(code).to_evm();
        info.code = Some(db.under_fork(analyze(code.to_evm())));
    }
    db.set_account(account, Some(info))?;
    match &change.storage {
        StorageOverride::Keep => Ok(()),
        StorageOverride::Patch(slots) => set_slots(db, address, slots),
        StorageOverride::Replace(slots) => {
            db.clear_storage(account)?;
            set_slots(db, address, slots)
        }
    }
}

fn set_slots(db: &mut StateDb<'_>, address: Address, slots: &BTreeMap<H256, U256>) -> Result<(), DatabaseError> {
    let account = address.to_evm();
    slots.iter().try_for_each(|(slot, value)| db.set_slot(account, slot_to_evm(*slot), value.to_evm()))
}
