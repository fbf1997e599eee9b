//! Traces for OpenTelemetry: a span for each request, sent to a collector as OTLP over HTTP in JSON.
//!
//! Spans are derived from the log events of requests, regardless of the log's filter; those of the calls of a batch are
//! children of the batch's span. A separate thread sends them. If the collector is slow or unreachable, spans are
//! dropped; requests do not wait.

use crate::build_info::VERSION;
use crate::dev::RequestLayer;
use crate::error::CommandError;
use crate::values::without_credentials;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use ureq::Agent;
use ureq::http::Uri;

/// Maximum number of spans that wait to be sent.
const QUEUE: usize = 8_192;

/// Maximum number of spans in a message to the collector.
const BATCH: usize = 512;

/// How long spans are collected before they are sent together.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the thread checks whether the program is exiting.
const STEP: Duration = Duration::from_millis(100);

/// Time limit for a message to the collector, including the last one on exit.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Kinds of spans: a request, and a part of one.
const SERVER: u8 = 2;
const INTERNAL: u8 = 1;

/// The path at which OTLP over HTTP receives traces.
const PATH: &str = "/v1/traces";

/// The running export. Dropping it sends the waiting spans.
pub(crate) struct Exporter {
    ending: Arc<AtomicBool>,
    ended: Receiver<()>,
}

/// Observes the log events of requests.
pub(crate) struct TraceLayer {
    spans: SyncSender<Value>,
    dropped: Arc<AtomicU64>,
}

/// Starts to send spans to the collector at `endpoint`.
pub(crate) fn start(endpoint: &Uri) -> Result<(Exporter, TraceLayer), CommandError> {
    let url = traces_url(endpoint);
    let shown = without_credentials(&url).into_owned();
    let (sender, spans) = mpsc::sync_channel(QUEUE);
    let (ending, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (done, ended) = mpsc::channel::<()>();
    let (is_ending, lost) = (ending.clone(), dropped.clone());
    let export = move || {
        // Dropped when the thread ends, for which the program waits.
        let _done = done;
        let agent = Agent::config_builder().timeout_global(Some(TIMEOUT)).build().new_agent();
        let mut is_reachable = true;
        loop {
            let is_last = is_ending.load(Ordering::Acquire);
            let batch = collect(&spans, &is_ending);
            if !batch.is_empty() {
                let count = batch.len() as u64;
                let sent = agent.post(&url).header("Content-Type", "application/json").send(message(batch).to_string());
                if let Err(error) = &sent {
                    lost.fetch_add(count, Ordering::Relaxed);
                    if is_reachable {
                        tracing::warn!("cannot send traces to {shown}, which drops them: {error}");
                    }
                } else if !is_reachable {
                    let lost = lost.swap(0, Ordering::Relaxed);
                    tracing::info!("traces are sent to {shown} again; {lost} spans were dropped");
                } else if let lost @ 1.. = lost.swap(0, Ordering::Relaxed) {
                    tracing::warn!("{lost} spans were dropped, because {shown} is too slow");
                }
                is_reachable = sent.is_ok();
            } else if is_last {
                return;
            }
        }
    };
    thread::Builder::new().name("traces".to_owned()).spawn(export).map_err(CommandError::Thread)?;
    Ok((Exporter { ending, ended }, TraceLayer { spans: sender, dropped }))
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        let _ = self.ended.recv_timeout(TIMEOUT);
    }
}

/// Returns the URL for traces below that of a collector, which may mention it already.
fn traces_url(endpoint: &Uri) -> String {
    let url = endpoint.to_string();
    let base = url.trim_end_matches('/');
    if base.ends_with(PATH) { base.to_owned() } else { [base, PATH].concat() }
}

/// Waits for spans, and returns those of an interval, or of a full message.
fn collect(spans: &Receiver<Value>, ending: &AtomicBool) -> Vec<Value> {
    let (mut batch, started) = (Vec::new(), Instant::now());
    while batch.len() < BATCH && started.elapsed() < INTERVAL {
        match spans.recv_timeout(STEP) {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Timeout) if !ending.load(Ordering::Acquire) => {}
            Err(_) => break,
        }
    }
    batch
}

