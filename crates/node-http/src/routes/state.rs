//! Accounts, storage and proofs.

use super::Routes;
use crate::caching::Lifetime;
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;
use node_types::wire::{AccountInput, GetProofInput, GetStorageAtInput};

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("getStorageAt", get_storage_at);
    routes.post("getProof", get_proof);
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.get("getAccount", "/{Address}/{BlockNumber}", get_account);
    routes.get("getAccount", "/{Address}", get_account);
    routes.get("getBalance", "/{Address}", get_balance);
    routes.get("getCode", "/{Address}", get_code);
    routes.get("getTransactionCount", "/{Address}/{BlockNumber}", get_transaction_count);
    routes.get("getTransactionCount", "/{Address}", get_transaction_count);
}

async fn get_storage_at(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.body().await;
    exchange.run(input, |input: &GetStorageAtInput| Place::reading(&input.block_number), Node::get_storage_at).await
}

async fn get_proof(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.body::<GetProofInput>().await;
    let quick = exchange.node().proves_quickly();
    let place = move |input: &GetProofInput| Place::proof(quick, input.storage_keys.len());
    exchange.run(input, place, Node::get_proof).await
}

async fn get_account(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    // The storage root comes with a proof.
    let quick = exchange.node().proves_quickly();
    let work =
        |node: &Node, context: &_, input: AccountInput| node.get_account(context, input.address.0, input.block_number);
    exchange.run_cacheable(input, move |_| Place::proof(quick, 0), work, lifetime).await
}

async fn get_balance(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input_with_query("BlockNumber"));
    let work =
        |node: &Node, context: &_, input: AccountInput| node.get_balance(context, input.address.0, input.block_number);
    exchange.run_cacheable(input, place, work, lifetime).await
}

async fn get_code(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input_with_query("BlockNumber"));
    let work =
        |node: &Node, context: &_, input: AccountInput| node.get_code(context, input.address.0, input.block_number);
    exchange.run_cacheable(input, place, work, lifetime).await
}

async fn get_transaction_count(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| parameters.input());
    let work = |node: &Node, context: &_, input: AccountInput| {
        node.get_transaction_count(context, input.address.0, input.block_number)
    };
    exchange.run_cacheable(input, place, work, lifetime).await
}

fn place(input: &AccountInput) -> Place {
    Place::reading(&input.block_number)
}

/// An account as of a block is what it is as long as the block is.
fn lifetime<O>(input: &AccountInput, _: &O) -> Lifetime {
    Lifetime::with_requested(&input.block_number)
}
