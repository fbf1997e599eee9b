//! Whether a backend can read and write.

/// Failures of a backend since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendHealth {
    /// Number of changes that were refused because they could not be written.
    pub failed_writes: u64,
    /// Why changes are refused at present; `None` if they are not.
    pub write_failure: Option<String>,
    /// Number of reads that failed.
    pub failed_reads: u64,
    /// The failure of a read that would fail again; `None` if there is none. Other reads succeed.
    pub read_failure: Option<String>,
    /// Number of immutable files that have the chain, 0 if it is stored differently.
    pub files: u64,
    /// Whether such files are being merged in the background.
    pub is_merging: bool,
    /// Bytes that this has written since the start.
    pub merged_bytes: u64,
}
