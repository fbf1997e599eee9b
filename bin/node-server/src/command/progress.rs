//! Progress of an import: a bar on a terminal, otherwise a log line at intervals.

use crate::server::notify;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use node_chain::Progress;
use node_http::{HttpConfig, Metrics, Starting};
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

/// Time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Time between two updates of the progress in `/ready`.
const STATUS_INTERVAL: Duration = Duration::from_millis(200);

/// Shows the progress of one import.
pub(crate) struct ImportReporter {
    title: String,
    /// Counts bytes. Hidden if standard error is not a terminal.
    bar: ProgressBar,
    last_line: Duration,
    /// The progress that `/ready` reports.
    starting: Starting,
    /// The progress in the metrics.
    metrics: Metrics,
    last_status: Duration,
}

impl ImportReporter {
    /// Starts showing the progress of the file at `path`, which has `length` bytes, in a server with the
    /// configuration `http`.
    pub(crate) fn start(path: &Path, length: u64, http: &HttpConfig) -> Self {
        let title = path.display().to_string();
        let (starting, metrics) = (http.starting.clone(), http.metrics.clone());
        starting.set(format!("importing {title}"));
        metrics.set_import_progress(0.0);
        let bar = bar(title.clone(), length);
        Self { title, bar, last_line: Duration::ZERO, starting, metrics, last_status: Duration::ZERO }
    }

    /// Returns a reader that advances the bar by the bytes it reads.
    pub(crate) fn count<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.bar.wrap_read(reader)
    }

    /// Shows the current state of the import.
    pub(crate) fn update(&mut self, progress: &Progress) {
        let Progress { number, blocks, gas, elapsed } = *progress;
        if !self.bar.is_hidden() {
            // The bar limits how often it redraws.
            self.bar.set_message(format!("block {number}, {}, {}", Rates(blocks, gas, elapsed), self.title));
        }
        if elapsed < self.last_status + STATUS_INTERVAL {
            return;
        }
        self.last_status = elapsed;
        let share = Share::of(&self.bar, elapsed);
        self.metrics.set_import_progress(share.ratio().unwrap_or_default());
        let text = format!("{share}, block {number}, {}", Rates(blocks, gas, elapsed));
        if self.bar.is_hidden() && elapsed >= self.last_line + LOG_INTERVAL {
            self.last_line = elapsed;
            tracing::info!("importing {}: {text}", self.title);
            notify::starting(&text);
        }
        self.starting.set(format!("importing {}: {text}", self.title));
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.metrics.set_import_progress(Share::of(&self.bar, Duration::ZERO).ratio().unwrap_or_default());
        self.bar.finish_and_clear();
    }
}

/// Returns a progress bar on standard error. Hidden if that is not a terminal.
pub(crate) fn bar(title: String, length: u64) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    // The message takes the rest of the line.
    let template = "{percent:>3}% [{bar:10}] {eta} left, {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_message(title.clone()).with_prefix(title)
}

/// The completed share of the work, and the time that the rest takes at the same speed.
pub(crate) struct Share {
    done: u64,
    of: u64,
    elapsed: Duration,
}

impl Share {
    /// Returns the share that `bar` shows, `elapsed` after its start.
    pub(crate) fn of(bar: &ProgressBar, elapsed: Duration) -> Self {
        Self { done: bar.position(), of: bar.length().unwrap_or_default(), elapsed }
    }

    /// Returns the share as a number from 0 to 1, or `None` if the total is unknown, as for a pipe.
    fn ratio(&self) -> Option<f64> {
        (self.of > 0).then(|| (self.done as f64 / self.of as f64).min(1.0))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(share) = self.ratio() else { return f.write_str("unknown length") };
        // If nothing is done yet, there is no speed.
        let left = self.elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-9);
        let left = HumanDuration(Duration::from_secs(left.min(1e9) as u64));
        write!(f, "{:.0}%, {left} left", 100.0 * share)
    }
}

/// Formats blocks and gas per second, from counts and the time they took.
pub(crate) struct Rates(pub(crate) u64, pub(crate) u64, pub(crate) Duration);

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(blocks, gas, elapsed) = self;
        let seconds = elapsed.as_secs_f64().max(1e-9);
        write!(f, "{:.0} blocks/s, {:.1} Mgas/s", *blocks as f64 / seconds, *gas as f64 / seconds / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_the_share_and_the_time_left() {
        let share = |done, of, seconds| Share { done, of, elapsed: Duration::from_secs(seconds) }.to_string();
        assert_eq!(share(25, 100, 60), "25%, 3 minutes left");
        assert_eq!(share(100, 100, 60), "100%, 0 seconds left");
        assert_eq!(share(7, 0, 1), "unknown length");
    }

    #[test]
    fn formats_blocks_and_gas_per_second() {
        let cases = [
            (Rates(100, 30_000_000, Duration::from_secs(2)), "50 blocks/s, 15.0 Mgas/s"),
            (Rates(0, 0, Duration::ZERO), "0 blocks/s, 0.0 Mgas/s"),
        ];
        for (rates, expected) in cases {
            assert_eq!(rates.to_string(), expected);
        }
    }
}
