//! Traces of execution with geth's tracers.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{
    AccessListItem, Block32, BlockNumberParam, BlockParam, CallArguments, CallConfig, Hex, Object, StateOverrides,
    TraceConfig,
};
use node_core::executor::Trace;
use node_core::node::{BlockRewards, NodeError, TraceOptions, TransactionTrace};
use node_types::consensus::Block;
use node_types::wire::{BytesData, Data};
use node_types::{Address, BlockId, H256, U256};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "debug_traceTransaction",
            &["hash", "options?"],
            "Traces a mined transaction with a tracer of geth.",
            |scope, (hash, config): (Block32, TraceConfig)| {
                Ok(scope.node.trace_transaction(scope.context, hash.0, &config.trace)?)
            },
        )
        .code(),
        Method::new(
            "debug_traceBlockByNumber",
            &["block", "options?"],
            "Traces each transaction of a canonical block.",
            |scope, (tag, config): (BlockNumberParam, TraceConfig)| block(scope, tag.0.into(), config),
        )
        .code(),
        Method::new(
            "debug_traceBlockByHash",
            &["hash", "options?"],
            "Traces each transaction of a canonical block.",
            |scope, (hash, config): (Block32, TraceConfig)| block(scope, BlockId::Hash(hash.0), config),
        )
        .code(),
        Method::new(
            "debug_traceBlock",
            &["block", "options?"],
            "Traces each transaction of a canonical block that is given as RLP.",
            |scope, (rlp, config): (BytesData, TraceConfig)| {
                let given = Block::decode(&rlp.0)
                    .map_err(|error| RpcError::server(format!("could not decode block: {error}")))?;
                block(scope, BlockId::Hash(given.header.hash()), config)
            },
        )
        .code(),
        Method::new(
            "debug_traceCall",
            &["call", "block?", "options?"],
            "Traces a message call, without changing anything.",
            |scope, (Object(call), block, config): (Object<CallArguments>, BlockParam, TraceConfig)| {
                let CallConfig { state_overrides, block_overrides, index } = config.of_call;
                let call = call.read_with(scope.node.spec().chain_id, state_overrides, block_overrides)?;
                Ok(scope.node.trace_call(scope.context, &call, block.0, index, &config.trace)?)
            },
        )
        .code(),
        Method::new(
            "trace_transaction",
            &["hash"],
            "The calls of a mined transaction in OpenEthereum's format; null if it is not mined.",
            |scope, (hash,): (Block32,)| match scope.node.trace_transaction(scope.context, hash.0, &flat_calls()) {
                Ok(trace) => Ok(Some(trace)),
                Err(NodeError::TransactionNotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        )
        .code(),
        Method::new(
            "trace_block",
            &["block"],
            "The calls of all transactions of a canonical block in OpenEthereum's format, and its rewards before the merge; null if there is none.",
            |scope, (block,): (BlockParam,)| trace_block(scope, block.0),
        )
        .code(),
        Method::new(
            "eth_createAccessList",
            &["call", "block?", "stateOverrides?"],
            "The access list of the accounts and storage slots that a message call touches (EIP-2930).",
            access_list,
        )
        .code(),
    ]
}

fn access_list(
    scope: Scope<'_>,
    (Object(call), block, state): (Object<CallArguments>, BlockParam, Option<StateOverrides>),
) -> Result<AccessList, RpcError> {
    let call = call.read_with(scope.node.spec().chain_id, state, None)?;
    let found = scope.node.create_access_list(scope.context, &call, block.0)?;
    Ok(AccessList {
        access_list: found.access_list.iter().map(AccessListItem::from).collect(),
        error: found.error,
        gas_used: Hex(found.gas_used),
    })
}

/// The result of eth_createAccessList.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AccessList {
    access_list: Vec<AccessListItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    gas_used: Hex<u64>,
}

/// The trace of one transaction of a block.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfTransaction {
    tx_hash: Data<H256>,
    result: Trace,
}

/// Returns the options of the tracer with OpenEthereum's format.
fn flat_calls() -> TraceOptions {
    let options = r#"{"tracer":"openEthereumTracer"}"#;
    TraceOptions { tracer: RawValue::from_string(options.to_owned()).ok().map(Arc::from), timeout: None }
}

fn trace_block(scope: Scope<'_>, block: BlockId) -> Result<Option<Vec<Box<RawValue>>>, RpcError> {
    let traces = match scope.node.trace_block(scope.context, block, &flat_calls()) {
        Err(NodeError::BlockNotFound { .. }) => return Ok(None),
        Err(NodeError::GenesisNotTraceable) => Vec::new(),
        traces => traces?,
    };
    let mut calls = Vec::new();
    for TransactionTrace { trace, .. } in traces {
        let of_transaction = serde_json::from_str::<Vec<Box<RawValue>>>(trace.get());
        calls.extend(of_transaction.map_err(|error| RpcError::server(format!("the trace is not a list: {error}")))?);
    }
    calls.extend(rewards(scope, block)?);
    Ok(Some(calls))
}

/// Returns the rewards of a block before the merge, as the last elements of its trace; the genesis block has none.
fn rewards(scope: Scope<'_>, block: BlockId) -> Result<Vec<Box<RawValue>>, RpcError> {
    let BlockRewards { block, of_block, of_ommers } = scope.node.block_rewards(scope.context, block)?;
    if block.number == 0 {
        return Ok(Vec::new());
    }
    let kinds = of_block.map(|reward| ("block", reward)).into_iter();
    let kinds = kinds.chain(of_ommers.into_iter().map(|reward| ("uncle", reward)));
    let written = kinds.map(|(reward_type, (author, value))| {
        serde_json::value::to_raw_value(&Reward {
            action: RewardAction { author: Data(author), reward_type, value: Hex(value) },
            block_hash: Data(block.hash),
            block_number: block.number,
            result: None,
            subtraces: 0,
            trace_address: [],
            transaction_hash: None,
            transaction_position: None,
            kind: "reward",
        })
    });
    let written: Result<_, serde_json::Error> = written.collect();
    written.map_err(|error| RpcError::server(error.to_string()))
}

/// A reward in OpenEthereum's format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reward {
    action: RewardAction,
    block_hash: Data<H256>,
    block_number: u64,
    result: Option<()>,
    subtraces: usize,
    trace_address: [usize; 0],
    transaction_hash: Option<Data<H256>>,
    transaction_position: Option<usize>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RewardAction {
    author: Data<Address>,
    reward_type: &'static str,
    value: Hex<U256>,
}

fn block(scope: Scope<'_>, block: BlockId, config: TraceConfig) -> Result<Vec<OfTransaction>, RpcError> {
    let traces = scope.node.trace_block(scope.context, block, &config.trace).map_err(|error| match error {
        NodeError::BlockNotFound { .. } => RpcError::server(format!("block {block} not found")),
        error => error.into(),
    })?;
    let of_transaction = |trace: TransactionTrace| OfTransaction { tx_hash: Data(trace.hash), result: trace.trace };
    Ok(traces.into_iter().map(of_transaction).collect())
}
