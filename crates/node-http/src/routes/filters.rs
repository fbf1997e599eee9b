//! Filters, and what they saw. Reading a filter advances or prolongs it, so that no answer may be kept by caches.

use super::{Methods, Routes};
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::Node;
use node_types::wire::EmptyInput;

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("newFilter", new_filter);
}

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.add(Methods::GetOrPost, "newBlockFilter", "", new_block_filter);
    routes.add(Methods::GetOrPost, "newPendingTransactionFilter", "", new_pending_transaction_filter);
    routes.add(Methods::GetOnly, "getFilterChanges", "/{FilterId}", get_filter_changes);
    routes.add(Methods::GetOnly, "getFilterLogs", "/{FilterId}", get_filter_logs);
    routes.add(Methods::GetOnly, "uninstallFilter", "/{FilterId}", uninstall_filter);
}

async fn new_filter(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let input = exchange.body().await;
    exchange.run(input, |_| Place::Pool, Node::new_filter).await
}

async fn new_block_filter(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let input = exchange.optional_body().await;
    exchange.run(input, |_| Place::Pool, |node, context, _: EmptyInput| node.new_block_filter(context)).await
}

async fn new_pending_transaction_filter(exchange: Exchange) -> HttpResponse {
    let mut exchange = exchange.no_store();
    let input = exchange.optional_body().await;
    let work = |node: &Node, context: &_, _: EmptyInput| node.new_pending_transaction_filter(context);
    exchange.run(input, |_| Place::Pool, work).await
}

async fn get_filter_changes(exchange: Exchange) -> HttpResponse {
    let id = exchange.parameters(|parameters| Ok(parameters.path("FilterId").into_owned()));
    let work = |node: &Node, context: &_, id: String| node.get_filter_changes(context, &id);
    exchange.no_store().run(id, |_| Place::Pool, work).await
}

async fn get_filter_logs(exchange: Exchange) -> HttpResponse {
    let id = exchange.parameters(|parameters| Ok(parameters.path("FilterId").into_owned()));
    let work = |node: &Node, context: &_, id: String| node.get_filter_logs(context, &id);
    exchange.no_store().run(id, |_| Place::Pool, work).await
}

async fn uninstall_filter(exchange: Exchange) -> HttpResponse {
    let id = exchange.parameters(|parameters| Ok(parameters.path("FilterId").into_owned()));
    let work = |node: &Node, context: &_, id: String| node.uninstall_filter(context, &id);
    exchange.no_store().run(id, |_| Place::Pool, work).await
}
