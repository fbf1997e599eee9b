//! The output of a command: progress and a result, as text or as JSON.
//!
//! As text, progress is a bar on a terminal or lines on standard error, and the result goes to standard output. With
//! `--json` both are lines of JSON on standard output.

use crate::command::progress::bar;
use crate::error::CommandError;
use indicatif::{ProgressBar, ProgressDrawTarget};
use node_core::block::BlockRef;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

/// Minimum time between two lines of text progress.
pub(crate) const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Reports the progress of a command.
pub(crate) struct Report {
    command: &'static str,
    json: bool,
    /// Hidden if there is no terminal, and for JSON.
    bar: ProgressBar,
    started: Instant,
    last_line: Instant,
}

impl Report {
    /// Starts reporting work of `length` units.
    pub(crate) fn start(command: &'static str, json: bool, title: String, length: u64) -> Self {
        let bar = bar(title, length);
        if json {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let now = Instant::now();
        Self { command, json, bar, started: now, last_line: now }
    }

    /// Returns the progress bar, which counts units of work.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Reports progress: `value` on each call with `--json`, otherwise `text` at intervals. Only the result must be
    /// written, so a failure is ignored.
    pub(crate) fn progress(&mut self, text: impl FnOnce() -> String, value: impl FnOnce() -> Value) {
        if self.json {
            let _ = print(line("progress", self.command, value()).as_bytes());
        } else if !self.bar.is_hidden() {
            self.bar.set_message(format!("{}, {}", text(), self.bar.prefix()));
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            let _ = writeln!(io::stderr(), "{}: {}", self.bar.prefix(), text());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Writes the result of a command: `value` with `--json`, otherwise `text`.
pub(crate) fn result(command: &str, json: bool, text: impl Display, value: Value) -> Result<(), CommandError> {
    let text = if json { line("result", command, value) } else { format!("{text}\n") };
    print(text.as_bytes())
}

/// Writes to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &[u8]) -> Result<(), CommandError> {
    let mut output = io::stdout();
    match output.write_all(text).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::Output(error)),
        _ => Ok(()),
    }
}

/// Writes the message of an error as JSON.
pub(crate) fn error(message: impl Display) {
    let _ = writeln!(io::stdout(), "{}", json!({"event": "error", "message": message.to_string()}));
}

pub(crate) fn block(block: BlockRef) -> Value {
    json!({"number": block.number, "hash": format!("{:#x}", block.hash)})
}

fn line(event: &str, command: &str, value: Value) -> String {
    let mut object = json!({"event": event, "command": command});
    if let (Some(object), Value::Object(value)) = (object.as_object_mut(), value) {
        object.extend(value);
    }
    format!("{object}\n")
}
