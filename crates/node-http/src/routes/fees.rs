//! Fees.

use super::Routes;
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("feeHistory", fee_history);
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.get("gasPrice", "", gas_price);
    routes.get("maxPriorityFeePerGas", "", max_priority_fee_per_gas);
    routes.get("blobBaseFee", "", blob_base_fee);
}

async fn fee_history(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.body().await;
    exchange.run(input, Place::fee_history, Node::fee_history).await
}

async fn gas_price(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.gas_price(context)).await
}

async fn max_priority_fee_per_gas(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.max_priority_fee_per_gas(context)).await
}

async fn blob_base_fee(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.blob_base_fee(context)).await
}
