//! Fee history (EIP-1559).

use super::fault::{Fault, Field};
use super::{Limit, Node, NodeError};
use crate::backend::FeeRow;
use crate::context::Context;
use crate::protocol::{ChainSpec, fees};
use node_types::consensus::Header;
use node_types::{BlockNumber, BlockNumberOrTag, U256};

/// Fees of consecutive blocks, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeHistory {
    /// Number of the first block.
    pub oldest_block: BlockNumber,
    /// Base fee of each block and of the block after the last one, in wei per gas; `None` before London.
    pub base_fees: Vec<Option<u64>>,
    /// Gas used of each block divided by its gas limit.
    pub gas_used_ratios: Vec<f64>,
    /// Blob base fee of each block and of the block after the last one, in wei per blob gas; `None` before Cancun.
    pub blob_base_fees: Vec<Option<U256>>,
    /// Blob gas used of each block divided by the maximum; `None` before Cancun.
    pub blob_gas_used_ratios: Vec<Option<f64>>,
    /// For each block the tips at the requested percentiles, in wei per gas; empty if no percentiles were requested.
    pub rewards: Vec<Vec<U256>>,
}

impl FeeHistory {
    /// Maximum number of blocks in one result.
    pub const MAX_BLOCKS: u64 = 1_024;

    /// Maximum number of blocks that can be read in a few microseconds, not counting their rewards.
    pub const FEW_BLOCKS: u64 = 32;
}

pub(super) fn fee_history(
    node: &Node,
    context: &Context,
    block_count: u64,
    newest_block: BlockNumberOrTag,
    percentiles: &[f64],
) -> Result<FeeHistory, NodeError> {
    let faults = faults(block_count, percentiles, node.limits.percentiles);
    if !faults.is_empty() {
        return Err(NodeError::Invalid(faults));
    }
    context.check()?;
    let snapshot = node.snapshot(context)?;
    let newest = snapshot.canonical(newest_block.into(), Field::NewestBlock)?;
    let oldest = newest.saturating_sub(block_count - 1);
    let rows = snapshot.view.fee_rows(oldest..=newest)?;
    let headers = || rows.iter().map(|row| &row.header.header);
    let next_base_fee = headers().next_back().map(|last| fees::next_base_fee(&node.spec, last));
    let next_blob_fee = headers().next_back().map(|last| next_blob_base_fee(&node.spec, last));
    let base_fees = headers().map(|header| header.base_fee_per_gas).chain(next_base_fee);
    let blob_fees = headers().map(|header| fees::blob_base_fee(&node.spec, header)).chain(next_blob_fee);
    Ok(FeeHistory {
        oldest_block: oldest,
        base_fees: base_fees.collect(),
        gas_used_ratios: headers().map(|header| ratio(header.gas_used, header.gas_limit)).collect(),
        blob_base_fees: blob_fees.collect(),
        blob_gas_used_ratios: headers()
            .map(|header| Some(ratio(header.blob_gas_used?, fees::max_blob_gas(&node.spec, header.timestamp)?)))
            .collect(),
        rewards: if percentiles.is_empty() {
            Vec::new()
        } else {
            let rewards = |row| context.check().map(|()| rewards(row, percentiles));
            rows.iter().map(rewards).collect::<Result<_, _>>()?
        },
    })
}

/// Returns the blob base fee of a child of `last` under the rules of `last`, or `None` before Cancun.
fn next_blob_base_fee(spec: &ChainSpec, last: &Header) -> Option<U256> {
    let params = spec.blob_params(last.timestamp)?;
    let excess = fees::next_excess_blob_gas(spec, last, last.timestamp)?;
    Some(fees::blob_base_fee_at(params, excess))
}

