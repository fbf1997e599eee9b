//! Metrics of the process, with the names that Prometheus' own clients use.

use super::Gauge;
use procfs::process::{LimitValue, Process};
use procfs::{ProcResult, WithCurrentSystemInfo};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge;
use prometheus_client::registry::Registry;
use std::sync::atomic::{AtomicU64, Ordering};

/// The metrics of the process, which are read when they are scraped.
#[derive(Default)]
pub(super) struct ProcessMetrics {
    cpu_seconds: Counter<f64, AtomicU64>,
    start_time: gauge::Gauge<f64, AtomicU64>,
    resident_bytes: Gauge,
    virtual_bytes: Gauge,
    open_files: Gauge,
    max_files: Gauge,
    threads: Gauge,
}

impl ProcessMetrics {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("process_cpu_seconds", "Processor time, user and system", metrics.cpu_seconds.clone());
        registry.register("process_start_time_seconds", "Start, in Unix seconds", metrics.start_time.clone());
        let mut gauge = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        gauge("process_resident_memory_bytes", "Resident memory", &metrics.resident_bytes);
        gauge("process_virtual_memory_bytes", "Virtual memory", &metrics.virtual_bytes);
        gauge("process_open_fds", "Open file descriptors", &metrics.open_files);
        gauge("process_max_fds", "Limit of open file descriptors", &metrics.max_files);
        gauge("process_threads", "Threads", &metrics.threads);
        metrics
    }

    /// Reads all values. Values that the system does not provide stay the same.
    pub(super) fn update(&self) {
        if let Err(error) = self.read() {
            tracing::debug!(%error, "cannot read the metrics of the process");
        }
    }

    fn read(&self) -> ProcResult<()> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let seconds = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
        self.cpu_seconds.inner().store(seconds.to_bits(), Ordering::Relaxed);
        let booted = procfs::boot_time_secs()? as f64;
        self.start_time.set(booted + stat.starttime as f64 / procfs::ticks_per_second() as f64);
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.resident_bytes.set(signed(stat.rss_bytes().get()));
        self.virtual_bytes.set(signed(stat.vsize));
        self.threads.set(stat.num_threads);
        self.open_files.set(signed(process.fd_count()? as u64));
        if let LimitValue::Value(files) = process.limits()?.max_open_files.soft_limit {
            self.max_files.set(signed(files));
        }
        Ok(())
    }
}
