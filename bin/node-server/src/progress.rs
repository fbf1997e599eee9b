//! Progress of an import: a bar on a terminal, otherwise a log line at intervals.

use crate::notify;
use indicatif::{ProgressBar, ProgressStyle};
use node_chain::Progress;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

/// Time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of one import.
pub(crate) struct ImportProgress {
    /// Counts bytes. Hidden if standard error is not a terminal.
    bar: ProgressBar,
    last_line: Duration,
}

impl ImportProgress {
    /// Starts for the file at `path`, which has `length` bytes.
    pub(crate) fn start(path: &Path, length: u64) -> Self {
        Self { bar: bar(path.display().to_string(), length), last_line: Duration::ZERO }
    }

    /// Returns a reader that advances the bar by the bytes it reads.
    pub(crate) fn count<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.bar.wrap_read(reader)
    }

    /// Shows the current state of the import.
    pub(crate) fn update(&mut self, progress: &Progress) {
        if !self.bar.is_hidden() {
            // The bar limits how often it redraws.
            self.bar.set_message(format!(
                "block {}, {}",
                progress.number,
                Rates(progress.blocks, progress.gas, progress.elapsed)
            ));
        } else if progress.elapsed >= self.last_line + LOG_INTERVAL {
            self.last_line = progress.elapsed;
            let Progress { number, blocks, gas, elapsed } = *progress;
            let text = format!("importing: block {number}, {}", Rates(blocks, gas, elapsed));
            tracing::info!("{text}");
            notify::starting(text);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar on standard error. Hidden if that is not a terminal.
pub(crate) fn bar(title: String, length: u64) -> ProgressBar {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(length) } else { ProgressBar::hidden() };
    let template = "{prefix} [{bar:32}] {percent}% {msg}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(title)
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
