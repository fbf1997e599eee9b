//! The log: lines on standard error, as text or as JSON.
//!
//! Whoever logs hands a line over and goes on; a thread writes what has come. When more comes than can be written, lines are
//! left out, and their number is told at the end.

use clap::ValueEnum;
use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::thread;
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

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
        let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
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
