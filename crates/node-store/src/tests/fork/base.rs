//! The state of a generated chain as a base of which only what was fetched is known.

use node_core::backend::suite::{ModelAccount, ModelState, Random};
use node_core::backend::{BackendError, BaseRead, BaseState};
use node_core::collecting;
use node_core::trie::{Found, NibblePath, Trie, find};
use node_types::consensus::{Account, EMPTY_ROOT};
use node_types::{Address, Bytes, H256, U256, keccak256};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A clone has the same content.
#[derive(Clone)]
pub(crate) struct TestBase {
    accounts: Trie,
    storage: BTreeMap<Address, Trie>,
    /// All nodes by their hashes.
    nodes: Arc<HashMap<H256, Bytes>>,
    codes: BTreeMap<H256, Bytes>,
    known: Arc<Mutex<Known>>,
}

/// What is known, and how it became known.
#[derive(Default)]
pub(crate) struct Known {
    nodes: HashMap<H256, Bytes>,
    pub(crate) fetches: u64,
    /// Number of reads of accounts and slots.
    pub(crate) reads: u64,
    pub(crate) resolved: u64,
    /// If it is set, about one in this many fetches fails.
    pub(crate) fails: Option<(u64, Random)>,
    pub(crate) failures: u64,
    /// Whether what is not known cannot be had.
    pub(crate) offline: bool,
    /// Whether no key leads to a node below which none is known.
    pub(crate) unresolvable: bool,
}

impl std::fmt::Debug for TestBase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#x}", self.root())
    }
}

impl TestBase {
    /// Returns a base with this state, of which nothing is known.
    pub(crate) fn new(state: &ModelState, codes: BTreeMap<H256, Bytes>) -> Self {
        let slots = |model: &ModelAccount| -> Trie {
            model.storage.iter().map(|(slot, value)| (keccak256(slot), rlp::encode(value).to_vec())).collect()
        };
        let leaf = |(address, model): (_, &ModelAccount)| {
            (keccak256(address), rlp::encode(&model.with_storage_root()).to_vec())
        };
        let accounts: Trie = state.iter().map(leaf).collect();
        let storage: BTreeMap<_, _> = state.iter().map(|(address, model)| (*address, slots(model))).collect();
        let keys: Vec<H256> = state.keys().map(keccak256).collect();
        let mut nodes = all_nodes(&accounts, &keys);
        for (address, trie) in &storage {
            let keys: Vec<H256> = state[address].storage.keys().map(keccak256).collect();
            nodes.extend(all_nodes(trie, &keys));
        }
        Self { accounts, storage, nodes: nodes.into(), codes, known: Arc::default() }
    }

    /// Returns a base with one account, whose storage trie has these leaves.
    pub(crate) fn of_storage(account: Address, leaves: &BTreeMap<H256, Bytes>) -> Self {
        let trie: Trie = leaves.iter().map(|(key, value)| (*key, value.clone())).collect();
        let keys: Vec<H256> = leaves.keys().copied().collect();
        let nodes = all_nodes(&trie, &keys).into();
        Self {
            accounts: Trie::new(),
            storage: [(account, trie)].into(),
            nodes,
            codes: BTreeMap::new(),
            known: Arc::default(),
        }
    }

    pub(crate) fn known(&self) -> parking_lot::MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// Makes the nodes on the path to a leaf known.
    pub(crate) fn learn(&self, account: Option<Address>, leaf: H256) {
        let trie = account.map_or(Some(&self.accounts), |account| self.storage.get(&account));
        let proof = trie.map(|trie| trie.prove(leaf.as_bytes())).unwrap_or_default();
        self.known.lock().nodes.extend(proof.into_iter().map(|node| (keccak256(&node), node)));
    }

    fn find(&self, root: H256, key: H256) -> Found {
        let known = self.known.lock();
        find::<node_core::trie::MalformedNode>(root, key, |hash| Ok(known.nodes.get(&hash).cloned())).unwrap()
    }