/// Returns the message with these spans.
fn message(spans: Vec<Value>) -> Value {
    let resource = [attribute("service.name", "ethnode"), attribute("service.version", VERSION)];
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "ethnode"}, "spans": spans}],
    }]})
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: i64) -> Value {
    // Numbers of 64 bits are strings in the JSON of protobuf.
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

impl<S: Subscriber> Layer<S> for TraceLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() != RequestLayer::TARGET {
            return;
        }
        let mut request = Request::default();
        event.record(&mut request);
        if request.is_part() {
            PARTS.with_borrow_mut(|parts| parts.push(request));
            return;
        }
        for span in request.spans(&PARTS.take(), SystemTime::now()) {
            if self.spans.try_send(span).is_err() {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

thread_local! {
    /// The calls of a batch that this thread has logged. The event of the batch follows on the same thread.
    static PARTS: RefCell<Vec<Request>> = const { RefCell::new(Vec::new()) };
}

/// The fields of the log event of a request.
#[derive(Debug, Default)]
struct Request {
    operation: String,
    id: String,
    client: String,
    status: Option<i64>,
    /// The status of a failed request, or the code of a JSON-RPC error.
    code: Option<i64>,
    error: String,
    bytes: Option<i64>,
    micros: u64,
    trace_id: String,
    parent_span_id: String,
    trace_flags: String,
}

impl Visit for Request {
    fn record_u64(&mut self, field: &Field, value: u64) {
        let signed = i64::try_from(value).ok();
        match field.name() {
            "status" => self.status = signed,
            "bytes" => self.bytes = signed,
            "micros" => self.micros = value,
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "code" {
            self.code = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text = match field.name() {
            "operation" => &mut self.operation,
            "error" => &mut self.error,
            "trace_id" => &mut self.trace_id,
            "parent_span_id" => &mut self.parent_span_id,
            "trace_flags" => &mut self.trace_flags,
            _ => return,
        };
        value.clone_into(text);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "id" => self.id = format!("{value:?}"),
            "client" => self.client = format!("{value:?}"),
            _ => {}
        }
    }
}

impl Request {
    /// Returns whether this is a call of a batch, which has no separate response.
    fn is_part(&self) -> bool {
        self.status.is_none() && self.bytes.is_none()
    }

    /// Returns the spans of a request that ended at `end`, and of its `parts`, the calls of a batch, which ran one
    /// after the other. Empty for requests whose sender does not record their trace.
    fn spans(&self, parts: &[Self], end: SystemTime) -> Vec<Value> {
        let is_sampled = u8::from_str_radix(&self.trace_flags, 16).is_ok_and(|flags| flags & 1 == 1);
        if !self.trace_id.is_empty() && !is_sampled {
            return Vec::new();
        }
        let trace = if self.trace_id.is_empty() { [random(), random()].concat() } else { self.trace_id.clone() };
        let span = self.span(&trace, &self.parent_span_id, end);
        let mut end = end;
        let mut spans: Vec<_> = parts
            .iter()
            .rev()
            .map(|part| {
                let span = part.span(&trace, span["spanId"].as_str().unwrap_or_default(), end);
                end -= part.duration();
                span
            })
            .collect();
        spans.push(span);
        spans.reverse();
        spans
    }

    /// The span that ended at `end`, in a trace and below a `parent`, which may be empty.
    fn span(&self, trace: &str, parent: &str, end: SystemTime) -> Value {
        let end = end.duration_since(UNIX_EPOCH).unwrap_or_default();
        let start = end.saturating_sub(self.duration());
        let mut attributes = vec![attribute("client.address", &self.client), attribute("request.id", &self.id)];
        let (http, rpc) = match self.code {
            Some(code) if code < 100 => ((!self.is_part()).then_some(200), Some(code)),
            code => (self.status.or(code), None),
        };
        attributes.extend(http.map(|status| number("http.response.status_code", status)));
        attributes.extend(rpc.map(|code| number("rpc.jsonrpc.error_code", code)));
        attributes.extend(self.bytes.map(|bytes| number("http.response.body.size", bytes)));
        let kind = if self.is_part() { INTERNAL } else { SERVER };
        let mut span = json!({
            "traceId": trace, "spanId": random(), "name": self.operation, "kind": kind, "attributes": attributes,
            "startTimeUnixNano": start.as_nanos().to_string(), "endTimeUnixNano": end.as_nanos().to_string(),
        });
        if !parent.is_empty() {
            span["parentSpanId"] = parent.into();
        }
        // By OpenTelemetry's conventions, a client's fault is not an error of the server.
        if rpc.is_some() || http.is_some_and(|status| status >= 500) {
            span["status"] = json!({"code": 2, "message": self.error});
        }
        span
    }

    fn duration(&self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

/// Eight random bytes in hexadecimal. They need not be unpredictable.
fn random() -> String {
    // Each state has different random keys.
    format!("{:016x}", RandomState::new().hash_one(()).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request { operation: "call".to_owned(), status: Some(200), bytes: Some(7), micros: 1_500, ..Request::default() }
    }

    #[test]
    fn the_url_of_a_collector_is_completed() {
        for url in ["http://c:4318", "http://c:4318/", "http://c:4318/v1/traces"] {
            assert_eq!(traces_url(&url.parse().unwrap()), "http://c:4318/v1/traces");
        }
        assert_eq!(traces_url(&"http://c/otlp".parse().unwrap()), "http://c/otlp/v1/traces");
    }

    fn span(request: &Request, end: SystemTime) -> Value {
        let mut spans = request.spans(&[], end);
        assert_eq!(spans.len(), 1);
        spans.remove(0)
    }

    #[test]
    fn spans_have_times_and_ids() {
        let end = UNIX_EPOCH + Duration::from_secs(1);
        let first = span(&request(), end);
        assert_eq!(
            (&first["startTimeUnixNano"], &first["endTimeUnixNano"]),
            (&json!("998500000"), &json!("1000000000"))
        );
        let length = |name: &str| first[name].as_str().map(str::len);
        assert_eq!((length("traceId"), length("spanId"), length("parentSpanId")), (Some(32), Some(16), None));
        assert!(first.get("status").is_none());
        assert_ne!(span(&request(), end)["traceId"], first["traceId"]);
    }

    #[test]
    fn only_sampled_requests_have_spans() {
        let traced = |flags: &str| Request {
            trace_id: "ab".repeat(16),
            parent_span_id: "cd".repeat(8),
            trace_flags: flags.to_owned(),
            ..request()
        };
        let span = span(&traced("01"), UNIX_EPOCH);
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!("ab".repeat(16)), &json!("cd".repeat(8))));
        assert!(traced("00").spans(&[request()], UNIX_EPOCH).is_empty());
    }

    #[test]
    fn calls_of_a_batch_are_children_of_its_span_one_after_the_other() {
        let part = |operation: &str, code| Request {
            operation: operation.to_owned(),
            code,
            micros: 200,
            error: "why".to_owned(),
            ..Request::default()
        };
        let parts = [part("eth_chainId", None), part("eth_call", Some(-32000))];
        assert!(parts.iter().all(Request::is_part) && !request().is_part());
        let spans = request().spans(&parts, UNIX_EPOCH + Duration::from_secs(1));
        let of = |name: &str| spans.iter().map(|span| span[name].clone()).collect::<Vec<_>>();
        assert_eq!(of("name"), ["call", "eth_chainId", "eth_call"]);
        assert_eq!(of("kind"), [SERVER, INTERNAL, INTERNAL]);
        assert_eq!(of("parentSpanId"), [&Value::Null, &spans[0]["spanId"], &spans[0]["spanId"]].map(Value::clone));
        assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]));
        assert_eq!(of("startTimeUnixNano"), ["998500000", "999600000", "999800000"]);
        assert_eq!(of("endTimeUnixNano"), ["1000000000", "999800000", "1000000000"]);
        assert_eq!(of("status"), [Value::Null, Value::Null, json!({"code": 2, "message": "why"})]);
        let keys = |span: &Value| {
            span["attributes"].as_array().unwrap().iter().map(|one| one["key"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&spans[2]), ["client.address", "request.id", "rpc.jsonrpc.error_code"]);
    }

    #[test]
    fn failures_of_the_server_and_json_rpc_errors_are_errors() {
        let failed = |code| Request { status: None, code: Some(code), error: "why".to_owned(), ..request() };
        for (code, expected) in [(400, Value::Null), (503, json!({"code": 2, "message": "why"}))] {
            assert_eq!(span(&failed(code), UNIX_EPOCH)["status"], expected, "{code}");
        }
        let span = span(&failed(-32000), UNIX_EPOCH);
        assert_eq!(span["status"]["code"], 2);
        assert!(span["attributes"].as_array().unwrap().contains(&number("rpc.jsonrpc.error_code", -32000)), "{span}");
    }
}
