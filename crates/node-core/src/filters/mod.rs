//! Filters, which report changes since they were last polled.
//!
//! A filter stores a cursor: the position in the chain up to which it has reported. Each poll walks from there to the
//! head via their common ancestor. This detects reorganizations without listening for them, even across a restart.
//! The cursor moves only when a poll succeeds. Event streams use the same walk, with a cursor that the client stores.

mod criteria;
mod error;
mod id;
mod kept;
mod record;
mod subscription;
#[cfg(test)]
mod tests;
mod walk;

pub use criteria::{ChangedLog, FilterChanges, FilterCriteria, LogCriteria};
pub use error::{ChangesError, FilterError};
pub use id::{FilterId, InvalidFilterId};
pub use kept::KeptFilter;
pub use subscription::{ChainPosition, Cursor, Subscription};

use self::kept::FilterMemory;
use self::record::Decoded;
use crate::backend::{BackendError, LogFilter, RecordKind, StateBackend};
use crate::block::{LogPosition, LogRef};
use crate::clock::Clock;
use crate::context::{ClientId, Context, is_fair_share};
use crate::logs::{self, FoundLog, PageEnd, PageSize};
#[cfg(feature = "clap")]
use crate::node::Limit;
use crate::pool::Pool;
#[cfg(feature = "clap")]
use crate::values;
use node_types::buffer::BufferFull;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Limits of filters. A client may have at most as many filters, and as many bytes of them, as it leaves free for
/// others.
///
/// With the feature `clap`, this is a group of command-line options with the same defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args), command(next_help_heading = "Limits of all clients"))]
pub struct FilterLimits {
    /// How long a filter exists after its last use
    #[cfg_attr(feature = "clap", arg(long = "filter-ttl", value_name = "TIME", value_parser = values::time, default_value = values::text(Self::default().ttl)))]
    pub ttl: Duration,
    /// Maximum number of installed filters
    #[cfg_attr(feature = "clap", arg(long = Limit::Filters.name(), value_name = "COUNT", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().count))]
    pub count: usize,
    /// Maximum total size of the addresses and topics of filters, subscriptions and event streams, in bytes
    #[cfg_attr(feature = "clap", arg(id = "filter_bytes", long = Limit::FilterBytes.name(), value_name = "BYTES", value_parser = values::at_least_one::<usize>, default_value_t = Self::default().bytes))]
    pub bytes: usize,
    /// Maximum number of entries that one poll reports; the next poll reports the rest. If the logs have much data, one
    /// poll reports fewer. A page may end inside a block.
    #[cfg_attr(feature = "clap", arg(skip = Self::default().page))]
    pub page: usize,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(300), count: 1_024, bytes: 64 << 20, page: 20_000 }
    }
}

/// All filters of a node. All methods may be called from any thread. A poll that searches the chain blocks nothing
/// else, not even another poll or the removal of the same filter.
pub struct Filters {
    backend: Arc<dyn StateBackend>,
    pool: Arc<Pool>,
    clock: Arc<dyn Clock>,
    limits: FilterLimits,
    memory: Arc<FilterMemory>,
    /// Held while filters are created and expired ones are removed, which keeps their number within the limit.
    installing: Mutex<()>,
    /// Locked only briefly; never during a write.
    filters: Mutex<HashMap<FilterId, Arc<Filter>>>,
}

struct Filter {
    /// The client that created it; `None` after a restart.
    owner: Option<ClientId>,
    /// `None` once the filter is removed. Locked only briefly, or while the filter's record is written; never while the
    /// chain is searched.
    state: Mutex<Option<Subscription>>,
    /// Time of the last successful use in milliseconds since the Unix epoch.
    last_used: AtomicU64,
}

impl Filter {
    fn new(owner: Option<ClientId>, state: Subscription, last_used: u64) -> Arc<Self> {
        Arc::new(Self { owner, state: Mutex::new(Some(state)), last_used: AtomicU64::new(last_used) })
    }

