//! Metrics of the process, with the names that Prometheus' own clients use.

use super::Gauge;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge;
use prometheus_client::registry::Registry;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::io;
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

    fn read(&self) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let (stat, system) = (fs::read_to_string("/proc/self/stat")?, fs::read_to_string("/proc/stat")?);
        // The second field is the name of the program in parentheses, which may contain anything.
        let (_, fields) = stat.rsplit_once(')').ok_or_else(invalid)?;
        // Numbered as in proc_pid_stat(5).
        let field = |number: usize| {
            let text = fields.split_ascii_whitespace().nth(number - 3);
            text.and_then(|text| text.parse::<i64>().ok()).ok_or_else(invalid)
        };
        let booted = system.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
        let seconds = |ticks: i64| ticks as f64 / clock_ticks_per_second() as f64;
        self.cpu_seconds.inner().store(seconds(field(14)? + field(15)?).to_bits(), Ordering::Relaxed);
        self.threads.set(field(20)?);
        self.start_time.set(booted.ok_or_else(invalid)? + seconds(field(22)?));
        self.virtual_bytes.set(field(23)?);
        self.resident_bytes.set(field(24)? * page_size() as i64);
        // One of them is of the folder itself.
        self.open_files.set(fs::read_dir("/proc/self/fd")?.count() as i64 - 1);
        if let Some(files) = getrlimit(Resource::Nofile).current {
            self.max_files.set(i64::try_from(files).unwrap_or(i64::MAX));
        }
        Ok(())
    }
}
