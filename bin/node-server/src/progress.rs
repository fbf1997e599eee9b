//! Shows how far an import is: a bar on a terminal, else a line in the log now and then.

use crate::notify;
use indicatif::{ProgressBar, ProgressStyle};
use node_chain::Progress;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

/// Time between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of one import.
pub(crate) struct ImportProgress {
    /// Counts bytes; hidden where there is no terminal.
    bar: ProgressBar,
    last_line: Duration,
}

impl ImportProgress {
    /// Begins to import `path`, which has `length` bytes.
    pub(crate) fn start(path: &Path, length: u64) -> Self {
        Self { bar: bar(path.display().to_string(), length), last_line: Duration::ZERO }
    }

    /// Counts what is read through `reader`.
    pub(crate) fn count<R: Read>(&self, reader: R) -> impl Read + use<R> {
        self.bar.wrap_read(reader)
    }

    /// Shows that the import has come this far.
    pub(crate) fn update(&mut self, progress: &Progress) {
        if !self.bar.is_hidden() {
            // Drawn only a few times a second, however often it is set.
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

/// A bar on standard error; hidden where that is no terminal.
pub(crate) fn bar(title: String, length: u64) -> ProgressBar {
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(length) } else { ProgressBar::hidden() };
    let template = "{prefix} [{bar:32}] {percent}% {msg}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(title)
}

/// Blocks, gas, and the time they took.
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
    fn rates() {
        let cases = [
            (Rates(100, 30_000_000, Duration::from_secs(2)), "50 blocks/s, 15.0 Mgas/s"),
            (Rates(0, 0, Duration::ZERO), "0 blocks/s, 0.0 Mgas/s"),
        ];
        for (rates, expected) in cases {
            assert_eq!(rates.to_string(), expected);
        }
    }
}
