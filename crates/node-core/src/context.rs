//! Deadline, cancellation and limits of a request.

use crate::backend::{BackendError, View};
use crate::block::BlockRef;
use crate::remote::RemoteReads;
use crate::waiting;
use parking_lot::{Mutex, MutexGuard};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a request that waits for a lock checks whether it was cancelled.
const LOCK_WAIT: Duration = Duration::from_millis(20);

/// The deadline, cancellation flag and gas budget of one request, the client that sent it, the view that it reads, and
/// what to undo if its results are lost. Clones share the cancellation flag, the view, and what to undo.
///
/// # Examples
/// ```
/// use node_core::context::Context;
/// use std::time::Duration;
///
/// let context = Context::unbounded().with_timeout(Duration::from_secs(5)).with_gas_budget(50_000_000);
/// assert!(context.check().is_ok());
/// context.cancel();
/// assert!(context.check().is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    deadline: Option<Deadline>,
    gas_budget: u64,
    client: Option<ClientId>,
    shared: Arc<Shared>,
}

/// The point in time at which a request times out.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    timeout: Duration,
}

#[derive(Default)]
struct Shared {
    cancelled: Arc<AtomicBool>,
    head: Mutex<Option<BlockRef>>,
    /// With [`Context::holding_view`], the view that all operations share once the first one has opened it; otherwise
    /// `None`.
    held: Option<Mutex<Option<Arc<dyn View>>>>,
    /// What to do if the results do not reach the client.
    undo: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    remote_reads: Mutex<RemoteReads>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancelled, head, held, undo: _, remote_reads: _ } = self;
        let mut debug = f.debug_struct("Shared");
        debug.field("cancelled", cancelled).field("head", head).field("holds_view", &held.is_some());
        debug.finish_non_exhaustive()
    }
}

