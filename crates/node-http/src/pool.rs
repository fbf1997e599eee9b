//! A fixed number of threads with a bounded queue.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How busy a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolUsage {
    pub(crate) threads: usize,
    /// Threads that run a job.
    pub(crate) busy: usize,
    /// Jobs that wait for a thread.
    pub(crate) queued: usize,
    /// Jobs refused since the start because the queue was full.
    pub(crate) refused: u64,
}

/// The queue of a pool is full.
#[derive(Debug)]
pub(crate) struct QueueFull;

/// Work for a thread of a pool.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs in the order of submission. Dropping the pool ends them once the queue is empty.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads: usize,
    queue: Mutex<Queue>,
    /// Notified when a job is queued or the pool is closed.
    ready: Condvar,
    /// Most jobs that may wait while all threads are busy.
    capacity: usize,
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    refused: u64,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads with a queue of `capacity` jobs. Each thread calls `prepare` first.
    pub(crate) fn new(name: &str, threads: usize, capacity: usize, prepare: fn()) -> io::Result<Self> {
        // Threads count as idle before they have started, so that no job is refused meanwhile.
        let queue = Queue { jobs: VecDeque::new(), idle: threads, refused: 0, closed: false };
        let shared = Arc::new(Shared { threads, queue: Mutex::new(queue), ready: Condvar::new(), capacity });
        let pool = Self { shared };
        for number in 0..threads {
            let shared = pool.shared.clone();
            thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
                prepare();
                shared.work();
            })?;
        }
        Ok(pool)
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        let queue = self.shared.lock();
        let threads = self.shared.threads;
        // Queued jobs that an idle thread is about to take count as running.
        let taken = queue.jobs.len().min(queue.idle);
        let busy = threads - queue.idle + taken;
        PoolUsage { threads, busy, queued: queue.jobs.len() - taken, refused: queue.refused }
    }

    /// Queues a job.
    ///
    /// # Errors
    /// [`QueueFull`] if all threads are busy and as many jobs wait as may.
    pub(crate) fn submit(&self, job: Job) -> Result<(), QueueFull> {
        let mut queue = self.shared.lock();
        if queue.jobs.len() >= queue.idle + self.shared.capacity {
            queue.refused += 1;
            return Err(QueueFull);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.ready.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.ready.notify_all();
    }
}

impl Shared {
    /// No job runs while the lock is held, so a poisoned queue is consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the queue is closed and empty.
    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                queue.idle -= 1;
                drop(queue);
                job();
                queue = self.lock();
                queue.idle += 1;
            } else if queue.closed {
                return;
            } else {
                queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}
