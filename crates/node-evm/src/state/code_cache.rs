//! A cache of analyzed code by code hash.

use node_core::backend::CacheUse;
use node_core::collecting;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use revm::bytecode::Bytecode;
use revm::primitives::{B256, Bytes};

/// Analyzed code, shared by blocks and calls and bounded in memory. Entries never become stale, because the key is
/// the hash of the code.
#[derive(Debug)]
pub(crate) struct CodeCache(Cache<B256, Bytecode, Memory>);

impl CodeCache {
    /// Creates a cache of about `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        const TYPICAL_CODE: u64 = 8 * 1024;
        let items = usize::try_from(capacity / TYPICAL_CODE).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(items, capacity, Memory))
    }

    /// Returns the code with this hash, or `None` if it is not cached.
    pub(crate) fn get(&self, hash: &B256) -> Option<Bytecode> {
        self.0.get(hash)
    }

    /// Returns the size of the cache and its hits and misses.
    pub(crate) fn usage(&self) -> CacheUse {
        let Self(cache) = self;
        CacheUse {
            name: "analyzed_code",
            bytes: cache.weight(),
            capacity: cache.capacity(),
            hits: cache.hits(),
            misses: cache.misses(),
        }
    }

    /// Analyzes `code`, caches it under `hash` and returns it. It is not cached if it may be lacking, and so read as empty.
    pub(crate) fn insert(&self, hash: B256, code: Bytes) -> Bytecode {
        let code = analyze(code);
        if !collecting::lacks_something() {
            self.0.insert(hash, code.clone());
        }
        code
    }
}

/// Finds the jump destinations of `code`. Code that starts like a delegation (EIP-7702) but is not one is treated as
/// ordinary code; such code could be deployed before London (EIP-3541).
pub(crate) fn analyze(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// Weighs code by its size in memory.
#[derive(Clone, Debug)]
struct Memory;

impl Weighter<B256, Bytecode> for Memory {
    fn weight(&self, _hash: &B256, code: &Bytecode) -> u64 {
        // The code, one bit per byte for the jump destinations, and a fixed overhead.
        let length = code.bytes_slice().len() as u64;
        length + length / 8 + 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_resembles_a_delegation_is_ordinary_code() {
        let delegation = [&[0xef, 0x01, 0x00][..], &[0x11; 20]].concat();
        for (code, is_delegation) in [
            (delegation.clone(), true),
            (delegation[..22].to_vec(), false),
            (vec![0xef, 0x01, 0x01], false),
            (vec![], false),
        ] {
            assert_eq!(analyze(code.clone().into()).is_eip7702(), is_delegation, "{code:02x?}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let cache = CodeCache::new(1 << 20);
        for n in 0..1000_u32 {
            let mut code = vec![0x5b; 24 * 1024];
            code[..4].copy_from_slice(&n.to_be_bytes());
            cache.insert(revm::primitives::keccak256(&code), code.into());
        }
        assert!(cache.0.weight() <= 1 << 20, "{} bytes", cache.0.weight());
        assert!(!cache.0.is_empty());
    }

    #[test]
    fn counts_hits_and_misses() {
        let cache = CodeCache::new(1 << 20);
        let hash = B256::repeat_byte(1);
        assert!(cache.get(&hash).is_none());
        cache.insert(hash, vec![0x5b; 1_000].into());
        for _ in 0..3 {
            assert!(cache.get(&hash).is_some());
        }
        let usage = cache.usage();
        assert_eq!((usage.hits, usage.misses, usage.capacity), (3, 1, 1 << 20));
        assert!(usage.bytes > 1_000, "{usage:?}");
    }
}
