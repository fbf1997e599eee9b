//! Blocks and their parts, and blocks that are built on request, for tests of execution.

use crate::block_cache::{BlockKey, Interface};
use crate::error::RpcError;
use crate::method::{self, Method};
use crate::scope::Scope;
use crate::wire::{
    Block, Block32, BlockNumberParam, BlockParam, BuiltPayload, Header, Hex, Object, Ommer, PayloadAttributes, Receipt,
};
use node_core::cost::Cost;
use node_core::node::{FoundBlock, NodeError};
use node_types::BlockId;
use node_types::wire::{BytesData, JsonBuffer};

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::writing(
            "eth_getBlockByNumber",
            &["block", "hydrated?"],
            "A block of the canonical chain, with full transactions or with their hashes.",
            |scope, (tag, whole): (BlockNumberParam, Option<bool>), out| block(scope, tag.0.into(), whole, out),
        )
        .costing(|_, _| Cost::BLOCK),
        Method::writing(
            "eth_getBlockByHash",
            &["hash", "hydrated?"],
            "A block of any branch, with full transactions or with their hashes.",
            |scope, (hash, whole): (Block32, Option<bool>), out| block(scope, BlockId::Hash(hash.0), whole, out),
        )
        .costing(|_, _| Cost::BLOCK),
        header_by_number("eth_getHeaderByNumber"),
        header_by_number("erigon_getHeaderByNumber"),
        Method::new(
            "eth_getHeaderByHash",
            &["hash"],
            "The header of a block of any branch; null if there is none.",
            |scope, (hash,): (Block32,)| header(scope, BlockId::Hash(hash.0)),
        ),
        Method::new(
            "eth_getBlockReceipts",
            &["block"],
            "The receipts of all transactions of a canonical block; null if there is none.",
            |scope, (id,): (BlockParam,)| match scope.node.get_receipts(scope.context, id.0) {
                Ok(receipts) => Ok(Some(Receipt::all(scope.node.spec(), &receipts))),
                Err(NodeError::BlockNotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
        )
        .costing(|_, _| Cost::BLOCK),
        Method::new(
            "eth_getBlockTransactionCountByNumber",
            &["block"],
            "The number of transactions in a canonical block; null if there is none.",
            |scope, (tag,): (BlockNumberParam,)| count(scope, tag.0.into(), |found| found.body.transactions.len()),
        ),
        Method::new(
            "eth_getBlockTransactionCountByHash",
            &["hash"],
            "The number of transactions in a block; null if there is none.",
            |scope, (hash,): (Block32,)| count(scope, BlockId::Hash(hash.0), |found| found.body.transactions.len()),
        ),
        Method::new(
            "eth_getUncleCountByBlockNumber",
            &["block"],
            "The number of ommers of a canonical block; null if there is none.",
            |scope, (tag,): (BlockNumberParam,)| count(scope, tag.0.into(), |found| found.body.ommers.len()),
        ),
        Method::new(
            "eth_getUncleCountByBlockHash",
            &["hash"],
            "The number of ommers of a block; null if there is none.",
            |scope, (hash,): (Block32,)| count(scope, BlockId::Hash(hash.0), |found| found.body.ommers.len()),
        ),
        Method::new(
            "eth_getUncleByBlockNumberAndIndex",
            &["block", "index"],
            "An ommer of a canonical block; null if there is none.",
            |scope, (tag, index): (BlockNumberParam, Hex<u64>)| ommer(scope, tag.0.into(), index),
        ),
        Method::new(
            "eth_getUncleByBlockHashAndIndex",
            &["hash", "index"],
            "An ommer of a block; null if there is none.",
            |scope, (hash, index): (Block32, Hex<u64>)| ommer(scope, BlockId::Hash(hash.0), index),
        ),
        Method::new(
            "testing_buildBlockV1",
            &["parentHash", "payloadAttributes", "transactions?", "extraData?"],
            "Builds a block on top of another one with the given transactions or those of the pool, without storing it.",
            |scope, parameters: (Block32, Object<PayloadAttributes>, Option<Vec<BytesData>>, Option<BytesData>)| {
                let (parent, Object(attributes), transactions, extra_data) = parameters;
                let request = attributes.request(parent, transactions, extra_data);
                Ok(BuiltPayload::from(scope.node.build_block(scope.context, request)?))
            },
        )
        .code(),
    ]
}

fn header_by_number(name: &'static str) -> Method {
    let about = "The header of a canonical block; null if there is none.";
    Method::new(name, &["block"], about, |scope, (tag,): (BlockNumberParam,)| header(scope, tag.0.into()))
}

/// Appends the JSON of a block to `out`, from the cache if the block was read before.
fn block(scope: Scope<'_>, argument: BlockId, whole: Option<bool>, out: &mut JsonBuffer) -> Result<(), RpcError> {
    let whole = whole.unwrap_or(false);
    let key = |hash| BlockKey { hash, whole, interface: Interface::Rpc };
    let hash = scope.node.get_block_hash(scope.context, argument)?;
    if let Some(cached) = hash.and_then(|hash| scope.blocks.get(key(hash))) {
        out.extend_from_slice(&cached);
        return Ok(());
    }
    // A block with this number exists even if a fork cannot read the one with its hash.
    let found = scope.node.get_block(scope.context, argument)?;
    let start = out.len();
    method::write(out, &found.as_ref().map(|block| Block::of(block, whole)))?;
    if let Some(found) = found.filter(|found| !found.pending && out.full().is_none()) {
        scope.blocks.insert(key(found.header.hash), &out[start..]);
    }
    Ok(())
}

fn header(scope: Scope<'_>, argument: BlockId) -> Result<Option<Header>, RpcError> {
    Ok(scope.node.get_block(scope.context, argument)?.map(|block| Header::of_found(&block)))
}

fn count(
    scope: Scope<'_>,
    argument: BlockId,
    count: impl Fn(&FoundBlock) -> usize,
) -> Result<Option<Hex<u64>>, RpcError> {
    let found = scope.node.get_block(scope.context, argument)?;
    Ok(found.map(|block| Hex(count(&block) as u64)))
}

fn ommer(scope: Scope<'_>, argument: BlockId, index: Hex<u64>) -> Result<Option<Ommer>, RpcError> {
    let found = scope.node.get_block(scope.context, argument)?;
    let index = usize::try_from(index.0).unwrap_or(usize::MAX);
    Ok(found.and_then(|block| block.body.ommers.get(index).map(Ommer::of)))
}
