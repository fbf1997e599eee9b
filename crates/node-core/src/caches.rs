//! Statistics of caches, for monitoring.

/// The size of a cache, and the number of lookups since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What is cached, in lower case with underscores between words.
    pub name: &'static str,
    /// Bytes in use, by the cache's own count.
    pub bytes: u64,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found no entry.
    pub misses: u64,
}