fn faults(block_count: u64, percentiles: &[f64], max_percentiles: usize) -> Vec<Fault> {
    let mut faults = Vec::new();
    if !(1..=FeeHistory::MAX_BLOCKS).contains(&block_count) {
        let message = format!("expected a number from 1 to {}", FeeHistory::MAX_BLOCKS);
        faults.push(Fault::new(Field::BlockCount, message));
    }
    if percentiles.len() > max_percentiles {
        let count = percentiles.len();
        faults.push(Fault::too_many(
            Field::RewardPercentiles,
            count,
            max_percentiles,
            "percentiles",
            Limit::Percentiles,
        ));
    }
    let mut last = 0.0;
    for (index, percentile) in percentiles.iter().enumerate().take(max_percentiles) {
        let message = if !(0.0..=100.0).contains(percentile) {
            "invalid reward percentile: expected a number from 0 to 100".to_owned()
        } else if *percentile < last {
            format!("invalid reward percentile: expected at least {last}, the preceding percentile")
        } else {
            last = *percentile;
            continue;
        };
        faults.push(Fault::new(Field::RewardPercentile(index), message));
    }
    faults
}

/// Returns `used / limit`, or 0 if `limit` is 0.
fn ratio(used: u64, limit: u64) -> f64 {
    if limit == 0 { 0.0 } else { used as f64 / limit as f64 }
}

