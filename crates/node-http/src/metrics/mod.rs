//! What the server tells about itself, in Prometheus' text format.
//!
//! What happens is counted where it happens. What is, the head or how full a cache is, is looked up when somebody asks.

mod listener;
mod state;

pub use listener::{MetricsError, MetricsServer};

use crate::problem::HttpError;
use actix_web::http::StatusCode;
use node_core::backend::{HeadChange, HeadListener};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
pub(crate) use state::State;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

/// Upper bounds of the latencies that are counted together, in seconds: from a read in memory to the longest call.
const LATENCIES: [f64; 14] =
    [25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];

/// A counter, a gauge, and either by one label.
type Count = Counter<u64, AtomicU64>;
type Level = Gauge<i64, AtomicI64>;
type Label = [(&'static str, &'static str); 1];
type Counts = Family<Label, Count>;
type Levels = Family<Label, Level>;

/// Everything that is counted and measured. Clones are the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    requests: Family<Answered, Count>,
    durations: Family<Label, Histogram>,
    refused: Counts,
    import_blocks: Count,
    import_gas: Count,
    blocks_added: Count,
    blocks_removed: Count,
    levels: StateLevels,
    /// What is looked up when somebody asks; none before the server runs.
    state: Mutex<Option<State>>,
}

/// What is looked up.
#[derive(Clone, Default)]
struct StateLevels {
    connections: Level,
    streams: Level,
    executor_threads: Levels,
    executor_busy: Levels,
    executor_queue: Levels,
    executor_refused: Counts,
    head_number: Level,
    head_timestamp: Level,
    head_base_fee: Level,
    head_gas_used: Level,
    head_gas_limit: Level,
    pool_transactions: Levels,
    pool_bytes: Level,
    filters: Level,
    cache_bytes: Levels,
    cache_capacity: Levels,
    cache_hits: Counts,
    cache_misses: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    operation: &'static str,
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let levels = StateLevels::default();
        let durations = Family::new_with_constructor((|| Histogram::new(LATENCIES)) as fn() -> Histogram);
        let info: Family<Label, Level> = Family::default();
        info.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);

        Self(Arc::new(Inner {
            requests: add(&mut registry, "node_http_requests", "Requests answered"),
            durations: add_as(&mut registry, "node_http_request_duration_seconds", "Time to an answer", durations),
            refused: add(&mut registry, "node_http_refused", "Requests refused by a limit"),
            import_blocks: add(&mut registry, "node_import_blocks", "Blocks taken from chain files"),
            import_gas: add(&mut registry, "node_import_gas", "Gas of the blocks taken from chain files"),
            blocks_added: add(&mut registry, "node_blocks_added", "Blocks that joined the canonical chain"),
            blocks_removed: add(&mut registry, "node_blocks_removed", "Blocks that left the canonical chain"),
            levels: levels.registered(&mut registry, info),
            state: Mutex::default(),
            registry,
        }))
    }
}

impl StateLevels {
    fn registered(self, registry: &mut Registry, info: Levels) -> Self {
        let mut level = |name, help, level: &Level| registry.register(name, help, level.clone());
        level("node_http_connections", "Connections that are open", &self.connections);
        level("node_http_streams", "Clients that are told of events", &self.streams);
        level("node_head_number", "Height of the head", &self.head_number);
        level("node_head_timestamp_seconds", "Time of the head, in Unix seconds", &self.head_timestamp);
        level("node_head_base_fee_wei", "Base fee of the head, in wei per gas", &self.head_base_fee);
        level("node_head_gas_used", "Gas that the head used", &self.head_gas_used);
        level("node_head_gas_limit", "Gas limit of the head", &self.head_gas_limit);
        level("node_txpool_bytes", "Bytes of the transactions that wait", &self.pool_bytes);
        level("node_filters", "Filters that are installed", &self.filters);
        let mut levels = |name, help, levels: &Levels| registry.register(name, help, levels.clone());
        levels("node_info", "Which version runs", &info);
        levels("node_executor_threads", "Threads for long work", &self.executor_threads);
        levels("node_executor_busy", "Threads that work", &self.executor_busy);
        levels("node_executor_queue", "Requests that wait for a thread", &self.executor_queue);
        levels("node_txpool_transactions", "Transactions that wait", &self.pool_transactions);
        levels("node_cache_bytes", "Bytes in a cache", &self.cache_bytes);
        levels("node_cache_capacity_bytes", "Most bytes in a cache", &self.cache_capacity);
        let mut counts = |name, help, counts: &Counts| registry.register(name, help, counts.clone());
        counts("node_executor_refused", "Requests refused for want of a thread", &self.executor_refused);
        counts("node_cache_hits", "Reads that a cache answered", &self.cache_hits);
        counts("node_cache_misses", "Reads that a cache did not answer", &self.cache_misses);
        self
    }
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add_as(registry, name, help, M::default())
}

fn add_as<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Everything, in the format of OpenMetrics 1.0, which Prometheus reads.
    pub fn render(&self) -> String {
        if let Some(state) = &*self.0.state.lock() {
            state.refresh(&self.0.levels);
        }
        let mut text = String::new();
        if let Err(error) = text::encode(&mut text, &self.0.registry) {
            // Writing to a string does not fail.
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }

    /// Counts blocks that were taken from a chain file.
    pub fn imported(&self, blocks: u64, gas: u64) {
        self.0.import_blocks.inc_by(blocks);
        self.0.import_gas.inc_by(gas);
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, operation: &'static str, status: StatusCode, elapsed: Duration) {
        self.0.requests.get_or_create(&Answered { operation, status: status.as_u16() }).inc();
        self.0.durations.get_or_create(&[("operation", operation)]).observe(elapsed.as_secs_f64());
    }

    /// Counts a refusal, if it is one by a limit.
    pub(crate) fn refused(&self, error: &HttpError) {
        if let Some(limit) = error.limit() {
            self.0.refused.get_or_create(&[("limit", limit)]).inc();
        }
    }

    /// From now on tells of `state`, too.
    pub(crate) fn observe(&self, state: State) {
        *self.0.state.lock() = Some(state);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl HeadListener for Metrics {
    fn head_changed(&self, change: &HeadChange) {
        self.0.blocks_added.inc_by(change.added.len() as u64);
        self.0.blocks_removed.inc_by(change.removed.len() as u64);
    }
}
