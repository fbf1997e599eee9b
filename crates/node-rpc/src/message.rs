//! Decoding of messages (JSON-RPC 2.0).

use crate::error::{RpcError, plain};
use crate::method::Method;
use crate::response::Id;
use node_core::cost::Cost;
use node_core::node::Node;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Maximum number of bytes of an unknown method's name that errors and the log repeat.
const REPEATED: usize = 64;

/// Maximum number of cheap requests in a batch that counts as cheap.
const SHORT_BATCH: usize = 8;

/// The table of methods by name.
pub(crate) type Table = HashMap<&'static str, Arc<Method>>;

/// A decoded JSON-RPC message: a request or a batch.
#[derive(Clone, Debug)]
pub enum Message {
    Single(RpcRequest),
    /// Several requests with one response.
    Batch(Vec<RpcRequest>),
}

/// One request.
#[derive(Clone, Debug)]
pub struct RpcRequest {
    /// The id of the request; `None` for a notification, which has no response.
    pub(crate) id: Option<Id>,
    /// The method with its parameters, or why the request is invalid.
    pub(crate) call: Result<Call, RpcError>,
    /// The start of the method's name, if there is no such method.
    pub(crate) unknown: Option<Box<str>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Arc<Method>,
    pub(crate) parameters: Option<Box<RawValue>>,
}

/// A request before its fields are checked.
#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Distinguishes null from a missing field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Call {
    /// Returns whether a server that only reads the chain passes the call on to the one that writes it.
    pub(crate) fn needs_writer(&self) -> bool {
        self.method.needs_writer(self.parameters.as_deref().map_or("", RawValue::get))
    }
}

impl Message {
    /// Decodes a message. A batch may contain at most `limit` requests.
    ///
    /// # Errors
    /// If the message is not JSON, or a batch is empty or too long. The error is sent with the id null.
    pub(crate) fn read(table: &Table, body: &[u8], limit: usize) -> Result<Self, RpcError> {
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first != Some(&b'[') {
            // serde_json does not check the UTF-8 of skipped values in a slice.
            if let Some(request) = str::from_utf8(body).ok().and_then(|text| serde_json::from_str(text).ok()) {
                return Ok(Self::Single(RpcRequest::of(table, request)));
            }
            // The message is not a request, or not JSON.
            let raw: &RawValue = serde_json::from_slice(body).map_err(|error| parse_error(&error))?;
            return Ok(Self::Single(RpcRequest::read(table, raw)));
        }
        let mut deserializer = serde_json::Deserializer::from_slice(body);
        let raw = Bounded { limit }.deserialize(&mut deserializer);
        let raw = raw.and_then(|raw| deserializer.end().map(|()| raw)).map_err(|error| parse_error(&error))?;
        match raw {
            Some(raw) if raw.is_empty() => Err(RpcError::new(RpcError::INVALID_REQUEST, "empty batch")),
            Some(raw) => Ok(Self::Batch(raw.into_iter().map(|raw| RpcRequest::read(table, raw)).collect())),
            None => {
                let message = format!("batch too large: at most {limit} requests (`max-batch`)");
                Err(RpcError { limit: Some("max-batch"), ..RpcError::new(RpcError::INVALID_REQUEST, message) })
            }
        }
    }

    /// Returns the cost of the message as a whole.
    pub fn cost(&self, node: &Node) -> Cost {
        match self {
            Self::Single(request) => request.cost(node),
            Self::Batch(requests) => {
                let costs = requests.iter().map(|request| request.cost(node).without_restart());
                let least = if requests.len() <= SHORT_BATCH { Cost::Instant } else { Cost::Long };
                costs.fold(least, Cost::max)
            }
        }
    }

