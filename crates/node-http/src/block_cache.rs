//! A cache of serialized blocks, so that popular blocks are serialized once.
//!
//! Blocks are keyed by hash, so entries stay valid when the chain changes. `$schema` depends on the host of the request; it is
//! not cached but written for each response.

use actix_web::web::Bytes;
use node_core::caches::CacheUse;
use node_types::H256;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Rough size of a block's JSON in bytes, to estimate the number of entries.
const TYPICAL_SIZE: usize = 8 * 1_024;

/// Bytes that an entry takes besides its JSON.
const ENTRY_OVERHEAD: u64 = 128;

/// A block and the form it is serialized in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) hash: H256,
    /// Whether transactions are included in full, not only by hash.
    pub(crate) detail: bool,
}

/// The JSON of blocks after `$schema`, limited to a number of bytes.
pub(crate) struct BlockCache(Cache<BlockKey, Bytes, ByLength>);

#[derive(Clone)]
struct ByLength;

impl Weighter<BlockKey, Bytes> for ByLength {
    fn weight(&self, _key: &BlockKey, body: &Bytes) -> u64 {
        body.len() as u64 + ENTRY_OVERHEAD
    }
}

impl BlockCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Cache::with_weighter(capacity / TYPICAL_SIZE + 1, capacity as u64, ByLength))
    }

    pub(crate) fn get(&self, key: BlockKey) -> Option<Bytes> {
        self.0.get(&key)
    }

    /// Size and hit rate.
    pub(crate) fn usage(&self) -> CacheUse {
        let Self(cache) = self;
        let (bytes, capacity) = (cache.weight(), cache.capacity());
        CacheUse { name: "block_bodies", bytes, capacity, hits: cache.hits(), misses: cache.misses() }
    }

    pub(crate) fn insert(&self, key: BlockKey, body: Bytes) {
        self.0.insert(key, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_its_capacity() {
        let cache = BlockCache::new(100_000);
        let key = |number: u64| BlockKey { hash: H256::from_low_u64_be(number), detail: false };
        for number in 0..1_000 {
            cache.insert(key(number), vec![0; 1_000].into());
            assert!(cache.0.weight() <= 100_000);
        }
        let kept = (0..1_000).filter(|&number| cache.get(key(number)).is_some()).count();
        assert!((10..=88).contains(&kept), "{kept}");
        // An entry above the capacity is not stored, and evicts nothing.
        cache.insert(key(2_000), vec![0; 200_000].into());
        assert!(cache.get(key(2_000)).is_none());
        assert!(BlockCache::new(0).get(key(1)).is_none());
    }

    #[test]
    fn the_two_forms_of_a_block_are_separate_entries() {
        let cache = BlockCache::new(1 << 20);
        let [short, whole] = [false, true].map(|detail| BlockKey { hash: H256::repeat_byte(1), detail });
        cache.insert(short, Bytes::from_static(b"short"));
        assert_eq!((cache.get(short).as_deref(), cache.get(whole)), (Some(&b"short"[..]), None));
    }
}
