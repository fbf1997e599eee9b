//! Traces of what code does, by geth's tracers.

use crate::error::RpcError;
use crate::method::{Method, Scope};
use crate::wire::{Block32, BlockTagOrNumber, TraceConfig};
use node_core::node::{NodeError, TransactionTrace};
use node_core::trace::Trace;
use node_types::H256;
use node_types::wire::{BlockArgument, Data};
use serde::Serialize;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "debug_traceTransaction",
            &["hash", "options?"],
            "What a mined transaction did, as a tracer of geth tells it.",
            |scope, (hash, config): (Block32, TraceConfig)| {
                Ok(scope.node.trace_transaction(scope.context, hash.0, &config.0)?)
            },
        )
        .code(),
        Method::new(
            "debug_traceBlockByNumber",
            &["block", "options?"],
            "What each transaction of a canonical block did.",
            |scope, (tag, config): (BlockTagOrNumber, TraceConfig)| block(scope, tag.0.into(), config),
        )
        .code(),
        Method::new(
            "debug_traceBlockByHash",
            &["hash", "options?"],
            "What each transaction of a canonical block did.",
            |scope, (hash, config): (Block32, TraceConfig)| block(scope, BlockArgument::Hash(hash.0), config),
        )
        .code(),
    ]
}

/// The trace of one transaction of a block.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfTransaction {
    tx_hash: Data<H256>,
    result: Trace,
}

fn block(scope: Scope<'_>, block: BlockArgument, config: TraceConfig) -> Result<Vec<OfTransaction>, RpcError> {
    let traces = scope.node.trace_block(scope.context, block, &config.0).map_err(|error| match error {
        NodeError::BlockNotFound { .. } => RpcError::server(format!("block {block} not found")),
        error => error.into(),
    })?;
    let of_transaction = |trace: TransactionTrace| OfTransaction { tx_hash: Data(trace.hash), result: trace.trace };
    Ok(traces.into_iter().map(of_transaction).collect())
}
