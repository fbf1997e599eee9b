//! Requests, as reported by the log: successful ones are counted, failures are shown.

use super::Event;
use super::escape::escaped;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use tracing::field::{Field, Visit};
use tracing::{Event as LogEvent, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The number of requests of each operation since it was last printed.
#[derive(Debug, Default)]
pub(super) struct RequestCounts(Mutex<BTreeMap<String, u64>>);

impl RequestCounts {
    fn add(&self, operation: &str) {
        let mut counts = self.0.lock();
        match counts.get_mut(operation) {
            Some(count) => *count += 1,
            None => drop(counts.insert(operation.to_owned(), 1)),
        }
    }

    /// Returns the numbers as one line and resets them, or returns `None` if there were no requests.
    pub(super) fn take(&self) -> Option<String> {
        let counts = std::mem::take(&mut *self.0.lock());
        let counts: Vec<_> = counts.iter().map(|(operation, count)| format!("{operation} {count}")).collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failed {
    operation: String,
    code: i64,
    message: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, code, message } = self;
        // The message may quote data that a contract returned, and the operation may be a path.
        f.write_str(&escaped(&format!("{operation} failed: {message} ({code})")))
    }
}

/// A layer of the log that observes the events of requests.
pub(crate) struct RequestLayer {
    counts: Arc<RequestCounts>,
    events: SyncSender<Event>,
}

impl RequestLayer {
    /// The target of the events that it observes.
    pub(crate) const TARGET: &str = "request";

    pub(super) fn new(counts: Arc<RequestCounts>, events: SyncSender<Event>) -> Self {
        Self { counts, events }
    }
}

impl<S: Subscriber> Layer<S> for RequestLayer {
    fn on_event(&self, event: &LogEvent<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        // No operation is at the path.
        if fields.request.operation == "none" && !fields.path.is_empty() {
            fields.request.operation = format!("{} {}", fields.method, fields.path);
        }
        if fields.failed {
            // Skipped while too many events are waiting.
            let _ = self.events.try_send(Event::Failed(fields.request));
        } else {
            self.counts.add(&fields.request.operation);
        }
    }
}

/// The relevant fields of a log event.
#[derive(Default)]
struct Fields {
    request: Failed,
    failed: bool,
    method: String,
    path: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "operation" => value.clone_into(&mut self.request.operation),
            "method" => value.clone_into(&mut self.method),
            "path" => value.clone_into(&mut self.path),
            "error" => {
                value.clone_into(&mut self.request.message);
                self.failed = true;
            }
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "code" {
            self.request.code = value;
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn counts_what_succeeds_and_reports_what_fails() {
        let (events, received) = sync_channel(8);
        let counts = Arc::new(RequestCounts::default());
        let layer = RequestLayer::new(counts.clone(), events);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            for operation in ["eth_call", "eth_chainId", "eth_call"] {
                tracing::info!(target: "request", operation, status = 200);
            }
            tracing::info!(target: "request", operation = "eth_call", code = 3_i64, error = "execution reverted: a\nb");
            let (method, path) = ("GET", "/nothing");
            tracing::info!(target: "request", method, path, operation = "none", code = 404_i64, error = "no such path");
        });
        assert_eq!(counts.take().as_deref(), Some("eth_call 2, eth_chainId 1"));
        assert_eq!(counts.take(), None);
        let expected = [r"eth_call failed: execution reverted: a\nb (3)", "GET /nothing failed: no such path (404)"];
        let lines = received.try_iter().map(|event| match event {
            Event::Failed(failed) => failed.to_string(),
            _ => panic!("another event"),
        });
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }
}
