//! The cache of blocks, filters and indexes of all runs of a store, bounded in bytes.

use super::format::RunId;
use node_core::backend::CacheUse;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::io;
use std::sync::Arc;

/// Contents of frames by run and offset. They never change, so entries are never invalidated.
pub(crate) struct FrameCache(Cache<(RunId, u64), Arc<[u8]>, Bytewise>);

/// Bytes of an entry without its content.
const ENTRY: u64 = 96;

#[derive(Clone)]
struct Bytewise;

impl Weighter<(RunId, u64), Arc<[u8]>> for Bytewise {
    fn weight(&self, _key: &(RunId, u64), content: &Arc<[u8]>) -> u64 {
        let bytes = content.len() as u64;
        // The allocator's sizes are up to an eighth apart.
        bytes + bytes / 8 + ENTRY
    }
}

impl FrameCache {
    /// Creates a cache of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Cache::with_weighter((bytes >> 13) as usize, bytes, Bytewise))
    }

    /// Returns the statistics of the cache.
    pub(crate) fn usage(&self) -> CacheUse {
        let Self(cache) = self;
        CacheUse {
            name: "pages",
            bytes: cache.weight(),
            capacity: cache.capacity(),
            hits: cache.hits(),
            misses: cache.misses(),
        }
    }

    /// Removes the entries of runs that no longer exist.
    pub(crate) fn forget(&self, exists: impl Fn(RunId) -> bool) {
        self.0.retain(|(run, _), _| exists(*run));
    }

    /// Returns the content of a frame if it is cached.
    pub(super) fn get(&self, place: (RunId, u64)) -> Option<Arc<[u8]>> {
        self.0.get(&place)
    }

    pub(super) fn insert(&self, place: (RunId, u64), content: Arc<[u8]>) {
        self.0.insert(place, content);
    }

    /// Returns the content of a frame. If it is not cached, calls `read`, and caches the result if `keep` is set.
    pub(super) fn get_or(
        &self,
        place: (RunId, u64),
        keep: bool,
        read: impl FnOnce() -> io::Result<Arc<[u8]>>,
    ) -> io::Result<Arc<[u8]>> {
        if let Some(content) = self.get(place) {
            return Ok(content);
        }
        let content = read()?;
        if keep {
            self.insert(place, Arc::clone(&content));
        }
        Ok(content)
    }
}