    /// Returns a leaf, or `None` if it does not exist, or is not known in a run whose result will be discarded.
    fn read(&self, root: H256, key: H256, address: Address, slot: Option<H256>) -> Result<Option<Bytes>, BackendError> {
        self.known.lock().reads += 1;
        loop {
            match self.find(root, key) {
                Found::Value(value) => return Ok(Some(value)),
                Found::Absent => return Ok(None),
                Found::Unknown { .. } => {}
            }
            if collecting::record(self.root(), || Arc::new(self.clone()), address, slot) {
                return Ok(None);
            }
            self.fetch(&[BaseRead { address, slots: slots_of(slot) }])?;
        }
    }

    fn lacks(&self, BaseRead { address, slots }: &BaseRead) -> bool {
        let lacks = |root, key| matches!(self.find(root, key), Found::Unknown { .. });
        let storage = self.storage.get(address).map_or(EMPTY_ROOT, Trie::root);
        lacks(self.root(), keccak256(address)) || slots.iter().any(|slot| lacks(storage, keccak256(slot)))
    }

    fn fail(&self) -> Result<(), BackendError> {
        let known = &mut *self.known.lock();
        if known.offline {
            return Err(BackendError::Unobtainable("offline".into()));
        }
        known.fetches += 1;
        if known.fails.as_mut().is_some_and(|(times, random)| random.once_in(*times)) {
            known.failures += 1;
            return Err(BackendError::Upstream("injected".into()));
        }
        Ok(())
    }
}

fn slots_of(slot: Option<H256>) -> Vec<H256> {
    slot.into_iter().collect()
}

fn all_nodes(trie: &Trie, keys: &[H256]) -> HashMap<H256, Bytes> {
    keys.iter().flat_map(|key| trie.prove(key.as_bytes())).map(|node| (keccak256(&node), node)).collect()
}

impl BaseState for TestBase {
    fn root(&self) -> H256 {
        self.accounts.root()
    }

    fn account(&self, address: Address) -> Result<Option<Account>, BackendError> {
        let value = self.read(self.root(), keccak256(address), address, None)?;
        Ok(value.map(|value| rlp::decode(&value).unwrap()))
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        let account = self.read(self.root(), keccak256(address), address, Some(slot))?;
        let Some(account) = account else { return Ok(U256::zero()) };
        let account: Account = rlp::decode(&account).unwrap();
        let value = self.read(account.storage_root, keccak256(slot), address, Some(slot))?;
        Ok(value.map_or_else(U256::zero, |value| rlp::decode(&value).unwrap()))
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        Ok(self.codes.get(&hash).cloned())
    }

    fn note_read(&self, _: Address, _: Option<H256>) -> Result<(), BackendError> {
        Ok(())
    }

    fn fetch(&self, reads: &[BaseRead]) -> Result<(), BackendError> {
        if !reads.iter().any(|read| self.lacks(read)) {
            return Ok(());
        }
        self.fail()?;
        for BaseRead { address, slots } in reads {
            self.learn(None, keccak256(address));
            slots.iter().for_each(|slot| self.learn(Some(*address), keccak256(slot)));
        }
        Ok(())
    }

    fn node(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        Ok(self.known.lock().nodes.get(&hash).cloned())
    }

    fn resolve(&self, _: Option<Address>, position: &NibblePath, hash: H256) -> Result<Bytes, BackendError> {
        self.fail()?;
        let known = &mut *self.known.lock();
        if known.unresolvable {
            return Err(BackendError::Unobtainable(format!("no key leads to {hash:#x}").into()));
        }
        known.resolved += 1;
        let node = self.nodes.get(&hash).unwrap_or_else(|| panic!("no node {hash:#x} at {position:?}"));
        known.nodes.insert(hash, node.clone());
        Ok(node.clone())
    }
}
