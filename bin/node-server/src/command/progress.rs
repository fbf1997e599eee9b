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
    new: NewBlocks,
    last_line: Duration,
    /// The progress that `/ready` reports.
    starting: Starting,
    /// The progress in the metrics.
    metrics: Metrics,
    last_status: Duration,
}

impl ImportReporter {
    /// Starts showing the progress of the file at `path`, which has `length` bytes and is read from the byte `offset`
    /// on, in a server with the configuration `http`.
    pub(crate) fn start(path: &Path, length: u64, offset: u64, http: &HttpConfig) -> Self {
        let title = path.display().to_string();
        let (starting, metrics) = (http.starting.clone(), http.metrics.clone());
        starting.set(format!("importing {title}"));
        metrics.set_import_progress(0.0);
        let bar = bar(title.clone(), length);
        bar.set_position(offset);
        let new = NewBlocks::after(offset);
        Self { title, bar, new, last_line: Duration::ZERO, starting, metrics, last_status: Duration::ZERO }
    }

    /// Returns a reader that advances the bar by the bytes it reads.
    pub(crate) fn count<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.bar.wrap_read(reader)
    }

    /// Shows the current state of the import.
    pub(crate) fn update(&mut self, progress: &Progress) {
        let share = self.new.share(progress, &self.bar);
        let number = progress.number;
        if !self.bar.is_hidden() {
            // The bar limits how often it redraws.
            self.bar.set_message(format!("block {number}, {}, {}", share.rates, self.title));
        }
        if progress.elapsed < self.last_status + STATUS_INTERVAL {
            return;
        }
        self.last_status = progress.elapsed;
        self.metrics.set_import_progress(share.ratio().unwrap_or_default());
        let text = format!("{share}, block {number}, {}", share.rates);
        if self.bar.is_hidden() && progress.elapsed >= self.last_line + LOG_INTERVAL {
            self.last_line = progress.elapsed;
            tracing::info!("importing {}: {text}", self.title);
            notify::starting(&text);
        }
        self.starting.set(format!("importing {}: {text}", self.title));
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        let (done, of) = (self.bar.position(), self.bar.length().unwrap_or_default());
        self.metrics.set_import_progress(ratio(done, of).unwrap_or_default());
        self.bar.finish_and_clear();
    }
}

/// Measures the time that new blocks take. Blocks that are already stored are read much faster, and would make the
/// estimate of the remaining time far too short.
pub(crate) struct NewBlocks {
    /// Bytes read and time, when the last block was processed.
    last: (u64, Duration),
    /// The same before the first new block; `None` if there was none yet.
    begin: Option<(u64, Duration)>,
}

impl NewBlocks {
    /// Begins to measure the import of a file from the byte `offset` on.
    pub(crate) fn after(offset: u64) -> Self {
        Self { last: (offset, Duration::ZERO), begin: None }
    }

    /// Returns the completed share of the work. Restarts the estimate of `bar` with the first new block.
    pub(crate) fn share(&mut self, progress: &Progress, bar: &ProgressBar) -> Share {
        let Progress { blocks, known, gas, elapsed, .. } = *progress;
        // Not the place of the block, which in a compressed file is that after decompression.
        let done = bar.position();
        let new = blocks - known;
        if new > 0 && self.begin.is_none() {
            self.begin = Some(self.last);
            bar.reset_eta();
        }
        self.last = (done, elapsed);
        let (from, since) = self.begin.unwrap_or(self.last);
        let time = elapsed.saturating_sub(since);
        Share {
            done,
            of: bar.length().unwrap_or_default(),
            new: done.saturating_sub(from),
            time,
            rates: Rates(new, gas, time),
        }
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
    /// Bytes done, of all.
    done: u64,
    of: u64,
    /// Bytes of new blocks that are done, and the time that they took.
    new: u64,
    time: Duration,
    pub(crate) rates: Rates,
}

impl Share {
    /// Returns the share as a number from 0 to 1, or `None` if the total is unknown, as for a pipe.
    fn ratio(&self) -> Option<f64> {
        ratio(self.done, self.of)
    }
}

fn ratio(done: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| (done as f64 / of as f64).min(1.0))
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(share) = self.ratio() else { return f.write_str("unknown length") };
        if self.new == 0 {
            return write!(f, "{:.0}%, reading known blocks", 100.0 * share);
        }
        let left = self.time.as_secs_f64() * self.of.saturating_sub(self.done) as f64 / self.new as f64;
        let left = HumanDuration(Duration::from_secs(left.min(1e9) as u64));
        write!(f, "{:.0}%, {left} left", 100.0 * share)
    }
}

/// Formats blocks and gas per second, from counts and the time they took.
#[derive(Clone, Copy)]
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

    /// The share after each of these blocks of a file of 1,000 bytes: its end, the seconds, and whether it was known.
    fn shares(offset: u64, length: u64, steps: &[(u64, u64, bool)]) -> Vec<String> {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let (mut new, mut known) = (NewBlocks::after(offset), 0);
        let share = |(step, blocks): (&(u64, u64, bool), u64)| {
            let (end, seconds, is_known) = *step;
            known += u64::from(is_known);
            let elapsed = Duration::from_secs(seconds);
            bar.set_position(end);
            new.share(&Progress { number: blocks, blocks, known, place: 0..end, gas: 0, elapsed }, &bar).to_string()
        };
        steps.iter().zip(1..).map(share).collect()
    }

    #[test]
    fn formats_the_share_and_the_time_left() {
        assert_eq!(shares(0, 1_000, &[(250, 60, false)]), ["25%, 3 minutes left"]);
        assert_eq!(shares(0, 1_000, &[(1_000, 60, false)]), ["100%, 0 seconds left"]);
        assert_eq!(shares(0, 0, &[(7, 1, false)]), ["unknown length"]);
    }

    #[test]
    fn the_time_left_counts_new_blocks_only() {
        // Half of the file is known, and read in two seconds; another tenth takes a minute.
        let steps = [(400, 1, true), (500, 2, true), (600, 62, false), (700, 122, false)];
        let expected =
            ["40%, reading known blocks", "50%, reading known blocks", "60%, 4 minutes left", "70%, 3 minutes left"];
        assert_eq!(shares(0, 1_000, &steps), expected);
        // The first half was not even read.
        assert_eq!(shares(500, 1_000, &[(600, 60, false)]), ["60%, 4 minutes left"]);
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
