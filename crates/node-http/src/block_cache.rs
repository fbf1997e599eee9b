//! Blocks as they are sent, so that one that is asked for often is written once.
//!
//! A block is kept under its hash, and so is the same whatever the chain does. `$schema` depends on the host that a client
//! names, and is written anew for each answer.

use actix_web::web::Bytes;
use node_core::caches::CacheUse;
use node_types::H256;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// A rough size of a block's JSON in bytes, from which the number of blocks to make room for is estimated.
const USUAL: usize = 8 * 1_024;

/// What a block takes besides its bytes.
const OVERHEAD: u64 = 128;

/// Which block, in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    pub(crate) hash: H256,
    /// Whether with whole transactions.
    pub(crate) detail: bool,
}

/// The answers' bytes from behind `$schema` on, bounded in bytes.
pub(crate) struct BlockCache(Cache<BlockKey, Bytes, ByLength>);

#[derive(Clone)]
struct ByLength;

impl Weighter<BlockKey, Bytes> for ByLength {
    fn weight(&self, _key: &BlockKey, body: &Bytes) -> u64 {
        body.len() as u64 + OVERHEAD
    }
}

impl BlockCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self(Cache::with_weighter(capacity / USUAL + 1, capacity as u64, ByLength))
    }

    pub(crate) fn get(&self, key: BlockKey) -> Option<Bytes> {
        self.0.get(&key)
    }

    /// How well it does.
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
    fn it_is_bounded_in_bytes() {
        let cache = BlockCache::new(100_000);
        let key = |number: u64| BlockKey { hash: H256::from_low_u64_be(number), detail: false };
        for number in 0..1_000 {
            cache.insert(key(number), vec![0; 1_000].into());
            assert!(cache.0.weight() <= 100_000);
        }
        let kept = (0..1_000).filter(|&number| cache.get(key(number)).is_some()).count();
        assert!((10..=88).contains(&kept), "{kept}");
        // What is larger than all the room is not kept, and throws nothing out that is.
        cache.insert(key(2_000), vec![0; 200_000].into());
        assert!(cache.get(key(2_000)).is_none());
        assert!(BlockCache::new(0).get(key(1)).is_none());
    }

    #[test]
    fn forms_are_kept_apart() {
        let cache = BlockCache::new(1 << 20);
        let [short, whole] = [false, true].map(|detail| BlockKey { hash: H256::repeat_byte(1), detail });
        cache.insert(short, Bytes::from_static(b"short"));
        assert_eq!((cache.get(short).as_deref(), cache.get(whole)), (Some(&b"short"[..]), None));
    }
}
