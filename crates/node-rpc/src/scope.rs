//! What a method may use.

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
}

/// What the transport knows of the client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client<'a> {
    /// The connection that subscriptions belong to; `None` if the transport cannot send notifications.
    pub session: Option<&'a Session>,
    /// Whether the client may control a development chain.
    pub controls: bool,
    /// Why it may not, as the end of an error message.
    pub refusal: Option<&'a str>,
    /// Whether the client may not send transactions.
    pub reads_only: bool,
}
