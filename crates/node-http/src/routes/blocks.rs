//! Blocks and what they hold.

use super::Routes;
use crate::block_cache::BlockKey;
use crate::caching::Lifetime;
use crate::exchange::Exchange;
use crate::parameters::Parameters;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;
use node_types::BlockId;
use node_types::wire::{BlockNumberInput, ErrorDetail, GetBlockByHashInput, GetBlockByNumberInput, HashInput};

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.get("getBlockByNumber", "/{BlockNumber}/{TransactionDetailFlag}", get_block_by_number);
    routes.get("getBlockByNumber", "/{BlockNumber}", get_block_by_number);
    routes.get("getBlockByNumber", "", get_block_by_number);
    routes.get("getBlockByHash", "/{Hash}/{TransactionDetailFlag}", get_block_by_hash);
    routes.get("getBlockByHash", "/{Hash}", get_block_by_hash);
    routes.get("getBlockReceipts", "/{BlockNumber}", get_block_receipts);
    routes.get("getBlockTransactionCountByHash", "/{Hash}", get_block_transaction_count_by_hash);
    routes.get("getBlockTransactionCountByNumber", "/{BlockNumber}", get_block_transaction_count_by_number);
    routes.get("getUncleCountByBlockHash", "/{Hash}", get_uncle_count_by_block_hash);
    routes.get("getUncleCountByBlockNumber", "/{BlockNumber}", get_uncle_count_by_block_number);
}

async fn get_block_by_number(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let key = exchange.find_block(&input, |node, context, input: &GetBlockByNumberInput| {
        let hash = node.block_hash(context, input.block_number)?;
        Ok(hash.map(|hash| BlockKey { hash, detail: input.transaction_detail }))
    });
    match (key, &input) {
        (Some(key), Ok(named)) => {
            let lifetime = Lifetime::with_requested(&named.block_number);
            exchange.respond_with_block(input, key, lifetime).await
        }
        // The pending block, none, or a fault.
        _ => exchange.run(input, Place::block, Node::get_block_by_number).await,
    }
}

async fn get_block_by_hash(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let key = exchange.find_block(&input, |node, context, input: &GetBlockByHashInput| {
        let known = node.knows_block(context, input.hash.0)?;
        Ok(known.then_some(BlockKey { hash: input.hash.0, detail: input.transaction_detail }))
    });
    match key {
        Some(key) => exchange.respond_with_block(input, key, Lifetime::Forever).await,
        None => exchange.run(input, Place::side_block, Node::get_block_by_hash).await,
    }
}

async fn get_block_receipts(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(number);
    exchange.run_cacheable(input, |_| Place::Pool, Node::get_block_receipts, lifetime).await
}

async fn get_block_transaction_count_by_hash(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let work =
        |node: &Node, context: &_, input: HashInput| node.get_block_transaction_count_by_hash(context, input.hash.0);
    exchange.run_cacheable(input, |_| Place::Here, work, |_, _| Lifetime::Forever).await
}

async fn get_block_transaction_count_by_number(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(number);
    exchange.run_cacheable(input, Place::reading, Node::get_block_transaction_count_by_number, lifetime).await
}

async fn get_uncle_count_by_block_hash(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let work = |node: &Node, context: &_, input: HashInput| node.get_uncle_count_by_block_hash(context, input.hash.0);
    exchange.run_cacheable(input, |_| Place::Here, work, |_, _| Lifetime::Forever).await
}

async fn get_uncle_count_by_block_number(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(number);
    exchange.run_cacheable(input, Place::reading, Node::get_uncle_count_by_block_number, lifetime).await
}

fn number(parameters: &mut Parameters<'_>) -> Result<BlockId, Vec<ErrorDetail>> {
    parameters.input().map(|input: BlockNumberInput| input.block_number)
}

/// What a block holds is what it is as long as the block is.
fn lifetime<O>(block: &BlockId, _: &O) -> Lifetime {
    Lifetime::with_requested(block)
}
