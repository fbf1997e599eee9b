//! Values that are read when the metrics are scraped.

use super::{Counter, Counters, EndpointCounters, EndpointGauges, FloatGauge, Gauge, LabeledGauges};
use prometheus_client::registry::Registry;

/// The gauges, and counters that other components count.
#[derive(Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) connections: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) transfers: Gauge,
    pub(crate) executor_threads: LabeledGauges,
    pub(crate) executor_busy: LabeledGauges,
    pub(crate) executor_queue: LabeledGauges,
    pub(crate) executor_refused: Counters,
    pub(crate) head_number: Gauge,
    pub(crate) head_timestamp: Gauge,
    pub(crate) head_age: Gauge,
    pub(crate) head_base_fee: Gauge,
    pub(crate) head_gas_used: Gauge,
    pub(crate) head_gas_limit: Gauge,
    pub(crate) chain_incomplete: Gauge,
    pub(crate) pool_transactions: LabeledGauges,
    pub(crate) pool_bytes: Gauge,
    pub(crate) filters: Gauge,
    pub(crate) cache_bytes: LabeledGauges,
    pub(crate) cache_capacity: LabeledGauges,
    pub(crate) cache_hits: Counters,
    pub(crate) cache_misses: Counters,
    pub(crate) storage_failures: Counters,
    pub(crate) storage_failing: LabeledGauges,
    pub(crate) replica_lag: FloatGauge,
    pub(crate) publish_lag: FloatGauge,
    pub(crate) publish_lag_bytes: Gauge,
    pub(crate) publish_uploading: Gauge,
    pub(crate) publish_failing: Gauge,
    pub(crate) publish_epoch: Gauge,
    pub(crate) published_entries: Counter,
    pub(crate) uploaded_bytes: Counter,
    pub(crate) store_requests: Counters,
    pub(crate) store_bytes: Counters,
    pub(crate) store_failures: Counter,
    pub(crate) cold_files: Gauge,
    pub(crate) storage_bytes: Gauge,
    pub(crate) storage_free: Gauge,
    pub(crate) storage_files: Gauge,
    pub(crate) storage_merging: Gauge,
    pub(crate) storage_merged: Counter,
    pub(crate) storage_next_merge: Gauge,
    pub(crate) blocks_expected: Gauge,
    pub(crate) certificate_expiry: Gauge,
    pub(crate) fork_block: Gauge,
    pub(crate) upstream_requests: EndpointCounters,
    pub(crate) upstream_failures: EndpointCounters,
    pub(crate) upstream_bytes: EndpointCounters,
    pub(crate) upstream_failing: EndpointGauges,
    pub(crate) upstream_retries: Counter,
}

