//! Tests against scripted endpoints.

mod gone;
mod proving;
mod sending;
mod server;
mod socket;

use crate::{Upstream, UpstreamOptions};
use node_core::context::Context;
use serde_json::value::RawValue;
use server::Server;
use std::time::Duration;

/// Options with short times.
fn options() -> UpstreamOptions {
    UpstreamOptions {
        retry_backoff: Duration::from_millis(10),
        retries: 2,
        timeout: Duration::from_secs(20),
        ..UpstreamOptions::default()
    }
}

fn upstream(servers: &[&Server], options: UpstreamOptions) -> Upstream {
    let urls: Vec<_> = servers.iter().map(|server| server.url()).collect();
    Upstream::new(&urls, options).unwrap()
}

fn context() -> Context {
    Context::unbounded().with_timeout(Duration::from_secs(60))
}

/// Forwards a method without parameters, and returns the result or the error as text.
fn forward(upstream: &Upstream, method: &str) -> Result<String, String> {
    let params = RawValue::from_string("[]".to_owned()).unwrap();
    let result = upstream.forward(&context(), method, &params);
    result.map(|result| result.get().to_owned()).map_err(|error| error.to_string())
}
