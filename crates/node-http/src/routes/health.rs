//! Liveness and readiness of the server.

use super::operation::Operation;
use crate::convert::output;
use crate::exchange::{Exchange, Job};
use crate::problem::HttpError;
use crate::scheduling;
use actix_web::HttpResponse;
use node_core::backend::BackendHealth;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::NodeError;
use node_core::sources::Sources;
use node_types::wire::{HealthOutput, HealthStatus, Quantity, ReadyOutput};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/health", "Check that the server runs", "200 as long as the server responds at all.")
            .no_store()
            .probe()
            .parameters(|_, ()| Cost::Instant, |_, _, ()| Ok(HealthOutput { status: HealthStatus::Ok })),
        Operation::get(
            "/ready",
            "Check that the server is ready",
            "200 if the storage can be read and written, the shared store is up to date if the chain is published, the \
             chain has the blocks that it should have, a valid block can follow the head, and the head is recent enough; \
             otherwise, and while the server shuts down, 503 with the reason. A fork is ready whether or not the servers of the \
             chain that it continues can be reached: `Fork` reports that.",
        )
        .limits(
            "any head of any age, unless the operator expects more (`max-head-age`, `min-head`, `expect-head`).",
        )
        .no_store()
        .probe()
        .output::<ReadyOutput>()
        .handler(ready),
    ]
}

async fn ready(exchange: Exchange) -> HttpResponse {
    if exchange.is_closing() {
        return exchange.fail(&HttpError::NotReady("the server is shutting down".to_owned()));
    }
    if let Some(progress) = exchange.config().starting.current() {
        return exchange.fail(&HttpError::NotReady(progress));
    }
    if let Some(reason) = exchange.config().incomplete.reason() {
        return exchange.fail(&HttpError::NotReady(reason));
    }
    let max_age = exchange.config().lifecycle.max_head_age;
    let service = exchange.service().clone();
    let read = Box::new(move |context: &Context| {
        let obstacle = service.node.producer().and_then(|producer| producer.obstacle());
        let view = service.node.backend().view().map_err(NodeError::from)?;
        let missing = service.config.lifecycle.missing(&*view).map_err(NodeError::from)?;
        Ok((service.node.head(context)?, obstacle, missing))
    });
    let service = exchange.service();
    let read = scheduling::run(&service.pools, Cost::Brief, exchange.context(), read).await;
    let BackendHealth { write_failure, read_failure, publication, .. } = exchange.service().node.backend().health();
    if let Some(reason) = write_failure {
        return exchange.fail(&HttpError::NotReady(format!("changes cannot be stored: {reason}")));
    }
    if let Some(reason) = read_failure {
        return exchange.fail(&HttpError::NotReady(format!("a part of the storage cannot be read: {reason}")));
    }
    if let Some(reason) = publication.and_then(|publication| publication.failure) {
        return exchange.fail(&HttpError::NotReady(format!("the shared store is not up to date: {reason}")));
    }
    let (head, obstacle) = match read {
        Ok((_, _, Some(missing))) => return exchange.fail(&HttpError::NotReady(missing)),
        Ok((head, obstacle, None)) => (head, obstacle),
        Err(HttpError::Overloaded) => return exchange.fail(&HttpError::Overloaded),
        Err(error) => {
            tracing::error!(error = %Sources(&error), "not ready");
            return exchange.fail(&HttpError::NotReady("the storage cannot be read".to_owned()));
        }
    };
    if let Some(reason) = obstacle {
        return exchange.fail(&HttpError::NotReady(format!("no block can be sealed: {reason}")));
    }
    let age = age(head.header.timestamp, SystemTime::now());
    if let Some(max_age) = max_age
        && age > max_age
    {
        let reason = format!("the head is {} s old, and may be {} (`max-head-age`)", age.as_secs(), max_age.as_secs());
        return exchange.fail(&HttpError::NotReady(reason));
    }
    let output = ReadyOutput {
        status: HealthStatus::Ok,
        block_number: Quantity(head.header.number),
        head_age: Quantity(age.as_secs()),
        fork: exchange.service().node.fork().map(output::fork),
    };
    exchange.run(Ok(Job::new(Cost::Instant, move |_, _| Ok(output.clone().into())))).await
}

/// Returns the age of a block with this timestamp, which is zero if the timestamp is in the future.
fn age(timestamp: u64, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computes_the_age_of_a_block() {
        let now = UNIX_EPOCH + Duration::from_secs(100);
        for (timestamp, seconds) in [(0, 100), (99, 1), (100, 0), (101, 0), (u64::MAX, 0)] {
            assert_eq!(age(timestamp, now), Duration::from_secs(seconds), "{timestamp}");
        }
    }
}
