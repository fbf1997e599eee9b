//! Blocks and their parts.

use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::{Block, Block32, BlockNumberParam, BlockParam, Header, Hex, Ommer, Receipt};
use node_core::cost::Cost;
use node_core::node::{FoundBlock, NodeError};
use node_types::{BlockId, BlockNumberOrTag};

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_getBlockByNumber",
            &["block", "hydrated?"],
            "A block of the canonical chain, with full transactions or with their hashes.",
            |scope, (tag, whole): (BlockNumberParam, Option<bool>)| block(scope, tag.0.into(), whole),
        )
        .costing(by_wholeness),
        Method::new(
            "eth_getBlockByHash",
            &["hash", "hydrated?"],
            "A block of any branch, with full transactions or with their hashes.",
            |scope, (hash, whole): (Block32, Option<bool>)| block(scope, BlockId::Hash(hash.0), whole),
        )
        .costing(by_wholeness),
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
        .costing(|_| Cost::RECEIPTS),
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
    ]
}

/// Whole transactions take long to write.
fn by_wholeness(parameters: &str) -> Cost {
    Cost::of_block(BlockNumberOrTag::Latest, parameters.contains("true"))
}

fn header_by_number(name: &'static str) -> Method {
    let about = "The header of a canonical block; null if there is none.";
    Method::new(name, &["block"], about, |scope, (tag,): (BlockNumberParam,)| header(scope, tag.0.into()))
}

fn block(scope: Scope<'_>, argument: BlockId, whole: Option<bool>) -> Result<Option<Block>, RpcError> {
    let found = scope.node.get_block(scope.context, argument)?;
    Ok(found.map(|block| Block::of(&block, whole.unwrap_or(false))))
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
