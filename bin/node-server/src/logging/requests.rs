//! Requests that have ended, as their log events report them.

use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// A request that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedRequest {
    /// Name of the operation. If none is at the path, the method and the path.
    pub(crate) operation: String,
    /// The status of a failed request, or the code of a JSON-RPC error.
    pub(crate) code: i64,
    /// The error, or `None` if the request succeeded.
    pub(crate) error: Option<String>,
}

/// A layer of the log that passes each request that ends to a function.
pub(crate) struct RequestLayer(Box<dyn Fn(EndedRequest) + Send + Sync>);

impl RequestLayer {
    /// The target of the events that it observes.
    pub(super) const TARGET: &str = "request";

    pub(crate) fn new(observe: impl Fn(EndedRequest) + Send + Sync + 'static) -> Self {
        Self(Box::new(observe))
    }
}

impl<S: Subscriber> Layer<S> for RequestLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let Fields { mut request, method, path } = fields;
        // No operation is at the path.
        if request.operation == "none" && !path.is_empty() {
            request.operation = format!("{method} {path}");
        }
        (self.0)(request);
    }
}

/// The relevant fields of a log event.
#[derive(Default)]
struct Fields {
    request: EndedRequest,
    method: String,
    path: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "operation" => value.clone_into(&mut self.request.operation),
            "method" => value.clone_into(&mut self.method),
            "path" => value.clone_into(&mut self.path),
            "error" => self.request.error = Some(value.to_owned()),
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
    use std::sync::mpsc::channel;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn events_become_requests() {
        let (ended, received) = channel();
        let layer = RequestLayer::new(move |request| ended.send(request).unwrap());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(target: "request", operation = "eth_chainId", status = 200);
            tracing::info!(target: "request", operation = "eth_call", code = 3_i64, error = "execution reverted");
            let (method, path) = ("GET", "/nothing");
            tracing::info!(target: "request", method, path, operation = "none", code = 404_i64, error = "no such path");
        });
        let request = |operation: &str, code, error: Option<&str>| EndedRequest {
            operation: operation.to_owned(),
            code,
            error: error.map(str::to_owned),
        };
        let expected = [
            request("eth_chainId", 0, None),
            request("eth_call", 3, Some("execution reverted")),
            request("GET /nothing", 404, Some("no such path")),
        ];
        assert_eq!(received.try_iter().collect::<Vec<_>>(), expected);
    }
}
