//! The log: lines on standard error, or as by anvil on standard output, as text or as JSON.
//!
//! A background thread writes the lines, so logging does not block. If lines arrive faster than they can be written,
//! some are dropped, and their number is reported at the end. Nothing waits for a reader that has stopped reading.

mod fields;
mod journal;
mod requests;

pub(crate) use requests::{EndedRequest, RequestLayer};

use clap::ValueEnum;
use fields::PlainFields;
use journal::Prioritized;
use parking_lot::Mutex;
use serde_json::json;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;
use tracing::Level;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The default filter of the log.
pub(crate) const DEFAULT_LOG: &str = "info,actix_server=warn,actix_http=off";

/// Maximum number of lines that wait to be written.
const MAX_QUEUED_LINES: usize = 65_536;

/// How long the exit of the program waits for the queued lines, and for a message, to be written.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long lines are collected before they are written together.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// Whether lines are JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// The filter during [`toggle_debug`].
const DEBUG: LevelFilter = LevelFilter::DEBUG;

/// Counts the lines that were dropped because the queue was full.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// Counts the lines that could not be written, because the reader has closed the pipe or the disk is full.
static UNWRITTEN: AtomicU64 = AtomicU64::new(0);

/// The filter, which can be changed while the program runs.
static FILTER: OnceLock<Mutex<Filter>> = OnceLock::new();

struct Filter {
    handle: Handle<Targets, Registry>,
    configured: Targets,
    is_debugging: bool,
}

impl Filter {
    fn apply(&self) {
        let filter = if self.is_debugging { Targets::new().with_default(DEBUG) } else { self.configured.clone() };
        // This fails only if the log has ended.
        let _ = self.handle.reload(filter);
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// Where log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stderr,
    Stdout,
}

impl Stream {
    fn open(self) -> Box<dyn Write + Send> {
        match self {
            Self::Stderr => Box::new(io::stderr()),
            Self::Stdout => Box::new(io::stdout()),
        }
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Stderr => io::stderr().is_terminal(),
            Self::Stdout => io::stdout().is_terminal(),
        }
    }
}

/// The running log. Dropping it writes all queued lines.
pub(crate) struct Logs {
    /// `None` only while this is being dropped.
    worker: Option<WorkerGuard>,
}

impl Logs {
    /// Starts logging the events that pass `configured`. `requests` observes the events of all requests.
    pub(crate) fn start(
        configured: Targets,
        format: LogFormat,
        stream: Stream,
        requests: Option<RequestLayer>,
    ) -> Self {
        let (filter, handle) = reload::Layer::new(configured.clone());
        let _ = FILTER.set(Mutex::new(Filter { handle, configured, is_debugging: false }));
        let builder =
            NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_QUEUED_LINES).thread_name("log");
        let (writer, worker) = builder.finish(Batched(BufWriter::with_capacity(1 << 16, stream.open())));
        // There is one log, because tracing accepts one subscriber.
        let _ = DROPPED.set(writer.error_counter());
        let lines =
            tracing_subscriber::fmt::layer().with_writer(Prioritized { writer, is_journal: journal::is_stderr() });
        let lines = match format {
            LogFormat::Text if stream.is_terminal() => lines.with_ansi(true).boxed(),
            LogFormat::Text => lines.with_ansi(false).fmt_fields(PlainFields).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        };
        let of_requests = Targets::new().with_target(RequestLayer::TARGET, LevelFilter::INFO);
        let requests = requests.map(|requests| requests.with_filter(of_requests));
        tracing_subscriber::registry().with(lines.with_filter(filter)).with(requests).init();
        Self { worker: Some(worker) }
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        // If the queue is full, the guard writes to standard output, whose reader may have stalled as well.
        if let Some(worker) = self.worker.take() {
            bounded("log-end", move || drop(worker));
        }
        let dropped = dropped_lines();
        if dropped > 0 {
            let text =
                format!("{dropped} log lines were dropped because they could not be written, or not fast enough");
            print(Level::WARN, &text);
        }
    }
}

/// Why a log filter is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidLineFilter {
    /// A part of it is neither a level nor `target=level`.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// A part of it is a single word that is not a level.
    #[error("'{0}' is not a level: expected off, error, warn, info, debug or trace, or TARGET=LEVEL")]
    NotALevel(String),
    /// The part before `=` cannot be a target.
    #[error(
        "'{0}' is not TARGET=LEVEL: commas separate the parts, and a target consists of letters, digits, _, -, . and :"
    )]
    NotATarget(String),
}

