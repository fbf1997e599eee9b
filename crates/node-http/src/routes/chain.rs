//! Facts about the chain and this server.

use super::Routes;
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.get("blockNumber", "", block_number);
    routes.get("chainId", "", chain_id);
    routes.get("syncing", "", syncing);
    routes.get("clientVersion", "", client_version);
}

async fn block_number(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.block_number(context)).await
}

async fn chain_id(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.chain_id(context)).await
}

async fn syncing(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.syncing(context)).await
}

async fn client_version(exchange: Exchange) -> HttpResponse {
    exchange.run(Ok(()), |()| Place::Here, |node, context, ()| node.client_version(context)).await
}
