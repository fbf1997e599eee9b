//! Whether the server lives, and whether it can do what it is for.

use super::Routes;
use crate::exchange::Exchange;
use crate::place::Place;
use crate::problem::HttpError;
use actix_web::HttpResponse;
use node_core::context::Context;
use node_core::node::Node;
use node_types::wire::{HealthOutput, HealthStatus, Quantity, ReadyOutput};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) fn gets(routes: &mut Routes<'_>) {
    let base = routes.base;
    for slash in ["", "/"] {
        routes.open("health", &format!("{base}/health{slash}"), health);
        routes.open("ready", &format!("{base}/ready{slash}"), ready);
    }
}

/// Says that the process answers, and nothing else.
async fn health(exchange: Exchange) -> HttpResponse {
    let alive = |_: &Node, _: &Context, ()| Ok(HealthOutput { status: HealthStatus::Ok });
    exchange.no_store().run(Ok(()), |()| Place::Here, alive).await
}

/// Says that the database can be read, that the head is young enough, and that the server is not about to end.
async fn ready(exchange: Exchange) -> HttpResponse {
    let exchange = exchange.no_store();
    if exchange.is_closing() {
        return exchange.fail(&HttpError::NotReady("the server is about to end".to_owned()));
    }
    let max_age = exchange.config().max_head_age;
    let head = match exchange.execute(Place::Pool, |node, context| Ok(node.head(context)?)).await {
        Ok(head) => head,
        Err(HttpError::Overloaded) => return exchange.fail(&HttpError::Overloaded),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "not ready");
            return exchange.fail(&HttpError::NotReady("the database cannot be read".to_owned()));
        }
    };
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
    };
    exchange.run(Ok(()), |()| Place::Here, move |_, _, ()| Ok(output.clone())).await
}

/// How old a block of this time is; nothing if it is of the future.
fn age(timestamp: u64, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_secs(timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let now = UNIX_EPOCH + Duration::from_secs(100);
        for (timestamp, seconds) in [(0, 100), (99, 1), (100, 0), (101, 0), (u64::MAX, 0)] {
            assert_eq!(age(timestamp, now), Duration::from_secs(seconds), "{timestamp}");
        }
    }
}
