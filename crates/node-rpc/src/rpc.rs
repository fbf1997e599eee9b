//! Processing of messages: from the bytes of a message to the bytes of its response.

use crate::block_cache::BlockCache;
use crate::error::RpcError;
use crate::forward;
use crate::message::{Call, Message, RpcRequest, Table};
use crate::method::Method;
use crate::methods;
use crate::response;
use crate::scope::{Client, Scope};
use node_core::context::Context;
use node_core::node::{Node, NodeError};
use node_types::wire::JsonBuffer;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Initial capacity of a response in bytes; most are shorter.
const SHORT_RESPONSE: usize = 512;

/// Default size of the block cache in bytes: about a hundred full blocks with their transactions. Most requests are
/// for the newest blocks.
const BLOCK_CACHE: usize = 32 * 1024 * 1024;

/// Default limit of the responses of a batch in bytes; geth's is 25 MB. They are in memory until the client has read
/// them.
const BATCH_BYTES: usize = 25 * 1024 * 1024;

/// Limits of JSON-RPC messages, the size of the cache of blocks, and how parameters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcLimits {
    /// Maximum number of requests in a batch.
    pub batch: usize,
    /// Maximum total number of bytes of the responses of a batch; requests after the limit are rejected.
    pub batch_bytes: usize,
    /// Size of the cache of serialized blocks, in bytes.
    pub block_cache: usize,
    /// Whether `evm_setIntervalMining` takes seconds only, as in anvil. Otherwise, multiples of 500 are milliseconds, as
    /// in Hardhat.
    pub intervals_in_seconds: bool,
}

impl Default for RpcLimits {
    fn default() -> Self {
        Self { batch: 1_000, batch_bytes: BATCH_BYTES, block_cache: BLOCK_CACHE, intervals_in_seconds: false }
    }
}

/// The response to a message, and reports on its requests.
#[derive(Debug, Default)]
pub struct Reply {
    /// The complete response; `None` if the message consists of notifications.
    pub body: Option<Vec<u8>>,
    /// A report on each request, including notifications.
    pub calls: Vec<CallReport>,
}

/// A report on one request of a message.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallReport {
    /// The method; `None` if there is no such method, or the request is invalid.
    pub method: Option<&'static str>,
    /// The beginning, at most 64 bytes, of the unknown name in the request; `None` for known methods, and if the
    /// request has no name.
    pub unknown: Option<Box<str>>,
    /// How long it ran.
    pub elapsed: Duration,
    /// The error; `None` for a result.
    pub error: Option<RpcError>,
}

impl CallReport {
    /// Returns the name of the method as it was sent, possibly truncated, or `None` if the request has no name.
    pub fn name(&self) -> Option<&str> {
        self.method.or(self.unknown.as_deref())
    }

    /// Logs the internal error, if the response does not include it. `id` identifies the message in the log.
    pub fn log_failure(&self, id: Option<&dyn fmt::Display>) {
        if let Some(error) = self.error.as_ref().and_then(|error| error.internal.as_deref()) {
            tracing::error!(id = id.map(tracing::field::display), operation = self.method, error, "request failed");
        }
    }
}

impl Reply {
    /// Returns the first error, or `None` if no request failed.
    pub fn error(&self) -> Option<&RpcError> {
        self.calls.iter().find_map(|call| call.error.as_ref())
    }
}

impl From<RpcError> for Reply {
    /// Creates the response to a message that could not be decoded.
    fn from(error: RpcError) -> Self {
        let body = Some(response::refusal(&error));
        Self {
            body,
            calls: vec![CallReport { method: None, unknown: None, elapsed: Duration::ZERO, error: Some(error) }],
        }
    }
}

/// The JSON-RPC interface of a node.
pub struct Rpc {
    node: Arc<Node>,
    table: Table,
    limits: RpcLimits,
    blocks: BlockCache,
}

impl Rpc {
    /// Creates the interface of `node` with the methods of [`table`](crate::table).
    pub fn new(node: Arc<Node>, limits: RpcLimits) -> Self {
        Self::with_methods(node, limits, methods::table())
    }

    /// Creates the interface with the given methods. Of two methods with the same name, the later one is used.
    pub fn with_methods(node: Arc<Node>, limits: RpcLimits, methods: Vec<Method>) -> Self {
        let table = methods.into_iter().map(|method| (method.name(), Arc::new(method))).collect();
        Self { node, table, limits, blocks: BlockCache::new(limits.block_cache) }
    }