thread_local! {
    /// The context of the request that the work on this thread belongs to.
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Restores the context of the thread, even if the work panics.
struct Restore(Option<Context>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Identifies a client among those that share the limits of a node, such as an IP address as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(pub u128);

/// Returns whether a client may hold `held` units of a shared resource, including those that it is requesting, if
/// `left` units would then remain for all other clients. It may hold at most as many as remain, so a single client
/// gets at most half. One unit is always allowed.
pub fn is_fair_share(held: usize, left: usize) -> bool {
    held <= left.max(1)
}

impl Context {
    /// Creates a context that is never cancelled and has no deadline.
    pub fn unbounded() -> Self {
        Self { deadline: None, gas_budget: u64::MAX, client: None, shared: Arc::default() }
    }

    /// Creates a context without limits whose operations all read the same view until it is
    /// [released](Self::release_view), so that their results are consistent.
    pub fn holding_view() -> Self {
        let shared = Shared { held: Some(Mutex::default()), ..Shared::default() };
        Self { deadline: None, gas_budget: u64::MAX, client: None, shared: Arc::new(shared) }
    }

    /// Runs `work` of this request on this thread. Work that is not given a context, such as a read from a backend that takes
    /// long, ends with the [current](Self::current) one.
    ///
    /// # Examples
    /// ```
    /// use node_core::context::Context;
    /// use std::time::Duration;
    ///
    /// let context = Context::unbounded().with_timeout(Duration::from_secs(5));
    /// assert_eq!(context.run(|| Context::current().timeout()), Some(Duration::from_secs(5)));
    /// assert_eq!(Context::current().timeout(), None);
    /// ```
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// Returns the context of the request that the work on this thread belongs to, or an unbounded one if it belongs to none.
    pub fn current() -> Self {
        CURRENT.with_borrow(Clone::clone).unwrap_or_else(Self::unbounded)
    }

    /// Sets the deadline to `timeout` from now, unless an earlier deadline is set.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let new = Instant::now().checked_add(timeout).map(|at| Deadline { at, timeout });
        Self { deadline: self.deadline.into_iter().chain(new).min_by_key(|deadline| deadline.at), ..self }
    }

    /// Returns a context of the same request that has `times` as much time.
    pub(crate) fn with_timeouts(&self, times: u32) -> Self {
        let deadline = self.deadline.and_then(|Deadline { at, timeout }| {
            let more = timeout.saturating_mul(times);
            Some(Deadline { at: at.checked_sub(timeout)?.checked_add(more)?, timeout: more })
        });
        Self { deadline, ..self.clone() }
    }

    /// Returns a context of the same request whose operations read `view`.
    pub(crate) fn reading(&self, view: Arc<dyn View>) -> Self {
        let cancelled = Arc::clone(&self.shared.cancelled);
        let shared = Shared { cancelled, held: Some(Mutex::new(Some(view))), ..Shared::default() };
        Self { shared: Arc::new(shared), ..self.clone() }
    }

    /// Returns the [timeout](Self::with_timeout) that determines the deadline, or `None` if there is no deadline.
    pub fn timeout(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.timeout)
    }

    /// Limits the gas of each execution.
    #[must_use]
    pub fn with_gas_budget(self, gas_budget: u64) -> Self {
        Self { gas_budget, ..self }
    }

    /// Returns the gas limit of each execution.
    pub fn gas_budget(&self) -> u64 {
        self.gas_budget
    }

    /// Sets the client that sent the request.
    #[must_use]
    pub fn on_behalf_of(self, client: ClientId) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Returns the client that sent the request, or `None` if none was set.
    pub fn client(&self) -> Option<ClientId> {
        self.client
    }

    /// Cancels the request, for instance because its client has disconnected. Operations that can take long then fail
    /// with [`Interrupted::Cancelled`]; those that take microseconds may still succeed.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Registers what to do if the results of the request do not reach the client.
    pub(crate) fn on_loss(&self, undo: impl FnOnce() + Send + 'static) {
        self.shared.undo.lock().push(Box::new(undo));
    }

    /// Undoes what operations have recorded about results that the client will not receive: the next polls of filters
    /// report the same changes again.
    pub fn results_are_lost(&self) {
        self.results_are_lost_since(0);
    }

    /// Returns a mark for [`results_are_lost_since`](Self::results_are_lost_since).
    pub fn mark_results(&self) -> usize {
        self.shared.undo.lock().len()
    }

    /// Like [`results_are_lost`](Self::results_are_lost), for the results since a [mark](Self::mark_results): those of
    /// one request of a batch.
    pub fn results_are_lost_since(&self, mark: usize) {
        let undo: Vec<_> = {
            let mut all = self.shared.undo.lock();
            let kept = mark.min(all.len());
            all.drain(kept..).collect()
        };
        undo.into_iter().rev().for_each(|undo| undo());
    }

    /// Returns the newest mined block of the view that the request read, or `None` if it has not read the chain yet.
    pub fn head(&self) -> Option<BlockRef> {
        *self.shared.head.lock()
    }

    /// Adds reads from another machine that the request has made.
    pub fn record_remote_reads(&self, reads: RemoteReads) {
        *self.shared.remote_reads.lock() += reads;
    }

    /// Returns the reads from another machine that the request has made.
    pub fn remote_reads(&self) -> RemoteReads {
        *self.shared.remote_reads.lock()
    }

    /// Releases the shared view. Later reads open a new one and see newer blocks.
    pub fn release_view(&self) {
        if let Some(held) = &self.shared.held {
            *held.lock() = None;
        }
    }

    /// Returns the shared view, or the one that `open` returns.
    pub(crate) fn view_or(
        &self,
        open: impl FnOnce() -> Result<Arc<dyn View>, BackendError>,
    ) -> Result<Arc<dyn View>, BackendError> {
        let Some(held) = &self.shared.held else { return open() };
        let mut held = held.lock();
        match &*held {
            Some(view) => Ok(view.clone()),
            None => Ok(held.insert(open()?).clone()),
        }
    }

    /// Records the newest mined block of the view that the request reads. Retried work records it again.
    pub(crate) fn record_head(&self, head: BlockRef) {
        *self.shared.head.lock() = Some(head);
    }

    /// Locks `mutex`.
    ///
    /// # Errors
    /// If the request is cancelled or its deadline passes while waiting for the lock.
    pub(crate) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>, Interrupted> {
        let try_lock = || {
            self.check()?;
            let left =
                self.deadline.map_or(LOCK_WAIT, |deadline| deadline.at.saturating_duration_since(Instant::now()));
            Ok(mutex.try_lock_for(left.min(LOCK_WAIT)))
        };
        if let Some(guard) = try_lock()? {
            return Ok(guard);
        }
        waiting::aside(|| {
            loop {
                if let Some(guard) = try_lock()? {
                    return Ok(guard);
                }
            }
        })
    }

    /// Returns an error if the request was cancelled or its deadline has passed. Long work must call this often.
    ///
    /// # Errors
    /// An [`Interrupted`] with the reason.
    pub fn check(&self) -> Result<(), Interrupted> {
        self.check_for(Duration::ZERO)
    }

    /// Like [`check`](Self::check), but also fails if no more than `time` is left. Call it before work that takes about
    /// `time` and does not check the context.
    ///
    /// # Errors
    /// An [`Interrupted`] with the reason.
    pub(crate) fn check_for(&self, time: Duration) -> Result<(), Interrupted> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Err(Interrupted::Cancelled);
        }
        match self.deadline {
            Some(deadline) if deadline.at.saturating_duration_since(Instant::now()) <= time => {
                // On a thread that serves many clients, the deadline is that of a time slice.
                waiting::refuse();
                Err(Interrupted::DeadlineExceeded)
            }
            _ => Ok(()),
        }
    }
}

