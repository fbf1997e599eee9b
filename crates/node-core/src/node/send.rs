//! sendRawTransaction.

use super::{Node, NodeError};
use crate::context::Context;
use node_types::H256;
use node_types::consensus::PooledTransaction;
use node_types::wire::{Data, SendRawTransactionInput, SendRawTransactionOutput};

impl Node {
    /// Puts a decoded transaction into the pool, as [`send_raw_transaction`](Self::send_raw_transaction) does, and answers
    /// its hash.
    pub fn send(&self, transaction: impl Into<PooledTransaction>) -> Result<H256, NodeError> {
        let hash = self.pool.add_transaction(transaction.into())?;
        self.accept(hash)?;
        Ok(hash)
    }

    /// Lets a transaction that has come into the pool be mined, where that is to happen at once, and makes it durable.
    pub(super) fn accept(&self, hash: H256) -> Result<(), NodeError> {
        if let Some(producer) = &self.producer {
            producer.transactions_changed(Some(hash));
        }
        // In a block it is durable with that.
        if self.pool.get(hash).is_some() {
            self.backend.sync_records()?;
        }
        Ok(())
    }

    /// Puts a signed transaction into the pool. The same bytes again give the same hash. Where blocks are made instantly,
    /// it is in one when this answers, if it can be.
    pub fn send_raw_transaction(
        &self,
        context: &Context,
        input: SendRawTransactionInput,
    ) -> Result<SendRawTransactionOutput, NodeError> {
        context.check()?;
        let hash = self.pool.add(&input.data)?;
        self.accept(hash)?;
        Ok(SendRawTransactionOutput { transaction_hash: Data(hash) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::test_chain::{account, transaction};
    use node_types::Bytes;

    #[test]
    fn accepted_twice_refused_with_reasons() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        let send = |bytes: Vec<u8>| {
            let input = SendRawTransactionInput { data: Data(Bytes::from(bytes)) };
            world.node.send_raw_transaction(&Context::unbounded(), input).map(|output| output.transaction_hash.0)
        };
        let accepted = transaction(1, 0, 5);
        for attempt in 1..=2 {
            let hash = send(accepted.transaction.encode()).unwrap();
            assert_eq!(hash, accepted.hash, "attempt {attempt}");
        }
        // Nothing at all, a transaction cut short, and one of a sender without balance.
        let mut cut = accepted.transaction.encode();
        cut.pop();
        for bytes in [Vec::new(), cut, transaction(2, 0, 5).transaction.encode()] {
            match send(bytes.clone()) {
                Err(error @ NodeError::TransactionRejected(_)) => {
                    let locations: Vec<_> = error.details().into_iter().map(|detail| detail.location).collect();
                    assert_eq!(locations, ["body.Data"], "{bytes:x?}");
                }
                other => panic!("{bytes:x?}: {other:?}"),
            }
        }
    }
}
