//! The bounds under which a request runs.

use crate::backend::{BackendError, View};
use crate::block::BlockRef;
use node_types::BlockNumber;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Deadline, cancellation and gas budget of one request, and the view it was answered from. Clones share the cancellation
/// and the view.
#[derive(Clone, Debug)]
pub struct Context {
    deadline: Option<Instant>,
    gas_budget: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    view: Mutex<Option<ViewOf>>,
    /// The view that all reads share; none inside before the first, none at all where each opens its own.
    held: Option<Mutex<Option<Arc<dyn View>>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancelled, view, held } = self;
        let mut debug = f.debug_struct("Shared");
        debug.field("cancelled", cancelled).field("view", view).field("holds_view", &held.is_some());
        debug.finish()
    }
}

/// What a request was answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewOf {
    /// The newest mined block.
    pub head: BlockRef,
    /// The newest block that nobody takes back; none on a chain that can be taken back to any block.
    pub finalized: Option<BlockNumber>,
}

impl Context {
    /// No bounds: for work that the node itself asked for.
    pub fn unbounded() -> Self {
        Self { deadline: None, gas_budget: u64::MAX, shared: Arc::default() }
    }

    /// No bounds, and one view for all that is read under this context, until it is [released](Self::release_view): what
    /// several operations answer fits together.
    pub fn holding_view() -> Self {
        let shared = Shared { held: Some(Mutex::default()), ..Shared::default() };
        Self { deadline: None, gas_budget: u64::MAX, shared: Arc::new(shared) }
    }

    /// Ends work `timeout` from now, unless it has to end earlier already.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let deadline = Instant::now().checked_add(timeout);
        Self { deadline: self.deadline.into_iter().chain(deadline).min(), ..self }
    }

    /// Bounds the gas of a single run of code.
    #[must_use]
    pub fn with_gas_budget(self, gas_budget: u64) -> Self {
        Self { gas_budget, ..self }
    }

    /// The most gas that a single run of code may use.
    pub fn gas_budget(&self) -> u64 {
        self.gas_budget
    }

    /// Asks the work to end: nobody waits for the answer any more.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// What the request was answered from; none if it read nothing of the chain, or nothing yet.
    pub fn view(&self) -> Option<ViewOf> {
        *self.shared.view.lock()
    }

    /// Lets what is read from now on see what has changed.
    pub fn release_view(&self) {
        if let Some(held) = &self.shared.held {
            *held.lock() = None;
        }
    }

    /// The view that is held, or the one that `open` opens.
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

    /// Notes what the request is answered from. Work that begins again notes it again.
    pub(crate) fn answered_from(&self, view: ViewOf) {
        *self.shared.view.lock() = Some(view);
    }

    /// Whether work may go on; long work asks often.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Err(Interrupted::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Interrupted::DeadlineExceeded),
            _ => Ok(()),
        }
    }
}

/// Why work ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The request took longer than it may.
    #[error("the time allowed for the request is over (`call-timeout`)")]
    DeadlineExceeded,
    /// The caller is gone.
    #[error("the request was cancelled")]
    Cancelled,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::state::StateChanges;
    use crate::test_chain;

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
    fn a_later_deadline_changes_nothing() {
        let context = Context::unbounded().with_timeout(Duration::ZERO).with_timeout(Duration::from_secs(60));
        assert_eq!(context.check(), Err(Interrupted::DeadlineExceeded));
    }

    #[test]
    fn a_deadline_in_the_past_interrupts() {
        let context = Context::unbounded().with_timeout(Duration::ZERO);
        assert_eq!(context.check(), Err(Interrupted::DeadlineExceeded));
    }
}
