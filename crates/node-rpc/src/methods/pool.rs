//! Contents of the pool.

use crate::error::RpcError;
use crate::method::{Method, write};
use crate::scope::Scope;
use crate::wire::{Hex, Transaction};
use node_core::block::RecoveredTransaction;
use node_core::cost::Cost;
use node_core::pool::PoolTransaction;
use node_types::wire::{AddressData, JsonBuffer};
use node_types::{Address, Checksummed};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Data about pending transactions, and about queued ones.
#[derive(Serialize)]
struct Parts<T> {
    pending: T,
    queued: T,
}

/// Converts a transaction to what is reported about it.
type Convert<T> = fn(&RecoveredTransaction) -> T;

/// All transactions of a part of the pool, by sender. Each is converted when it is written, so that only the response
/// takes memory.
struct BySender<'a, T>(&'a Pooled, Convert<T>);

impl<T: Serialize> Serialize for BySender<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part, convert) = self;
        serializer
            .collect_map(part.iter().map(|(sender, all)| (Checksummed(*sender).to_string(), ByNonce(all, *convert))))
    }
}

/// Transactions of a sender, by nonce in decimal digits.
struct ByNonce<'a, T>(&'a [Arc<PoolTransaction>], Convert<T>);

impl<T: Serialize> Serialize for ByNonce<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(all, convert) = self;
        let nonce = |recovered: &RecoveredTransaction| recovered.transaction.body.nonce().to_string();
        serializer.collect_map(all.iter().map(|pooled| (nonce(&pooled.recovered), convert(&pooled.recovered))))
    }
}

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("txpool_status", &[], "The numbers of transactions in the pool.", |scope, ()| {
            let size = scope.node.pool().size();
            Ok(Parts { pending: Hex(size.pending as u64), queued: Hex(size.queued as u64) })
        })
        .by_writer(),
        Method::writing(
            "txpool_content",
            &[],
            "All transactions of the pool by sender and nonce.",
            |scope, (), out| write_content(scope, out, Transaction::waiting),
        )
        .by_writer()
        .costing(|_, _| Cost::POOL_CONTENT),
        Method::writing(
            "txpool_contentFrom",
            &["address"],
            "The transactions of a sender in the pool by nonce.",
            |scope, (sender,): (AddressData,), out| {
                let content = scope.node.pool_content(scope.context)?;
                let of_sender = |part: &'_ Pooled| part.get(&sender.0).cloned().unwrap_or_default();
                let (pending, queued) = (of_sender(&content.pending), of_sender(&content.queued));
                let by_nonce = |all| ByNonce(all, Transaction::waiting as Convert<Transaction>);
                write(out, &Parts { pending: by_nonce(&pending), queued: by_nonce(&queued) })
            },
        )
        .by_writer()
        .costing(|_, _| Cost::POOL_CONTENT),
        Method::writing(
            "txpool_inspect",
            &[],
            "A short description of each transaction of the pool.",
            |scope, (), out| write_content(scope, out, summary),
        )
        .by_writer()
        .costing(|_, _| Cost::POOL_CONTENT),
    ]
}

type Pooled = BTreeMap<Address, Vec<Arc<PoolTransaction>>>;

fn write_content<T: Serialize>(scope: Scope<'_>, out: &mut JsonBuffer, convert: Convert<T>) -> Result<(), RpcError> {
    let content = scope.node.pool_content(scope.context)?;
    write(out, &Parts { pending: BySender(&content.pending, convert), queued: BySender(&content.queued, convert) })
}

fn summary(recovered: &RecoveredTransaction) -> String {
    let body = &recovered.transaction.body;
    let to = body.to().map_or("contract creation".to_owned(), |to| Checksummed(to).to_string());
    let (value, gas, price) = (body.value(), body.gas_limit(), body.max_fee_per_gas());
    format!("{to}: {value} wei + {gas} gas × {price} wei")
}
