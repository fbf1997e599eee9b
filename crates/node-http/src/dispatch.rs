//! Decides on which thread work runs.
//!
//! Reads of a few microseconds run where the request arrived: handing them over would cost more than they do.
//! Everything that can be long goes to one of two pools of threads for the whole server. A thread of a pool is a
//! permit: it is taken by the work and not by the request, so that clients who leave cannot start more work than there
//! are threads. Searches for logs are short as a rule and can be long: they begin where the request arrived, and those
//! that take longer than a slice of time begin again in a pool.
//!
//! Code that clients name costs as much time as they like. It has a pool of its own, whose threads have a low
//! scheduling priority: calls without end take the processor time that nothing else wants, and neither reads nor
//! transactions, filters and blocks wait behind them.

use crate::config::HttpConfig;
use crate::priority;
use crate::problem::HttpError;
use node_core::context::{Context, Interrupted};
use node_core::node::{FeeHistory, NodeError};
use node_types::wire::{FeeHistoryInput, GetBlockByHashInput, GetBlockByNumberInput, GetLogsInput};
use node_types::{BlockId, BlockNumberOrTag};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// Bodies longer than this, in bytes, are decoded in the pool.
const SHORT_BODY: usize = 64 * 1024;

/// More slots than these are proven in the pool.
const SHORT_PROOF: usize = 4;

/// How long other requests of the thread may wait for work that turns out to be long: many times what a rare log takes,
/// and little beside what the pool is for.
const SLICE: Duration = Duration::from_micros(300);

/// Where work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the thread that the request arrived on: a few microseconds.
    Here,
    /// The same, but if it takes longer than [`SLICE`], it begins again in the pool. It has to look at its context.
    HereBriefly,
    /// In the pool: it may take long.
    Pool,
    /// In the pool for code: calls, and what shows the pending block.
    Code,
}

impl Place {
    /// Where to read from the block `block`: to assemble the pending one runs code.
    pub(crate) fn reading<B: Copy + Into<BlockId>>(block: &B) -> Self {
        if Into::<BlockId>::into(*block).is_pending() { Self::Code } else { Self::Here }
    }

    /// Where to read a block: whole transactions take long to write.
    pub(crate) fn block(input: &GetBlockByNumberInput) -> Self {
        match Self::reading(&input.block_number) {
            Self::Here if input.transaction_detail => Self::Pool,
            place => place,
        }
    }

    /// Where to read a block by its hash.
    pub(crate) fn side_block(input: &GetBlockByHashInput) -> Self {
        if input.transaction_detail { Self::Pool } else { Self::Here }
    }

    /// Where to sum up the fees of blocks.
    pub(crate) fn fee_history(input: &FeeHistoryInput) -> Self {
        if *input.block_count > FeeHistory::FEW_BLOCKS { Self::Pool } else { Self::HereBriefly }
    }

    /// Where to search for logs.
    pub(crate) fn logs(input: &GetLogsInput) -> Self {
        let with_pending = [input.from_block, input.to_block].contains(&Some(BlockNumberOrTag::Pending));
        if with_pending { Self::Code } else { Self::HereBriefly }
    }

    /// Where to prove an account and so many slots of it, where one proof is short, or not.
    pub(crate) fn proof(quick: bool, slots: usize) -> Self {
        if quick && slots <= SHORT_PROOF { Self::Here } else { Self::Pool }
    }

    /// Where to decode a body of `length` bytes.
    pub(crate) fn decoding(length: usize) -> Self {
        if length > SHORT_BODY { Self::Pool } else { Self::Here }
    }
}