/// The value of `--log`.
#[derive(Clone, Debug)]
pub(crate) struct LineFilter {
    text: String,
    /// The lines that it selects. Messages from actix about connections are left out, unless the filter mentions actix.
    pub(crate) targets: Targets,
}

impl LineFilter {
    /// Returns whether this is the default value.
    pub(crate) fn is_default(&self) -> bool {
        self.text == DEFAULT_LOG
    }
}

impl FromStr for LineFilter {
    type Err = InvalidLineFilter;

    /// Refuses a word that is not a level: [`Targets`] would interpret it as a target and log only that target. It would
    /// also accept targets that no line has, such as `info request` with a space instead of a comma, and an empty level.
    /// Errors are logged unless the filter says `off`; an empty filter is the default one.
    fn from_str(text: &str) -> Result<Self, InvalidLineFilter> {
        let is_level = |word: &&str| word.parse::<LevelFilter>().is_ok();
        // [`Targets`] would interpret an empty word as a target, too.
        let mut words: Vec<_> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        if let Some(word) = words.iter().find(|word| !word.contains('=') && !is_level(word)) {
            return Err(InvalidLineFilter::NotALevel((*word).to_owned()));
        }
        let is_selector = |word: &str| {
            word.split_once('=').is_none_or(|(target, level)| {
                let of_target = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
                !target.is_empty() && target.bytes().all(of_target) && !level.is_empty()
            })
        };
        if let Some(word) = words.iter().find(|word| !is_selector(word)) {
            return Err(InvalidLineFilter::NotATarget((*word).to_owned()));
        }
        if words.is_empty() {
            words.push(DEFAULT_LOG);
        } else if !words.iter().any(is_level) {
            words.push("error");
        }
        let text = words.join(",");
        let mut targets: Targets = text.parse()?;
        if !text.contains("actix") {
            targets = without_connections(targets);
        }
        Ok(Self { text, targets })
    }
}

/// Returns the filter that selects the lines of `level` and the more important ones, except messages from actix about
/// connections.
pub(crate) fn from_level(level: LevelFilter) -> Targets {
    without_connections(Targets::new().with_default(level))
}

/// Returns `targets` without messages from actix about connections, such as malformed requests, which clients can cause
/// at will.
fn without_connections(targets: Targets) -> Targets {
    let server = targets.default_level().unwrap_or(LevelFilter::OFF).min(LevelFilter::WARN);
    targets.with_targets([("actix_server", server), ("actix_http", LevelFilter::OFF)])
}

/// Replaces the filter.
pub(crate) fn set_filter(configured: Targets) {
    if let Some(filter) = FILTER.get() {
        let mut filter = filter.lock();
        (filter.configured, filter.is_debugging) = (configured, false);
        filter.apply();
    }
}

/// Switches between all lines of level debug and above, and those of the configured filter. Returns whether the
/// former are now selected.
pub(crate) fn toggle_debug() -> bool {
    FILTER.get().is_some_and(|filter| {
        let mut filter = filter.lock();
        filter.is_debugging = !filter.is_debugging;
        filter.apply();
        filter.is_debugging
    })
}

/// Returns the number of lines that were dropped.
pub(crate) fn dropped_lines() -> u64 {
    let queue_full = DROPPED.get().map_or(0, |counter| counter.dropped_lines() as u64);
    queue_full + UNWRITTEN.load(Ordering::Relaxed)
}

/// Sets the format of all lines, including those printed before the log starts and after it ends, and lines about
/// panics.
pub(crate) fn set_format(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    if is_structured() {
        panic::set_hook(Box::new(|panic| print(Level::ERROR, &panic.to_string().replace('\n', " "))));
    }
}

/// Returns whether lines are JSON.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Returns whether a message must be on one line: as JSON, or because the journal stores each line with its priority.
pub(crate) fn is_structured() -> bool {
    is_json() || journal::is_stderr()
}

/// Prints a line of `level` to standard error, for use before the log starts or after it ends. Gives up if nothing
/// reads it.
pub(crate) fn print(level: Level, message: &str) {
    let line = format!("{}{}", journal::prefix(&level, journal::is_stderr()), line(level, message, is_json()));
    bounded("last-words", move || eprintln!("{line}"));
}

/// Prints to standard output where the server listens, preceded by `banner`. In JSON, this is a line without the banner.
/// Does not wait for a reader that has stalled.
pub(crate) fn announce(banner: &str, listening: &str) {
    let text = if is_json() { line(Level::INFO, listening, true) } else { format!("{banner}{listening}") };
    // The reader may have closed the pipe.
    bounded("announcement", move || drop(writeln!(io::stdout(), "{text}")));
}

