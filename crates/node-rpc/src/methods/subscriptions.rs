//! Subscriptions, on transports that can send notifications.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::session::{Session, Topic};
use crate::wire::{FilterObject, Object};
use node_core::node::{EventQuery, EventStart};
use serde_json::value::RawValue;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_subscribe",
            &["kind", "options?"],
            "Subscribes to newHeads, logs (those of blocks that leave the chain are marked as removed), \
             newPendingTransactions, or syncing. Over WebSocket only.",
            |scope, (kind, options): (String, Option<Box<RawValue>>)| {
                let session = session(scope)?;
                let (topic, input) = topic(&kind, options.as_deref())?;
                session.subscribe(scope, topic, input)
            },
        ),
        Method::new(
            "eth_unsubscribe",
            &["subscription"],
            "Ends a subscription; an error if it does not exist.",
            |scope, (id,): (String,)| match session(scope)?.unsubscribe(&id) {
                true => Ok(true),
                false => Err(RpcError::server("subscription not found")),
            },
        ),
    ]
}

fn session(scope: Scope<'_>) -> Result<&Session, RpcError> {
    scope.client.session.ok_or_else(|| {
        RpcError::new(RpcError::METHOD_NOT_FOUND, "notifications not supported: subscriptions need a WebSocket")
    })
}

/// Returns the topic of a subscription, and its events, which are `None` for syncing because it reports nothing.
fn topic(kind: &str, options: Option<&RawValue>) -> Result<(Topic, Option<EventQuery>), RpcError> {
    let text = options.map_or("null", RawValue::get);
    let invalid = |error: serde_json::Error| RpcError::argument(1, crate::error::plain(&error));
    match kind {
        "newHeads" => Ok((Topic::Heads, Some(EventQuery::Blocks { start: EventStart::Now }))),
        "logs" => {
            let filter: Option<Object<FilterObject>> = serde_json::from_str(text).map_err(invalid)?;
            let filter = filter.map(|Object(filter)| filter).unwrap_or_default().criteria();
            Ok((Topic::Logs, Some(EventQuery::Logs { filter, start: EventStart::Now })))
        }
        "newPendingTransactions" => {
            let whole: Option<bool> = serde_json::from_str(text).map_err(invalid)?;
            let topic = Topic::Transactions { whole: whole.unwrap_or(false) };
            Ok((topic, Some(EventQuery::PendingTransactions { after: None })))
        }
        "syncing" => Ok((Topic::Syncing, None)),
        other => {
            let known = "newHeads, logs, newPendingTransactions, syncing";
            let shown = &other[..other.floor_char_boundary(64)];
            Err(RpcError::argument(0, format!("unknown subscription {shown:?}; available: {known}")))
        }
    }
}