    /// Moves the cursor back from `after` to that of `before`, because the client has not received the changes in
    /// between. Does nothing if the cursor has moved on.
    fn restore_cursor(&self, id: FilterId, backend: &dyn StateBackend, before: Subscription, after: Cursor) {
        let mut state = self.state.lock();
        let Some(current) = state.as_mut().filter(|current| current.cursor == after) else { return };
        match backend.write_records(&[record::put_position(id, before.cursor)]) {
            Ok(()) => *current = before,
            Err(error) => tracing::error!(%error, %id, "changes of a filter are lost: its cursor cannot be moved back"),
        }
    }
}

impl Filters {
    /// Restores the filters from the backend's records. Each exists for as long as if it were used now, because not
    /// every use is recorded.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn open(
        backend: Arc<dyn StateBackend>,
        pool: Arc<Pool>,
        clock: Arc<dyn Clock>,
        limits: FilterLimits,
    ) -> Result<Self, BackendError> {
        let memory = FilterMemory::new(limits.bytes);
        let (mut unusable, mut found, mut positions) = (Vec::new(), HashMap::new(), HashMap::new());
        for record in backend.records(RecordKind::Filter)? {
            match record::decode(&record, &memory) {
                Ok(Decoded::Filter(id, state)) => drop(found.insert(id, state)),
                Ok(Decoded::Position(id, cursor)) => drop(positions.insert(id, cursor)),
                Err(error) => {
                    tracing::warn!(%error, "a filter cannot be read from its record");
                    unusable.push(record::delete(record.key));
                }
            }
        }
        if !unusable.is_empty() {
            backend.write_records(&unusable)?;
        }
        let now = clock.steady_millis();
        let restored = found.into_iter().map(|(id, state)| {
            let cursor = positions.remove(&id).unwrap_or(state.cursor);
            if let Cursor::Arrival(next) = cursor {
                pool.continue_arrivals_from(next);
            }
            (id, Filter::new(None, Subscription { cursor, ..state }, now))
        });
        let filters = Mutex::new(restored.collect());
        Ok(Self { backend, pool, clock, limits, memory, installing: Mutex::default(), filters })
    }

    /// Keeps a filter for logs for the client of `context`.
    ///
    /// # Errors
    /// [`FilterError::OutOfMemory`].
    pub fn keep(&self, context: &Context, filter: LogFilter) -> Result<KeptFilter, FilterError> {
        let kept = self.memory.keep(context.client(), filter);
        kept.ok_or_else(|| FilterError::OutOfMemory(self.memory.limit()))
    }

    /// Returns the number of filters, including expired ones that have not been removed yet.
    pub fn count(&self) -> usize {
        self.filters.lock().len()
    }

    /// Creates a filter owned by the client of `context`, which reports changes from now on.
    ///
    /// # Errors
    /// [`FilterError::TooMany`] if a limit is reached, and failures of the backend.
    pub fn install(&self, context: &Context, criteria: FilterCriteria) -> Result<FilterId, FilterError> {
        let _installing = self.installing.lock();
        self.sweep()?;
        let owner = context.client();
        if !self.has_room_for(owner) {
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
        self.filters.lock().insert(id, Filter::new(owner, state, now));
        Ok(id)
    }

    /// Returns whether the limits allow one more filter for `owner`.
    fn has_room_for(&self, owner: Option<ClientId>) -> bool {
        let filters = self.filters.lock();
        let Some(left) = self.limits.count.checked_sub(filters.len() + 1) else { return false };
        let owned = || filters.values().filter(|filter| filter.owner == owner).count();
        owner.is_none() || is_fair_share(owned() + 1, left)
    }

    /// Returns the changes since the last successful poll, or since the filter was created.
    ///
    /// If there are changes, the cursor has moved durably on `Ok`; [`Context::results_are_lost`] moves it back. A poll
    /// that finds nothing writes nothing. If the changes do not fit on one page, the next poll continues, in the order
    /// of [`Subscription::next`]. Of concurrent polls, one moves the cursor and the others start again from there, so
    /// everything is reported exactly once.
    ///
    /// # Errors
    /// [`FilterError::NotFound`] or [`FilterError::CursorForgotten`], and failures of the backend.
    pub fn changes(&self, context: &Context, id: FilterId) -> Result<FilterChanges, FilterError> {
        let filter = self.find(id)?;
        loop {
            let before = filter.state.lock().clone().ok_or(FilterError::NotFound(id))?;
            // Opened after the cursor was read, since an older view might not contain its block.
            let view = self.backend.view()?;
            let page = PageSize::bounded(self.limits.page);
            let (changes, cursor) = before.next(context, view.as_ref(), &self.pool, page)?;
            // Results that the client will not receive must not count as reported.
            context.check().map_err(BackendError::from)?;
            // Progress without changes is kept, so a poll that runs out of time is continued by the next one.
            let has_advanced = self.advance(id, &filter, &before, cursor, !changes.is_empty())?;
            if !has_advanced || (changes.is_empty() && !cursor.is_at(view.head())) {
                continue;
            }
            if !changes.is_empty() {
                let backend = self.backend.clone();
                context.on_loss(move || filter.restore_cursor(id, &*backend, before, cursor));
            }
            return Ok(changes);
        }
    }

    /// Moves the cursor of a filter from `before`, durably if something was found. Returns `false` if another poll has
    /// moved it in the meantime.
    fn advance(
        &self,
        id: FilterId,
        filter: &Filter,
        before: &Subscription,
        cursor: Cursor,
        found: bool,
    ) -> Result<bool, FilterError> {
        let mut state = filter.state.lock();
        let current = state.as_mut().ok_or(FilterError::NotFound(id))?;
        if current != before {
            return Ok(false);
        }
        if found {
            self.backend.write_records(&[record::put_position(id, cursor)])?;
        }
        current.cursor = cursor;
        filter.last_used.store(self.now(), Ordering::Relaxed);
        Ok(true)
    }

    /// Passes the first `limit` logs in the whole range of a log filter up to the head to `visit`, regardless of what
    /// it has reported. Returns where it ends, or `None` if these are all.
    ///
    /// # Errors
    /// [`FilterError::NotFound`] or [`FilterError::NotALogFilter`], and failures of the backend.
    pub fn visit_logs(
        &self,
        context: &Context,
        id: FilterId,
        limit: usize,
        visit: impl FnMut(FoundLog<LogRef<'_>>) -> ControlFlow<BufferFull>,
    ) -> Result<Option<PageEnd>, FilterError> {
        let filter = self.find(id)?;
        let criteria = match filter.state.lock().as_ref().ok_or(FilterError::NotFound(id))? {
            Subscription { criteria: FilterCriteria::Logs(criteria), .. } => criteria.clone(),
            _ => return Err(FilterError::NotALogFilter(id)),
        };
        let view = self.backend.view()?;
        let last = criteria.to.unwrap_or(u64::MAX).min(view.head().number);
        let first = LogPosition { block: criteria.from, log_index: 0 };
        let size = PageSize::of_entries(limit);
        let end = logs::visit(view.as_ref(), context, &criteria.filter, first, last, size, visit)?;
        filter.last_used.store(self.now(), Ordering::Relaxed);
        Ok(end)
    }

    /// Removes a filter. Returns whether it existed.
    ///
    /// # Errors
    /// Failures of the backend.
    pub fn uninstall(&self, id: FilterId) -> Result<bool, FilterError> {
        match self.find(id) {
            Ok(filter) => Ok(self.end(id, &filter, false)?),
            Err(_) => Ok(false),
        }
    }

    /// Returns a filter that has not expired.
    fn find(&self, id: FilterId) -> Result<Arc<Filter>, FilterError> {
        let filter = self.filters.lock().get(&id).cloned().ok_or(FilterError::NotFound(id))?;
        if self.has_expired(&filter) {
            return Err(FilterError::NotFound(id));
        }
        Ok(filter)
    }

    /// Removes expired filters.
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

    /// Removes a filter, unless it has already been removed, or `only_expired` is set and a poll has renewed it in
    /// the meantime.
    fn end(&self, id: FilterId, filter: &Filter, only_expired: bool) -> Result<bool, BackendError> {
        let mut state = filter.state.lock();
        if state.is_none() || (only_expired && !self.has_expired(filter)) {
            return Ok(false);
        }
        self.backend.write_records(&record::delete_filter(id))?;
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
}
