//! Logs, and filters that are polled for changes.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{FilterObject, Log, Object};
use node_core::cost::Cost;
use node_core::filters::{FilterChanges, FilterId, InvalidFilterId};
use node_core::logs::FoundLog;
use node_core::node::NodeError;
use node_types::wire::{Data, HashData};
use serde::Serialize;

/// The result of eth_getFilterChanges.
#[derive(Serialize)]
#[serde(untagged)]
enum Changes {
    Hashes(Vec<HashData>),
    Logs(Vec<Log>),
}

/// Writes the result of a search, which may have thousands of logs.
fn write_logs(out: &mut Vec<u8>, found: Vec<FoundLog>) -> Result<(), RpcError> {
    Log::append_all(out, found.into_iter().map(Log::from)).map_err(|error| RpcError::internal(&error))
}

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::writing(
            "eth_getLogs",
            &["filter"],
            "All logs that match.",
            |scope, (Object(filter),): (Object<FilterObject>,), out| {
                write_logs(out, scope.node.get_logs(scope.context, &filter.query()?)?)
            },
        )
        .costing(|_, _| Cost::LOGS),
        Method::new(
            "eth_newFilter",
            &["filter"],
            "Installs a filter that reports logs from now on.",
            |scope, (Object(filter),): (Object<FilterObject>,)| {
                let range = filter.filter_range().map_err(|reason| RpcError::argument(0, reason))?;
                Ok(scope.node.new_filter(scope.context, filter.criteria(), range)?.to_string())
            },
        )
        .costing(|_, _| Cost::FILTER),
        Method::new(
            "eth_newBlockFilter",
            &[],
            "Installs a filter that reports the hashes of new blocks.",
            |scope, ()| Ok(scope.node.new_block_filter(scope.context)?.to_string()),
        )
        .costing(|_, _| Cost::FILTER),
        Method::new(
            "eth_newPendingTransactionFilter",
            &[],
            "Installs a filter that reports the hashes of transactions that enter the pool.",
            |scope, ()| Ok(scope.node.new_pending_transaction_filter(scope.context)?.to_string()),
        )
        .costing(|_, _| Cost::FILTER),
        Method::new(
            "eth_getFilterChanges",
            &["id"],
            "What happened since the last poll of a filter.",
            |scope, (id,): (String,)| {
                let changes = scope.node.get_filter_changes(scope.context, parse(&id)?)?;
                // The changes may be newer than the view that earlier requests of the batch have read.
                scope.context.release_view();
                match changes {
                    FilterChanges::Blocks(blocks) => {
                        Ok(Changes::Hashes(blocks.into_iter().map(|block| Data(block.hash)).collect()))
                    }
                    FilterChanges::Transactions(arrivals) => {
                        Ok(Changes::Hashes(arrivals.into_iter().map(|arrival| Data(arrival.hash)).collect()))
                    }
                    FilterChanges::Logs(changed) => Ok(Changes::Logs(changed.into_iter().map(Log::from).collect())),
                }
            },
        )
        .costing(|_, _| Cost::FILTER),
        Method::writing(
            "eth_getFilterLogs",
            &["id"],
            "All logs in the range of a filter for logs.",
            |scope, (id,): (String,), out| {
                let found = scope.node.get_filter_logs(scope.context, parse(&id)?)?;
                scope.context.release_view();
                write_logs(out, found)
            },
        )
        .costing(|_, _| Cost::FILTER),
        Method::new("eth_uninstallFilter", &["id"], "Uninstalls a filter; true if it existed.", uninstall)
            .costing(|_, _| Cost::FILTER),
    ]
}

fn parse(id: &str) -> Result<FilterId, NodeError> {
    Ok(id.parse::<FilterId>()?)
}

fn uninstall(scope: Scope<'_>, (id,): (String,)) -> Result<bool, RpcError> {
    match id.parse() {
        Ok(id) => Ok(scope.node.uninstall_filter(scope.context, id)?),
        Err(InvalidFilterId) => Ok(false),
    }
}
