//! The first block and the rules of a chain, from the JSON format of geth.

mod config;
mod dev;
mod error;
mod file;
mod number;

pub use dev::{DEV_GENESIS, dev_genesis};
pub use error::{GenesisError, NumberError};

use node_core::block::{Body, ExecutedBlock, SealedHeader};
use node_core::forks::ChainSpec;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::Trie;
use node_types::consensus::{Account, Block, EMPTY_ROOT, Header};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a chain begins: its rules, its first header, and the accounts that exist from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The rules.
    pub spec: ChainSpec,
    /// The header of block 0. [`Genesis::block`] computes its state root.
    pub header: Header,
    /// The accounts.
    pub alloc: BTreeMap<Address, GenesisAccount>,
}

/// An account that exists from the start; also one that is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Balance in wei.
    pub balance: U256,
    /// Nonce.
    pub nonce: u64,
    /// Code.
    pub code: Bytes,
    /// Storage; slots that are zero are as good as absent.
    pub storage: BTreeMap<H256, U256>,
}

impl Genesis {
    /// Reads geth's JSON format.
    ///
    /// Forks that are not known here, and forks in an order in which they cannot be, are errors; other properties
    /// that are not known are ignored. Numbers may be decimal or hex strings, or JSON integers of up to 256 bits.
    pub fn parse(json: &[u8]) -> Result<Self, GenesisError> {
        file::parse(json)
    }

    /// Block 0 with the state that it begins with.
    pub fn block(&self) -> ExecutedBlock {
        let header = Header { state_root: self.state_root(), ..self.header.clone() };
        let withdrawals = header.withdrawals_root.map(|_| Vec::new());
        let block = Block { header, withdrawals, ..Block::default() };
        let size = rlp::encode(&block).len() as u64;
        let header = SealedHeader {
            hash: block.header.hash(),
            total_difficulty: block.header.difficulty,
            header: block.header,
            size,
        };
        ExecutedBlock {
            header: Arc::new(header),
            body: Arc::new(Body { withdrawals: block.withdrawals, ..Body::default() }),
            receipts: Arc::default(),
            changes: Arc::new(self.changes()),
        }
    }

    /// The accounts as changes of a state that holds none.
    fn changes(&self) -> StateChanges {
        let mut changes = StateChanges::default();
        for (address, account) in &self.alloc {
            let state = AccountState { nonce: account.nonce, balance: account.balance, code_hash: account.code_hash() };
            if !account.code.is_empty() {
                changes.code.insert(state.code_hash, account.code.clone());
            }
            let storage = account.storage.iter().filter(|(_, value)| !value.is_zero());
            let storage = storage.map(|(slot, value)| (*slot, *value)).collect();
            let change = AccountChange { account: Some(state), storage_cleared: false, storage };
            changes.accounts.insert(*address, change);
        }
        changes
    }

    fn state_root(&self) -> H256 {
        let mut trie = Trie::new();
        for (address, account) in &self.alloc {
            let leaf = Account {
                nonce: account.nonce,
                balance: account.balance,
                storage_root: account.storage_root(),
                code_hash: account.code_hash(),
            };
            trie.insert(keccak256(address).as_bytes(), rlp::encode(&leaf).to_vec());
        }
        trie.root()
    }
}

impl GenesisAccount {
    fn code_hash(&self) -> H256 {
        if self.code.is_empty() { KECCAK_EMPTY } else { keccak256(&self.code) }
    }

    fn storage_root(&self) -> H256 {
        if self.storage.is_empty() {
            return EMPTY_ROOT;
        }
        let mut trie = Trie::new();
        for (slot, value) in self.storage.iter().filter(|(_, value)| !value.is_zero()) {
            trie.insert(keccak256(slot).as_bytes(), rlp::encode(value).to_vec());
        }
        trie.root()
    }
}

#[cfg(test)]
mod tests;
