//! Genesis files in geth's JSON format: the first block and the rules of a chain.

mod config;
mod error;
mod file;
mod large;
mod networks;
mod number;
mod schedule;
mod write;

pub use error::{GenesisError, NumberError};
pub use large::LargeGenesis;
pub use networks::public_network;
pub use schedule::{ActivationPoint, ContinueError, Continued, ForkChange};

use node_core::block::{Body, ExecutedBlock, SealedHeader};
use node_core::protocol::ChainSpec;
use node_core::state::{AccountChange, AccountState, StateChanges};
use node_core::trie::sorted_root;
use node_types::consensus::{Account, Block, Header};
use node_types::{Address, Bytes, H256, KECCAK_EMPTY, U256, keccak256, keccak256_all};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// The development genesis in geth's format.
///
/// The chain id is 31337, and every upgrade that mainnet has scheduled is active from genesis. The first ten accounts of
/// the mnemonic `test test test test test test test test test test test junk` have 10,000 ether each. The system contracts
/// of EIP-4788, 2935, 7002 and 7251 are deployed, and the usual CREATE2 deployer at
/// 0x4e59b44847b379578588920cA78FbF26c0B4956C.
pub const DEV_GENESIS: &str = include_str!("dev.json");

/// Returns [`DEV_GENESIS`], parsed.
pub fn dev_genesis() -> Genesis {
    // The file is part of the program, and a test parses it.
    Genesis::parse(DEV_GENESIS.as_bytes()).expect("the built-in genesis is valid")
}

/// The start of a chain: its rules, the header of block 0 and the initial accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    pub spec: ChainSpec,
    /// The header of block 0, except for the state root, which [`Genesis::block`] adds.
    pub header: Header,
    /// The initial accounts. Empty if `state_root` is set.
    pub alloc: BTreeMap<Address, GenesisAccount>,
    /// The root of an initial state whose accounts are not in `alloc`, such as that of a [`LargeGenesis`]. In files
    /// it is the property `stateRoot`, which replaces `alloc`. A file may also have both.
    pub state_root: Option<H256>,
}

/// An initial account. It exists even if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Balance in wei.
    pub balance: U256,
    pub nonce: u64,
    pub code: Bytes,
    /// Storage. Slots whose value is zero are ignored.
    pub storage: BTreeMap<H256, U256>,
}

impl Genesis {
    /// Parses a genesis file in geth's JSON format.
    ///
    /// Unknown properties are ignored, except forks and those that differ from a known one only in case. Numbers may be
    /// decimal or hex strings, or JSON integers of up to 256 bits.
    ///
    /// # Errors
    /// Returns a [`GenesisError`] if the file is malformed, if a fork is unknown, if a key differs from a known one only
    /// in case, or if forks are missing or out of order.
    pub fn parse(json: &[u8]) -> Result<Self, GenesisError> {
        file::parse(json)
    }

    /// Encodes the genesis in geth's JSON format. [`parse`](Self::parse) decodes the same genesis from it.
    pub fn to_json(&self) -> Vec<u8> {
        write::to_json(self).to_string().into_bytes()
    }

    /// Returns block 0 with the accounts in `alloc`.
    pub fn block(&self) -> ExecutedBlock {
        let state_root = self.state_root.unwrap_or_else(|| self.root_of_accounts());
        let header = Header { state_root, ..self.header.clone() };
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
        self.alloc.iter().for_each(|(address, account)| account.add_to(&mut changes, *address));
        changes
    }

    fn root_of_accounts(&self) -> H256 {
        let addresses: Vec<&Address> = self.alloc.keys().collect();
        root(keccak256_all(&addresses).into_iter().zip(self.alloc.values().map(GenesisAccount::leaf)).collect())
    }
}

impl GenesisAccount {
    fn code_hash(&self) -> H256 {
        if self.code.is_empty() { KECCAK_EMPTY } else { keccak256(&self.code) }
    }

    /// Adds the account to changes to an empty state.
    fn add_to(&self, changes: &mut StateChanges, address: Address) {
        let state = AccountState { nonce: self.nonce, balance: self.balance, code_hash: self.code_hash() };
        if !self.code.is_empty() {
            changes.code.insert(state.code_hash, self.code.clone());
        }
        let storage = self.slots().map(|(slot, value)| (*slot, *value)).collect();
        changes.accounts.insert(address, AccountChange { account: Some(state), storage_cleared: false, storage });
    }

    /// Returns the nonzero slots.
    fn slots(&self) -> impl Iterator<Item = (&H256, &U256)> {
        self.storage.iter().filter(|(_, value)| !value.is_zero())
    }

    /// Returns the RLP of the account in the state trie.
    fn leaf(&self) -> Vec<u8> {
        let slots: Vec<&H256> = self.slots().map(|(slot, _)| slot).collect();
        let values = self.slots().map(|(_, value)| rlp::encode(value).to_vec());
        let storage_root = root(keccak256_all(&slots).into_iter().zip(values).collect());
        let account = Account { nonce: self.nonce, balance: self.balance, storage_root, code_hash: self.code_hash() };
        rlp::encode(&account).to_vec()
    }
}

/// Returns the root of the trie with these leaves, each the hash of a key and the RLP of its value.
fn root(mut leaves: Vec<(H256, Vec<u8>)>) -> H256 {
    leaves.sort_unstable();
    match sorted_root(leaves.into_iter().map(Ok::<_, Infallible>)) {
        Ok(root) => root,
    }
}

#[cfg(test)]
mod tests;
