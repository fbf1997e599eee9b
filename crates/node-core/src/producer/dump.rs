//! Export and import of the whole state.

mod accounts;

pub use accounts::WholeAccounts;

use super::{Producer, ProducerError};
use crate::assembly::{commit_to, root, seal};
use crate::backend::{BackendError, LayeredView, NotRead, StateBackend, View};
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

/// A chain with all accounts as of its head, including pending edits.
pub struct WholeChain {
    view: Arc<dyn View>,
    edits: Arc<StateChanges>,
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

/// Number of slots proved at a time.
const PROVED: usize = 256;

impl Producer {
    /// Returns the chain as it is now, to read all of its accounts.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn dump_chain(&self) -> Result<WholeChain, ProducerError> {
        let _sealing = self.lock()?;
        let (view, edits) = (self.parts.backend.view()?, Arc::new(self.parts.backend.pending_edits()?));
        let view = Arc::new(LayeredView::with_edits(Arc::clone(&view), view.head().number, Arc::clone(&edits)));
        Ok(WholeChain { view, edits })
    }

    /// Returns all accounts of [`dump_chain`](Self::dump_chain) in memory.
    ///
    /// # Errors
    /// Those of [`WholeChain::accounts`] and [`WholeAccounts`].
    pub fn dump(
        &self,
        context: &Context,
        grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<BTreeMap<Address, WholeAccount>, ProducerError> {
        let chain = self.dump_chain()?;
        let (mut accounts, mut all) = (chain.accounts(context, grant)?, BTreeMap::new());
        while let Some((address, AccountState { nonce, balance, code_hash })) = accounts.next_account()? {
            let (code, mut storage) = (accounts.code(code_hash)?, BTreeMap::new());
            while let Some((slot, value)) = accounts.next_slot()? {
                storage.insert(slot, value);
            }
            all.insert(address, WholeAccount { nonce, balance, code, storage });
        }
        Ok(all)
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
            let _sealing = self.lock()?;
            let mut parent = self.head()?;
            let ancestor = parent.header.number;
            let changes = Arc::new(whole_changes(accounts, false));
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
    /// Nodes are stored by path and not by hash, so this reads the paths of all accounts and slots. In a chain that continues
    /// another one, these are only those that were read or changed.
    ///
    /// # Errors
    /// Those of [`dump`](Self::dump), and [`BackendError::Upstream`] with [`NotRead`] if the chain continues another one,
    /// which may have the node.
    pub fn trie_node(
        &self,
        context: &Context,
        hash: H256,
        grant: impl FnMut(usize) -> Result<(), BufferFull>,
    ) -> Result<Option<Bytes>, ProducerError> {
        let chain = self.dump_chain()?;
        let mut accounts = chain.accounts(context, grant)?;
        let view = self.parts.backend.view()?;
        let state = view.state(view.head().number)?;
        while let Some((address, _)) = accounts.next_account()? {
            let mut proves_account = true;
            loop {
                let mut slots = Vec::new();
                while slots.len() < PROVED
                    && let Some((slot, _)) = accounts.next_slot()?
                {
                    slots.push(slot);
                }
                // An account without storage is proved as well.
                if slots.is_empty() && !proves_account {
                    break;
                }
                proves_account = false;
                context.check().map_err(BackendError::from)?;
                let proof = state.proof(address, &slots)?;
                let of_storage = proof.storage.into_iter().flat_map(|slot| slot.proof);
                if let Some(node) = proof.proof.into_iter().chain(of_storage).find(|node| keccak256(node) == hash) {
                    return Ok(Some(node));
                }
            }
        }
        match view.is_partial() {
            true => Err(BackendError::Upstream(Box::new(NotRead { what: "the trie node", hash })).into()),
            false => Ok(None),
        }
    }

    /// Returns whether the chain continues another one, of whose state only parts are known.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn continues_another(&self) -> Result<bool, ProducerError> {
        Ok(self.parts.backend.view()?.is_partial())
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

    /// Replaces the given accounts, including all of their storage. In a chain that continues another one, their other slots
    /// stay as they are, because a dump only has slots that were read or changed. Other accounts are not changed.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn load(&self, accounts: BTreeMap<Address, WholeAccount>) -> Result<(), ProducerError> {
        let keeps_storage = self.parts.backend.view()?.is_partial();
        let mut changes = Some(whole_changes(accounts, keeps_storage));
        // It reads nothing, so it runs once.
        self.edit(|_| Ok(changes.take().unwrap_or_default()))
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

/// Returns the changes that replace accounts, including all of their storage, unless they keep the slots that are not given.
fn whole_changes(accounts: BTreeMap<Address, WholeAccount>, keeps_storage: bool) -> StateChanges {
    let mut changes = StateChanges::default();
    for (address, WholeAccount { nonce, balance, code, mut storage }) in accounts {
        let code_hash = if code.is_empty() { KECCAK_EMPTY } else { keccak256(&code) };
        if !code.is_empty() {
            changes.code.insert(code_hash, code);
        }
        let has_storage = storage.values().any(|value| !value.is_zero());
        storage.retain(|_, value| keeps_storage || !value.is_zero());
        let state = AccountState { nonce, balance, code_hash };
        let exists = state != AccountState::default() || has_storage;
        let change = AccountChange { account: exists.then_some(state), storage_cleared: !keeps_storage, storage };
        changes.accounts.insert(address, change);
    }
    changes
}
