//! Metrics in the OpenMetrics text format, and in Prometheus' older one for clients that do not accept it.
//!
//! Events are counted where they happen. State, such as the head or the size of a cache, is read when the metrics are
//! scraped.

mod folder;
mod gauges;
#[cfg(target_os = "linux")]
mod process;
pub(crate) mod readings;
pub(crate) mod server;
mod text;

use actix_web::http::StatusCode;
pub(crate) use gauges::Gauges;
use node_core::backend::{HeadChange, HeadListener};
use node_core::remote::RemoteReads;
use parking_lot::Mutex;
use prometheus_client::encoding::{self, EncodeLabelSet};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{counter, gauge};
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Upper bounds of the latency buckets in seconds, from a read in memory to the longest call.
const LATENCY_BUCKETS: [f64; 14] =
    [25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];

pub(crate) type Counter = counter::Counter<u64, AtomicU64>;
type Gauge = gauge::Gauge<i64, AtomicI64>;
type FloatGauge = gauge::Gauge<f64, AtomicU64>;
/// One label: its name and its value.
type Label = [(&'static str, &'static str); 1];
type Counters = Family<Label, Counter>;
type LabeledGauges = Family<Label, Gauge>;
/// The label of a server of the upstream: its host and port.
type EndpointLabel = [(&'static str, String); 1];
type EndpointCounters = Family<EndpointLabel, Counter>;
type EndpointGauges = Family<EndpointLabel, Gauge>;
/// Updates the gauges before they are rendered.
type GaugeSource = Box<dyn Fn(&Gauges) + Send + Sync>;

/// The prefix of the names of all metrics except those of the process.
const PREFIX: &str = "ethnode";

/// The metrics of a server. Clones share the same values.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    requests: Family<Response, Counter>,
    durations: Durations,
    calls: Family<Call, Counter>,
    call_durations: Durations,
    refused: Counters,
    store_reads: Counter,
    store_steps: Counter,
    import_blocks: Counter,
    import_gas: Counter,
    import_progress: FloatGauge,
    follow_failed: Gauge,
    blocks_added: Counter,
    blocks_removed: Counter,
    reorganizations: Counter,
    log_lines_dropped: Counter,
    reloaded: Gauge,
    /// Whether blocks should arrive although the node produces none.
    expects_blocks: AtomicBool,
    build: Family<[(&'static str, String); 2], Gauge>,
    gauges: Gauges,
    /// The data folder; `None` if the chain is in memory.
    folder: Mutex<Option<PathBuf>>,
    #[cfg(target_os = "linux")]
    process: process::ProcessMetrics,
    /// `None` until the server runs.
    gauge_source: Mutex<Option<GaugeSource>>,
    /// A function that returns the number of dropped log lines.
    dropped_log_lines: OnceLock<fn() -> u64>,
}

type Durations = Family<Label, Histogram, fn() -> Histogram>;

/// The labels by which JSON-RPC calls are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    method: &'static str,
    /// The code of the error; 0 for a result.
    code: i64,
}

/// The labels by which responses are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Response {
    operation: &'static str,
    status: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registry::default();
        #[cfg(target_os = "linux")]
        let process = process::ProcessMetrics::registered(&mut all);
        let registry = all.sub_registry_with_prefix(PREFIX);
        let gauges = Gauges::default();
        gauges.register(registry);
        let mut durations = |name, help| {
            let durations: Durations = Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
            registry.register(name, help, durations.clone());
            durations
        };

        Self(Arc::new(Inner {
            durations: durations(
                "http_request_duration_seconds",
                "Time from the request's headers to the response's headers",
            ),
            call_durations: durations("rpc_call_duration_seconds", "Time of a JSON-RPC call"),
            requests: add(registry, "http_requests", "Responses by operation and status"),
            calls: add(registry, "rpc_calls", "JSON-RPC calls by method and code of the error"),
            refused: add(registry, "http_refused", "Requests refused by a limit"),
            store_reads: add(registry, "request_store_reads", "Ranges that requests read from the shared store"),
            store_steps: add(registry, "request_store_steps", "How often requests waited for the shared store"),
            import_blocks: add(registry, "import_blocks", "Blocks imported from chain files"),
            import_gas: add(registry, "import_gas", "Gas used by the blocks imported from chain files"),
            import_progress: add(registry, "import_progress_ratio", "Share of the chain file that has been read"),
            follow_failed: add(registry, "follow_failed", "Whether a fault has ended following, 1 or 0"),
            blocks_added: add(registry, "blocks_added", "Blocks added to the canonical chain"),
            blocks_removed: add(registry, "blocks_removed", "Blocks removed from the canonical chain"),
            reorganizations: add(registry, "reorganizations", "Number of reorganizations, including rollbacks"),
            log_lines_dropped: add(
                registry,
                "log_lines_dropped",
                "Log lines dropped because the output was not read in time",
            ),
            reloaded: add(registry, "last_reload_successful", "Whether the last SIGHUP was applied, 1 or 0"),
            build: add(registry, "build_info", "Version and commit of the server"),
            gauges,
            expects_blocks: AtomicBool::new(false),
            gauge_source: Mutex::default(),
            dropped_log_lines: OnceLock::new(),
            folder: Mutex::default(),
            #[cfg(target_os = "linux")]
            process,
            registry: all,
        }))
    }
}

fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// Sets the version of the program and the commit from which it was built.
    pub fn set_build(&self, version: &str, commit: &str) {
        let labels = [("version", version.to_owned()), ("commit", commit.to_owned())];
        self.0.build.get_or_create(&labels).set(1);
    }

    /// Sets the data folder. Its size and the free space of its file system are read at each rendering.
    pub fn set_folder(&self, folder: PathBuf) {
        *self.0.folder.lock() = Some(folder);
    }

    /// Sets the function that returns the number of dropped log lines. Only the first one is used.
    pub fn set_dropped_log_lines(&self, source: fn() -> u64) {
        let _ = self.0.dropped_log_lines.set(source);
    }

    /// Records that new blocks should arrive regularly, because the chain of others is followed. A node that produces
    /// blocks at intervals expects them without this.
    pub fn expect_blocks(&self) {
        self.0.expects_blocks.store(true, Ordering::Relaxed);
    }

    pub(crate) fn expects_blocks(&self) -> bool {
        self.0.expects_blocks.load(Ordering::Relaxed)
    }

    /// Sets whether the last reload of certificates, tokens and settings was applied as a whole.
    pub fn set_reloaded(&self, successful: bool) {
        self.0.reloaded.set(i64::from(successful));
    }

    /// Returns all metrics in the OpenMetrics 1.0 text format.
    pub fn render(&self) -> String {
        if let Some(update) = &*self.0.gauge_source.lock() {
            update(&self.0.gauges);
        }
        if let Some(folder) = &*self.0.folder.lock() {
            folder::read(folder, &self.0.gauges);
        }
        if let Some(dropped) = self.0.dropped_log_lines.get() {
            self.0.log_lines_dropped.inner().store(dropped(), Ordering::Relaxed);
        }
        #[cfg(target_os = "linux")]
        self.0.process.update();
        let mut text = String::new();
        if let Err(error) = encoding::text::encode(&mut text, &self.0.registry) {
            // Writing to a string does not fail.
            tracing::error!(%error, "cannot render metrics");
        }
        text
    }

    /// Counts `blocks` blocks imported from a chain file, which used a total of `gas` gas.
    pub fn record_import(&self, blocks: u64, gas: u64) {
        self.0.import_blocks.inc_by(blocks);
        self.0.import_gas.inc_by(gas);
    }

    /// Sets the fraction of the current chain file that has been read, from 0 to 1.
    pub fn set_import_progress(&self, share: f64) {
        self.0.import_progress.set(share);
    }

    /// Notes that a fault has ended following, the import of blocks from a source that grows.
    pub fn set_follow_failed(&self) {
        self.0.follow_failed.set(1);
    }

    /// Counts a response and its latency.
    pub(crate) fn record_response(&self, operation: &'static str, status: StatusCode, elapsed: Duration) {
        self.0.requests.get_or_create(&Response { operation, status: status.as_u16() }).inc();
        self.0.durations.get_or_create(&[("operation", operation)]).observe(elapsed.as_secs_f64());
    }

    /// Counts the reads from a shared store by a request.
    pub(crate) fn record_remote_reads(&self, RemoteReads { reads, steps }: RemoteReads) {
        if steps > 0 {
            self.0.store_reads.inc_by(reads);
            self.0.store_steps.inc_by(steps);
        }
    }

    /// Counts a JSON-RPC call and its latency. `code` is the code of the error, or 0.
    pub(crate) fn record_call(&self, method: &'static str, code: i64, elapsed: Duration) {
        self.0.calls.get_or_create(&Call { method, code }).inc();
        self.0.call_durations.get_or_create(&[("method", method)]).observe(elapsed.as_secs_f64());
    }

    /// Counts a request that was refused by the limit of this name.
    pub(crate) fn record_refusal(&self, limit: &'static str) {
        self.0.refused.get_or_create(&[("limit", limit)]).inc();
    }

    /// Sets the function that updates the gauges before each rendering.
    pub(crate) fn set_gauge_source(&self, source: impl Fn(&Gauges) + Send + Sync + 'static) {
        *self.0.gauge_source.lock() = Some(Box::new(source));
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
        if !change.removed.is_empty() {
            self.0.reorganizations.inc();
        }
    }
}
