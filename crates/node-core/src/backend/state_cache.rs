//! A cache of accounts and slots of one state.

use super::{AccountProof, BackendError, StateView};
use crate::collecting;
use crate::state::{AccountState, StateChanges};
use node_types::{Address, Bytes, H256, U256};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Caches the accounts and slots of one state that were recently read or changed, for executing consecutive blocks of
/// a chain.
///
/// [`LayeredView::with_cache`](super::LayeredView::with_cache) reads through it, and [`advance`](Self::advance) turns
/// it into the cache of the next state. Data that consecutive blocks share, such as the slots of system contracts, is
/// therefore read from the backend only once.
#[derive(Debug, Default)]
pub struct StateCache(Mutex<Known>);

/// Maximum number of accounts and slots that are kept for the next block, each of about 100 bytes.
const MAX_KNOWN: usize = 100_000;

#[derive(Debug, Default)]
struct Known {
    /// The block whose state (after its execution) is cached. `None` if the cache is empty.
    block: Option<H256>,
    /// `None` if there is no such account.
    accounts: HashMap<Address, Option<AccountState>>,
    slots: HashMap<Address, HashMap<H256, U256>>,
    /// Number of accounts and slots.
    count: usize,
}

impl Known {
    fn insert_account(&mut self, address: Address, account: Option<AccountState>) {
        self.count += usize::from(self.accounts.insert(address, account).is_none());
    }

    fn insert_slot(&mut self, address: Address, slot: H256, value: U256) {
        let slots = self.slots.entry(address).or_default();
        self.count += usize::from(slots.insert(slot, value).is_none());
    }
}

impl StateCache {
    /// Empties the cache.
    pub fn clear(&self) {
        *self.0.lock() = Known::default();
    }

    /// Makes this the cache of the state after `block`. Empties it if it is the cache of another state, or too large.
    pub(super) fn begin(&self, block: H256) {
        let known = &mut *self.0.lock();
        if known.block != Some(block) || known.count > MAX_KNOWN {
            *known = Known { block: Some(block), ..Known::default() };
        }
    }

    /// Applies the changes that `block` made to the cached state. Afterwards this is the cache of the state after
    /// `block`.
    pub fn advance(&self, block: H256, changes: &StateChanges) {
        let known = &mut *self.0.lock();
        known.block = Some(block);
        for (address, change) in &changes.accounts {
            known.insert_account(*address, change.account);
            if change.clears_storage() {
                known.count -= known.slots.remove(address).map_or(0, |slots| slots.len());
            }
            for (slot, value) in &change.storage {
                known.insert_slot(*address, *slot, *value);
            }
        }
    }
}

/// A state whose accounts and slots are read through a cache of that state.
pub(super) struct CachedState<'a> {
    pub(super) state: Box<dyn StateView + 'a>,
    pub(super) cache: &'a StateCache,
}

impl StateView for CachedState<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        if let Some(account) = self.cache.0.lock().accounts.get(&address) {
            return Ok(*account);
        }
        let account = self.state.account(address)?;
        if !collecting::lacks_something() {
            self.cache.0.lock().insert_account(address, account);
        }
        Ok(account)
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        if let Some(value) = self.cache.0.lock().slots.get(&address).and_then(|slots| slots.get(&slot)) {
            return Ok(*value);
        }
        let value = self.state.storage(address, slot)?;
        if !collecting::lacks_something() {
            self.cache.0.lock().insert_slot(address, slot, value);
        }
        Ok(value)
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        self.state.has_storage(address)
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        self.state.code(hash)
    }

    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        self.state.proof(address, slots)
    }

    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        self.state.root_after(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::suite::Random;
    use crate::backend::{LayeredView, MemoryBackend, StateBackend, View};
    use std::sync::Arc;

    #[test]
    fn the_cache_of_every_block_returns_the_state_as_of_it() {
        for seed in 0..20 {
            let mut random = Random(seed);
            let chain = random.chain(30);
            let backend = MemoryBackend::new(chain.blocks()[0].clone()).unwrap();
            let cache = Arc::<StateCache>::default();
            let mut layers = Vec::new();
            for block in chain.above(0) {
                cache.advance(block.header.hash, &block.changes);
                layers.push(block);
                if random.once_in(4) {
                    layers.drain(..).for_each(|block| backend.append(block).unwrap());
                }
                if random.once_in(12) {
                    cache.clear();
                }
                let base = backend.view().unwrap();
                let number = base.head().number + layers.len() as u64;
                let plain = LayeredView::new(Arc::clone(&base), base.head().number, layers.clone()).unwrap();
                let cached = LayeredView::new(Arc::clone(&base), base.head().number, layers.clone()).unwrap();
                let cached = cached.with_cache(Arc::clone(&cache));
                let (expected, state) = (plain.state(number).unwrap(), cached.state(number).unwrap());
                // Not all of them, so that some are read for the first time in later blocks; twice, so that some are
                // known.
                for _ in 0..20 {
                    let (address, slot) = (random.address(), random.slot());
                    assert_eq!(state.account(address).unwrap(), expected.account(address).unwrap(), "seed {seed}");
                    let value = expected.storage(address, slot).unwrap();
                    assert_eq!(state.storage(address, slot).unwrap(), value, "seed {seed}, block {number}");
                }
                let known = cache.0.lock();
                assert_eq!(known.block, Some(cached.head().hash));
                let slots: usize = known.slots.values().map(HashMap::len).sum();
                assert_eq!(known.count, known.accounts.len() + slots);
            }
        }
    }
}
