//! The health of a backend.

/// Failures of a backend since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendHealth {
    /// Number of changes that were refused because they could not be written.
    pub failed_writes: u64,
    /// Why changes are currently refused; `None` if they are accepted.
    pub write_failure: Option<String>,
    /// Number of reads that failed.
    pub failed_reads: u64,
    /// The error of a failed read that would fail again; `None` if there is none. Other reads may succeed.
    pub read_failure: Option<String>,
    /// Number of immutable files that store the chain; 0 if the backend does not use such files.
    pub files: u64,
    /// Whether such files are being merged in the background.
    pub is_merging: bool,
    /// Bytes that merging has written since the backend was opened.
    pub merged_bytes: u64,
}
