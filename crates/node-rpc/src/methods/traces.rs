//! Traces of execution with geth's tracers.

use crate::error::RpcError;
use crate::method::{Method, write};
use crate::scope::Scope;
use crate::wire::{
    AccessListItem, Block32, BlockNumberParam, BlockParam, CallArguments, CallConfig, Hex, Object, StateOverrides,
    TraceConfig,
};
use node_core::node::{BlockRewards, NodeError, TraceOptions};
use node_types::consensus::Block;
use node_types::wire::{BytesData, Data, JsonArray, JsonBuffer, JsonObject};
use node_types::{Address, BlockId, H256, U256};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::writing(
            "debug_traceTransaction",
            &["hash", "options?"],
            "Traces a mined transaction with a tracer of geth.",
            |scope, (hash, config): (Block32, TraceConfig), out| {
                Ok(scope.node.trace_transaction(scope.context, hash.0, &config.trace, out)?)
            },
        )
        .code(),
        Method::writing(
            "debug_traceBlockByNumber",
            &["block", "options?"],
            "Traces each transaction of a canonical block.",
            |scope, (tag, config): (BlockNumberParam, TraceConfig), out| block(scope, tag.0.into(), config, out),
        )
        .code(),
        Method::writing(
            "debug_traceBlockByHash",
            &["hash", "options?"],
            "Traces each transaction of a canonical block.",
            |scope, (hash, config): (Block32, TraceConfig), out| block(scope, BlockId::Hash(hash.0), config, out),
        )
        .code(),
        Method::writing(
            "debug_traceBlock",
            &["block", "options?"],
            "Traces each transaction of a canonical block that is given as RLP.",
            |scope, (rlp, config): (BytesData, TraceConfig), out| {
                let given = Block::decode(&rlp.0)
                    .map_err(|error| RpcError::server(format!("could not decode block: {error}")))?;
                block(scope, BlockId::Hash(given.header.hash()), config, out)
            },
        )
        .code(),
        Method::writing(
            "debug_traceCall",
            &["call", "block?", "options?"],
            "Traces a message call, without changing anything.",
            |scope, (Object(call), block, config): (Object<CallArguments>, BlockParam, TraceConfig), out| {
                let CallConfig { state_overrides, block_overrides, index } = config.of_call;
                let call = call.read_with(scope.node.spec().chain_id, state_overrides, block_overrides)?;
                Ok(scope.node.trace_call(scope.context, &call, block.0, index, &config.trace, out)?)
            },
        )
        .code(),
        Method::writing(
            "trace_transaction",
            &["hash"],
            "The calls of a mined transaction in OpenEthereum's format; null if it is not mined.",
            |scope, (hash,): (Block32,), out| {
                match scope.node.trace_transaction(scope.context, hash.0, &flat_calls(), out) {
                    Err(NodeError::TransactionNotFound { .. }) => write(out, &()),
                    traced => Ok(traced?),
                }
            },
        )
        .code(),
        Method::writing(
            "trace_block",
            &["block"],
            "The calls of all transactions of a canonical block in OpenEthereum's format, and its rewards before the merge; null if there is none.",
            |scope, (block,): (BlockParam,), out| trace_block(scope, block.0, out),
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

/// Returns the options of the tracer with OpenEthereum's format.
fn flat_calls() -> TraceOptions {
    let options = r#"{"tracer":"openEthereumTracer"}"#;
    TraceOptions { tracer: RawValue::from_string(options.to_owned()).ok().map(Arc::from), timeout: None }
}

fn trace_block(scope: Scope<'_>, block: BlockId, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let start = out.len();
    let traced = scope.node.trace_block(scope.context, block, &flat_calls(), |_, trace| {
        // The lists of all transactions, none of which is empty, become one.
        let is_first = out.len() == start;
        if !is_first {
            out.truncate(out.len() - 1);
        }
        let next = out.len();
        trace(out)?;
        if !is_first {
            out.replace(next, b',');
        }
        Ok(())
    });
    match traced {
        Err(NodeError::BlockNotFound { .. }) => return write(out, &()),
        Err(NodeError::GenesisNotTraceable) => {}
        traced => traced?,
    }
    if out.len() == start {
        out.push(b'[');
    } else {
        out.truncate(out.len() - 1);
    }
    for reward in rewards(scope, block)? {
        if !out.ends_with(b"[") {
            out.push(b',');
        }
        write(out, &reward)?;
    }
    out.push(b']');
    Ok(())
}

/// Returns the rewards of a block before the merge, as the last elements of its trace; the genesis block has none.
fn rewards(scope: Scope<'_>, block: BlockId) -> Result<Vec<Reward>, RpcError> {
    let BlockRewards { block, of_block, of_ommers } = scope.node.block_rewards(scope.context, block)?;
    if block.number == 0 {
        return Ok(Vec::new());
    }
    let kinds = of_block.map(|reward| ("block", reward)).into_iter();
    let kinds = kinds.chain(of_ommers.into_iter().map(|reward| ("uncle", reward)));
    let reward = |(reward_type, (author, value))| Reward {
        action: RewardAction { author: Data(author), reward_type, value: Hex(value) },
        block_hash: Data(block.hash),
        block_number: block.number,
        result: None,
        subtraces: 0,
        trace_address: [],
        transaction_hash: None,
        transaction_position: None,
        kind: "reward",
    };
    Ok(kinds.map(reward).collect())
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

fn block(scope: Scope<'_>, block: BlockId, config: TraceConfig, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let mut list = JsonArray::begin(out);
    let traced = scope.node.trace_block(scope.context, block, &config.trace, |hash, trace| {
        let mut of_transaction = JsonObject::begin(list.element());
        of_transaction.data("txHash", hash.as_bytes());
        trace(of_transaction.member("result"))?;
        of_transaction.end();
        Ok(())
    });
    traced.map_err(|error| match error {
        NodeError::BlockNotFound { .. } => RpcError::server(format!("block {block} not found")),
        error => error.into(),
    })?;
    list.end();
    Ok(())
}
