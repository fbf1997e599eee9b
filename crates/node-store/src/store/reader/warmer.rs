//! Reading indexes and filters of new runs in the background.

use crate::runs::{Run, RunsShared};
use crate::shared::RunReads;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// A thread that reads the indexes and filters of runs into the cache on disk, or, if there is none, into that in memory;
/// as far as half of it suffices. The smallest runs come first: a search reads those of every run.
pub(super) struct Warmer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
    /// Set when there is other work, or none any longer.
    stop: AtomicBool,
    /// The number of runs that are yet to be read.
    cold: Arc<AtomicU64>,
}

#[derive(Default)]
struct Work {
    runs: Option<Vec<Arc<Run>>>,
    cache: u64,
    ended: bool,
}

impl Warmer {
    /// Starts the thread. `reads` is how it reads.
    pub(super) fn start(reads: &Arc<RunReads>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (of_thread, reads) = (Arc::clone(&shared), Arc::downgrade(reads));
        let thread = thread::Builder::new().name("store-warmer".to_owned()).spawn(move || of_thread.run(&reads))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the number of runs that are yet to be read.
    pub(super) fn cold(&self) -> &Arc<AtomicU64> {
        &self.shared.cold
    }

    /// Begins to read those of `runs`, instead of others.
    pub(super) fn warm(&self, runs: Vec<Arc<Run>>, caches: &RunsShared) {
        let mut work = self.shared.work.lock();
        self.shared.cold.store(runs.len() as u64, Ordering::Relaxed);
        work.runs = Some(runs);
        work.cache = caches.cache.usage().capacity;
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }
}

impl Drop for Warmer {
    fn drop(&mut self) {
        self.shared.work.lock().ended = true;
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Sets the number of runs that are yet to be read, unless there is other work.
    fn count(&self, cold: u64) {
        let work = self.work.lock();
        if work.runs.is_none() {
            self.cold.store(cold, Ordering::Relaxed);
        }
    }

    fn run(&self, reads: &Weak<RunReads>) {
        // The bytes of the runs that were read completely.
        let mut warm = HashMap::new();
        loop {
            let (mut runs, cache) = {
                let mut work = self.work.lock();
                let runs = loop {
                    if work.ended {
                        return;
                    }
                    match work.runs.take() {
                        Some(runs) => break runs,
                        None => self.changed.wait(&mut work),
                    }
                };
                self.stop.store(false, Ordering::Relaxed);
                (runs, work.cache)
            };
            let Some(disk) = reads.upgrade().map(|reads| reads.disk_usage()) else { return };
            let capacity = disk.map_or(cache, |disk| disk.capacity);
            let mut left = i64::try_from(capacity / 2).unwrap_or(i64::MAX);
            runs.sort_unstable_by_key(|run| run.size());
            warm.retain(|id, _| runs.iter().any(|run| run.id() == *id));
            let mut cold = runs.len() as u64;
            for run in runs {
                self.count(cold);
                cold -= 1;
                if let Some(bytes) = warm.get(&run.id()) {
                    left -= bytes;
                    continue;
                }
                let counter = AtomicI64::new(left);
                // What cannot be read now is read when it is needed.
                let is_warm = run.warm(disk.is_none(), &counter, &self.stop).unwrap_or(false);
                let rest = counter.into_inner();
                if is_warm {
                    warm.insert(run.id(), left - rest);
                }
                left = rest;
                if left <= 0 || self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            // The others do not fit into the cache.
            self.count(0);
        }
    }
}
