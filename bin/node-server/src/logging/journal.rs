//! Priorities of log lines in systemd's journal.

use std::env;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::RequestLayer;

/// Returns whether standard error is connected to the journal. It then removes the priority at the start of each line,
/// `<0>` to `<7>`, and stores it (sd-daemon(3)).
pub(super) fn is_stderr() -> bool {
    static IS_STDERR: OnceLock<bool> = OnceLock::new();
    *IS_STDERR.get_or_init(|| {
        let stream = env::var("JOURNAL_STREAM").ok();
        // The variable is inherited by programs whose standard error is another file.
        let file = std::fs::metadata("/proc/self/fd/2").ok();
        stream.zip(file).is_some_and(|(stream, file)| stream == format!("{}:{}", file.dev(), file.ino()))
    })
}

/// Returns the start of a line of `level` in the journal; empty if the line goes elsewhere.
pub(super) fn prefix(level: &Level, is_journal: bool) -> &'static str {
    match *level {
        _ if !is_journal => "",
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// Creates writers for lines. In the journal, lines of requests have the priority of debug messages, so that they can
/// be left out.
pub(super) struct Prioritized<M> {
    pub(super) writer: M,
    pub(super) is_journal: bool,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Prioritized<M> {
    type Writer = PrefixedWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        PrefixedWriter { writer: self.writer.make_writer(), prefix: prefix(&Level::INFO, self.is_journal) }
    }

    fn make_writer_for(&'a self, line: &Metadata<'_>) -> Self::Writer {
        let level = if line.target() == RequestLayer::TARGET { &Level::DEBUG } else { line.level() };
        PrefixedWriter { writer: self.writer.make_writer_for(line), prefix: prefix(level, self.is_journal) }
    }
}

/// Writes one line after a prefix, with a single call.
pub(super) struct PrefixedWriter<W> {
    writer: W,
    prefix: &'static str,
}

impl<W: Write> Write for PrefixedWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.prefix.is_empty() {
            return self.writer.write(line);
        }
        self.writer.write_all(&[self.prefix.as_bytes(), line].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines of some events.
    fn lines(is_journal: bool) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let writer = Prioritized { writer: move || writer.clone(), is_journal };
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().with_writer(writer);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "a", "failed");
            tracing::warn!(target: "a", "odd");
            tracing::info!(target: "a", "started");
            tracing::debug!(target: "a", "detail");
            tracing::info!(target: "request", "served");
        });
        let lines = lines.0.lock().unwrap();
        String::from_utf8(lines.clone()).unwrap()
    }

    #[test]
    fn lines_in_the_journal_have_priorities() {
        let expected =
            "<3>ERROR a: failed\n<4> WARN a: odd\n<6> INFO a: started\n<7>DEBUG a: detail\n<7> INFO request: served\n";
        assert_eq!(lines(true), expected);
        assert_eq!(lines(false), expected.replace(|first| matches!(first, '<' | '>' | '3'..='7'), ""));
    }
}
