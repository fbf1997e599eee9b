//! The state that all request handlers share.

use crate::admission::api;
use crate::admission::clients::{Client, Clients, Limit, Resource};
use crate::admission::notices::Notices;
use crate::admission::rate::RateLimiter;
use crate::config::HttpConfig;
use crate::exchange::compress::CompressedDocuments;
use crate::metrics::Metrics;
use crate::scheduling::Pools;
use crate::scheduling::signal::Signal;
use crate::transport::phase::Phases;
use crate::transport::tls::Tls;
use actix_web::web::Bytes;
use node_core::context::Context;
use node_core::node::Node;
use node_rpc::Rpc;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of connections over the limit that are sent an error at the same time. Further ones are closed
/// without a response.
pub(crate) const MAX_REJECTIONS: usize = 64;

/// The node and everything around it that requests share.
pub(crate) struct Service {
    pub(crate) node: Arc<Node>,
    pub(crate) rpc: Rpc,
    pub(crate) pools: Pools,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clients: Clients,
    /// Open connections.
    pub(crate) connections: Arc<Limit>,
    /// One permit for each connection over the limit that may still be sent an error.
    pub(crate) rejections: Semaphore,
    /// Requests in progress.
    pub(crate) requests: Arc<Limit>,
    /// Bytes of long request bodies that have not arrived completely, and of long responses that have not been sent.
    pub(crate) transfers: Arc<Limit>,
    /// Open event streams and WebSockets.
    pub(crate) streams: Arc<Limit>,
    /// `None` if clients may send any number of requests.
    pub(crate) rate_limiter: Option<RateLimiter>,
    pub(crate) notices: Notices,
    pub(crate) tls: Option<Tls>,
    pub(crate) documents: CompressedDocuments,
    /// Notified when the head changes.
    pub(crate) head_changes: Arc<Signal>,
    /// Notified when a transaction enters the pool.
    pub(crate) pool_arrivals: Arc<Signal>,
    pub(crate) phases: Phases,
    pub(crate) config: HttpConfig,
    /// Address and port of the listener, for requests without a usable `Host`.
    pub(crate) listening: String,
    pub(crate) interface: InterfaceDocuments,
}

/// The documents that describe the interface.
pub(crate) struct InterfaceDocuments {
    /// JSON Schema documents by name, without `$id`.
    pub(crate) schemas: BTreeMap<String, Value>,
    /// The OpenAPI document as JSON.
    pub(crate) openapi_json: Bytes,
}

impl Service {
    pub(crate) fn new(
        node: Arc<Node>,
        config: HttpConfig,
        listening: SocketAddr,
        interface: InterfaceDocuments,
    ) -> io::Result<Self> {
        let pools = Pools::new(&config)?;
        let (head_changes, pool_arrivals) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        let metrics = Arc::new(config.metrics.clone());
        node.subscribe(&head_changes);
        node.subscribe(&metrics);
        node.pool().subscribe(&pool_arrivals);
        Ok(Self {
            rpc: Rpc::with_methods(
                node.clone(),
                config.rpc_limits(),
                node_rpc::table_of(|name| api::has_method(&config.access.api, name)),
            ),
            node,
            pools,
            metrics,
            clients: Clients::default(),
            connections: Limit::new(Resource::Connections, config.clients.max_connections),
            rejections: Semaphore::new(MAX_REJECTIONS),
            requests: Limit::new(Resource::Requests, config.clients.max_requests),
            transfers: Limit::new(Resource::Transfers, config.clients.transfer_memory),
            streams: Limit::new(Resource::Streams, config.clients.max_streams),
            rate_limiter: RateLimiter::new(config.access.rate_limit),
            notices: Notices::default(),
            tls: config.listen.tls.clone(),
            documents: CompressedDocuments::new(),
            head_changes,
            pool_arrivals,
            phases: Phases::new(),
            listening: listening.to_string(),
            interface,
            config,
        })
    }

    /// Returns whether requests that control the chain are served, here or by the writer.
    pub(crate) fn controls(&self) -> bool {
        self.node.producer().is_some() || self.config.writer.is_some()
    }

    /// Returns a context for a request of `client` that starts now, with the configured deadline.
    pub(crate) fn context(&self, client: &Client) -> Context {
        Context::unbounded().with_timeout(self.config.requests.call_timeout).on_behalf_of(client.id())
    }

    /// Like [`context`](Self::context), for several reads, such as those of a batch: all of them read the same view.
    pub(crate) fn consistent_context(&self, client: &Client) -> Context {
        Context::holding_view().with_timeout(self.config.requests.call_timeout).on_behalf_of(client.id())
    }
}