    /// Returns the name of the message in logs and metrics, which is from a small fixed set.
    pub fn operation(&self) -> &'static str {
        match self {
            Self::Single(RpcRequest { call: Ok(call), .. }) => call.method.name(),
            Self::Single(RpcRequest { call: Err(_), .. }) => "rpc",
            Self::Batch(_) => "batch",
        }
    }

    /// Returns whether any request of the message controls a development chain.
    pub fn controls(&self) -> bool {
        let controls = |request: &RpcRequest| request.call.as_ref().is_ok_and(|call| call.method.controls());
        match self {
            Self::Single(request) => controls(request),
            Self::Batch(requests) => requests.iter().any(controls),
        }
    }

    /// Returns whether a server that only reads the chain may pass any of the requests on to the one that writes it.
    pub fn may_need_writer(&self) -> bool {
        let may_need = |request: &RpcRequest| {
            request.call.as_ref().is_ok_and(|call| call.needs_writer() || call.method.may_need_writer())
        };
        match self {
            Self::Single(request) => may_need(request),
            Self::Batch(requests) => requests.iter().any(may_need),
        }
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        match self {
            Self::Single(_) => 1,
            Self::Batch(requests) => requests.len(),
        }
    }
}

impl RpcRequest {
    fn read(table: &Table, raw: &RawValue) -> Self {
        if !raw.get().starts_with('{') {
            return Self::invalid(None, "expected an object");
        }
        match serde_json::from_str(raw.get()) {
            Ok(request) => Self::of(table, request),
            Err(error) => Self::invalid(None, &plain(&error)),
        }
    }

    /// Returns an invalid request. The error response has its id, if it has one.
    fn invalid(id: Option<Id>, message: &str) -> Self {
        let error = RpcError::new(RpcError::INVALID_REQUEST, format!("invalid request: {message}"));
        Self { id: Some(id.unwrap_or_else(Id::null)), call: Err(error), unknown: None }
    }

    fn of(table: &Table, request: RawRequest<'_>) -> Self {
        let id = request.id.map(Id::of);
        if request.id.is_some_and(|id| id.get().starts_with(['{', '[', 't', 'f'])) {
            return Self::invalid(None, "the id must be a string, a number or null");
        }
        if request.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Self::invalid(id, "jsonrpc must be \"2.0\"");
        }
        let Some(Ok(name)) = request.method.map(|method| serde_json::from_str::<String>(method.get())) else {
            return Self::invalid(id, "the method must be a string");
        };
        match table.get(name.as_str()) {
            Some(method) => {
                let parameters = request.params.map(ToOwned::to_owned);
                Self { id, call: Ok(Call { method: method.clone(), parameters }), unknown: None }
            }
            None => Self { id, call: Err(unknown(&name)), unknown: Some(shown(&name).into()) },
        }
    }

    fn cost(&self, node: &Node) -> Cost {
        match &self.call {
            Ok(Call { method, parameters }) => method.cost(node, parameters.as_deref().map_or("", RawValue::get)),
            Err(_) => Cost::Instant,
        }
    }
}

/// Returns the beginning of a name that a client chose.
fn shown(name: &str) -> &str {
    &name[..name.floor_char_boundary(REPEATED)]
}

fn unknown(name: &str) -> RpcError {
    RpcError::new(RpcError::METHOD_NOT_FOUND, format!("the method {} does not exist/is not available", shown(name)))
}

fn parse_error(error: &serde_json::Error) -> RpcError {
    RpcError::new(RpcError::PARSE, format!("parse error: {error}"))
}

/// Decodes an array of at most `limit` elements; the result is `None` if it is longer.
struct Bounded {
    limit: usize,
}

impl<'de> DeserializeSeed<'de> for Bounded {
    type Value = Option<Vec<&'de RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Bounded {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = array.next_element::<&RawValue>().map_err(A::Error::custom)? {
            if elements.len() < self.limit {
                elements.push(element);
            } else {
                // Reads the rest, so that invalid JSON is reported as such.
                while array.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
        }
        Ok(Some(elements))
    }
}