/// Returns for each percentile the tip of the transaction at which this percentage of the block's gas used is
/// reached, with transactions sorted by tip; zeros for an empty block. The percentiles must not decrease.
fn rewards(row: &FeeRow, percentiles: &[f64]) -> Vec<U256> {
    let gas_used = row.header.header.gas_used as f64;
    let mut tips = row.tips.iter();
    let Some((mut tip, mut gas_so_far)) = tips.next().copied() else {
        return vec![U256::zero(); percentiles.len()];
    };
    let reward = |percentile: &f64| {
        // The conversion rounds down.
        let threshold = (gas_used * percentile / 100.0) as u64;
        while gas_so_far < threshold
            && let Some((next, gas)) = tips.next()
        {
            tip = *next;
            gas_so_far = gas_so_far.saturating_add(*gas);
        }
        tip
    };
    percentiles.iter().map(reward).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::SealedHeader;
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::test_chain::{BASE_FEE, GAS, transaction};
    use node_types::consensus::Header;
    use std::sync::Arc;

    #[test]
    fn weights_rewards_by_gas() {
        // Tips with gas, percentiles, rewards.
        type Case = (&'static [(u64, u64)], &'static [f64], &'static [u64]);
        let cases: &[Case] = &[
            (&[], &[], &[]),
            (&[], &[0.0, 50.0, 100.0], &[0, 0, 0]),
            (&[(7, 21_000)], &[0.0, 50.0, 100.0], &[7, 7, 7]),
            (&[(1, 100), (2, 100)], &[0.0, 49.9, 50.0, 50.1, 100.0], &[1, 1, 1, 1, 2]),
            // 51% of 200 gas is 102, 50.4% is 100.8, rounded down 100.
            (&[(1, 100), (2, 100)], &[50.4, 51.0], &[1, 2]),
            (&[(1, 10), (2, 80), (3, 10)], &[9.0, 10.0, 11.0, 90.0, 91.0], &[1, 1, 2, 2, 3]),
            (&[(1, 10), (2, 80), (3, 10)], &[50.0, 50.0, 50.0], &[2, 2, 2]),
        ];
        for (tips, percentiles, expected) in cases {
            let header = Header { gas_used: tips.iter().map(|(_, gas)| gas).sum(), ..Header::default() };
            let header = SealedHeader { hash: Default::default(), header, total_difficulty: U256::zero(), size: 0 };
            let tips: Vec<_> = tips.iter().map(|(tip, gas)| (U256::from(*tip), *gas)).collect();
            let row = FeeRow { header: Arc::new(header), tips: Arc::new(tips) };
            let expected: Vec<_> = expected.iter().map(|tip| U256::from(*tip)).collect();
            assert_eq!(rewards(&row, percentiles), expected, "{:?} at {percentiles:?}", row.tips);
        }
    }

    #[test]
    fn ranges() {
        let world = World::new();
        world.push(vec![(transaction(1, 0, 3), Vec::new()), (transaction(2, 0, 2), Vec::new())]);
        world.push(vec![(transaction(1, 1, 5), Vec::new())]);
        world.grow(1);
        // Number of blocks, newest, then the oldest, the base fees' length and the rewards at 50 percent.
        let cases = [
            (1, BlockNumberOrTag::Latest, 3, 2, vec![0]),
            (1, BlockNumberOrTag::Pending, 3, 2, vec![0]),
            (2, BlockNumberOrTag::Number(2), 1, 3, vec![2, 5]),
            (3, BlockNumberOrTag::Latest, 1, 4, vec![2, 5, 0]),
            (1_024, BlockNumberOrTag::Number(2), 0, 4, vec![0, 2, 5]),
            (1, BlockNumberOrTag::Earliest, 0, 2, vec![0]),
        ];
        for (count, newest_block, oldest, base_fees, rewards) in cases {
            let history = world.node.fee_history(&Context::unbounded(), count, newest_block, &[50.0]).unwrap();
            let expected: Vec<_> = rewards.iter().map(|tip| vec![U256::from(*tip)]).collect();
            assert_eq!(history.oldest_block, oldest, "{count} up to {newest_block}");
            assert_eq!(history.base_fees.len(), base_fees, "{count} up to {newest_block}");
            assert_eq!(history.gas_used_ratios.len(), base_fees - 1, "{count} up to {newest_block}");
            assert_eq!(history.rewards, expected, "{count} up to {newest_block}");
        }
    }

    #[test]
    fn fees_and_ratios() {
        let world = World::new();
        world.push(vec![(transaction(1, 0, 3), Vec::new())]);
        let history = world.node.fee_history(&Context::unbounded(), 2, BlockNumberOrTag::Latest, &[]).unwrap();
        // An almost empty block lowers the base fee by almost an eighth (EIP-1559).
        let next = BASE_FEE - BASE_FEE * (15_000_000 - GAS) / 15_000_000 / 8;
        assert_eq!(history.base_fees, [BASE_FEE, BASE_FEE, next].map(Some));
        assert_eq!(history.gas_used_ratios, [0.0, 0.0007]);
        assert_eq!(history.rewards, Vec::<Vec<_>>::new());
    }

    #[test]
    fn limits_the_number_of_percentiles() {
        for (limit, count, accepted) in [(200, 101, true), (200, 200, true), (200, 201, false), (1, 2, false)] {
            let world = World::with(Finality::Head, Limits { percentiles: limit, ..Limits::default() });
            let percentiles = vec![50.0; count];
            let history = world.node.fee_history(&Context::unbounded(), 2, BlockNumberOrTag::Latest, &percentiles);
            assert_eq!(history.is_ok(), accepted, "{count} percentiles of at most {limit}: {history:?}");
        }
    }

    #[test]
    fn reports_every_fault() {
        let world = World::new();
        let history = |count, newest_block, percentiles: &[f64]| {
            world.node.fee_history(&Context::unbounded(), count, newest_block, percentiles)
        };
        let cases: [(u64, Vec<f64>, Vec<Field>); 8] = [
            (0, vec![], vec![Field::BlockCount]),
            (1_025, vec![], vec![Field::BlockCount]),
            (2, vec![-0.1], vec![Field::RewardPercentile(0)]),
            (2, vec![50.0, 100.5], vec![Field::RewardPercentile(1)]),
            (2, vec![f64::NAN], vec![Field::RewardPercentile(0)]),
            (2, vec![50.0, 40.0, 50.0], vec![Field::RewardPercentile(1)]),
            (2, vec![0.0; 101], vec![Field::RewardPercentiles]),
            (0, vec![-1.0, 101.0], vec![Field::BlockCount, Field::RewardPercentile(0), Field::RewardPercentile(1)]),
        ];
        for (count, percentiles, expected) in cases {
            let error = history(count, BlockNumberOrTag::Latest, &percentiles).unwrap_err();
            let NodeError::Invalid(faults) = error else { panic!("{count}, {percentiles:?}: {error:?}") };
            let fields: Vec<_> = faults.iter().map(|fault| fault.field).collect();
            assert_eq!(fields, expected, "{count}, {percentiles:?}");
        }
        assert!(matches!(
            history(2, BlockNumberOrTag::Number(1), &[]),
            Err(NodeError::BlockNotFound { field: Field::NewestBlock, .. })
        ));
    }
}