/// Returns a line with the message, in the format of the log if that is JSON.
fn line(level: Level, message: &str, is_json: bool) -> String {
    if is_json {
        let mut timestamp = String::new();
        // Writing to a string does not fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
        let value = json!({"timestamp": timestamp, "level": level.as_str(), "message": message, "target": "ethnode"});
        return value.to_string();
    }
    let word = if level == Level::WARN { "warning" } else { "error" };
    format!("{word}: {message}")
}

/// Runs `write` on a thread named `name`, and waits for it for at most [`LAST_WORDS`].
pub(crate) fn bounded(name: &str, write: impl FnOnce() + Send + 'static) {
    let (done, written) = mpsc::channel();
    let _ = thread::Builder::new().name(name.to_owned()).spawn(move || {
        write();
        let _ = done.send(());
    });
    let _ = written.recv_timeout(LAST_WORDS);
}

/// A stream with a pause after each flush. Lines that arrive during the pause are written together and do not wake the
/// thread.
struct Batched(BufWriter<Box<dyn Write + Send>>);

impl Write for Batched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // One call for each line. A line is lost if the buffer is full of lines that cannot be written.
        let written = self.0.write(bytes);
        if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            UNWRITTEN.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(WRITE_INTERVAL);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actix_is_quiet_unless_the_filter_mentions_it() {
        let of = |targets: &Targets| {
            let lines = [
                ("actix_server", Level::INFO),
                ("actix_server", Level::WARN),
                ("actix_http", Level::ERROR),
                ("node", Level::INFO),
                ("node", Level::ERROR),
            ];
            lines.map(|(target, level)| targets.would_enable(target, &level))
        };
        let enabled = |filter: &str| of(&filter.parse::<LineFilter>().unwrap().targets);
        assert_eq!(enabled("info,request=off"), [false, true, false, true, true]);
        assert_eq!(enabled("debug"), [false, true, false, true, true]);
        assert_eq!(enabled("warn"), [false, true, false, false, true]);
        assert_eq!(enabled("error,request=info"), [false, false, false, false, true]);
        assert_eq!(enabled("node=info"), [false, false, false, true, true]);
        assert_eq!(enabled("info,actix_http=info"), [true; 5]);
        assert_eq!(enabled("off"), [false; 5]);
        assert_eq!(of(&from_level(LevelFilter::ERROR)), [false, false, false, false, true]);
    }

    #[test]
    fn a_word_that_is_not_a_level_is_refused() {
        for filter in ["warning", "info,debugg", "[["] {
            assert!(matches!(filter.parse::<LineFilter>(), Err(InvalidLineFilter::NotALevel(_))), "{filter}");
        }
        assert!(matches!("info,node=loud".parse::<LineFilter>(), Err(InvalidLineFilter::Parse(_))));
        for filter in
            ["info request=warn", "info;request=warn", "=", "=warn", "request=", "info|request=warn", "a =warn"]
        {
            assert!(matches!(filter.parse::<LineFilter>(), Err(InvalidLineFilter::NotATarget(_))), "{filter}");
        }
        for filter in ["info, request=warn", "node_core::pool=debug", "warn,request=info,"] {
            assert!(filter.parse::<LineFilter>().is_ok(), "{filter}");
        }
    }

    #[test]
    fn no_filter_but_off_silences_errors() {
        for filter in
            ["info,", ",info", " info , ,", "info, request=off,", "request=off", "request=info", "", ",", "error"]
        {
            let targets = filter.parse::<LineFilter>().unwrap().targets;
            for target in ["node_http", "node_server", "actix_server"] {
                assert!(targets.would_enable(target, &Level::ERROR), "{filter:?}");
            }
        }
        assert!("".parse::<LineFilter>().unwrap().is_default());
        for filter in ["off", "off,", "request=info,off"] {
            let targets = filter.parse::<LineFilter>().unwrap().targets;
            assert!(!targets.would_enable("node", &Level::ERROR), "{filter:?}");
        }
    }

    #[test]
    fn lines_outside_of_the_log_have_its_format() {
        assert_eq!(line(Level::ERROR, "no", false), "error: no");
        assert_eq!(line(Level::WARN, "well", false), "warning: well");
        let value: serde_json::Value = serde_json::from_str(&line(Level::WARN, "a \"b\"", true)).unwrap();
        assert_eq!((&value["level"], &value["message"]), (&json!("WARN"), &json!("a \"b\"")));
        assert!(value["timestamp"].as_str().unwrap().ends_with('Z'), "{value}");
    }
}
