//! Filters: what happened since a client asked last.
//!
//! A filter keeps a cursor, the place in the chain up to which it has reported. Each poll walks from there to the head,
//! over the ancestor that both have in common, so that reorganizations need no listening and survive a restart. The cursor
//! moves only when a poll succeeds. A stream of events is the same walk with a cursor that the client keeps.

mod criteria;
mod error;
mod id;
mod record;
mod subscription;
#[cfg(test)]
mod tests;
mod walk;

pub use criteria::{ChangedLog, FilterChanges, FilterCriteria, LogCriteria};
pub use error::{ChangesError, FilterError};
pub use id::{FilterId, InvalidFilterId};
pub use subscription::{ChainPosition, Cursor, Subscription};

use crate::backend::{BackendError, RecordKind, StateBackend};
use crate::block::LogPosition;
use crate::clock::Clock;
use crate::context::Context;
use crate::logs::{self, LogScan};
use crate::pool::Pool;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of the filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// How long a filter lives after its last use.
    pub ttl: Duration,
    /// Most filters at a time.
    pub count: usize,
    /// How many entries one poll reports; the rest comes with the next poll. A page may end inside a block.
    pub page: usize,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(300), count: 1_024, page: 20_000 }
    }
}

/// All filters. All methods may be called from any thread. Nothing waits for a poll that searches the chain: not another
/// poll of the same filter, and not its end.
pub struct Filters {
    backend: Arc<dyn StateBackend>,
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    limits: FilterLimits,
    /// Held while filters are made and swept away, so that their number stays within the limit.
    installing: Mutex<()>,
    /// Taken only for a moment; never while something is written.
    filters: Mutex<HashMap<FilterId, Arc<Filter>>>,
}

struct Filter {
    /// None once the filter has ended. Taken only for a moment, or while the filter's record is written; never while the
    /// chain is searched.
    state: Mutex<Option<Subscription>>,
    /// Time of the last successful use in milliseconds since the Unix epoch.
    last_used: AtomicU64,
    /// The same as the record says, so that polls which report nothing seldom write.
    recorded_use: AtomicU64,
}

impl Filter {
    fn new(state: Subscription, last_used: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(Some(state)),
            last_used: AtomicU64::new(last_used),
            recorded_use: AtomicU64::new(last_used),
        })
    }
}

impl Filters {
    /// Opens the filters that the backend's records hold.
    pub fn open(
        backend: Arc<dyn StateBackend>,
        pool: Arc<Pool>,
        clock: Arc<dyn Clock>,
        limits: FilterLimits,
    ) -> Result<Self, BackendError> {
        let filters = Self { backend, pool, clock, limits, installing: Mutex::default(), filters: Mutex::default() };
        let mut unusable = Vec::new();
        for record in filters.backend.records(RecordKind::Filter)? {
            match record::decode(&record) {
                Ok((id, state, recorded_use)) => {
                    if let Cursor::Arrival(next) = state.cursor {
                        filters.pool.continue_arrivals_from(next);
                    }
                    // The last use may have been this much later than the record says.
                    let last_used = recorded_use.saturating_add(filters.record_interval()).min(filters.now());
                    filters.filters.lock().insert(id, Filter::new(state, last_used));
                }
                Err(error) => {
                    tracing::warn!(%error, "a filter cannot be read from its record");
                    unusable.push(record::delete(record.key));
                }
            }
        }
        if !unusable.is_empty() {
            filters.backend.write_records(&unusable)?;
        }
        filters.sweep()?;
        Ok(filters)
    }

    /// How many filters there are, those included that nobody has used for too long and that are not gone yet.
    pub fn count(&self) -> usize {
        self.filters.lock().len()
    }

    /// Makes a filter that reports what happens from now on.
    pub fn install(&self, criteria: FilterCriteria) -> Result<FilterId, FilterError> {
        let _installing = self.installing.lock();
        self.sweep()?;
        if self.filters.lock().len() >= self.limits.count {
            return Err(FilterError::TooMany(self.limits.count));
        }
        let cursor = match criteria {
            FilterCriteria::Logs(_) | FilterCriteria::Blocks => {
                Cursor::Chain(ChainPosition::end_of(self.backend.view()?.head()))
            }
            FilterCriteria::PendingTransactions => Cursor::Arrival(self.pool.arrivals(u64::MAX, 0).next),
        };
        let (id, now) = (FilterId::random(), self.now());
        let state = Subscription { criteria, cursor };
        self.backend.write_records(&[record::put(id, &state, now)])?;
        self.filters.lock().insert(id, Filter::new(state, now));
        Ok(id)
    }

