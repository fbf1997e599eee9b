//! Contents of the pool.

use crate::method::Method;
use crate::wire::{Hex, Transaction};
use node_core::block::RecoveredTransaction;
use node_core::cost::Cost;
use node_core::pool::PoolTransaction;
use node_types::wire::AddressData;
use node_types::{Address, Checksummed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Data about pending transactions, and about queued ones.
#[derive(Serialize)]
struct Parts<T> {
    pending: T,
    queued: T,
}

/// Data about each transaction of a sender, by nonce.
type ByNonce<T> = BTreeMap<Nonce, T>;

/// A nonce, serialized in decimal digits but ordered by number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Nonce(u64);

impl Serialize for Nonce {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("txpool_status", &[], "The numbers of transactions in the pool.", |scope, ()| {
            let size = scope.node.pool().size();
            Ok(Parts { pending: Hex(size.pending as u64), queued: Hex(size.queued as u64) })
        }),
        Method::new("txpool_content", &[], "All transactions of the pool by sender and nonce.", |scope, ()| {
            let content = scope.node.pool_content(scope.context)?;
            let pending = by_sender(&content.pending, Transaction::waiting);
            Ok(Parts { pending, queued: by_sender(&content.queued, Transaction::waiting) })
        })
        .costing(|_, _| Cost::POOL_CONTENT),
        Method::new(
            "txpool_contentFrom",
            &["address"],
            "The transactions of a sender in the pool by nonce.",
            |scope, (sender,): (AddressData,)| {
                let content = scope.node.pool_content(scope.context)?;
                let of_sender = |part: &Pooled| {
                    part.get(&sender.0).map(|all| by_nonce(all, &Transaction::waiting)).unwrap_or_default()
                };
                Ok(Parts { pending: of_sender(&content.pending), queued: of_sender(&content.queued) })
            },
        )
        .costing(|_, _| Cost::POOL_CONTENT),
        Method::new("txpool_inspect", &[], "A short description of each transaction of the pool.", |scope, ()| {
            let content = scope.node.pool_content(scope.context)?;
            Ok(Parts { pending: by_sender(&content.pending, summary), queued: by_sender(&content.queued, summary) })
        })
        .costing(|_, _| Cost::POOL_CONTENT),
    ]
}

type Pooled = BTreeMap<Address, Vec<Arc<PoolTransaction>>>;

fn by_sender<T>(part: &Pooled, convert: impl Fn(&RecoveredTransaction) -> T) -> BTreeMap<String, ByNonce<T>> {
    part.iter().map(|(sender, all)| (Checksummed(*sender).to_string(), by_nonce(all, &convert))).collect()
}

fn by_nonce<T>(all: &[Arc<PoolTransaction>], convert: &impl Fn(&RecoveredTransaction) -> T) -> ByNonce<T> {
    let pair =
        |pooled: &Arc<PoolTransaction>| (Nonce(pooled.recovered.transaction.body.nonce()), convert(&pooled.recovered));
    all.iter().map(pair).collect()
}

fn summary(recovered: &RecoveredTransaction) -> String {
    let body = &recovered.transaction.body;
    let to = body.to().map_or("contract creation".to_owned(), |to| Checksummed(to).to_string());
    let (value, gas, price) = (body.value(), body.gas_limit(), body.max_fee_per_gas());
    format!("{to}: {value} wei + {gas} gas × {price} wei")
}
