//! How much is kept, and how long anything may take.

use std::time::Duration;

/// Limits of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkOptions {
    /// Maximum size in bytes of what was fetched and is kept in the folder, or in memory if there is none. More is only
    /// cached.
    pub contents_bytes: u64,
    /// Memory in bytes for copies of what was fetched.
    pub cache_bytes: u64,
    /// Memory in bytes for accounts and slots that were read.
    pub state_bytes: u64,
    /// Memory in bytes for blocks and receipts from before the fork.
    pub history_bytes: u64,
    /// Time limit of everything that is fetched at once, including all attempts.
    pub timeout: Duration,
    /// Time limit of the search for a key that leads to a trie node.
    pub search_timeout: Duration,
    /// Whether accounts and slots are fetched without proofs, for upstreams that have none. What was proven before is not
    /// used, and neither state roots nor proofs can be computed.
    pub trusts: bool,
}

impl Default for ForkOptions {
    fn default() -> Self {
        Self {
            contents_bytes: 16 << 30,
            cache_bytes: 64 << 20,
            state_bytes: 32 << 20,
            history_bytes: 64 << 20,
            // Enough for the attempts that an upstream makes by default, unless its endpoints do not respond at all.
            timeout: Duration::from_secs(60),
            search_timeout: Duration::from_secs(60),
            trusts: false,
        }
    }
}