/// Runs `work` on `input` at `place`, under `context`, which is cancelled when nobody waits any more.
pub(crate) async fn run<I: Clone + Send + 'static, T: Send + 'static>(
    pools: &Pools,
    place: Place,
    context: Context,
    input: I,
    work: impl Fn(&Context, I) -> Result<T, HttpError> + Send + 'static,
) -> Result<T, HttpError> {
    let pool = match place {
        Place::Here => return guarded(|| work(&context, input)),
        Place::HereBriefly => match guarded(|| work(&context.clone().with_timeout(SLICE), input.clone())) {
            Err(HttpError::Node(NodeError::Interrupted(Interrupted::DeadlineExceeded))) => &pools.work,
            done => return done,
        },
        Place::Pool => &pools.work,
        Place::Code => &pools.code,
    };
    let (sender, receiver) = oneshot::channel();
    let guard = CancelOnDrop(context.clone());
    pool.submit(Box::new(move || {
        // Time that ran out in the queue is a sign of too much work, not of too long work.
        let result = match context.check() {
            Ok(()) => guarded(|| work(&context, input)),
            Err(_) => Err(HttpError::Overloaded),
        };
        // Nobody receives it when the client has left.
        let _ = sender.send(result);
    }))?;
    let result = receiver.await.unwrap_or(Err(HttpError::Panicked));
    drop(guard);
    result
}

/// A panic is a defect, and ends only the request that met it.
fn guarded<T>(work: impl FnOnce() -> Result<T, HttpError>) -> Result<T, HttpError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(HttpError::Panicked))
}

/// Cancels the work when the future that waits for it is dropped.
struct CancelOnDrop(Context);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The threads beside those that requests arrive on.
pub(crate) struct Pools {
    work: Pool,
    code: Pool,
}

impl Pools {
    /// Starts the threads that `config` asks for.
    pub(crate) fn new(config: &HttpConfig) -> io::Result<Self> {
        Ok(Self {
            work: Pool::new("work", config.pool_threads.get(), config.pool_queue, || {})?,
            code: Pool::new("call", config.call_threads.get(), config.pool_queue, priority::lower)?,
        })
    }

