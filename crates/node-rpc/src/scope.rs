//! The environment of method calls.

use crate::block_cache::BlockCache;
use crate::error::RpcError;
use crate::session::Session;
use node_core::context::Context;
use node_core::node::Node;
use node_core::producer::Producer;
use std::sync::Arc;

/// The environment of a method call.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub node: &'a Node,
    /// The limits of the request, and the view that it reads.
    pub context: &'a Context,
    pub client: Client<'a>,
    pub(crate) blocks: &'a BlockCache,
    /// See [`RpcLimits::intervals_in_seconds`](crate::RpcLimits::intervals_in_seconds).
    pub(crate) intervals_in_seconds: bool,
}

impl<'a> Scope<'a> {
    /// Returns the producer, if the node has one and the request may still run.
    pub(crate) fn control(self) -> Result<&'a Arc<Producer>, RpcError> {
        Ok(self.node.control(self.context)?)
    }
}

/// Passes a request on to the server that writes the chain, as JSON, and returns the response. The second parameter is
/// whether it controls a development chain, which may take long.
pub type PassOn<'a> = &'a dyn Fn(String, bool) -> Result<Vec<u8>, RpcError>;

/// The properties of the client that the transport knows.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    /// The connection that subscriptions belong to; `None` if the transport cannot send notifications.
    pub session: Option<&'a Session>,
    /// Whether the client may control a development chain. If not, the reason, worded as the end of an error message.
    pub control: Result<(), &'a str>,
    /// Whether the client may only read, and not send transactions.
    pub reads_only: bool,
    /// Where requests go that only the server that writes the chain can respond to; `None` if this is that server, or if they
    /// are refused.
    pub writer: Option<PassOn<'a>>,
}

/// The default is a client that may read and send transactions, but not control the chain.
impl Default for Client<'_> {
    fn default() -> Self {
        Self { session: None, control: Err("the client may not control the chain"), reads_only: false, writer: None }
    }
}
