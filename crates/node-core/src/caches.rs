//! Use of caches, for monitoring.

/// Contents of a cache, and lookups since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What it caches, in lower case with underscores between words.
    pub name: &'static str,
    /// Bytes in use, by the cache's own count.
    pub bytes: u64,
    /// Capacity in bytes.
    pub capacity: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
}
