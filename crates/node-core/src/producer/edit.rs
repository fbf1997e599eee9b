//! State edits: changes to the state as of the head that no transaction makes.

use super::{Producer, ProducerError};
use crate::backend::View;
use crate::collecting::gather;
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};

/// Maximum memory of the pending edits in bytes. The process takes about three times as much: they are also records of the
/// store, and on the way to the next block.
const MAX_EDITS: usize = 64 << 20;

impl Producer {
    /// Sets an account's balance in wei, as of the head.
    ///
    /// # Errors
    /// [`ProducerError`] if the backend fails, after which nothing has changed.
    pub fn set_balance(&self, address: Address, balance: U256) -> Result<(), ProducerError> {
        self.edit_account(address, |account, _| {
            account.balance = balance;
            Ok(())
        })
    }

    /// Sets an account's nonce, as of the head. If it is lowered, transactions that were already mined are still not
    /// mined again.
    ///
    /// # Errors
    /// [`ProducerError`] if the backend fails, after which nothing has changed.
    pub fn set_nonce(&self, address: Address, nonce: u64) -> Result<(), ProducerError> {
        self.edit_account(address, |account, _| {
            account.nonce = nonce;
            Ok(())
        })
    }

    /// Sets an account's code, as of the head; empty code removes it.
    ///
    /// # Errors
    /// [`ProducerError`] if the backend fails, after which nothing has changed.
    pub fn set_code(&self, address: Address, code: Bytes) -> Result<(), ProducerError> {
        self.edit_account(address, |account, changes| {
            account.code_hash = if code.is_empty() { KECCAK_EMPTY } else { keccak256(&code) };
            if !code.is_empty() {
                changes.code.insert(account.code_hash, code.clone());
            }
            Ok(())
        })
    }

    /// Sets a storage slot of an account, as of the head.
    ///
    /// # Errors
    /// [`ProducerError`] if the backend fails, after which nothing has changed.
    pub fn set_storage(&self, address: Address, slot: H256, value: U256) -> Result<(), ProducerError> {
        self.edit(|view| {
            let account = match view.state(view.head().number)?.account(address)? {
                // A slot that is set to zero in an account that does not exist changes nothing.
                None if value.is_zero() => return Ok(StateChanges::default()),
                account => account.unwrap_or_default(),
            };
            let change =
                AccountChange { account: Some(account), storage: [(slot, value)].into(), ..Default::default() };
            Ok(StateChanges { accounts: [(address, change)].into(), ..StateChanges::default() })
        })
    }

    pub(super) fn edit_account(
        &self,
        address: Address,
        mut change: impl FnMut(&mut AccountState, &mut StateChanges) -> Result<(), ProducerError>,
    ) -> Result<(), ProducerError> {
        self.edit(|view| {
            let head = view.head().number;
            let state = view.state(head)?;
            let mut account = state.account(address)?.unwrap_or_default();
            let mut changes = StateChanges::default();
            change(&mut account, &mut changes)?;
            // An empty account does not exist (EIP-161).
            let exists = account != AccountState::default() || state.has_storage(address)?;
            let change = AccountChange { account: exists.then_some(account), ..AccountChange::default() };
            changes.accounts.insert(address, change);
            Ok(changes)
        })
    }

    /// Durably changes the state as of the head, and updates the pool. If this fails, nothing has changed.
    pub(super) fn edit(
        &self,
        mut change: impl FnMut(&dyn View) -> Result<StateChanges, ProducerError>,
    ) -> Result<(), ProducerError> {
        let edited = self.change(&Context::current(), || self.edit_locked(&mut change));
        // Those of others may have been left to this request, even if it failed.
        self.transactions_changed();
        edited
    }

    /// Does the same; `sealing` must be locked.
    pub(super) fn edit_locked(
        &self,
        mut change: impl FnMut(&dyn View) -> Result<StateChanges, ProducerError>,
    ) -> Result<(), ProducerError> {
        let backend = &self.parts.backend;
        backend.edit(|view| {
            let changes = gather(|| change(view))?;
            let pending = backend.pending_memory(view.head().hash);
            if pending.saturating_add(changes.memory()) > MAX_EDITS {
                return Err(ProducerError::EditsTooLarge(MAX_EDITS));
            }
            Ok(changes)
        })?;
        self.refresh_pool();
        Ok(())
    }
}
