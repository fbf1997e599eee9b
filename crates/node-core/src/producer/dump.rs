//! Export and import of the whole state.

use super::{Producer, ProducerError};
use crate::backend::{BackendError, StateBackend};
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::buffer::BufferFull;
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;

/// An account with its code and storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WholeAccount {
    pub nonce: u64,
    /// Balance in wei.
    pub balance: U256,
    pub code: Bytes,
    /// The nonzero storage slots.
    pub storage: BTreeMap<H256, U256>,
}

/// Number of bytes for which a dump asks at first.
const GRANT: usize = 64 << 10;

/// Number of slots proved at a time.
const PROVED: usize = 256;

impl Producer {
    /// Returns all accounts as of the head, including pending edits.
    ///
    /// Reads the changes of every block of the chain. Before the accounts take more memory, `grant` is asked whether
    /// they may take that many bytes, which are estimated.
    ///
    /// # Errors
    /// Failures of the backend, an interruption of `context`, and [`ProducerError::StateTooLarge`] with the error of
    /// `grant`.
    pub fn dump(
        &self,
        context: &Context,
        mut grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<BTreeMap<Address, WholeAccount>, ProducerError> {
        let (view, edits) = {
            let _sealing = self.sealing.lock();
            (self.parts.backend.view()?, self.parts.backend.pending_edits()?)
        };
        let mut state = StateChanges::default();
        // At least the size of the state; more if later blocks change the same slots.
        let (mut most, mut granted) = (0, 0);
        let mut merge = |changes: &StateChanges| {
            context.check().map_err(BackendError::from)?;
            most += changes.memory();
            if most > granted {
                most = state.memory() + changes.memory();
                // In steps, so that the size is seldom computed.
                granted = most.saturating_add(most / 4).max(GRANT);
                grant(granted).or_else(|_| {
                    granted = most;
                    grant(granted)
                })?;
            }
            state.merge(changes);
            Ok::<_, ProducerError>(())
        };
        for number in 0..=view.head().number {
            let pruned = BackendError::StatePruned { block: number, earliest: view.earliest_state() };
            merge(&*view.changes(number)?.ok_or(pruned)?)?;
        }
        merge(&edits)?;
        let head = view.state(view.head().number)?;
        let mut accounts = BTreeMap::new();
        for (address, change) in state.accounts {
            context.check().map_err(BackendError::from)?;
            let Some(AccountState { nonce, balance, code_hash }) = change.account else { continue };
            let code = match state.code.get(&code_hash) {
                Some(code) => code.clone(),
                None => head.code(code_hash)?.unwrap_or_default(),
            };
            let storage = change.storage.into_iter().filter(|(_, value)| !value.is_zero()).collect();
            accounts.insert(address, WholeAccount { nonce, balance, code, storage });
        }
        Ok(accounts)
    }

    /// Returns the RLP of the trie node with this Keccak-256 in the state trie or a storage trie as of the head, or
    /// `None` if there is none.
    ///
    /// Nodes are stored by path and not by hash, so this reads the paths of all accounts and slots.
    ///
    /// # Errors
    /// Those of [`dump`](Self::dump).
    pub fn trie_node(
        &self,
        context: &Context,
        hash: H256,
        grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<Option<Bytes>, ProducerError> {
        let accounts = self.dump(context, grant)?;
        let view = self.parts.backend.view()?;
        let state = view.state(view.head().number)?;
        for (address, account) in accounts {
            let slots: Vec<_> = account.storage.into_keys().collect();
            // An account without storage is proved as well.
            for slots in slots.chunks(PROVED).chain(slots.is_empty().then_some(&[][..])) {
                context.check().map_err(BackendError::from)?;
                let proof = state.proof(address, slots)?;
                let of_storage = proof.storage.into_iter().flat_map(|slot| slot.proof);
                if let Some(node) = proof.proof.into_iter().chain(of_storage).find(|node| keccak256(node) == hash) {
                    return Ok(Some(node));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether the chain has no blocks after the genesis block and no edits.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn is_untouched(&self) -> Result<bool, ProducerError> {
        let backend = &self.parts.backend;
        Ok(backend.view()?.head().number == 0 && backend.pending_edits()?.accounts.is_empty())
    }

    /// Replaces the given accounts, including all of their storage. Other accounts are not changed.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load(&self, accounts: BTreeMap<Address, WholeAccount>) -> Result<(), ProducerError> {
        self.edit(|_| {
            let mut changes = StateChanges::default();
            for (address, WholeAccount { nonce, balance, code, storage }) in accounts {
                let code_hash = if code.is_empty() { KECCAK_EMPTY } else { keccak256(&code) };
                if !code.is_empty() {
                    changes.code.insert(code_hash, code);
                }
                let state = AccountState { nonce, balance, code_hash };
                let storage: BTreeMap<_, _> = storage.into_iter().filter(|(_, value)| !value.is_zero()).collect();
                let exists = state != AccountState::default() || !storage.is_empty();
                let change = AccountChange { account: exists.then_some(state), storage_cleared: true, storage };
                changes.accounts.insert(address, change);
            }
            Ok(changes)
        })
    }

    /// Adds `more` wei to an account's balance, saturating at the maximum. Returns the new balance.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn add_balance(&self, address: Address, more: U256) -> Result<U256, ProducerError> {
        let mut balance = U256::zero();
        self.edit_account(address, |account, _| {
            account.balance = account.balance.saturating_add(more);
            balance = account.balance;
            Ok(())
        })?;
        Ok(balance)
    }
}
