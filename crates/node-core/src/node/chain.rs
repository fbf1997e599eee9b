//! The head, and suggested fees.

use super::resolve::RequestView;
use super::{Node, NodeError};
use crate::block::SealedHeader;
use crate::context::Context;
use crate::protocol::fees;
use node_types::{Address, U256};
use std::sync::Arc;

/// Number of blocks whose tips a suggestion considers.
const SAMPLED_BLOCKS: u64 = 20;

/// The suggested tip in wei per gas if these blocks have no transactions.
const DEFAULT_TIP: u64 = 1_000_000_000;

/// Highest suggested tip in wei per gas.
const HIGHEST_TIP: u64 = 500_000_000_000;

pub(super) fn head(node: &Node, context: &Context) -> Result<Arc<SealedHeader>, NodeError> {
    let snapshot = node.snapshot(context)?;
    let head = snapshot.view.head().number;
    snapshot.view.state(head)?.account(Address::zero())?;
    snapshot.header(head)
}

pub(super) fn gas_price(node: &Node, context: &Context) -> Result<U256, NodeError> {
    let snapshot = node.snapshot(context)?;
    let head = snapshot.header(snapshot.latest())?;
    let base_fee = node.next_header.after(&head).base_fee_per_gas.unwrap_or(0);
    Ok(node.suggested_tip(&snapshot)? + U256::from(base_fee))
}

pub(super) fn max_priority_fee_per_gas(node: &Node, context: &Context) -> Result<U256, NodeError> {
    node.suggested_tip(&node.snapshot(context)?)
}

pub(super) fn next_base_fee(node: &Node, context: &Context) -> Result<Option<u64>, NodeError> {
    let snapshot = node.snapshot(context)?;
    let head = snapshot.header(snapshot.latest())?;
    Ok(node.next_header.after(&head).base_fee_per_gas)
}

pub(super) fn coinbase(node: &Node, context: &Context) -> Result<Option<Address>, NodeError> {
    if node.producer.is_none() {
        return Ok(None);
    }
    let snapshot = node.snapshot(context)?;
    let head = snapshot.header(snapshot.latest())?;
    Ok(Some(node.next_header.after(&head).beneficiary))
}

pub(super) fn blob_base_fee(node: &Node, context: &Context) -> Result<Option<U256>, NodeError> {
    let snapshot = node.snapshot(context)?;
    let head = snapshot.header(snapshot.latest())?;
    Ok(fees::blob_base_fee(&node.spec, &node.next_header.after(&head)))
}

impl Node {
    /// Returns the median of the median tips of the latest blocks that have transactions, but at least the pool's
    /// minimum.
    fn suggested_tip(&self, snapshot: &RequestView) -> Result<U256, NodeError> {
        let latest = snapshot.latest();
        // Not blocks before a fork: they are other traffic, and would all have to be fetched.
        let first = latest.saturating_sub(SAMPLED_BLOCKS - 1).max(snapshot.view.first());
        let rows = snapshot.view.fee_rows(first..=latest)?;
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
    fn suggests_the_median_of_recent_tips() {
        // The tips of each block, and the suggested tip.
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
            let tip = world.node.max_priority_fee_per_gas(&context).unwrap();
            assert_eq!(tip, U256::from(*expected), "{blocks:?}");
            let price = world.node.gas_price(&context).unwrap();
            let base_fee = price - tip;
            assert!(base_fee > U256::zero() && base_fee <= BASE_FEE.into(), "{blocks:?}: {base_fee}");
        }
    }

    #[test]
    fn ignores_old_blocks() {
        let world = World::new();
        world.push(vec![(transaction(1, 0, 7), Vec::new())]);
        for (empty, expected) in [(19, 7), (1, DEFAULT_TIP)] {
            world.grow(empty);
            let tip = world.node.max_priority_fee_per_gas(&Context::unbounded()).unwrap();
            assert_eq!(tip, U256::from(expected), "{empty} more");
        }
    }
}
