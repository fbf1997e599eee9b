//! Running work on threads that suit its cost.
//!
//! Reads of a few microseconds run on the thread that received the request, because handing them to another thread
//! would cost more than the read itself. Work that can take long runs in one of the thread pools that all workers
//! share. Work occupies its thread until it ends, even if the client disconnects, so clients cannot start more work
//! than there are threads by disconnecting. Work on the receiving thread is restarted in a pool if it has to wait for
//! the disk, or if it exceeds a time slice, as log searches can: they are usually short. Reads that wait for the disk
//! have a pool of their own, so that they do not wait for long work.
//!
//! Code that clients supply can run for any time. It has its own pool, whose threads have a low scheduling priority:
//! endless calls use only CPU time that nothing else needs, and do not delay reads, transactions, filters or blocks.
//! Most calls are short, so a call starts on the receiving thread as well, unless its client keeps that pool busy: calls
//! of other clients do not wait for it. Long searches and proofs of many slots have such a pool, too.

mod heavy;
mod pool;
pub(crate) mod priority;
pub(crate) mod signal;

use crate::config::HttpConfig;
use crate::problem::HttpError;
use crate::scheduling::heavy::{HeavyClients, HeavyJob};
use crate::scheduling::pool::{Pool, PoolUsage};
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::remote;
use node_core::waiting::without_waiting;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long work of [`Cost::Brief`] or [`Cost::Search`] may delay other requests on its thread. This is much longer than a search for
/// rare logs takes, and much shorter than the work for which the pools exist.
const SLICE: Duration = Duration::from_micros(300);

/// The same for work of [`Cost::BriefCode`]. A call of a few reads takes a tenth of it.
const CODE_SLICE: Duration = Duration::from_micros(100);

/// The thread pools, in addition to the threads that receive requests.
pub(crate) struct Pools {
    work: Pool,
    disk: Pool,
    bulk: Pool,
    code: Pool,
    /// Clients whose work occupies threads of the last two pools, or did so recently.
    heavy: Arc<HeavyClients>,
}

/// Number of threads for reads of the disk. They hardly use the processor, and disks serve many reads at once.
const DISK_THREADS: usize = 16;

impl Pools {
    /// Starts the threads that `config` specifies.
    pub(crate) fn new(config: &HttpConfig) -> io::Result<Self> {
        let [threads, call_threads] =
            [config.performance.pool_threads, config.performance.call_threads].map(HttpConfig::threads);
        let queue = config.performance.pool_queue;
        Ok(Self {
            work: Pool::new("work", threads, queue, || {})?,
            disk: Pool::new("disk", DISK_THREADS, queue, || {})?,
            bulk: Pool::new("bulk", threads, queue, priority::lower)?,
            code: Pool::new("call", call_threads, queue, priority::lower)?,
            heavy: Arc::default(),
        })
    }

    /// Returns the usage of each pool with its name.
    pub(crate) fn usage(&self) -> [(&'static str, PoolUsage); 4] {
        [
            ("work", self.work.usage()),
            ("disk", self.disk.usage()),
            ("bulk", self.bulk.usage()),
            ("call", self.code.usage()),
        ]
    }
}

/// Request bodies longer than this, in bytes, are decoded in the work pool.
pub(crate) const SHORT_BODY: usize = 64 * 1024;

/// Returns the cost of decoding a request body of `length` bytes.
pub(crate) fn decoding_cost(length: usize) -> Cost {
    if length > SHORT_BODY { Cost::Long } else { Cost::Instant }
}

/// The work of a request. It runs twice if it has to wait, or exceeds its time slice. It is boxed so that the code that
/// schedules it is compiled once for each type of result.
pub(crate) type Work<T> = Box<dyn Fn(&Context) -> Result<T, HttpError> + Send>;

/// Runs `work` on a thread that suits `cost`. `context` is cancelled if the returned future is dropped.
pub(crate) async fn run<T: Send + 'static>(
    pools: &Pools,
    cost: Cost,
    context: Context,
    work: Work<T>,
) -> Result<T, HttpError> {
    let client = context.client();
    let pool = match cost {
        Cost::Instant => match without_waiting(|| catch_panic(|| work(&context))) {
            None => &pools.disk,
            Some(done) => return done,
        },
        Cost::Brief => match run_in_slice(&context, SLICE, &work) {
            None => &pools.work,
            Some(done) => return done,
        },
        Cost::Search => match run_in_slice(&context, SLICE, &work) {
            None => &pools.bulk,
            Some(done) => return done,
        },
        // Code of this client that takes longer is in the pool. More of it may come, and must not cost a slice each
        // time.
        Cost::BriefCode if pools.heavy.contains(client) => &pools.code,
        Cost::BriefCode => match run_in_slice(&context, CODE_SLICE, &work) {
            None => &pools.code,
            Some(done) => return done,
        },
        Cost::Long => &pools.work,
        Cost::Bulk => &pools.bulk,
        Cost::Code => &pools.code,
    };
    let (sender, receiver) = oneshot::channel();
    let guard = CancelOnDrop(context.clone());
    let is_heavy = pools.heavy.contains(client);
    let heavy =
        matches!(cost, Cost::BriefCode | Cost::Code | Cost::Search | Cost::Bulk).then(|| pools.heavy.begin(client));
    let job = move || {
        let mut heavy = heavy;
        heavy.iter_mut().for_each(HeavyJob::start);
        // If the deadline passes in the queue, the server is overloaded; the work itself is not too long.
        let result = match context.check() {
            Ok(()) => {
                let (result, reads) = remote::reads_of(|| catch_panic(|| context.run(|| work(&context))));
                context.record_remote_reads(reads);
                result
            }
            Err(_) => Err(HttpError::Overloaded),
        };
        // Before the client can send its next request.
        drop(heavy);
        // The receiver is gone if the client has disconnected.
        let _ = sender.send(result);
    };
    pool.submit(client, is_heavy, Box::new(job)).map_err(|_| HttpError::Overloaded)?;
    // If the job was dropped, it has lost its place in the queue to a job of another client.
    let result = receiver.await.unwrap_or(Err(HttpError::Overloaded));
    drop(guard);
    result
}

