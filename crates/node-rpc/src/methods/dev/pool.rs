//! Removal of transactions from the pool.

use super::named;
use crate::error::RpcError;
use crate::method::Method;
use crate::scope::Scope;
use crate::wire::Block32;
use node_core::node::NodeError;
use node_core::pool::{DropReason, PoolTransaction};
use node_types::wire::AddressData;

pub(super) fn methods() -> Vec<Method> {
    [
        named(
            &["anvil_dropTransaction"],
            &["hash"],
            "Drops a transaction from the pool; returns its hash, or null if it is not there.",
            |scope, (hash,): (Block32,)| Ok(drop_one(scope, hash)?.then_some(hash)),
        ),
        named(
            &["hardhat_dropTransaction"],
            &["hash"],
            "Drops a transaction from the pool; returns whether it was there.",
            |scope, (hash,): (Block32,)| drop_one(scope, hash),
        ),
        named(&["anvil_dropAllTransactions"], &[], "Drops all transactions from the pool.", |scope, ()| {
            drop_where(scope, |_| true)
        }),
        named(
            &["anvil_removePoolTransactions"],
            &["sender"],
            "Drops all transactions of a sender from the pool.",
            |scope, (sender,): (AddressData,)| drop_where(scope, |transaction| transaction.sender() == sender.0),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn drop_one(scope: Scope<'_>, hash: Block32) -> Result<bool, RpcError> {
    scope.node.pool().remove(hash.0).map_err(|error| NodeError::from(error).into())
}

fn drop_where(scope: Scope<'_>, is_dropped: impl Fn(&PoolTransaction) -> bool) -> Result<(), RpcError> {
    scope
        .node
        .pool()
        .drop_where(DropReason::Requested, is_dropped)
        .map(drop)
        .map_err(|error| NodeError::from(error).into())
}
