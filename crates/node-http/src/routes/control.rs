//! Control of a chain that the node produces itself. Only there, and only for those on the same machine.

use super::{Methods, Routes};
use crate::admission;
use crate::exchange::Exchange;
use crate::place::Place;
use node_core::context::Context;
use node_core::node::{Node, NodeError};
use node_types::wire::Decode;
use serde::Serialize;

pub(super) fn all(routes: &mut Routes<'_>) {
    optional(routes, "mine", Node::mine);
    required(routes, "setNextBlockTimestamp", Node::set_next_block_timestamp);
    required(routes, "increaseTime", Node::increase_time);
    required(routes, "setNextBlockBaseFee", Node::set_next_block_base_fee);
    optional(routes, "snapshot", Node::take_snapshot);
    required(routes, "revert", Node::revert);
    required(routes, "reorganize", Node::reorganize);
    required(routes, "impersonate", Node::impersonate);
    required(routes, "stopImpersonating", Node::stop_impersonating);
    required_at(Place::Code, routes, "sendTransaction", Node::send_transaction);
    required(routes, "setBalance", Node::set_balance);
    required(routes, "setNonce", Node::set_nonce);
    required(routes, "setCode", Node::set_code);
    required(routes, "setStorage", Node::set_storage);
    required(routes, "dropTransaction", Node::drop_transaction);
    routes.add_under("dev", Methods::GetOnly, "poolContent", async |exchange: Exchange| {
        let input = exchange.parameters(|_| Ok(()));
        let input = admission::may_control(exchange.request(), exchange.config()).and(input);
        exchange.no_store().run(input, |()| Place::Pool, |node, context, ()| node.pool_content(context)).await
    });
}

/// An operation of the node that takes the body of a request.
type Operation<I, O> = fn(&Node, &Context, I) -> Result<O, NodeError>;

/// Adds an operation whose request has a body, and which runs in the pool.
fn required<I, O>(routes: &mut Routes<'_>, name: &'static str, operation: Operation<I, O>)
where
    I: Decode + Clone + Send + 'static,
    O: Serialize + Send + 'static,
{
    required_at(Place::Pool, routes, name, operation);
}

/// Adds an operation whose request has a body.
fn required_at<I, O>(place: Place, routes: &mut Routes<'_>, name: &'static str, operation: Operation<I, O>)
where
    I: Decode + Clone + Send + 'static,
    O: Serialize + Send + 'static,
{
    routes.add_under("dev", Methods::Post, name, move |exchange: Exchange| async move {
        let mut exchange = exchange.no_store();
        let input = match admission::may_control(exchange.request(), exchange.config()) {
            Ok(()) => exchange.body().await,
            Err(error) => Err(error),
        };
        exchange.run(input, |_| place, operation).await
    });
}

/// Adds an operation whose request may have a body.
fn optional<I, O>(routes: &mut Routes<'_>, name: &'static str, operation: Operation<I, O>)
where
    I: Decode + Default + Clone + Send + 'static,
    O: Serialize + Send + 'static,
{
    routes.add_under("dev", Methods::Post, name, move |exchange: Exchange| async move {
        let mut exchange = exchange.no_store();
        let input = match admission::may_control(exchange.request(), exchange.config()) {
            Ok(()) => exchange.optional_body().await,
            Err(error) => Err(error),
        };
        exchange.run(input, |_| Place::Pool, operation).await
    });
}
