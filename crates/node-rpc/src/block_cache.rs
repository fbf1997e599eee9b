//! A cache of serialized blocks, so that popular blocks are serialized only once.
//!
//! Blocks are keyed by hash, so entries stay valid when the chain changes.

use node_core::backend::CacheUse;
use node_types::H256;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// Rough size of a block's JSON in bytes, from which the number of entries is estimated.
const TYPICAL_SIZE: usize = 8 * 1_024;

/// Bytes that an entry takes besides its JSON.
const ENTRY_OVERHEAD: u64 = 128;

/// A block and the format in which it is serialized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockKey {
    pub hash: H256,
    /// Whether transactions are included in full rather than by hash.
    pub whole: bool,
    /// The interface in whose format the block is.
    pub interface: Interface,
}

/// An interface that serializes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    Rpc,
    /// The interface of the transport, such as REST.
    Transport,
}

/// The JSON of blocks in all formats, limited to a number of bytes.
pub struct BlockCache(Cache<BlockKey, Arc<[u8]>, ByLength>);

#[derive(Clone)]
struct ByLength;

impl Weighter<BlockKey, Arc<[u8]>> for ByLength {
    fn weight(&self, _key: &BlockKey, body: &Arc<[u8]>) -> u64 {
        body.len() as u64 + ENTRY_OVERHEAD
    }
}

impl BlockCache {
    /// Creates a cache of `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self(Cache::with_weighter(capacity / TYPICAL_SIZE + 1, capacity as u64, ByLength))
    }

    /// Returns the JSON of a block, or `None` if it is not in the cache.
    pub fn get(&self, key: BlockKey) -> Option<Arc<[u8]>> {
        self.0.get(&key)
    }

    /// Returns the statistics of the cache.
    pub fn usage(&self) -> CacheUse {
        let Self(cache) = self;
        let (bytes, capacity) = (cache.weight(), cache.capacity());
        CacheUse { name: "block_bodies", bytes, capacity, hits: cache.hits(), misses: cache.misses() }
    }

    /// Stores the JSON of a block, unless it is longer than the cache.
    pub fn insert(&self, key: BlockKey, body: &[u8]) {
        if (body.len() as u64) < self.0.capacity() {
            self.0.insert(key, body.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_its_capacity() {
        let cache = BlockCache::new(100_000);
        let key =
            |number: u64| BlockKey { hash: H256::from_low_u64_be(number), whole: false, interface: Interface::Rpc };
        for number in 0..1_000 {
            cache.insert(key(number), &[0; 1_000]);
            assert!(cache.0.weight() <= 100_000);
        }
        let kept = (0..1_000).filter(|&number| cache.get(key(number)).is_some()).count();
        assert!((10..=88).contains(&kept), "{kept}");
        // An entry above the capacity is not stored, and evicts nothing.
        cache.insert(key(2_000), &[0; 200_000]);
        assert!(cache.get(key(2_000)).is_none());
        assert!(BlockCache::new(0).get(key(1)).is_none());
    }

    #[test]
    fn the_forms_of_a_block_are_separate_entries() {
        let cache = BlockCache::new(1 << 20);
        let short = BlockKey { hash: H256::repeat_byte(1), whole: false, interface: Interface::Rpc };
        cache.insert(short, b"short");
        assert_eq!(cache.get(short).as_deref(), Some(&b"short"[..]));
        assert_eq!(cache.get(BlockKey { whole: true, ..short }), None);
        assert_eq!(cache.get(BlockKey { interface: Interface::Transport, ..short }), None);
    }
}
