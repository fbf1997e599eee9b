//! The health of a backend, and statistics of caches, for monitoring.

use std::time::Duration;

/// Failures of a backend since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendHealth {
    /// Number of changes that were refused because they could not be written.
    pub failed_writes: u64,
    /// Why changes are currently refused; `None` if they are accepted.
    pub write_failure: Option<String>,
    pub failed_reads: u64,
    /// The error of a failed read that would fail again; `None` if there is none. Other reads may succeed.
    pub read_failure: Option<String>,
    /// Number of immutable files that store the chain; 0 if the backend does not use such files.
    pub files: u64,
    /// Whether such files are being merged in the background.
    pub is_merging: bool,
    /// If another process writes the chain: the time since everything that was durable then was visible here.
    pub lag: Option<Duration>,
    /// Bytes that merging has written since the backend was opened.
    pub merged_bytes: u64,
    /// Bytes of the files that are being merged, or will be merged next. This much space must be free, because they are
    /// removed only after they are merged. 0 if there is nothing to merge.
    pub next_merge_bytes: u64,
    /// If the backend publishes the chain to a store that many servers share: how that goes.
    pub publication: Option<PublicationHealth>,
    /// Requests to the store that many servers share, if the chain is read from there or published there.
    pub requests: Option<RequestUse>,
    /// Number of immutable files of that store whose indexes have yet to be read into a cache, if the chain is read from there.
    pub cold_files: u64,
}

/// How the chain is published to a store that many servers share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationHealth {
    /// The number of this writer. Each one has a higher number than those before it.
    pub epoch: u64,
    /// How long the oldest durable change that is not in the shared store has waited; 0 if there is none.
    pub lag: Duration,
    /// Number of durable changes that are not in the shared store.
    pub lag_entries: u64,
    /// Their size in bytes.
    pub lag_bytes: u64,
    /// Changes that were added to the shared store since the backend was opened.
    pub published_entries: u64,
    /// Bytes of immutable files that are left to upload, if there are many.
    pub uploading_bytes: u64,
    /// Bytes of immutable files that were uploaded since the backend was opened.
    pub uploaded_bytes: u64,
    /// Whether this process takes no changes any longer, because it is no longer the writer.
    pub has_ended: bool,
    /// Why the shared store is behind or cannot be written; `None` if it is not more than a few seconds behind.
    pub failure: Option<String>,
}

/// Requests to a store that many servers share, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestUse {
    /// Requests that read objects or parts of them, sizes, or a part of a listing.
    pub reads: u64,
    pub read_bytes: u64,
    /// Requests that create, upload or delete objects.
    pub writes: u64,
    pub written_bytes: u64,
    /// Requests that failed. Most are repeated.
    pub failures: u64,
}

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
