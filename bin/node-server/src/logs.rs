//! The log: lines on standard error, as text or as JSON.
//!
//! Whoever logs hands a line over and goes on; a thread writes what has come. When more comes than can be written, lines are
//! left out, and their number is told at the end.

use clap::ValueEnum;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{self, FormatTime};

/// Lines that may wait to be written.
const LINES: usize = 65_536;

/// How long lines are gathered before they are written together.
const GATHERING: Duration = Duration::from_millis(10);

/// How the lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// For machines: one object a line
    Json,
}

/// The log. What was logged is written when it is dropped.
pub(crate) struct Logs {
    /// None once the last line is written.
    worker: Option<WorkerGuard>,
    lost: ErrorCounter,
}

impl Logs {
    /// Begins to write what `filter` lets through.
    pub(crate) fn start(filter: &str, format: LogFormat) -> Result<Self, ParseError> {
        let filter = EnvFilter::try_new(filter)?;
        let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log");
        let (writer, worker) = builder.finish(Gathered(BufWriter::with_capacity(1 << 16, io::stderr())));
        let lost = writer.error_counter();
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_timer(Clock).with_writer(writer);
        match format {
            LogFormat::Text => subscriber.with_ansi(io::stderr().is_terminal()).init(),
            LogFormat::Json => {
                subscriber.json().flatten_event(true).with_current_span(false).with_span_list(false).init()
            }
        }
        Ok(Self { worker: Some(worker), lost })
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        drop(self.worker.take());
        let lost = self.lost.dropped_lines();
        if lost > 0 {
            eprintln!("{lost} lines of the log were left out: they came faster than they could be written");
        }
    }
}

/// The time of a line, in UTC and microseconds. Each thread makes the text of a second once: to make it takes longer than the rest
/// of a line.
struct Clock;

/// A second since the Unix epoch, and its text up to the fractions.
type Second = (u64, String);

thread_local! {
    static SECOND: RefCell<Second> = const { RefCell::new((u64::MAX, String::new())) };
}

impl FormatTime for Clock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SECOND.with_borrow_mut(|(second, text)| {
            let mut time = now();
            while *second != time.as_secs() {
                text.clear();
                time::SystemTime.format_time(&mut Writer::new(text))?;
                text.truncate(SECONDS);
                // The text may already be that of the next second.
                *second = time.as_secs();
                time = now();
            }
            write!(writer, "{text}.{:06}Z", time.subsec_micros())
        })
    }
}

/// Length of `2026-11-22T08:00:00`.
const SECONDS: usize = 19;

/// Waits a moment after what there was is written. While the thread waits, whoever logs does not have to wake it, and what comes
/// is written together.
struct Gathered(BufWriter<Stderr>);

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(GATHERING);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_time_of_the_clock() {
        let mut texts = Vec::new();
        for _ in 0..3 {
            let mut text = String::new();
            time::SystemTime.format_time(&mut Writer::new(&mut text)).unwrap();
            texts.push(text);
            let mut text = String::new();
            Clock.format_time(&mut Writer::new(&mut text)).unwrap();
            texts.push(text);
            thread::sleep(Duration::from_millis(400));
        }
        assert!(
            texts.is_sorted() && texts.iter().all(|text| text.len() == "2026-11-22T08:00:00.000000Z".len()),
            "{texts:?}"
        );
    }
}
