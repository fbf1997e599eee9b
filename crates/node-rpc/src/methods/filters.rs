//! Logs, and filters that are polled for changes.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{FilterObject, Log, Object, append_element};
use node_core::block::LogRef;
use node_core::cost::Cost;
use node_core::filters::{FilterChanges, FilterId, InvalidFilterId};
use node_core::logs::FoundLog;
use node_core::node::{AboveHead, Node, NodeError};
use node_types::wire::{Data, HashData, JsonArray};
use serde::Serialize;

/// The result of eth_getFilterChanges.
#[derive(Serialize)]
#[serde(untagged)]
enum Changes {
    Hashes(Vec<HashData>),
    Logs(Vec<Log>),
}

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::writing(
            "eth_getLogs",
            &["filter"],
            "All logs that match.",
            |scope, (Object(filter),): (Object<FilterObject>,), out| {
                let mut logs = JsonArray::begin(out);
                scope.node.visit_logs(scope.context, &filter.query(above_head(scope.node))?, |found| {
                    append_element(&mut logs, &found)
                })?;
                logs.end();
                Ok(())
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
        .by_writer()
        .costing(|_, _| Cost::FILTER),
        Method::new(
            "eth_newBlockFilter",
            &[],
            "Installs a filter that reports the hashes of new blocks.",
            |scope, ()| Ok(scope.node.new_block_filter(scope.context)?.to_string()),
        )
        .by_writer()
        .costing(|_, _| Cost::FILTER),
        Method::new(
            "eth_newPendingTransactionFilter",
            &[],
            "Installs a filter that reports the hashes of transactions that enter the pool.",
            |scope, ()| Ok(scope.node.new_pending_transaction_filter(scope.context)?.to_string()),
        )
        .by_writer()
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
        .by_writer()
        .costing(|_, _| Cost::FILTER),
        Method::writing(
            "eth_getFilterLogs",
            &["id"],
            "All logs in the range of a filter for logs.",
            |scope, (id,): (String,), out| {
                let mut logs = JsonArray::begin(out);
                let visit = |found: FoundLog<LogRef<'_>>| append_element(&mut logs, &found);
                scope.node.visit_filter_logs(scope.context, parse(&id)?, visit)?;
                logs.end();
                scope.context.release_view();
                Ok(())
            },
        )
        .by_writer()
        .costing(|_, _| Cost::FILTER),
        Method::new("eth_uninstallFilter", &["id"], "Uninstalls a filter; true if it existed.", uninstall)
            .by_writer()
            .costing(|_, _| Cost::FILTER),
    ]
}

/// Returns what is done about a range above the head. On a development chain it finds nothing, because loops over ranges
/// of equal length, whose last one ends above the head, are common there; elsewhere it fails, as in geth.
fn above_head(node: &Node) -> AboveHead {
    if node.producer().is_some() { AboveHead::Skip } else { AboveHead::Refuse }
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