/// Why a request was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    #[error("the time allowed for the request is over")]
    DeadlineExceeded,
    #[error("the request was cancelled")]
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::state::StateChanges;
    use crate::test_chain;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn clones_share_the_cancellation() {
        let context = Context::unbounded();
        let worker = context.clone();
        assert_eq!(worker.check(), Ok(()));
        context.cancel();
        assert_eq!(worker.check(), Err(Interrupted::Cancelled));
    }

    #[test]
    fn a_view_is_held_until_it_is_released() {
        let backend = test_chain::backend();
        let open = || backend.view();
        let head = |context: &Context| context.view_or(open).unwrap().head().number;
        let (holding, opening) = (Context::holding_view(), Context::unbounded());
        assert_eq!((head(&holding), head(&opening)), (0, 0));
        test_chain::push(&*backend, Vec::new(), StateChanges::default());
        let clone = holding.clone().with_timeout(Duration::from_secs(60));
        assert_eq!((head(&clone), head(&opening)), (0, 1));
        clone.release_view();
        assert_eq!(head(&holding), 1);
    }

    #[test]
    fn waiting_for_a_lock_ends_at_the_deadline() {
        let mutex = Mutex::new(7);
        let held = Context::unbounded().lock(&mutex).unwrap();
        let waiting = Context::unbounded().with_timeout(Duration::from_millis(1));
        assert_eq!(waiting.lock(&mutex).map(|guard| *guard), Err(Interrupted::DeadlineExceeded));
        let cancelled = Context::unbounded();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| cancelled.lock(&mutex).map(|guard| *guard));
            cancelled.cancel();
            assert_eq!(waiting.join().unwrap(), Err(Interrupted::Cancelled));
        });
        drop(held);
        assert_eq!(Context::unbounded().lock(&mutex).map(|guard| *guard), Ok(7));
    }

    #[test]
    fn the_context_of_a_thread_is_that_of_its_innermost_work() {
        let timeouts = [9, 5].map(Duration::from_secs);
        let [outer, inner] = timeouts.map(|timeout| Context::unbounded().with_timeout(timeout));
        outer.run(|| {
            let panicked = catch_unwind(AssertUnwindSafe(|| inner.run(|| panic!("a defect"))));
            assert!(panicked.is_err());
            assert_eq!(Context::current().timeout(), Some(timeouts[0]));
            assert_eq!(inner.run(|| Context::current().timeout()), Some(timeouts[1]));
            outer.cancel();
            assert_eq!(Context::current().check(), Err(Interrupted::Cancelled));
        });
        assert_eq!(Context::current().check(), Ok(()));
    }

    #[test]
    fn a_later_deadline_changes_nothing() {
        let context = Context::unbounded().with_timeout(Duration::ZERO).with_timeout(Duration::from_secs(60));
        assert_eq!(context.check(), Err(Interrupted::DeadlineExceeded));
    }

    #[test]
    fn a_timeout_can_be_multiplied() {
        let context = Context::unbounded().with_timeout(Duration::from_secs(60));
        let longer = context.with_timeouts(3);
        assert_eq!(longer.timeout(), Some(Duration::from_secs(180)));
        assert_eq!(longer.check_for(Duration::from_secs(170)), Ok(()));
        assert_eq!(longer.check_for(Duration::from_secs(181)), Err(Interrupted::DeadlineExceeded));
        context.cancel();
        assert_eq!(longer.check(), Err(Interrupted::Cancelled));
        assert_eq!(Context::unbounded().with_timeouts(3).timeout(), None);
    }

    #[test]
    fn work_that_would_exceed_the_deadline_does_not_begin() {
        let context = Context::unbounded().with_timeout(Duration::from_secs(60));
        assert_eq!(context.check_for(Duration::from_secs(1)), Ok(()));
        assert_eq!(context.check_for(Duration::from_secs(61)), Err(Interrupted::DeadlineExceeded));
        assert_eq!(Context::unbounded().check_for(Duration::MAX), Ok(()));
    }

    #[test]
    fn a_deadline_in_the_past_interrupts() {
        let context = Context::unbounded().with_timeout(Duration::ZERO);
        assert_eq!(context.check(), Err(Interrupted::DeadlineExceeded));
    }
}
