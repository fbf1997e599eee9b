//! The chain as a whole: information, snapshots, and reorganizations.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Block32, Hex, Loose, Object, TransactionRequest};
use node_core::node::{NodeError, ReplacementTransaction};
use node_core::pool::TransactionOrder;
use node_core::producer::{ForkBlock, ForkInfo, ProducerError};
use node_types::consensus::PooledTransaction;
use node_types::wire::{BytesData, Data, HashData};
use node_types::{BlockId, U256};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The result of anvil_nodeInfo.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    current_block_number: Hex<u64>,
    current_block_timestamp: u64,
    current_block_hash: HashData,
    hard_fork: String,
    transaction_order: &'static str,
    environment: Environment,
    fork_config: ForkConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Environment {
    base_fee: Hex<u64>,
    chain_id: u64,
    gas_limit: Hex<u64>,
    gas_price: Hex<U256>,
}

/// The chain that this one continues. All fields are null if there is none.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkConfig {
    /// Scheme, host and port; the rest of the URL may be secret.
    fork_url: Option<String>,
    fork_block_number: Option<u64>,
    /// In milliseconds.
    fork_retry_backoff: Option<u128>,
    /// Whether the state of the other chain comes with proofs.
    verified: Option<bool>,
}

impl From<ForkInfo> for ForkConfig {
    fn from(fork: ForkInfo) -> Self {
        Self {
            fork_url: fork.endpoints.into_iter().next(),
            fork_block_number: Some(fork.block.number),
            fork_retry_backoff: Some(fork.retry_backoff.as_millis()),
            verified: Some(fork.is_verified),
        }
    }
}

/// The block with which a forked chain begins.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkedNetwork {
    chain_id: u64,
    fork_block_number: u64,
    fork_block_hash: HashData,
}

impl From<ForkInfo> for ForkedNetwork {
    fn from(fork: ForkInfo) -> Self {
        Self { chain_id: fork.chain_id, fork_block_number: fork.block.number, fork_block_hash: Data(fork.block.hash) }
    }
}

/// The result of anvil_metadata.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    client_version: String,
    chain_id: u64,
    instance_id: HashData,
    latest_block_number: u64,
    latest_block_hash: HashData,
    forked_network: Option<ForkedNetwork>,
    snapshots: BTreeMap<String, SnapshotBlock>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotBlock {
    block_number: u64,
    block_hash: HashData,
}

/// The parameter of anvil_reset. As in anvil, the fields of `forking` may also be beside it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResetOptions {
    forking: Option<Object<Forking>>,
    json_rpc_url: Option<String>,
    block_number: Option<FirstBlock>,
}

/// Where a fork begins. viem sends it without either.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Forking {
    json_rpc_url: Option<String>,
    block_number: Option<FirstBlock>,
}

impl ResetOptions {
    fn forking(self) -> Result<Forking, RpcError> {
        let Self { forking, json_rpc_url, block_number } = self;
        match forking {
            None => Ok(Forking { json_rpc_url, block_number }),
            Some(Object(forking)) if json_rpc_url.is_none() && block_number.is_none() => Ok(forking),
            Some(_) => {
                let message = "jsonRpcUrl and blockNumber must be either in forking or beside it";
                Err(RpcError::new(RpcError::INVALID_PARAMS, message.to_owned()))
            }
        }
    }
}

/// A block to begin with: a number, or a text as for the option `fork-block-number`.
#[derive(Debug)]
struct FirstBlock(ForkBlock);

impl<'de> Deserialize<'de> for FirstBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if let Ok(Loose(number)) = serde_json::from_str(raw) {
            return Ok(Self(ForkBlock::Id(BlockId::number(number))));
        }
        // Negative numbers may be without quotes.
        let text = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// A transaction of a replacement block.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a signed transaction, or the fields of one")]
enum Replacement {
    Signed(BytesData),
    Request(Box<TransactionRequest>),
}

/// The parameters of anvil_reorg as one object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReorgOptions {
    depth: Loose<u64>,
    #[serde(default)]
    tx_block_pairs: Vec<(Replacement, Loose<u64>)>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number of blocks, or an object with depth and txBlockPairs")]
enum Reorg {
    Depth(Loose<u64>),
    Options(ReorgOptions),
}

