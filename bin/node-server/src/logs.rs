//! The log: lines on standard error, as text or as JSON.
//!
//! A background thread writes the lines, so logging does not block. If lines arrive faster than they can be written, some are
//! dropped, and their number is reported at the end. Nothing waits for a reader that has stopped reading.

use crate::dev::RequestLayer;
use clap::ValueEnum;
use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Maximum number of lines that wait to be written.
const MAX_QUEUED_LINES: usize = 65_536;

/// How long the end of the program waits for a message to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long lines are collected before they are written together.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// The running log. Dropping it writes all queued lines.
pub(crate) struct Logs {
    /// `None` while it is dropped.
    worker: Option<WorkerGuard>,
    dropped: ErrorCounter,
}

impl Logs {
    /// Starts logging the events that pass `filter`. `requests` observes the lines of all requests.
    ///
    /// # Errors
    /// If `filter` is not a valid log filter.
    pub(crate) fn start(filter: &str, format: LogFormat, requests: Option<RequestLayer>) -> Result<Self, ParseError> {
        let filter: Targets = filter.parse()?;
        let builder =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_QUEUED_LINES).thread_name("log");
        let (writer, worker) = builder.finish(BatchedStderr(BufWriter::with_capacity(1 << 16, io::stderr())));
        let dropped = writer.error_counter();
        let lines = tracing_subscriber::fmt::layer().with_writer(writer);
        let lines = match format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        };
        let of_requests = Targets::new().with_target(RequestLayer::TARGET, LevelFilter::INFO);
        let requests = requests.map(|requests| requests.with_filter(of_requests));
        tracing_subscriber::registry().with(lines.with_filter(filter)).with(requests).init();
        Ok(Self { worker: Some(worker), dropped })
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        drop(self.worker.take());
        let dropped = self.dropped.dropped_lines();
        if dropped > 0 {
            print_last(format!(
                "{dropped} log lines were dropped because they arrived faster than they could be written"
            ));
        }
    }
}

/// Prints a line to standard error, but stops if nobody reads it.
pub(crate) fn print_last(line: String) {
    let (done, written) = mpsc::channel();
    let _ = thread::Builder::new().spawn(move || {
        eprintln!("{line}");
        let _ = done.send(());
    });
    let _ = written.recv_timeout(LAST_WORDS);
}

/// Standard error with a pause after each flush. Lines that arrive during the pause are written together, and do not have to wake
/// the thread.
struct BatchedStderr(BufWriter<Stderr>);

impl Write for BatchedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(WRITE_INTERVAL);
        Ok(())
    }
}
