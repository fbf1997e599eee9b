//! What is looked up when somebody asks.

use super::{Count, StateLevels};
use crate::server::Service;
use actix_web::web;
use node_core::caches::CacheUse;
use node_core::context::Context;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a look at the head may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The server that is looked at, as long as there is one.
pub(crate) struct State(Weak<Service>);

impl State {
    pub(crate) fn of(service: &web::Data<Service>) -> Self {
        Self(Arc::downgrade(&service.clone().into_inner()))
    }

    /// Looks at everything.
    pub(super) fn refresh(&self, levels: &StateLevels) {
        let Some(service) = self.0.upgrade() else { return };
        let config = &service.config;
        levels.connections.set(taken(config.max_connections, service.connections.available_permits()));
        levels.streams.set(taken(config.max_streams, service.streams.available_permits()));
        for (name, pool) in service.pools.usage() {
            let label = [("pool", name)];
            levels.executor_threads.get_or_create(&label).set(signed(pool.threads));
            levels.executor_busy.get_or_create(&label).set(signed(pool.busy));
            levels.executor_queue.get_or_create(&label).set(signed(pool.queued));
            set(&levels.executor_refused.get_or_create(&label), pool.refused);
        }
        let size = service.node.pool().size();
        for (state, count) in [("pending", size.pending), ("queued", size.queued)] {
            levels.pool_transactions.get_or_create(&[("state", state)]).set(signed(count));
        }
        levels.pool_bytes.set(signed(size.bytes));
        levels.filters.set(signed(service.node.filter_count()));
        for CacheUse { name, bytes, capacity, hits, misses } in
            service.node.caches().into_iter().chain([service.blocks.usage()])
        {
            let label = [("cache", name)];
            levels.cache_bytes.get_or_create(&label).set(signed(bytes));
            levels.cache_capacity.get_or_create(&label).set(signed(capacity));
            set(&levels.cache_hits.get_or_create(&label), hits);
            set(&levels.cache_misses.get_or_create(&label), misses);
        }
        match service.node.head(&Context::unbounded().with_timeout(PATIENCE)) {
            Ok(head) => {
                let header = &head.header;
                levels.head_number.set(signed(header.number));
                levels.head_timestamp.set(signed(header.timestamp));
                levels.head_base_fee.set(header.base_fee_per_gas.map_or(0, signed));
                levels.head_gas_used.set(signed(header.gas_used));
                levels.head_gas_limit.set(signed(header.gas_limit));
            }
            // It stays as it was, which the time of the head shows.
            Err(error) => tracing::warn!(%error, "the head cannot be read"),
        }
    }
}

/// Sets a counter that is kept elsewhere.
fn set(counter: &Count, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

fn taken(permits: usize, available: usize) -> i64 {
    signed(permits.saturating_sub(available))
}

fn signed(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
