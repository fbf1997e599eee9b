//! The state as of a block before the fork, as a backend returns states.

use crate::base::Base;
use node_core::backend::{AccountProof, BackendError, BaseRead, BaseState, StateBackend, StateView, StorageProof};
use node_core::block::{ExecutedBlock, SealedHeader};
use node_core::state::{AccountState, StateChanges};
use node_core::trie::Found;
use node_store::{Options, Store};
use node_types::consensus::EMPTY_ROOT;
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::sync::Arc;

/// Reads a [`Base`] as the state of a block that no block of this chain changes.
pub(crate) struct ReadOnlyState(pub(crate) Base);

impl ReadOnlyState {
    /// Returns the known nodes on the path to a key, all of which must be known.
    fn path(&self, root: H256, key: H256) -> Result<Vec<Bytes>, BackendError> {
        let mut nodes = Vec::new();
        if root != EMPTY_ROOT
            && let Found::Unknown { hash, .. } = self.0.visit_path(root, key, |node| nodes.push(node.clone()))?
        {
            return Err(self.0.lost_node(hash));
        }
        Ok(nodes)
    }
}

impl StateView for ReadOnlyState {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        let account = self.0.account(address)?;
        Ok(account.map(|account| AccountState {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: account.code_hash,
        }))
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        self.0.storage(address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        Ok(self.0.account(address)?.is_some_and(|account| account.storage_root != EMPTY_ROOT))
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        if hash == KECCAK_EMPTY {
            return Ok(None);
        }
        self.0.code(hash)
    }

    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        if !self.0.is_proven() {
            return Err(BackendError::Unproven(self.0.block().header().number));
        }
        self.0.fetch(&[BaseRead { address, slots: slots.to_vec() }])?;
        let account = self.0.account(address)?;
        let proof = self.path(self.0.root(), keccak256(address))?;
        let root = account.unwrap_or_default().storage_root;
        let storage = slots.iter().map(|slot| {
            let proof = self.path(root, keccak256(slot))?;
            Ok(StorageProof { slot: *slot, value: self.0.storage(address, *slot)?, proof })
        });
        Ok(AccountProof { account, proof, storage: storage.collect::<Result<_, BackendError>>()? })
    }

    /// A chain in memory that begins with this state knows how tries change.
    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        let block = self.0.block();
        let (header, number) = (block.header().clone(), block.header().number);
        let first = ExecutedBlock {
            header: Arc::new(SealedHeader { hash: block.hash(), header, total_difficulty: U256::zero(), size: 0 }),
            body: Arc::default(),
            receipts: Arc::default(),
            changes: Arc::default(),
        };
        let chain = Store::fork_in_memory(first, Arc::new(self.0.clone()), Options::in_memory())?;
        chain.view()?.state(number)?.root_after(changes)
    }
}
