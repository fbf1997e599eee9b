//! Genesis files in geth's JSON format: the first block and the rules of a chain.

mod config;
mod dev;
mod error;
mod file;
mod number;
mod schedule;
mod write;

pub use dev::{DEV_GENESIS, dev_genesis};
pub use error::{GenesisError, NumberError};
pub use schedule::{ActivationPoint, ContinueError, Continued, ForkChange};

use node_core::block::{Body, ExecutedBlock, SealedHeader};
use node_core::forks::ChainSpec;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::Trie;
use node_types::consensus::{Account, Block, EMPTY_ROOT, Header};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The start of a chain: its rules, the header of block 0 and the initial accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The rules.
    pub spec: ChainSpec,
    /// The header of block 0, without the state root, which [`Genesis::block`] computes.
    pub header: Header,
    /// The initial accounts.
    pub alloc: BTreeMap<Address, GenesisAccount>,
}

/// An initial account. It exists even if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Balance in wei.
    pub balance: U256,
    /// Nonce.
    pub nonce: u64,
    /// Code.
    pub code: Bytes,
    /// Storage. Slots whose value is zero are ignored.
    pub storage: BTreeMap<H256, U256>,
}

impl Genesis {
    /// Parses a genesis file in geth's JSON format.
    ///
    /// Unknown properties other than forks are ignored. Numbers may be decimal or hex strings, or JSON integers of up to 256
    /// bits.
    ///
    /// # Errors
    /// Returns a [`GenesisError`] if the file is malformed, if a fork is unknown, or if forks are missing or out of order.
    pub fn parse(json: &[u8]) -> Result<Self, GenesisError> {
        file::parse(json)
    }

    /// Writes geth's JSON format. [`parse`](Self::parse) reads the same genesis from it.
    pub fn to_json(&self) -> Vec<u8> {
        write::to_json(self).to_string().into_bytes()
    }

    /// Returns block 0 with the initial state.
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

    /// Returns the accounts as changes to an empty state.
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