    /// What happened since the last successful poll, or since the filter was made.
    ///
    /// The cursor has moved, durably, when this answers `Ok`. Where more happened than one answer holds, the next poll
    /// goes on; [`Subscription::next`] says in which order. Of polls that run at the same time one moves the cursor; the others begin again behind it, so that everything is reported once.
    pub fn changes(&self, context: &Context, id: FilterId) -> Result<FilterChanges, FilterError> {
        let filter = self.find(id)?;
        loop {
            let before = filter.state.lock().clone().ok_or(FilterError::NotFound(id))?;
            // Opened after the cursor was read: an older view could lie behind it.
            let view = self.backend.view()?;
            let (changes, cursor) = before.next(context, view.as_ref(), &self.pool, self.limits.page)?;
            // What is not answered must not count as reported.
            context.check().map_err(BackendError::from)?;
            if self.advance(id, &filter, &before, cursor)? {
                return Ok(changes);
            }
        }
    }

    /// Moves the cursor of a filter that is still as `before`; answers false if another poll has moved it.
    fn advance(
        &self,
        id: FilterId,
        filter: &Filter,
        before: &Subscription,
        cursor: Cursor,
    ) -> Result<bool, FilterError> {
        let mut state = filter.state.lock();
        let current = state.as_mut().ok_or(FilterError::NotFound(id))?;
        if current != before {
            return Ok(false);
        }
        let next = Subscription { criteria: before.criteria.clone(), cursor };
        let now = self.now();
        let recorded_use = filter.recorded_use.load(Ordering::Relaxed);
        if next != *before || now.saturating_sub(recorded_use) >= self.record_interval() {
            self.backend.write_records(&[record::put(id, &next, now)])?;
            filter.recorded_use.store(now, Ordering::Relaxed);
        }
        *current = next;
        filter.last_used.store(now, Ordering::Relaxed);
        Ok(true)
    }

    /// The first `limit` logs of the whole range of a log filter up to the head, whether reported or not.
    pub fn logs(&self, context: &Context, id: FilterId, limit: usize) -> Result<LogScan, FilterError> {
        let filter = self.find(id)?;
        let criteria = match filter.state.lock().as_ref().ok_or(FilterError::NotFound(id))? {
            Subscription { criteria: FilterCriteria::Logs(criteria), .. } => criteria.clone(),
            _ => return Err(FilterError::NotALogFilter(id)),
        };
        let view = self.backend.view()?;
        let last = criteria.to.unwrap_or(u64::MAX).min(view.head().number);
        let first = LogPosition { block: criteria.from, log_index: 0 };
        let scan = logs::scan(view.as_ref(), context, &criteria.filter, first, last, limit)?;
        filter.last_used.store(self.now(), Ordering::Relaxed);
        Ok(scan)
    }

    /// Ends a filter. Answers whether there was one.
    pub fn uninstall(&self, id: FilterId) -> Result<bool, FilterError> {
        match self.find(id) {
            Ok(filter) => Ok(self.end(id, &filter, false)?),
            Err(_) => Ok(false),
        }
    }

    /// A filter that has not expired.
    fn find(&self, id: FilterId) -> Result<Arc<Filter>, FilterError> {
        let filter = self.filters.lock().get(&id).cloned().ok_or(FilterError::NotFound(id))?;
        if self.has_expired(&filter) {
            return Err(FilterError::NotFound(id));
        }
        Ok(filter)
    }

    /// Ends filters that were not used for too long.
    fn sweep(&self) -> Result<(), BackendError> {
        let expired: Vec<_> = {
            let filters = self.filters.lock();
            let expired = filters.iter().filter(|(_, filter)| self.has_expired(filter));
            expired.map(|(id, filter)| (*id, Arc::clone(filter))).collect()
        };
        for (id, filter) in expired {
            self.end(id, &filter, true)?;
        }
        Ok(())
    }

    /// Ends a filter, if it has not ended yet, and, with `only_expired`, unless a poll has renewed it meanwhile.
    fn end(&self, id: FilterId, filter: &Filter, only_expired: bool) -> Result<bool, BackendError> {
        let mut state = filter.state.lock();
        if state.is_none() || (only_expired && !self.has_expired(filter)) {
            return Ok(false);
        }
        self.backend.write_records(&[record::delete(id.0.to_vec())])?;
        *state = None;
        self.filters.lock().remove(&id);
        Ok(true)
    }

    fn has_expired(&self, filter: &Filter) -> bool {
        let idle = self.now().saturating_sub(filter.last_used.load(Ordering::Relaxed));
        u128::from(idle) > self.limits.ttl.as_millis()
    }

    fn now(&self) -> u64 {
        self.clock.steady_millis()
    }

    /// How far, in milliseconds, the last use in a record may lie behind the true one.
    fn record_interval(&self) -> u64 {
        u64::try_from(self.limits.ttl.as_millis() / 10).unwrap_or(u64::MAX)
    }
}
