//! The fields of text log lines.

use std::fmt;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::{MakeVisitor, VisitFmt, VisitOutput};
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

/// Formats fields like tracing-subscriber does without colors. Its formatter writes every field through a dozen
/// formatting calls, so that the log line took a tenth of the processor time of a light request.
pub(crate) struct PlainFields;

impl<'w> MakeVisitor<Writer<'w>> for PlainFields {
    type Visitor = PlainVisitor<'w>;

    fn make_visitor(&self, writer: Writer<'w>) -> PlainVisitor<'w> {
        PlainVisitor { all: DefaultVisitor::new(writer, true), has_begun: false, result: Ok(()) }
    }
}

/// Writes texts and numbers itself, and everything else with the visitor of tracing-subscriber.
pub(crate) struct PlainVisitor<'w> {
    all: DefaultVisitor<'w>,
    /// Whether the other visitor has written a field, so that it separates further ones by spaces.
    has_begun: bool,
    result: fmt::Result,
}

impl PlainVisitor<'_> {
    fn write(&mut self, field: &Field, pieces: &[&str]) {
        let mut write = |piece: &str| self.all.writer().write_str(piece);
        let written = [" ", field.name(), "="].iter().chain(pieces).try_for_each(|piece| write(piece));
        self.result = self.result.and(written);
    }

    /// Returns whether the field can be written without the other visitor: a field precedes it, and its name is written
    /// as it is.
    fn is_plain(&self, field: &Field) -> bool {
        self.has_begun && field.name() != "message" && !field.name().contains(['.', '#'])
    }
}

impl Visit for PlainVisitor<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_quoted_as_is = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if self.is_plain(field) && value.bytes().all(is_quoted_as_is) {
            self.write(field, &["\"", value, "\""]);
        } else {
            self.has_begun = true;
            self.all.record_str(field, value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.is_plain(field) {
            self.write(field, &[itoa::Buffer::new().format(value)]);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.has_begun = true;
        self.all.record_debug(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.has_begun = true;
        self.all.record_error(field, value);
    }
}

impl VisitOutput<fmt::Result> for PlainVisitor<'_> {
    fn finish(self) -> fmt::Result {
        self.all.finish().and(self.result)
    }
}

impl VisitFmt for PlainVisitor<'_> {
    fn writer(&mut self) -> &mut dyn fmt::Write {
        self.all.writer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::format::{DefaultFields, FormatFields};
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines of some events.
    fn lines(fields: impl for<'w> FormatFields<'w> + Send + Sync + 'static) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).without_time().fmt_fields(fields);
        let layer = layer.with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let error: &(dyn std::error::Error + 'static) = &io::Error::other("a \"cause\"\u{1b}[31m");
            tracing::info!(id = %"3c", client = %"::1", path = "/a b/", status = 200, code = -7, bytes = None::<u64>, "done");
            tracing::info!(
                path = "first",
                micros = u64::MAX,
                quoted = "a\"b\\c",
                control = "a\n\u{1b}[31m",
                unicode = "ä"
            );
            tracing::info!(number = 7, ratio = 0.5, yes = true, error, debug = ?Some("x"));
            tracing::info!("log.line" = 7, micros = 8, r#type = "t", message = "named");
            tracing::info!("no fields");
        });
        let lines = lines.0.lock().unwrap();
        String::from_utf8(lines.clone()).unwrap()
    }

    #[test]
    fn lines_are_those_of_tracing_subscriber() {
        let expected = lines(DefaultFields::new());
        assert!(expected.contains("path=\"/a b/\" status=200"), "{expected}");
        assert_eq!(lines(PlainFields), expected);
    }
}
