//! Transactions and their receipts.

use super::Routes;
use crate::caching::Lifetime;
use crate::exchange::Exchange;
use crate::parameters::Parameters;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;
use node_types::H256;
use node_types::wire::{
    ErrorDetail, GetTransactionByBlockHashAndIndexInput, GetTransactionByBlockNumberAndIndexInput,
    GetTransactionReceiptOutput, HashInput, SendRawTransactionInput, TransactionOutput,
};

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("sendRawTransaction", send_raw_transaction);
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.get("getTransactionByHash", "/{Hash}", get_transaction_by_hash);
    routes.get("getTransactionByBlockHashAndIndex", "/{Hash}/{Index}", get_transaction_by_block_hash_and_index);
    let by_number = get_transaction_by_block_number_and_index;
    routes.get("getTransactionByBlockNumberAndIndex", "/{BlockNumber}/{Index}", by_number);
    routes.get("getTransactionReceipt", "/{Hash}", get_transaction_receipt);
    routes.get("getRawTransaction", "/{Hash}", get_raw_transaction);
    routes.get("getTransactionStatus", "/{Hash}", get_transaction_status);
}

async fn send_raw_transaction(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let input = exchange.body::<SendRawTransactionInput>().await;
    exchange.run(input, |_| Place::Pool, Node::send_raw_transaction).await
}

async fn get_transaction_by_hash(exchange: Exchange) -> HttpResponse {
    let hash = exchange.parameters(hash);
    exchange.run_cacheable(hash, |_| Place::Here, Node::get_transaction_by_hash, lifetime).await
}

async fn get_transaction_by_block_hash_and_index(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let work = |node: &Node, context: &_, input: GetTransactionByBlockHashAndIndexInput| {
        node.get_transaction_by_block_hash_and_index(context, input.hash.0, input.index.0)
    };
    exchange.run_cacheable(input, |_| Place::Here, work, lifetime).await
}

async fn get_transaction_by_block_number_and_index(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let work = |node: &Node, context: &_, input: GetTransactionByBlockNumberAndIndexInput| {
        node.get_transaction_by_block_number_and_index(context, input.block_number, input.index.0)
    };
    let place = |input: &GetTransactionByBlockNumberAndIndexInput| Place::reading(&input.block_number);
    let lifetime =
        |input: &GetTransactionByBlockNumberAndIndexInput, _: &_| Lifetime::with_requested(&input.block_number);
    exchange.run_cacheable(input, place, work, lifetime).await
}

async fn get_transaction_receipt(exchange: Exchange) -> HttpResponse {
    let hash = exchange.parameters(hash);
    let lifetime = |_: &H256, output: &GetTransactionReceiptOutput| {
        let block = output.transaction_receipt.as_ref().and_then(|receipt| receipt.block_number);
        Lifetime::with_block(block.map(|number| number.0))
    };
    exchange.run_cacheable(hash, |_| Place::Here, Node::get_transaction_receipt, lifetime).await
}

async fn get_raw_transaction(exchange: Exchange) -> HttpResponse {
    let hash = exchange.parameters(hash);
    exchange.run(hash, |_| Place::Here, Node::get_raw_transaction).await
}

async fn get_transaction_status(exchange: Exchange) -> HttpResponse {
    let hash = exchange.parameters(hash);
    exchange.run(hash, |_| Place::Here, Node::get_transaction_status).await
}

/// A transaction stays where it is as long as its block does.
fn lifetime<I>(_: &I, output: &TransactionOutput) -> Lifetime {
    let block = output.transaction.as_ref().and_then(|transaction| transaction.block_number);
    Lifetime::with_block(block.map(|number| number.0))
}

fn hash(parameters: &mut Parameters<'_>) -> Result<H256, Vec<ErrorDetail>> {
    parameters.input().map(|input: HashInput| input.hash.0)
}