    /// Returns the cache of serialized blocks, which other interfaces of the same node can share.
    pub fn blocks(&self) -> &BlockCache {
        &self.blocks
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// If the message is invalid. Convert the error to a [`Reply`] to respond to it.
    pub fn read(&self, body: &[u8]) -> Result<Message, RpcError> {
        Message::read(&self.table, body, self.limits.batch)
    }

    /// Runs a message and returns the response. All requests of a batch read the same view until one of them changes
    /// something.
    pub fn respond(&self, context: &Context, message: &Message, client: Client<'_>) -> Reply {
        let mut out = JsonBuffer::from(Vec::with_capacity(SHORT_RESPONSE));
        let calls = self.respond_into(&mut out, context, message, client);
        Reply { body: (!out.is_empty()).then(|| out.into()), calls }
    }

    /// Like [`respond`](Self::respond), but appends the response to `out`, which limits its length: a request whose
    /// response does not fit fails. Returns a report on each request.
    ///
    /// If `out` is [full](JsonBuffer::full) in the end, there is not even room for the errors, and the response is
    /// incomplete.
    pub fn respond_into(
        &self,
        out: &mut JsonBuffer,
        context: &Context,
        message: &Message,
        client: Client<'_>,
    ) -> Vec<CallReport> {
        let RpcLimits { intervals_in_seconds, .. } = self.limits;
        let scope = Scope { node: &self.node, context, client, blocks: &self.blocks, intervals_in_seconds };
        write(out, message, |request, out| match (message, context.check()) {
            (Message::Single(_), _) => self.respond_to(scope, request, out),
            (Message::Batch(_), Err(over)) => refuse(request, NodeError::from(over).into(), out),
            (Message::Batch(_), Ok(())) if out.len() > self.limits.batch_bytes => {
                let limit = self.limits.batch_bytes;
                let message = format!("response too large: the responses before take more than {limit} bytes");
                let error = RpcError::new(RpcError::RESPONSE_TOO_LARGE, message);
                refuse(request, RpcError { limit: Some("max-batch-bytes"), ..error }, out)
            }
            (Message::Batch(_), Ok(())) => self.respond_to(scope, request, out),
        })
    }

    /// Returns the response to a message all of whose requests are rejected by the transport, with `error`.
    pub fn refuse_message(message: &Message, error: &RpcError) -> Reply {
        let mut out = JsonBuffer::default();
        let calls = write(&mut out, message, |request, out| refuse(request, error.clone(), out));
        Reply { body: (!out.is_empty()).then(|| out.into()), calls }
    }

    fn respond_to(&self, scope: Scope<'_>, request: &RpcRequest, out: &mut JsonBuffer) -> Result<(), RpcError> {
        let run = |out: &mut JsonBuffer| match &request.call {
            Ok(call) => self.run(scope, call, out),
            Err(error) => Err(error.clone()),
        };
        let mark = scope.context.mark_results();
        match &request.id {
            // An error replaces the results.
            Some(id) => response::respond(out, id, run).inspect_err(|_| scope.context.results_are_lost_since(mark)),
            None => {
                let length = out.len();
                // A notification has no response, not even an error.
                let result = run(out);
                out.truncate(length);
                result
            }
        }
    }

    fn run(&self, scope: Scope<'_>, call: &Call, out: &mut JsonBuffer) -> Result<(), RpcError> {
        if call.method.sends && scope.client.reads_only {
            let name = call.method.name();
            return Err(RpcError::server(format!(
                "{name} is refused: the token does not have the role send (`token-file`)"
            )));
        }
        if let Some(pass_on) = scope.client.writer {
            if call.needs_writer() {
                return forward::run(call, pass_on, scope.context, out);
            }
            if call.method.may_need_writer() {
                let length = out.len();
                self.run_here(scope, call, out)?;
                // What the chain does not have may be in the pool.
                if !forward::is_nothing(&out[length..]) {
                    return Ok(());
                }
                out.truncate(length);
                return forward::run(call, pass_on, scope.context, out);
            }
        }
        self.run_here(scope, call, out)
    }

    fn run_here(&self, scope: Scope<'_>, call: &Call, out: &mut JsonBuffer) -> Result<(), RpcError> {
        if call.method.controls() && self.node.producer().is_none() {
            let name = call.method.name();
            let message = format!("the method {name} is available only on development chains");
            return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
        }
        if let (true, Err(reason)) = (call.method.controls(), scope.client.control) {
            return Err(RpcError::server(format!("{} is refused: {reason}", call.method.name())));
        }
        let result = (call.method.run)(scope, call.parameters.as_deref(), out);
        if call.method.changes {
            scope.context.release_view();
        }
        result
    }
}

/// Responds to a request with an error, without running it.
fn refuse(request: &RpcRequest, error: RpcError, out: &mut JsonBuffer) -> Result<(), RpcError> {
    match &request.id {
        Some(id) => response::respond(out, id, |_| Err(error)),
        None => Err(error),
    }
}

/// Appends the output of `write` for each request of a message. Returns a report on each.
fn write(
    out: &mut JsonBuffer,
    message: &Message,
    mut write: impl FnMut(&RpcRequest, &mut JsonBuffer) -> Result<(), RpcError>,
) -> Vec<CallReport> {
    let mut calls = Vec::with_capacity(message.requests());
    let mut each = |request: &RpcRequest, out: &mut JsonBuffer| {
        let started = Instant::now();
        let error = write(request, out).err();
        let method = request.call.as_ref().ok().map(|call| call.method.name());
        calls.push(CallReport { method, unknown: request.unknown.clone(), elapsed: started.elapsed(), error });
    };
    match message {
        Message::Single(request) => each(request, out),
        Message::Batch(requests) => {
            for request in requests {
                let end = out.len();
                out.push(if end == 0 { b'[' } else { b',' });
                let before = out.len();
                each(request, out);
                // A notification has no response.
                if out.len() == before && out.full().is_none() {
                    out.truncate(end);
                }
            }
            if !out.is_empty() {
                out.push(b']');
            }
        }
    }
    calls
}
