//! Sending transactions.

use super::{Node, NodeError, TransactionRequest};
use crate::backend::{BackendError, BackendHealth};
use crate::block::RecoveredTransaction;
use crate::collecting::gather;
use crate::context::Context;
use crate::pool::{DropReason, PoolStatus};
use node_types::consensus::{PooledTransaction, Transaction};
use node_types::{Address, Bytes, H256};

/// A transaction to send, in one of the forms in which the node accepts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewTransaction {
    /// An encoded signed transaction. A blob transaction must include its sidecar.
    Encoded(Bytes),
    Signed(PooledTransaction),
    /// A transaction that the node completes, and signs unless its sender is impersonated.
    Request(TransactionRequest),
    /// A transaction from any sender, which the node completes but does not sign.
    Unsigned(TransactionRequest),
}

impl From<Bytes> for NewTransaction {
    fn from(encoded: Bytes) -> Self {
        Self::Encoded(encoded)
    }
}

impl From<Transaction> for NewTransaction {
    fn from(signed: Transaction) -> Self {
        Self::Signed(signed.into())
    }
}

impl From<PooledTransaction> for NewTransaction {
    fn from(signed: PooledTransaction) -> Self {
        Self::Signed(signed)
    }
}

impl From<TransactionRequest> for NewTransaction {
    fn from(request: TransactionRequest) -> Self {
        Self::Request(request)
    }
}

pub(super) fn send_transaction(
    node: &Node,
    context: &Context,
    transaction: impl Into<NewTransaction>,
) -> Result<H256, NodeError> {
    context.check()?;
    node.check_accepting()?;
    let hash = match transaction.into() {
        NewTransaction::Encoded(encoded) => node.pool.add(&encoded)?,
        NewTransaction::Signed(transaction) => node.pool.add_transaction(transaction)?,
        NewTransaction::Request(request) => {
            let signs = signs_for(node, context, request.from)?;
            node.add_request(context, request, signs)?
        }
        NewTransaction::Unsigned(request) => node.add_request(context, request, false)?,
    };
    if let Some(producer) = &node.producer {
        producer.transaction_added(hash)?;
    }
    // Sealing a block also makes its transactions durable.
    if node.pool.get(hash).is_some() {
        node.store(hash)?;
        if let Some(reason) = node.producer.as_ref().and_then(|producer| producer.obstacle()) {
            return Err(NodeError::NoBlock { hash, reason });
        }
    } else if let PoolStatus::Dropped(reason @ DropReason::InvalidBlock(_)) = node.pool.status(hash) {
        return Err(NodeError::Dropped { hash, reason: reason.to_string() });
    }
    Ok(hash)
}

/// Checks an encoded transaction as [`send_transaction`] does, without sending it.
pub(super) fn check_transaction(node: &Node, context: &Context, encoded: &[u8]) -> Result<(), NodeError> {
    context.check()?;
    node.check_accepting()?;
    Ok(node.pool.check(encoded)?)
}

/// Returns whether the node signs transactions of `sender` whose fields it completes. Fails if it does not accept them.
fn signs_for(node: &Node, context: &Context, sender: Address) -> Result<bool, NodeError> {
    let producer = node.control(context)?;
    let has_key = node.accounts().contains(&sender);
    if !has_key && !producer.is_impersonated(sender) {
        return Err(NodeError::UnknownAccount(sender));
    }
    Ok(has_key && !producer.impersonated().contains(&sender))
}

/// Checks the sender of a [`NewTransaction::Request`] as [`send_transaction`] does.
pub(super) fn check_sender(node: &Node, context: &Context, sender: Address) -> Result<(), NodeError> {
    signs_for(node, context, sender).map(drop)
}

impl Node {
    /// Makes a transaction of the pool durable, or removes it from the pool.
    fn store(&self, hash: H256) -> Result<(), NodeError> {
        let failure = match self.pool.is_stored(hash) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let BackendHealth { write_failure, publication, .. } = self.backend.health();
                let reason = write_failure.map_or_else(String::new, |reason| format!(": {reason}"));
                let failure = format!("the transaction could not be written{reason}").into();
                match publication {
                    Some(publication) if publication.has_ended => BackendError::NotWriter(failure),
                    _ => BackendError::Storage(failure),
                }
            }
            Err(error) => error,
        };
        let refuse = || self.pool.refuse(hash);
        let refused = match &self.producer {
            // Otherwise a block that is currently being produced could include it.
            Some(producer) => producer.between_blocks(refuse)?,
            None => refuse()?,
        };
        // In the meantime a block has included it, or another transaction has replaced it.
        if refused { Err(failure.into()) } else { Ok(()) }
    }

    /// Completes a transaction and adds it to the pool.
    fn add_request(&self, context: &Context, request: TransactionRequest, sign: bool) -> Result<H256, NodeError> {
        let producer = self.control(context)?;
        let gas_limit = self.request_gas(context, &request)?;
        let view = self.backend.view()?;
        if view.is_partial() {
            // Nobody else waits while the account is read from another chain.
            gather(|| view.state(view.head().number)?.account(request.from).map(drop))?;
        }
        drop(view);
        // Held so that concurrent requests get different nonces.
        let _sending = producer.sending();
        let body = self.complete(context, gas_limit, &request)?;
        if sign {
            let transaction = self.signed(request.from, body)?;
            Ok(self.pool.add_transaction(PooledTransaction { transaction, sidecar: request.sidecar })?)
        } else {
            Ok(self.pool.add_unsigned(RecoveredTransaction::impersonating(request.from, body))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::test_chain::{account, transaction};

    #[test]
    fn accepts_a_transaction_twice_and_rejects_invalid_ones() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let send = |bytes: Vec<u8>| world.node.send_transaction(&Context::unbounded(), Bytes::from(bytes));
        let accepted = transaction(1, 0, 5);
        for attempt in 1..=2 {
            let hash = send(accepted.transaction.encode()).unwrap();
            assert_eq!(hash, accepted.hash, "attempt {attempt}");
        }
        let mut truncated = accepted.transaction.encode();
        truncated.pop();
        let without_balance = transaction(2, 0, 5).transaction.encode();
        for bytes in [Vec::new(), truncated, without_balance] {
            let result = send(bytes.clone());
            assert!(matches!(result, Err(NodeError::TransactionRejected(_))), "{bytes:x?}: {result:?}");
        }
    }
}
