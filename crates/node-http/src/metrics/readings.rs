//! Reading the gauges of the server when its metrics are scraped.

use crate::metrics::{Counter, Gauges, Metrics};
use crate::service::Service;
use actix_web::web;
use node_core::backend::CacheUse;
use node_core::context::Context;
use node_core::producer::ForkUse;
use node_core::remote::EndpointUse;
use node_core::sources::Sources;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit for reading the head during a scrape.
const HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// Adds the gauges of `service` to `metrics` for as long as the service exists.
pub(crate) fn register(metrics: &Metrics, service: &web::Data<Service>) {
    let service = Arc::downgrade(&service.clone().into_inner());
    metrics.set_gauge_source(move |gauges| {
        if let Some(service) = service.upgrade() {
            read(&service, gauges);
        }
    });
}

fn read(service: &Service, gauges: &Gauges) {
    gauges.connections.set(signed(service.connections.taken()));
    gauges.streams.set(signed(service.streams.taken()));
    gauges.transfers.set(signed(service.transfers.taken()));
    for (name, pool) in service.pools.usage() {
        let label = [("pool", name)];
        gauges.executor_threads.get_or_create(&label).set(signed(pool.threads));
        gauges.executor_busy.get_or_create(&label).set(signed(pool.busy));
        gauges.executor_queue.get_or_create(&label).set(signed(pool.queued));
        set(&gauges.executor_refused.get_or_create(&label), pool.refused);
    }
    let size = service.node.pool().size();
    for (state, count) in [("pending", size.pending), ("queued", size.queued)] {
        gauges.pool_transactions.get_or_create(&[("state", state)]).set(signed(count));
    }
    gauges.pool_bytes.set(signed(size.bytes));
    gauges.filters.set(signed(service.node.filter_count()));
    for CacheUse { name, bytes, capacity, hits, misses } in
        service.node.caches().into_iter().chain([service.rpc.blocks().usage()])
    {
        let label = [("cache", name)];
        gauges.cache_bytes.get_or_create(&label).set(signed(bytes));
        gauges.cache_capacity.get_or_create(&label).set(signed(capacity));
        set(&gauges.cache_hits.get_or_create(&label), hits);
        set(&gauges.cache_misses.get_or_create(&label), misses);
    }
    let health = service.node.backend().health();
    let writes = ("write", health.failed_writes, health.write_failure.is_some());
    let reads = ("read", health.failed_reads, health.read_failure.is_some());
    for (operation, failures, failing) in [writes, reads] {
        let label = [("operation", operation)];
        set(&gauges.storage_failures.get_or_create(&label), failures);
        gauges.storage_failing.get_or_create(&label).set(i64::from(failing));
    }
    gauges.replica_lag.set(health.lag.unwrap_or_default().as_secs_f64());
    if let Some(publication) = health.publication {
        gauges.publish_lag.set(publication.lag.as_secs_f64());
        gauges.publish_lag_bytes.set(signed(publication.lag_bytes));
        gauges.publish_uploading.set(signed(publication.uploading_bytes));
        gauges.publish_failing.set(i64::from(publication.failure.is_some()));
        gauges.publish_epoch.set(signed(publication.epoch));
        set(&gauges.published_entries, publication.published_entries);
        set(&gauges.uploaded_bytes, publication.uploaded_bytes);
    }
    let requests = health.requests.unwrap_or_default();
    let [reads, writes] = ["read", "write"].map(|operation| [("operation", operation)]);
    set(&gauges.store_requests.get_or_create(&reads), requests.reads);
    set(&gauges.store_requests.get_or_create(&writes), requests.writes);
    set(&gauges.store_bytes.get_or_create(&reads), requests.read_bytes);
    set(&gauges.store_bytes.get_or_create(&writes), requests.written_bytes);
    set(&gauges.store_failures, requests.failures);
    gauges.cold_files.set(signed(health.cold_files));
    gauges.storage_files.set(signed(health.files));
    gauges.storage_merging.set(i64::from(health.is_merging));
    set(&gauges.storage_merged, health.merged_bytes);
    gauges.storage_next_merge.set(signed(health.next_merge_bytes));
    if let Some(fork) = service.node.fork() {
        gauges.fork_block.set(signed(fork.info().block.number));
        let ForkUse { endpoints, retries, state_gone: _ } = fork.usage();
        set(&gauges.upstream_retries, retries);
        // The servers may be others than at the last time.
        gauges.upstream_requests.clear();
        gauges.upstream_failures.clear();
        gauges.upstream_bytes.clear();
        gauges.upstream_failing.clear();
        for EndpointUse { name, requests, failures, bytes, last_failure } in endpoints {
            let label = [("endpoint", name)];
            set(&gauges.upstream_requests.get_or_create(&label), requests);
            set(&gauges.upstream_failures.get_or_create(&label), failures);
            set(&gauges.upstream_bytes.get_or_create(&label), bytes);
            gauges.upstream_failing.get_or_create(&label).set(i64::from(last_failure.is_some()));
        }
    }
    let has_interval = service.node.producer().is_some_and(|producer| producer.mining().interval().is_some());
    gauges.blocks_expected.set(i64::from(has_interval || service.metrics.expects_blocks()));
    gauges.certificate_expiry.set(service.tls.as_ref().map_or(0, |tls| *tls.validity().end()));
    let missing = service.node.backend().view().and_then(|view| service.config.lifecycle.missing(&*view));
    let is_incomplete = service.config.incomplete.reason().is_some() || missing.is_ok_and(|missing| missing.is_some());
    gauges.chain_incomplete.set(i64::from(is_incomplete));
    match service.node.head(&Context::unbounded().with_timeout(HEAD_TIMEOUT)) {
        Ok(head) => {
            let header = &head.header;
            gauges.head_number.set(signed(header.number));
            gauges.head_timestamp.set(signed(header.timestamp));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            gauges.head_age.set(signed(now.saturating_sub(header.timestamp)));
            gauges.head_base_fee.set(header.base_fee_per_gas.map_or(0, signed));
            gauges.head_gas_used.set(signed(header.gas_used));
            gauges.head_gas_limit.set(signed(header.gas_limit));
        }
        // The gauges keep their old values; the unchanged timestamp of the head shows that they are stale.
        Err(error) => tracing::warn!(error = %Sources(&error), "cannot read the head for metrics"),
    }
}

/// Sets a counter to a value that another component has counted.
fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, Ordering::Relaxed);
}

fn signed(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
