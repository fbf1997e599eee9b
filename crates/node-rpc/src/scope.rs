//! What a method may use.

use crate::block_cache::BlockCache;
use crate::session::Session;
use node_core::context::Context;
use node_core::node::Node;

/// The environment of a method call.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The node.
    pub node: &'a Node,
    /// The bounds of the request, and the view that it reads.
    pub context: &'a Context,
    /// The client.
    pub client: Client<'a>,
    pub(crate) blocks: &'a BlockCache,
}

/// What the transport knows of the client.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The connection that subscriptions belong to; `None` if the transport cannot send notifications.
    pub session: Option<&'a Session>,
    /// Whether the client may control a development chain: if not, the reason, as the end of an error message.
    pub control: Result<(), &'a str>,
    /// Whether the client may not send transactions.
    pub reads_only: bool,
}

/// A client that may read and send, and not control.
impl Default for Client<'_> {
    fn default() -> Self {
        Self { session: None, control: Err("the client may not control the chain"), reads_only: false }
    }
}
