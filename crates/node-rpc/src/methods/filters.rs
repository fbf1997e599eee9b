//! Logs, and filters that are polled for changes.

use crate::error::RpcError;
use crate::method::{Method, Scope};
use crate::wire::{Log, LogFilter, Object, logs};
use node_core::cost::Cost;
use node_types::wire::{self, FilterIdOutput, HashData, NewFilterInput};
use serde::Serialize;

/// What a filter saw.
#[derive(Serialize)]
#[serde(untagged)]
enum Changes {
    Hashes(Vec<HashData>),
    Logs(Vec<Log>),
}

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_getLogs",
            &["filter"],
            "All logs that match.",
            |scope, (Object(filter),): (Object<LogFilter>,)| {
                logs(scope, scope.node.get_logs(scope.context, filter.query())?.logs)
            },
        )
        .costing(|_| Cost::of_logs([None, None])),
        Method::new(
            "eth_newFilter",
            &["filter"],
            "Makes a filter that reports logs from now on.",
            |scope, (Object(filter),): (Object<LogFilter>,)| {
                let filter_object = filter.filter().map_err(|reason| RpcError::argument(0, reason))?;
                Ok(id(scope.node.new_filter(scope.context, NewFilterInput { filter_object })?))
            },
        )
        .costing(|_| Cost::FILTER),
        Method::new("eth_newBlockFilter", &[], "Makes a filter that reports the hashes of new blocks.", |scope, ()| {
            Ok(id(scope.node.new_block_filter(scope.context)?))
        })
        .costing(|_| Cost::FILTER),
        Method::new(
            "eth_newPendingTransactionFilter",
            &[],
            "Makes a filter that reports the hashes of transactions that come into the pool.",
            |scope, ()| Ok(id(scope.node.new_pending_transaction_filter(scope.context)?)),
        )
        .costing(|_| Cost::FILTER),
        Method::new(
            "eth_getFilterChanges",
            &["id"],
            "What happened since the last poll of a filter.",
            |scope, (id,): (String,)| {
                let changes = scope.node.get_filter_changes(scope.context, &id)?.result;
                // They may be newer than the view that the requests before have read.
                scope.context.release_view();
                match changes {
                    wire::FilterChanges::Hashes(hashes) => Ok(Changes::Hashes(hashes)),
                    wire::FilterChanges::Logs(changed) => logs(scope, changed).map(Changes::Logs),
                }
            },
        )
        .costing(|_| Cost::FILTER),
        Method::new(
            "eth_getFilterLogs",
            &["id"],
            "All logs in the range of a filter for logs.",
            |scope, (id,): (String,)| {
                let found = scope.node.get_filter_logs(scope.context, &id)?.logs;
                scope.context.release_view();
                logs(scope, found)
            },
        )
        .costing(|_| Cost::FILTER),
        Method::new("eth_uninstallFilter", &["id"], "Ends a filter; true if there was one.", uninstall)
            .costing(|_| Cost::FILTER),
    ]
}

fn id(made: FilterIdOutput) -> String {
    made.filter_id
}

fn uninstall(scope: Scope<'_>, (id,): (String,)) -> Result<bool, RpcError> {
    Ok(scope.node.uninstall_filter(scope.context, &id)?.result)
}
