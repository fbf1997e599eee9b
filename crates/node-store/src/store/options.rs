//! Options of a store.

#[cfg(doc)]
use super::Store;
use crate::wal::WalOptions;
use node_types::BlockNumber;
use std::time::Duration;

/// Options for opening a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Total size of all caches in bytes.
    pub cache_bytes: usize,
    /// When changes become durable. [`Store::set_sync_policy`] changes it later.
    pub sync: SyncPolicy,
    /// Number of rows that are moved to runs at once. Up to twice as many are in memory.
    pub commit_rows: usize,
    /// Minimum number of the newest blocks that stay in memory, unless `memory_bytes` is exceeded.
    pub blocks_in_memory: BlockNumber,
    /// Maximum size in bytes of the blocks and records that are moved to runs at once, even if they are few rows.
    pub memory_bytes: usize,
    /// Whether runs are merged, which limits the number of runs that a read searches. Merging writes stored data
    /// again several times.
    pub merge: bool,
    /// After a failed write, the time between two attempts to write again.
    pub retry: Duration,
    /// Whether [`Store::publish`] will be called. Entries of the log are then kept until the shared store has them.
    pub publish: bool,
    /// Options of the write-ahead log.
    pub log: WalOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            sync: SyncPolicy::Always,
            // Replacing blocks copies the rows in memory, so there must not be many.
            commit_rows: 20_000,
            blocks_in_memory: 128,
            memory_bytes: 64 << 20,
            merge: true,
            retry: Duration::from_secs(1),
            publish: false,
            // The log is dropped in whole segments, so with small ones there is less to read at startup.
            log: WalOptions { segment_bytes: 16 << 20, ..WalOptions::default() },
        }
    }
}

impl Options {
    /// Returns the default options for an import. It can be repeated, so its blocks need not be durable at once; and it
    /// rarely replaces blocks, so more rows are moved to runs at once, and fewer runs are merged.
    pub fn for_import() -> Self {
        Self { sync: SyncPolicy::OnDemand, commit_rows: 100_000, ..Self::default() }
    }

    /// Returns the default options of a store in memory.
    ///
    /// Runs take a fraction of the memory that their rows would take, so rows are moved to runs early. This also
    /// makes removing blocks cheap, because it copies the rows that are not in runs.
    pub fn in_memory() -> Self {
        Self {
            commit_rows: 5_000,
            memory_bytes: 8 << 20,
            sync: SyncPolicy::OnDemand,
            log: WalOptions { buffer_bytes: 64 << 10, ..WalOptions::default() },
            ..Self::default()
        }
    }

    /// Returns the size of the cache of runs in bytes.
    pub(super) fn run_cache_bytes(&self) -> u64 {
        self.cache_bytes as u64 / 8 * 5
    }
}

/// When changes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before they are acknowledged.
    Always,
    /// When [`Store::sync`] returns. Meant for imports, which can be repeated. A crash before that loses only the
    /// newest changes, without gaps.
    OnDemand,
}
