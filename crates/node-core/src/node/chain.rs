//! Facts about the chain and this node, and suggestions of fees.

use super::resolve::Snapshot;
use super::{Node, NodeError};
use crate::block::SealedHeader;
use crate::context::Context;
use crate::fees;
use node_types::wire::{
    BlobBaseFeeOutput, BlockNumberOutput, ChainIdOutput, ClientVersionOutput, GasPriceOutput,
    MaxPriorityFeePerGasOutput, Quantity, SyncingOutput,
};
use node_types::{Address, U256};
use std::sync::Arc;

/// How many blocks a suggestion looks back.
const SAMPLED_BLOCKS: u64 = 20;

/// What is suggested where no block tells, in wei per gas.
const DEFAULT_TIP: u64 = 1_000_000_000;

/// The most that is suggested, in wei per gas, whatever was paid.
const HIGHEST_TIP: u64 = 500_000_000_000;

impl Node {
    /// The header of the head. It reads a state as well, so that an answer says that the backend can read.
    pub fn head(&self, context: &Context) -> Result<Arc<SealedHeader>, NodeError> {
        let snapshot = self.snapshot(context)?;
        let head = snapshot.view.head().number;
        snapshot.view.state(head)?.account(Address::zero())?;
        snapshot.header(head)
    }

    /// The height of the head.
    pub fn block_number(&self, context: &Context) -> Result<BlockNumberOutput, NodeError> {
        Ok(BlockNumberOutput { block_number: Quantity(self.snapshot(context)?.latest()) })
    }

    /// The chain's identifier.
    pub fn chain_id(&self, _context: &Context) -> Result<ChainIdOutput, NodeError> {
        Ok(ChainIdOutput { chain_id: Quantity(self.spec.chain_id) })
    }

    /// A price in wei per gas that gets a transaction into one of the next blocks: the next base fee and a usual tip.
    pub fn gas_price(&self, context: &Context) -> Result<GasPriceOutput, NodeError> {
        let snapshot = self.snapshot(context)?;
        let head = snapshot.header(snapshot.latest())?;
        let base_fee = self.next_header.after(&head).base_fee_per_gas.unwrap_or(0);
        Ok(GasPriceOutput { gas_price: Quantity(self.usual_tip(&snapshot)? + U256::from(base_fee)) })
    }

    /// A tip in wei per gas that gets a transaction into one of the next blocks.
    pub fn max_priority_fee_per_gas(&self, context: &Context) -> Result<MaxPriorityFeePerGasOutput, NodeError> {
        let tip = self.usual_tip(&self.snapshot(context)?)?;
        Ok(MaxPriorityFeePerGasOutput { max_priority_fee_per_gas: Quantity(tip) })
    }

    /// The base fee in wei per gas of the next block; none before London.
    pub fn next_base_fee(&self, context: &Context) -> Result<Option<u64>, NodeError> {
        let snapshot = self.snapshot(context)?;
        let head = snapshot.header(snapshot.latest())?;
        Ok(self.next_header.after(&head).base_fee_per_gas)
    }

    /// Who gets the tips of the next block that the node makes; the zero address where it makes none.
    pub fn coinbase(&self, context: &Context) -> Result<Address, NodeError> {
        if self.producer.is_none() {
            return Ok(Address::zero());
        }
        let snapshot = self.snapshot(context)?;
        let head = snapshot.header(snapshot.latest())?;
        Ok(self.next_header.after(&head).beneficiary)
    }

    /// The price in wei per blob gas in the next block; zero before Cancun.
    pub fn blob_base_fee(&self, context: &Context) -> Result<BlobBaseFeeOutput, NodeError> {
        let snapshot = self.snapshot(context)?;
        let head = snapshot.header(snapshot.latest())?;
        let base_fee = fees::blob_base_fee(&self.spec, &self.next_header.after(&head)).unwrap_or_else(U256::zero);
        Ok(BlobBaseFeeOutput { base_fee: Quantity(base_fee) })
    }

    /// How far the node is; it is always in sync with what it was given.
    pub fn syncing(&self, _context: &Context) -> Result<SyncingOutput, NodeError> {
        Ok(SyncingOutput { sync_status: None })
    }

    /// Name and version of the server.
    pub fn client_version(&self, _context: &Context) -> Result<ClientVersionOutput, NodeError> {
        Ok(ClientVersionOutput { client_version: self.client_version.clone() })
    }

    /// The median of the median tips of the latest blocks that hold transactions, never below what the pool asks.
    fn usual_tip(&self, snapshot: &Snapshot) -> Result<U256, NodeError> {
        let latest = snapshot.latest();
        let rows = snapshot.view.fee_rows(latest.saturating_sub(SAMPLED_BLOCKS - 1)..=latest)?;
        let mut medians: Vec<U256> =
            rows.iter().filter_map(|row| row.tips.get(row.tips.len() / 2)).map(|(tip, _)| *tip).collect();
        medians.sort_unstable();
        let median = medians.get(medians.len() / 2).copied().unwrap_or_else(|| DEFAULT_TIP.into());
        Ok(median.min(HIGHEST_TIP.into()).max(self.minimum_tip.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;
    use crate::test_chain::{BASE_FEE, transaction};

    #[test]
    fn suggested_tips() {
        // The tips of each block, and what is suggested.
        let cases: &[(&[&[u64]], u64)] = &[
            (&[], DEFAULT_TIP),
            (&[&[], &[]], DEFAULT_TIP),
            (&[&[7]], 7),
            (&[&[1, 2, 3], &[10], &[4, 5, 6]], 5),
            (&[&[1, 1, 900]], 1),
            (&[&[0]], 1),
            (&[&[2 * HIGHEST_TIP]], HIGHEST_TIP),
        ];
        for (blocks, expected) in cases {
            let world = World::new();
            for (tips, nonce) in blocks.iter().zip(0..) {
                let transactions = tips.iter().zip(1..);
                world.push(transactions.map(|(tip, sender)| (transaction(sender, nonce, *tip), Vec::new())).collect());
            }
            let context = Context::unbounded();
            let tip = world.node.max_priority_fee_per_gas(&context).unwrap().max_priority_fee_per_gas.0;
            assert_eq!(tip, U256::from(*expected), "{blocks:?}");
            let price = world.node.gas_price(&context).unwrap().gas_price.0;
            let base_fee = price - tip;
            assert!(base_fee > U256::zero() && base_fee <= BASE_FEE.into(), "{blocks:?}: {base_fee}");
        }
    }

    #[test]
    fn old_blocks_do_not_count() {
        let world = World::new();
        world.push(vec![(transaction(1, 0, 7), Vec::new())]);
        for (empty, expected) in [(19, 7), (1, DEFAULT_TIP)] {
            world.grow(empty);
            let tip = world.node.max_priority_fee_per_gas(&Context::unbounded()).unwrap();
            assert_eq!(tip.max_priority_fee_per_gas.0, U256::from(expected), "{empty} more");
        }
    }
}
