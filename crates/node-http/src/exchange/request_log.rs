//! Recording of requests in the log and in the metrics.

use crate::exchange::request_id::{RequestId, Trace};
use crate::metrics::Metrics;
use actix_web::http::StatusCode;
use node_core::remote::RemoteReads;
use node_rpc::CallReport;
use std::net::IpAddr;
use std::time::Duration;

/// The name in metrics of JSON-RPC requests without a known method, and in the log of those without any method.
pub(crate) const UNKNOWN_METHOD: &str = "rpc";

/// Maximum number of bytes of a method or a path in the log.
const LONGEST: usize = 256;

/// A request with its response.
pub(crate) struct Responded<'a> {
    pub(crate) id: &'a RequestId,
    pub(crate) trace: Option<&'a Trace>,
    pub(crate) client: IpAddr,
    /// Method and path; `None` if no request was read.
    pub(crate) line: Option<(&'a str, &'a str)>,
    pub(crate) operation: &'static str,
    pub(crate) status: StatusCode,
    /// The detail of the problem, if the response is one.
    pub(crate) problem: Option<&'a str>,
    /// The outcomes of its JSON-RPC requests; empty for other requests.
    pub(crate) calls: &'a [CallReport],
    /// Length in bytes of the response's body before compression; `None` for a stream.
    pub(crate) bytes: Option<u64>,
    pub(crate) elapsed: Duration,
    /// Its reads from another machine.
    pub(crate) remote: RemoteReads,
}

impl Responded<'_> {
    /// Counts the request, and writes its log line. The lines of a batch's requests come before it, on the same thread,
    /// and traces rely on that.
    pub(crate) fn record(&self, metrics: &Metrics) {
        let Self { id, trace, client, line, operation, status, problem, calls, bytes, elapsed, remote } = *self;
        let (method, path) = (line.map(|(method, _)| bounded(method)), line.map(|(_, path)| bounded(path)));
        let (trace_id, parent_span_id, trace_flags) =
            (trace.map(Trace::id), trace.map(Trace::span), trace.map(Trace::flags));
        metrics.record_response(operation, status, elapsed);
        metrics.record_remote_reads(remote);
        for call in calls {
            call.log_failure(Some(id));
            if let Some(limit) = call.error.as_ref().and_then(|error| error.limit) {
                metrics.record_refusal(limit);
            }
            let code = call.error.as_ref().map_or(0, |error| error.code);
            metrics.record_call(call.method.unwrap_or(UNKNOWN_METHOD), code, call.elapsed);
        }
        let (status, micros) = (status.as_u16(), micros(elapsed));
        let operation = match calls {
            [call] => call.name().unwrap_or(operation),
            _ => operation,
        };
        if calls.len() > 1 {
            calls.iter().for_each(|call| self.log_call(call, method, path));
        }
        // A JSON-RPC error is sent with status 200, which would look like success, and has its own code.
        let (status, code, error) = match (problem, calls) {
            (Some(problem), _) => (Some(status), Some(i64::from(status)), Some(problem)),
            (None, [CallReport { error: Some(error), .. }]) => (None, Some(error.code), Some(error.message.as_str())),
            (None, _) => (Some(status), None, None),
        };
        let [store_reads, store_steps] = [remote.reads, remote.steps].map(|count| (count > 0).then_some(count));
        tracing::info!(
            target: "request", %id, %client, method, path, operation, status, code, error, bytes, micros, store_reads, store_steps,
            trace_id, parent_span_id, trace_flags
        );
    }

    /// Writes the log line of one request of a batch, which was sent to `path`.
    fn log_call(&self, call: &CallReport, method: Option<&str>, path: Option<&str>) {
        let (id, client, operation) = (self.id, self.client, call.name().unwrap_or(UNKNOWN_METHOD));
        let trace_id = self.trace.map(Trace::id);
        let micros = micros(call.elapsed);
        match &call.error {
            None => tracing::info!(target: "request", %id, %client, method, path, operation, micros, trace_id),
            Some(error) => {
                let (code, error) = (error.code, error.message.as_str());
                tracing::info!(target: "request", %id, %client, method, path, operation, code, error, micros, trace_id);
            }
        }
    }
}

/// Returns the beginning of a text that a client chose. The log escapes characters that are not printable.
fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
