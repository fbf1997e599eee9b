//! How well caches do, for whoever watches the node.

/// What a cache holds, and what it was asked for since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// What it keeps, in lower case with underscores between words.
    pub name: &'static str,
    /// Bytes it takes now, as it counts them.
    pub bytes: u64,
    /// Most bytes that it takes.
    pub capacity: u64,
    /// How often it had what was asked for.
    pub hits: u64,
    /// How often it had not.
    pub misses: u64,
}
