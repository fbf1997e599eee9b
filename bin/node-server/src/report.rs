//! What a command tells: progress and a result, for people or for machines.
//!
//! Progress is a bar on a terminal, and lines on standard error elsewhere; results go to standard output. For machines both are
//! lines of JSON on standard output.

use crate::error::{CommandError, Sources};
use crate::progress::bar;
use indicatif::ProgressBar;
use node_core::block::BlockRef;
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Least time between two lines for people.
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// Tells how far a command is.
pub(crate) struct Report {
    command: &'static str,
    json: bool,
    /// Hidden where there is no terminal, and for machines.
    bar: ProgressBar,
    started: Instant,
    last_line: Instant,
}

impl Report {
    /// Begins a piece of work of so many units.
    pub(crate) fn start(command: &'static str, json: bool, title: String, length: u64) -> Self {
        let bar = if json { ProgressBar::hidden() } else { bar(title, length) };
        let now = Instant::now();
        Self { command, json, bar, started: now, last_line: now }
    }

    /// The bar, which counts the units.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Tells how far it is: `value` to machines each time, `text` to people now and then.
    pub(crate) fn progress(&mut self, text: impl FnOnce() -> String, value: impl FnOnce() -> Value) {
        if self.json {
            line("progress", self.command, value());
        } else if !self.bar.is_hidden() {
            self.bar.set_message(text());
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            eprintln!("{}: {}", self.bar.prefix(), text());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Tells the result.
pub(crate) fn result(command: &'static str, json: bool, text: impl Display, value: Value) {
    if json {
        line("result", command, value);
    } else {
        // Nobody may be there to read it.
        let _ = writeln!(io::stdout(), "{text}");
    }
}

/// Tells machines why there is no result.
pub(crate) fn error(error: &CommandError) {
    let _ = writeln!(io::stdout(), "{}", json!({"event": "error", "message": Sources(error).to_string()}));
}

/// Tells machines that their command line cannot be understood.
pub(crate) fn usage_error(message: &str) {
    let _ = writeln!(io::stdout(), "{}", json!({"event": "error", "message": message}));
}

/// A block as JSON.
pub(crate) fn block(block: BlockRef) -> Value {
    json!({"number": block.number, "hash": format!("{:#x}", block.hash)})
}

fn line(event: &str, command: &str, value: Value) {
    let mut object = json!({"event": event, "command": command});
    if let (Some(object), Value::Object(value)) = (object.as_object_mut(), value) {
        object.extend(value);
    }
    let _ = writeln!(io::stdout(), "{object}");
}