/// Runs `work` on this thread. Returns `None` if it has to wait or takes longer than `slice`.
fn run_in_slice<T>(context: &Context, slice: Duration, work: &Work<T>) -> Option<Result<T, HttpError>> {
    without_waiting(|| catch_panic(|| work(&context.clone().with_timeout(slice))))
}

/// Turns a panic into an error, so that a bug fails only the request that triggers it.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, HttpError>) -> Result<T, HttpError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(HttpError::Panicked))
}

/// Cancels the context when the future that waits for the work is dropped.
struct CancelOnDrop(Context);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PerformanceOptions;
    use node_core::context::ClientId;
    use node_core::node::NodeError;
    use node_core::waiting;
    use std::num::NonZero;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::thread;

    fn pools(threads: usize, capacity: usize) -> Pools {
        let count = NonZero::new(threads);
        let config = HttpConfig {
            performance: PerformanceOptions {
                pool_threads: count,
                call_threads: count,
                pool_queue: capacity,
                ..Default::default()
            },
            ..HttpConfig::default()
        };
        Pools::new(&config).unwrap()
    }

    fn value(number: u32) -> Work<u32> {
        Box::new(move |_| Ok(number))
    }

    #[actix_web::test]
    async fn runs_work_on_the_thread_of_its_cost() {
        let pools = pools(1, 0);
        let here = thread::current().id();
        let costs = [
            (Cost::Instant, true),
            (Cost::Brief, true),
            (Cost::Search, true),
            (Cost::BriefCode, true),
            (Cost::Long, false),
            (Cost::Bulk, false),
            (Cost::Code, false),
        ];
        for (cost, same) in costs {
            let work = Box::new(|_: &Context| Ok(thread::current().id()));
            let thread = run(&pools, cost, Context::unbounded(), work).await.unwrap();
            assert_eq!(thread == here, same, "{cost:?}");
        }
    }

    #[actix_web::test]
    async fn work_that_exceeds_its_slice_starts_again_in_the_pool() {
        let pools = pools(1, 0);
        let here = thread::current().id();
        let begun = Arc::new(AtomicUsize::new(0));
        let work = {
            let begun = begun.clone();
            move |context: &Context| -> Result<u32, HttpError> {
                begun.fetch_add(1, Ordering::SeqCst);
                if thread::current().id() != here {
                    return Ok(7);
                }
                loop {
                    context.check().map_err(NodeError::from)?;
                }
            }
        };
        for cost in [Cost::Brief, Cost::Search, Cost::BriefCode] {
            assert_eq!(run(&pools, cost, Context::unbounded(), Box::new(work.clone())).await.unwrap(), 7);
            assert_eq!(begun.swap(0, Ordering::SeqCst), 2);
        }

        // A request whose own deadline has passed does not start again.
        let over = Context::unbounded().with_timeout(Duration::ZERO);
        let check = Box::new(|context: &Context| Ok(context.check().map_err(NodeError::from)?));
        let result = run(&pools, Cost::Brief, over, check);
        assert!(result.await.is_err());
    }

    #[actix_web::test]
    async fn work_that_has_to_wait_starts_again_in_the_pool() {
        let pools = pools(1, 0);
        let here = thread::current().id();
        for cost in [Cost::Instant, Cost::Brief, Cost::Search, Cost::BriefCode] {
            let work = |_: &Context| {
                if !waiting::is_allowed() {
                    waiting::refuse();
                }
                // Whatever the refused work returns is dropped.
                Ok(thread::current().id())
            };
            let thread = run(&pools, cost, Context::unbounded(), Box::new(work)).await.unwrap();
            assert_ne!(thread, here, "{cost:?}");
            assert!(waiting::is_allowed());
        }
    }

    #[actix_web::test]
    async fn a_full_pool_refuses_and_recovers() {
        let pools = Arc::new(pools(1, 1));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let busy = pools.clone();
        let running = actix_web::rt::spawn(async move {
            let blocked = Mutex::new(blocked);
            let work = Box::new(move |_: &Context| Ok(blocked.lock().unwrap().recv().is_ok()));
            run(&busy, Cost::Long, Context::unbounded(), work).await
        });
        while pools.work.usage().busy == 0 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        let queue = pools.clone();
        let waiting =
            actix_web::rt::spawn(async move { run(&queue, Cost::Long, Context::unbounded(), value(2)).await });
        while pools.work.usage().queued == 0 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(pools.work.usage(), PoolUsage { threads: 1, busy: 1, queued: 1, refused: 0 });
        let refused = run(&pools, Cost::Long, Context::unbounded(), value(3)).await;
        assert!(matches!(refused, Err(HttpError::Overloaded)), "{refused:?}");
        assert_eq!(pools.work.usage(), PoolUsage { threads: 1, busy: 1, queued: 1, refused: 1 });
        release.send(()).unwrap();
        assert!(running.await.unwrap().unwrap());
        assert_eq!(waiting.await.unwrap().unwrap(), 2);
        assert_eq!(run(&pools, Cost::Long, Context::unbounded(), value(4)).await.unwrap(), 4);
    }

    #[actix_web::test]
    async fn code_delays_only_code_of_its_client() {
        let pools = Arc::new(pools(1, 0));
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let busy = pools.clone();
        let of = |client| Context::unbounded().on_behalf_of(ClientId(client));
        let (greedy, other) = (1, 2);
        let context = of(greedy);
        let endless = actix_web::rt::spawn(async move {
            let blocked = Mutex::new(blocked);
            let work = Box::new(move |_: &Context| Ok(blocked.lock().unwrap().recv().is_ok()));
            run(&busy, Cost::Code, context, work).await
        });
        while pools.code.usage().busy == 0 {
            actix_web::rt::time::sleep(Duration::from_millis(1)).await;
        }
        // Brief code of the client does not start on this thread while longer code of it is running.
        for (cost, client) in [(Cost::Code, other), (Cost::Code, greedy), (Cost::BriefCode, greedy)] {
            let refused = run(&pools, cost, of(client), value(1)).await;
            assert!(matches!(refused, Err(HttpError::Overloaded)), "{refused:?}");
        }
        let here = thread::current().id();
        let work = Box::new(|_: &Context| Ok(thread::current().id()));
        assert_eq!(run(&pools, Cost::BriefCode, of(other), work).await.unwrap(), here);
        for cost in [Cost::Long, Cost::Bulk] {
            assert_eq!(run(&pools, cost, of(greedy), value(2)).await.unwrap(), 2);
        }
        release.send(()).unwrap();
        assert!(endless.await.unwrap().unwrap());
    }

    #[cfg(target_os = "linux")]
    #[actix_web::test]
    async fn long_searches_and_code_have_a_low_priority() {
        let pools = pools(1, 0);
        let niceness = |_: &Context| Ok(rustix::process::getpriority_process(None).unwrap());
        let normal = niceness(&Context::unbounded()).unwrap();
        for (cost, is_low) in [(Cost::Long, false), (Cost::Bulk, true), (Cost::Code, true)] {
            let found = run(&pools, cost, Context::unbounded(), Box::new(niceness)).await.unwrap();
            // 19 is the highest niceness, which the tests may have themselves.
            assert_eq!(found, if is_low { (normal + 10).min(19) } else { normal }, "{cost:?}");
        }
    }

    #[actix_web::test]
    async fn a_panic_fails_only_its_request() {
        // The thread may still be busy when the next request is submitted, hence a queue of one.
        let pools = pools(1, 1);
        for cost in [Cost::Instant, Cost::Brief, Cost::Search, Cost::BriefCode, Cost::Long, Cost::Bulk, Cost::Code] {
            let result = run::<u32>(&pools, cost, Context::unbounded(), Box::new(|_| panic!("a defect"))).await;
            assert!(matches!(result, Err(HttpError::Panicked)), "{cost:?}: {result:?}");
            assert_eq!(run(&pools, cost, Context::unbounded(), value(1)).await.unwrap(), 1, "{cost:?}");
        }
    }

    #[actix_web::test]
    async fn dropping_the_future_cancels_the_work() {
        let pools = pools(1, 0);
        let context = Context::unbounded();
        let work = Box::new(|context: &Context| {
            while context.check().is_ok() {
                thread::yield_now();
            }
            Ok(())
        });
        let endless = run::<()>(&pools, Cost::Long, context.clone(), work);
        assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
        assert!(context.check().is_err());
    }
}
