//! Export and import of the whole state.

use super::{Producer, ProducerError};
use crate::assembly::{commit_to, root, seal};
use crate::backend::{BackendError, StateBackend, View};
use crate::block::{Body, ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::buffer::BufferFull;
use node_types::consensus::{Bloom, EMPTY_OMMERS_HASH, Header, Receipt, Withdrawal};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// A chain with all accounts as of its head.
pub struct WholeChain {
    pub accounts: BTreeMap<Address, WholeAccount>,
    /// The blocks.
    pub view: Arc<dyn View>,
}

/// A block that another chain has executed. Of its header, the fields that depend on its position and content are
/// computed again.
#[derive(Clone, Debug, Default)]
pub struct LoadedBlock {
    pub header: Header,
    pub transactions: Vec<RecoveredTransaction>,
    /// One for each transaction.
    pub receipts: Vec<Receipt>,
    /// `None` before Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
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
        grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<BTreeMap<Address, WholeAccount>, ProducerError> {
        Ok(self.dump_chain(context, grant)?.accounts)
    }

    /// Like [`dump`](Self::dump), with the chain whose head has these accounts.
    ///
    /// # Errors
    /// Those of [`dump`](Self::dump).
    pub fn dump_chain(
        &self,
        context: &Context,
        mut grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<WholeChain, ProducerError> {
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
        for number in view.first()..=view.head().number {
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
        drop(head);
        Ok(WholeChain { accounts, view })
    }

    /// Loads the blocks of another chain, and all accounts as of the last of them, into a chain that
    /// [has no blocks](Self::is_untouched) of its own. The first is block 1. The chain's time continues from the last
    /// block, if that is ahead of the clock.
    ///
    /// The blocks were not executed here, so that the states before the last of them cannot be read. Their hashes and
    /// state roots differ from those of the other chain, because each header commits to its parent and to a state of
    /// this chain.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load_chain(
        &self,
        accounts: BTreeMap<Address, WholeAccount>,
        blocks: Vec<LoadedBlock>,
    ) -> Result<(), ProducerError> {
        if blocks.is_empty() {
            return self.load(accounts);
        }
        {
            let _sealing = self.sealing.lock();
            let mut parent = self.head()?;
            let ancestor = parent.header.number;
            let changes = Arc::new(whole_changes(accounts));
            let view = self.parts.backend.view()?;
            let state = view.state(ancestor)?;
            let roots = [state.root_after(&StateChanges::default())?, state.root_after(&changes)?];
            drop(state);
            drop(view);
            let last = blocks.len() - 1;
            let mut branch = Vec::new();
            for (index, block) in blocks.into_iter().enumerate() {
                let is_last = index == last;
                let changes = if is_last { Arc::clone(&changes) } else { Arc::default() };
                let block = loaded_block(block, &parent, roots[usize::from(is_last)], changes);
                parent = Arc::clone(&block.header);
                branch.push(block);
            }
            self.parts.backend.load(ancestor, branch)?;
            self.settings.continue_after(&parent);
            self.refresh_pool();
        }
        self.transactions_changed();
        Ok(())
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

    /// Returns whether the chain has no blocks after its first one and no edits.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn is_untouched(&self) -> Result<bool, ProducerError> {
        let backend = &self.parts.backend;
        let view = backend.view()?;
        Ok(view.head().number == view.first() && backend.pending_edits()?.accounts.is_empty())
    }

    /// Replaces the given accounts, including all of their storage. Other accounts are not changed.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load(&self, accounts: BTreeMap<Address, WholeAccount>) -> Result<(), ProducerError> {
        self.edit(|_| Ok(whole_changes(accounts)))
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

/// Puts a block of another chain on `parent`. Its changes result in the state with `state_root`.
fn loaded_block(
    block: LoadedBlock,
    parent: &SealedHeader,
    state_root: H256,
    changes: Arc<StateChanges>,
) -> ExecutedBlock {
    let LoadedBlock { header, transactions, receipts, withdrawals } = block;
    let mut header = Header {
        parent_hash: parent.hash,
        number: parent.header.number + 1,
        ommers_hash: EMPTY_OMMERS_HASH,
        state_root,
        transactions_root: root(&transactions, |recovered| recovered.transaction.encode()),
        receipts_root: root(&receipts, Receipt::encode),
        logs_bloom: receipts.iter().map(|receipt| &receipt.logs_bloom).collect::<Bloom>(),
        ..header
    };
    let withdrawals = commit_to(&mut header, withdrawals.unwrap_or_default());
    let body = Body { transactions, ommers: Vec::new(), withdrawals };
    let header = Arc::new(seal(header, &body, parent));
    ExecutedBlock { header, body: Arc::new(body), receipts: Arc::new(receipts), changes }
}

/// Returns the changes that replace accounts, including all of their storage.
fn whole_changes(accounts: BTreeMap<Address, WholeAccount>) -> StateChanges {
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
    changes
}