pub(super) fn methods() -> Vec<Method> {
    [
        named(&["anvil_nodeInfo"], &[], "Head, fork, and settings of the chain.", |scope, ()| node_info(scope)),
        named(
            &["anvil_metadata", "hardhat_metadata"],
            &[],
            "The identity of the chain, and its snapshots.",
            |scope, ()| metadata(scope),
        ),
        named(&["anvil_getGenesisTime"], &[], "The timestamp of the genesis block, as a number.", |scope, ()| {
            let genesis = scope.node.get_header(scope.context, BlockId::earliest())?;
            Ok(genesis.map(|genesis| genesis.header.timestamp))
        }),
        named(
            &["anvil_getBlobByHash"],
            &["versionedHash"],
            "A blob of the pool, or of a recently mined transaction; null if it is unknown.",
            |scope, (hash,): (Block32,)| Ok(scope.node.pool().blob(hash.0).map(Data)),
        ),
        named(
            &["anvil_getBlobsByTransactionHash"],
            &["hash"],
            "The blobs of a transaction of the pool, or of a recently mined one; null if they are unknown.",
            |scope, (hash,): (Block32,)| {
                let sidecar = scope.node.pool().sidecar(hash.0);
                Ok(sidecar.map(|sidecar| sidecar.blobs().iter().cloned().map(Data).collect::<Vec<BytesData>>()))
            },
        ),
        named(&["evm_snapshot", "anvil_snapshot"], &[], "Takes a snapshot of the chain.", |scope, ()| {
            scope.control()?.snapshot().map(Hex).map_err(RpcError::from)
        }),
        named(
            &["evm_revert", "anvil_revert"],
            &["snapshot"],
            "Reverts the chain to a snapshot; returns whether it existed.",
            |scope, (id,): (Loose<u64>,)| Ok(scope.node.revert(scope.context, id.0)?),
        ),
        named(
            &["anvil_reset", "hardhat_reset"],
            &["options?"],
            "Resets the chain to its first block, or has a fork begin with another block.",
            |scope, (options,): (Option<Object<ResetOptions>>,)| {
                let options = options.map_or_else(ResetOptions::default, |Object(options)| options);
                let Forking { json_rpc_url, block_number } = options.forking()?;
                if json_rpc_url.is_none() && block_number.is_none() {
                    return scope.control()?.reset().map(drop).map_err(RpcError::from);
                }
                let block = block_number.map(|FirstBlock(block)| block);
                Ok(scope.node.fork_again(scope.context, json_rpc_url.as_deref(), block).map(drop)?)
            },
        ),
        named(
            &["anvil_rollback"],
            &["blocks?"],
            "Removes the newest blocks, with their transactions and edits.",
            |scope, (blocks,): (Option<Loose<u64>>,)| {
                scope.control()?.rollback(blocks.map_or(1, |blocks| blocks.0)).map(drop).map_err(RpcError::from)
            },
        ),
        named(
            &["anvil_reorg"],
            &["depth", "transactions?"],
            "Replaces the newest blocks with blocks that hold the given transactions.",
            |scope, (depth, pairs): (Reorg, Option<Replacements>)| reorganize(scope, depth, pairs),
        ),
        named(
            &["anvil_setChainId"],
            &["chainId"],
            "Accepts only the id that the chain has.",
            |scope, (id,): (Loose<u64>,)| match scope.node.spec().chain_id {
                current if current == id.0 => Ok(()),
                current => Err(RpcError::server(format!(
                    "the chain has the id {current} for good: its transactions are valid under no other (`chain-id`)"
                ))),
            },
        ),
        named(
            &["anvil_setRpcUrl"],
            &["url"],
            "Has a fork read the other chain from another URL.",
            |scope, (url,): (String,)| -> Result<(), RpcError> {
                scope.control()?;
                let fork = scope.node.fork().ok_or(ProducerError::NotAFork)?;
                Ok(fork.set_url(scope.context, &url)?)
            },
        ),
        named(
            &["anvil_setLoggingEnabled", "hardhat_setLoggingEnabled"],
            &["enabled"],
            "Does nothing: logging is set at the start.",
            |_, (_enabled,): (bool,)| Ok(()),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn node_info(scope: Scope<'_>) -> Result<NodeInfo, RpcError> {
    let producer = scope.control()?;
    let next = producer.next_header().map_err(NodeError::from)?;
    let head = scope.node.head(scope.context)?;
    Ok(NodeInfo {
        current_block_number: Hex(head.header.number),
        current_block_timestamp: head.header.timestamp,
        current_block_hash: Data(head.hash),
        hard_fork: format!("{:?}", scope.node.spec().fork(&next)),
        transaction_order: match producer.order() {
            TransactionOrder::Fees => "fees",
            TransactionOrder::Fifo => "fifo",
        },
        environment: Environment {
            base_fee: Hex(next.base_fee_per_gas.unwrap_or(0)),
            chain_id: scope.node.spec().chain_id,
            gas_limit: Hex(next.gas_limit),
            gas_price: Hex(scope.node.gas_price(scope.context)?),
        },
        fork_config: scope.node.fork().map_or_else(ForkConfig::default, |fork| fork.info().into()),
    })
}

fn metadata(scope: Scope<'_>) -> Result<Metadata, RpcError> {
    let producer = scope.control()?;
    let head = scope.node.head(scope.context)?;
    let snapshots = producer.snapshots().into_iter().map(|(id, block)| {
        let snapshot = SnapshotBlock { block_number: block.number, block_hash: Data(block.hash) };
        (format!("{id:#x}"), snapshot)
    });
    Ok(Metadata {
        client_version: scope.node.client_version().to_owned(),
        chain_id: scope.node.spec().chain_id,
        instance_id: Data(producer.instance()),
        latest_block_number: head.header.number,
        latest_block_hash: Data(head.hash),
        forked_network: scope.node.fork().map(|fork| fork.info().into()),
        snapshots: snapshots.collect(),
    })
}

/// Transactions, each with the position of its block.
type Replacements = Vec<(Replacement, Loose<u64>)>;

fn reorganize(scope: Scope<'_>, depth: Reorg, pairs: Option<Replacements>) -> Result<(), RpcError> {
    let (depth, pairs) = match depth {
        Reorg::Depth(depth) => (depth, pairs.unwrap_or_default()),
        Reorg::Options(ReorgOptions { depth, tx_block_pairs }) => (depth, tx_block_pairs),
    };
    let transaction = |(replacement, block): (Replacement, Loose<u64>)| {
        let transaction = match replacement {
            Replacement::Signed(data) => {
                let pooled = PooledTransaction::decode(&data).map_err(|error| RpcError::argument(1, error))?;
                ReplacementTransaction::Signed(pooled.transaction)
            }
            Replacement::Request(request) => ReplacementTransaction::Request(request.read(1)?),
        };
        Ok((block.0, transaction))
    };
    let transactions = pairs.into_iter().map(transaction).collect::<Result<_, RpcError>>()?;
    Ok(scope.node.reorganize_with(scope.context, depth.0, transactions)?)
}
