//! Encoding of responses and notifications.

use crate::error::RpcError;
use node_core::node::NodeError;
use node_types::wire::{BufferFull, JsonBuffer, append_json};
use serde::Serialize;
use serde_json::value::RawValue;

/// The id of a request: a string, a number, or null.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Id(Box<RawValue>);

impl Id {
    /// Returns the id that a request states.
    pub(crate) fn of(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// Returns the id of responses to invalid requests without an id.
    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

/// The beginning of every response.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// Writes the response to the request `id`: the output of `result`, or its error, which is also returned. If the error
/// does not fit into `out`, it is replaced with a short one that says so.
pub(crate) fn respond(
    out: &mut JsonBuffer,
    id: &Id,
    result: impl FnOnce(&mut JsonBuffer) -> Result<(), RpcError>,
) -> Result<(), RpcError> {
    out.extend_from_slice(HEAD);
    out.extend_from_slice(id.0.get().as_bytes());
    let end_of_id = out.len();
    out.extend_from_slice(br#","result":"#);
    let result = result(out).and_then(|()| match out.full() {
        None => Ok(()),
        Some(full) => Err(NodeError::ResponseTooLarge(full).into()),
    });
    let result = result.map_err(|error| match write_error(out, end_of_id, &error) {
        None => error,
        Some(full) => {
            let short = RpcError::from(NodeError::ResponseTooLarge(full));
            // If not even this fits, `out` is full, and the response is incomplete.
            write_error(out, end_of_id, &short);
            short
        }
    });
    out.push(b'}');
    result
}

/// Replaces the output after `end` with `error`. Returns why it does not fit.
fn write_error(out: &mut JsonBuffer, end: usize, error: &RpcError) -> Option<BufferFull> {
    out.truncate(end);
    out.extend_from_slice(br#","error":"#);
    let written = append_json(out, error);
    debug_assert!(written.is_ok() || out.full().is_some(), "{written:?}");
    out.full()
}

/// Returns the response to an invalid message, with the id null.
pub(crate) fn refusal(error: &RpcError) -> Vec<u8> {
    let mut out = JsonBuffer::default();
    // The error is part of the response.
    let _ = respond(&mut out, &Id::null(), |_| Err(error.clone()));
    out.into()
}

/// Returns a notification of the subscription `id`.
pub(crate) fn notification(id: &str, result: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, R> {
        jsonrpc: &'static str,
        method: &'static str,
        params: Parameters<'a, R>,
    }
    #[derive(Serialize)]
    struct Parameters<'a, R> {
        subscription: &'a str,
        result: &'a R,
    }
    let params = Parameters { subscription: id, result };
    let mut out = JsonBuffer::default();
    let written = append_json(&mut out, &Notification { jsonrpc: "2.0", method: "eth_subscription", params });
    debug_assert!(written.is_ok(), "{written:?}");
    out.into()
}
