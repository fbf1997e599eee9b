//! Counting the reads from another machine that a request makes, which determine how long it takes.

use std::cell::Cell;
use std::ops::AddAssign;

/// Reads from another machine, such as a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteReads {
    /// Number of ranges read.
    pub reads: u64,
    /// Number of times that the request waited: reads at the same time are one step.
    pub steps: u64,
}

/// How an endpoint on another machine was used so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointUse {
    /// Its host and port. The rest of its URL may be secret.
    pub name: String,
    /// Number of requests that were sent, also those that were repeated.
    pub requests: u64,
    /// Number of messages, of one or more requests, without a proper response.
    pub failures: u64,
    /// Length of all responses in bytes, after decompression.
    pub bytes: u64,
    /// Why the last message has no proper response. `None` if it has one, or nothing was sent yet.
    pub last_failure: Option<String>,
}

impl AddAssign for RemoteReads {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.steps += other.steps;
    }
}

thread_local! {
    static READS: Cell<RemoteReads> = const { Cell::new(RemoteReads { reads: 0, steps: 0 }) };
}

/// Records one step of `reads` reads that the work on this thread has waited for.
pub fn record_step(reads: u64) {
    let mut all = READS.get();
    all += RemoteReads { reads, steps: 1 };
    READS.set(all);
}

/// Runs `work` on this thread, and returns its result with the reads that it recorded.
///
/// # Examples
/// ```
/// use node_core::remote;
///
/// let (_, reads) = remote::reads_of(|| remote::record_step(3));
/// assert_eq!((reads.reads, reads.steps), (3, 1));
/// ```
pub fn reads_of<T>(work: impl FnOnce() -> T) -> (T, RemoteReads) {
    let outer = READS.take();
    let result = work();
    (result, READS.replace(outer))
}