    /// How busy each pool is, by its name.
    pub(crate) fn usage(&self) -> [(&'static str, PoolUse); 2] {
        [("work", self.work.usage()), ("code", self.code.usage())]
    }
}

/// How busy a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolUse {
    pub(crate) threads: usize,
    /// Threads that work.
    pub(crate) busy: usize,
    /// Jobs that wait for a thread.
    pub(crate) queued: usize,
    /// Jobs that were refused since the start.
    pub(crate) refused: u64,
}

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads with a short queue.
struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads: usize,
    queue: Mutex<Queue>,
    ready: Condvar,
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
    /// Starts `threads` threads, for which at most `capacity` jobs wait. Each begins with `prepare`.
    fn new(name: &str, threads: usize, capacity: usize, prepare: fn()) -> io::Result<Self> {
        // All count as idle from the start, so that nothing is refused while they come up.
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

    fn usage(&self) -> PoolUse {
        let queue = self.shared.lock();
        let threads = self.shared.threads;
        // Jobs that idle threads are about to take wait no longer.
        let taken = queue.jobs.len().min(queue.idle);
        let busy = threads - queue.idle + taken;
        PoolUse { threads, busy, queued: queue.jobs.len() - taken, refused: queue.refused }
    }

    fn submit(&self, job: Job) -> Result<(), HttpError> {
        let mut queue = self.shared.lock();
        if queue.jobs.len() >= queue.idle + self.shared.capacity {
            queue.refused += 1;
            return Err(HttpError::Overloaded);
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
    /// No job runs under the lock, so a poisoned queue is still whole.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs until the queue is closed and empty.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZero;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn pools(threads: usize, capacity: usize) -> Pools {
        let count = NonZero::new(threads).unwrap();
        let config =
            HttpConfig { pool_threads: count, call_threads: count, pool_queue: capacity, ..HttpConfig::default() };
        Pools::new(&config).unwrap()
    }

    fn value(number: u32) -> impl Fn(&Context, ()) -> Result<u32, HttpError> + Send + 'static {
        move |_, ()| Ok(number)
    }

    #[actix_web::test]
    async fn work_runs_at_its_place() {
        let pools = pools(1, 0);
        let here = thread::current().id();
        for (place, same) in
            [(Place::Here, true), (Place::HereBriefly, true), (Place::Pool, false), (Place::Code, false)]
        {
            let thread =
                run(&pools, place, Context::unbounded(), (), |_, ()| Ok(thread::current().id())).await.unwrap();
            assert_eq!(thread == here, same, "{place:?}");
        }
    }

    #[actix_web::test]
    async fn what_takes_longer_than_a_slice_begins_again_in_the_pool() {
        let pools = pools(1, 0);
        let here = thread::current().id();
        let begun = Arc::new(AtomicUsize::new(0));
        let work = {
            let begun = begun.clone();
            move |context: &Context, input: u32| -> Result<u32, HttpError> {
                begun.fetch_add(1, Ordering::SeqCst);
                if thread::current().id() != here {
                    return Ok(input);
                }
                loop {
                    context.check().map_err(NodeError::from)?;
                }
            }
        };
        assert_eq!(run(&pools, Place::HereBriefly, Context::unbounded(), 7, work).await.unwrap(), 7);
        assert_eq!(begun.load(Ordering::SeqCst), 2);

        // A request whose own time is over does not begin again.
        let over = Context::unbounded().with_timeout(Duration::ZERO);
        let result =
            run(&pools, Place::HereBriefly, over, (), |context, ()| Ok(context.check().map_err(NodeError::from)?));
        assert!(result.await.is_err());
    }

    #[actix_web::test]
    async fn a_full_pool_refuses_and_recovers() {
        let pools = Arc::new(pools(1, 1));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let busy = pools.clone();
        let running = actix_web::rt::spawn(async move {
            let blocked = Mutex::new(blocked);
            let work = move |_: &Context, ()| Ok(blocked.lock().unwrap().recv().is_ok());
            run(&busy, Place::Pool, Context::unbounded(), (), work).await
        });
        while pools.work.shared.lock().idle == 1 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        let queue = pools.clone();
        let waiting =
            actix_web::rt::spawn(async move { run(&queue, Place::Pool, Context::unbounded(), (), value(2)).await });
        while pools.work.shared.lock().jobs.is_empty() {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(pools.work.usage(), PoolUse { threads: 1, busy: 1, queued: 1, refused: 0 });
        let refused = run(&pools, Place::Pool, Context::unbounded(), (), value(3)).await;
        assert!(matches!(refused, Err(HttpError::Overloaded)), "{refused:?}");
        assert_eq!(pools.work.usage(), PoolUse { threads: 1, busy: 1, queued: 1, refused: 1 });
        release.send(()).unwrap();
        assert!(running.await.unwrap().unwrap());
        assert_eq!(waiting.await.unwrap().unwrap(), 2);
        assert_eq!(run(&pools, Place::Pool, Context::unbounded(), (), value(4)).await.unwrap(), 4);
    }

    #[actix_web::test]
    async fn no_other_work_waits_for_code() {
        let pools = Arc::new(pools(1, 0));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let busy = pools.clone();
        let endless = actix_web::rt::spawn(async move {
            let blocked = Mutex::new(blocked);
            let work = move |_: &Context, ()| Ok(blocked.lock().unwrap().recv().is_ok());
            run(&busy, Place::Code, Context::unbounded(), (), work).await
        });
        while pools.code.shared.lock().idle == 1 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        let refused = run(&pools, Place::Code, Context::unbounded(), (), value(1)).await;
        assert!(matches!(refused, Err(HttpError::Overloaded)), "{refused:?}");
        assert_eq!(run(&pools, Place::Pool, Context::unbounded(), (), value(2)).await.unwrap(), 2);
        release.send(()).unwrap();
        assert!(endless.await.unwrap().unwrap());
    }

    #[actix_web::test]
    async fn a_panic_ends_only_its_request() {
        // The thread may still be on its way back when the next request comes.
        let pools = pools(1, 1);
        for place in [Place::Here, Place::HereBriefly, Place::Pool, Place::Code] {
            let result = run::<_, u32>(&pools, place, Context::unbounded(), (), |_, ()| panic!("a defect")).await;
            assert!(matches!(result, Err(HttpError::Panicked)), "{place:?}: {result:?}");
            assert_eq!(run(&pools, place, Context::unbounded(), (), value(1)).await.unwrap(), 1, "{place:?}");
        }
    }

    #[actix_web::test]
    async fn whoever_stops_waiting_cancels_the_work() {
        let pools = pools(1, 0);
        let context = Context::unbounded();
        let endless = run::<_, ()>(&pools, Place::Pool, context.clone(), (), |context, ()| {
            while context.check().is_ok() {
                thread::yield_now();
            }
            Ok(())
        });
        assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
        assert!(context.check().is_err());
    }
}
