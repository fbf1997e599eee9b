//! Encoding of responses and notifications.

use crate::error::RpcError;
use node_core::node::NodeError;
use node_types::wire::{JsonBuffer, append_json};
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

/// Writes `value` as JSON, or null if that fails, which would be a bug.
fn write(out: &mut JsonBuffer, value: &impl Serialize) {
    let length = out.len();
    if append_json(out, value).is_err() {
        out.truncate(length);
        out.extend_from_slice(b"null");
    }
}

/// Writes the response to the request `id`: the output of `result`, or its error, which is also returned.
pub(crate) fn respond(
    out: &mut JsonBuffer,
    id: &Id,
    result: impl FnOnce(&mut JsonBuffer) -> Result<(), RpcError>,
) -> Result<(), RpcError> {
    out.extend_from_slice(HEAD);
    write(out, id);
    let end_of_id = out.len();
    out.extend_from_slice(br#","result":"#);
    let result = result(out).and_then(|()| match out.full() {
        None => Ok(()),
        Some(full) => Err(NodeError::ResponseTooLarge(full).into()),
    });
    let result = result.inspect_err(|error| {
        // Removes the output written before the failure.
        out.truncate(end_of_id);
        out.extend_from_slice(br#","error":"#);
        write(out, error);
    });
    out.push(b'}');
    result
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
    write(&mut out, &Notification { jsonrpc: "2.0", method: "eth_subscription", params });
    out.into()
}