impl Gauges {
    /// Adds all of them to `registry`.
    pub(super) fn register(&self, registry: &mut Registry) {
        let mut gauge = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        gauge("http_connections", "Open connections", &self.connections);
        gauge("http_streams", "Open event streams and WebSockets", &self.streams);
        gauge("http_transfer_bytes", "Bytes of long requests and responses in transfer", &self.transfers);
        gauge("head_number", "Number of the head block", &self.head_number);
        gauge("head_timestamp_seconds", "Timestamp of the head block, in Unix seconds", &self.head_timestamp);
        gauge("head_age_seconds", "Time since the timestamp of the head block", &self.head_age);
        gauge("head_base_fee_wei", "Base fee of the head block, in wei per gas", &self.head_base_fee);
        gauge("head_gas_used", "Gas used by the head block", &self.head_gas_used);
        gauge("head_gas_limit", "Gas limit of the head block", &self.head_gas_limit);
        let incomplete = "Whether the chain lacks blocks that it should have, 1 or 0";
        gauge("chain_incomplete", incomplete, &self.chain_incomplete);
        gauge("txpool_bytes", "Bytes of the transactions in the pool", &self.pool_bytes);
        gauge("filters", "Installed filters", &self.filters);
        gauge("storage_bytes", "Disk usage of the data folder", &self.storage_bytes);
        gauge("storage_free_bytes", "Free space of the data folder's file system", &self.storage_free);
        gauge("storage_files", "Immutable files that have the chain", &self.storage_files);
        gauge("storage_merging", "Whether such files are being merged, 1 or 0", &self.storage_merging);
        gauge("storage_next_merge_bytes", "Free space that the next merge needs", &self.storage_next_merge);
        gauge("publish_lag_bytes", "Bytes of changes that the shared store lacks", &self.publish_lag_bytes);
        gauge("publish_uploading_bytes", "Bytes of runs that are left to upload", &self.publish_uploading);
        gauge("publish_failing", "Whether the shared store is not up to date, 1 or 0", &self.publish_failing);
        gauge("publish_epoch", "Number of this writer of the shared store", &self.publish_epoch);
        gauge("store_cold_runs", "Runs of the shared store whose indexes are not in a cache yet", &self.cold_files);
        gauge("blocks_expected", "Whether new blocks should arrive regularly, 1 or 0", &self.blocks_expected);
        gauge(
            "tls_certificate_expiry_seconds",
            "End of the certificate's validity, in Unix seconds",
            &self.certificate_expiry,
        );
        gauge("fork_block", "Number of the block that a fork begins with", &self.fork_block);
        let failing = "Whether the last message to a server of the chain that a fork continues failed, 1 or 0";
        registry.register("upstream_failing", failing, self.upstream_failing.clone());
        let retries = "Messages to the upstream that were repeated because they had failed at all of its servers";
        registry.register("upstream_retries", retries, self.upstream_retries.clone());
        let mut of_endpoints =
            |name, help, counters: &EndpointCounters| registry.register(name, help, counters.clone());
        of_endpoints("upstream_requests", "Requests to a server of the upstream", &self.upstream_requests);
        of_endpoints("upstream_failures", "Messages that a server of the upstream failed", &self.upstream_failures);
        of_endpoints("upstream_bytes", "Bytes of the responses of a server of the upstream", &self.upstream_bytes);
        let lag = "Time since everything durable in the folder was visible, if another process writes it";
        registry.register("replica_lag_seconds", lag, self.replica_lag.clone());
        let lag = "How long the oldest change that the shared store lacks has waited";
        registry.register("publish_lag_seconds", lag, self.publish_lag.clone());
        let entries = "Changes that were added to the shared store";
        registry.register("publish_entries", entries, self.published_entries.clone());
        let uploaded = "Bytes of runs that were uploaded to the shared store";
        registry.register("publish_uploaded_bytes", uploaded, self.uploaded_bytes.clone());
        let failures = "Requests to the shared store that failed; most were repeated";
        registry.register("store_request_failures", failures, self.store_failures.clone());
        registry.register("storage_merged_bytes", "Bytes that merging has written", self.storage_merged.clone());
        let mut gauges = |name, help, gauges: &LabeledGauges| registry.register(name, help, gauges.clone());
        gauges("executor_threads", "Threads of a pool", &self.executor_threads);
        gauges("executor_busy", "Threads of a pool that are busy", &self.executor_busy);
        gauges("executor_queue", "Requests waiting for a thread of a pool", &self.executor_queue);
        gauges("txpool_transactions", "Transactions in the pool", &self.pool_transactions);
        gauges("cache_bytes", "Bytes in a cache", &self.cache_bytes);
        gauges("storage_failing", "Whether the storage fails at present, 1 or 0", &self.storage_failing);
        gauges("cache_capacity_bytes", "Capacity of a cache in bytes", &self.cache_capacity);
        let mut counters = |name, help, counters: &Counters| registry.register(name, help, counters.clone());
        counters("executor_refused", "Requests refused because the queue was full", &self.executor_refused);
        counters("cache_hits", "Lookups found in a cache", &self.cache_hits);
        counters("cache_misses", "Lookups not found in a cache", &self.cache_misses);
        counters("store_requests", "Requests to the shared store", &self.store_requests);
        counters("store_bytes", "Bytes read from the shared store and written to it", &self.store_bytes);
        counters("storage_failures", "Changes and reads that the storage has failed", &self.storage_failures);
    }
}
