//! Calls and gas estimates.

use super::Routes;
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("call", call);
    routes.post("estimateGas", estimate_gas);
}

async fn call(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.body().await;
    exchange.run(input, |_| Place::Code, Node::call).await
}

async fn estimate_gas(mut exchange: Exchange) -> HttpResponse {
    let input = exchange.body().await;
    exchange.run(input, |_| Place::Code, Node::estimate_gas).await
}
