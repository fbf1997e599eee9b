//! feeHistory (EIP-1559).

use super::limits::too_many;
use super::{Node, NodeError};
use crate::backend::FeeRow;
use crate::context::Context;
use crate::fees;
use crate::forks::ChainSpec;
use node_types::consensus::Header;
use node_types::wire::{ErrorDetail, FeeHistoryInput, FeeHistoryOutput, Quantity};
use node_types::{BlockNumber, U256};

/// Fees of consecutive blocks, the oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct FeeHistory {
    /// Height of the first block.
    pub oldest: BlockNumber,
    /// Base fee of each block and of the one after the last, in wei per gas; zero before London.
    pub base_fees: Vec<U256>,
    /// Gas used of each block as a share of its limit.
    pub gas_used_ratios: Vec<f64>,
    /// Blob base fee of each block and of the one after the last, in wei per blob gas; zero before Cancun.
    pub blob_base_fees: Vec<U256>,
    /// Blob gas used of each block as a share of the most that it may use; zero before Cancun.
    pub blob_gas_used_ratios: Vec<f64>,
    /// For each block the tips at the percentiles that were asked for, in wei per gas; empty where none were.
    pub rewards: Vec<Vec<U256>>,
}

impl FeeHistory {
    /// Most blocks in one answer.
    pub const MAX_BLOCKS: u64 = 1_024;

    /// So many blocks are read in some microseconds; their rewards may take longer, and look at the context.
    pub const FEW_BLOCKS: u64 = 32;
}

impl Node {
    /// Base fees, gas used ratios and tips of consecutive blocks; fewer than asked for where the chain begins later.
    pub fn fee_history(&self, context: &Context, input: FeeHistoryInput) -> Result<FeeHistoryOutput, NodeError> {
        let found = self.find_fee_history(context, &input)?;
        let quantities = |numbers: Vec<U256>| numbers.into_iter().map(Quantity).collect::<Vec<_>>();
        Ok(FeeHistoryOutput {
            base_fee_per_gas: quantities(found.base_fees),
            gas_used_ratio: found.gas_used_ratios,
            oldest_block: Quantity(found.oldest),
            reward: found.rewards.into_iter().map(quantities).collect(),
        })
    }

    /// As [`fee_history`](Self::fee_history), with the fees of blobs.
    pub fn find_fee_history(&self, context: &Context, input: &FeeHistoryInput) -> Result<FeeHistory, NodeError> {
        let faults = faults(input, self.limits.percentiles);
        if !faults.is_empty() {
            return Err(NodeError::Invalid(faults));
        }
        context.check()?;
        let snapshot = self.snapshot(context)?;
        let newest = snapshot.canonical(input.newest_block.into(), "body.NewestBlock")?;
        let oldest = newest.saturating_sub(input.block_count.0 - 1);
        let rows = snapshot.view.fee_rows(oldest..=newest)?;
        let headers = || rows.iter().map(|row| &row.header.header);
        let next_base_fee = headers().next_back().map(|last| fees::next_base_fee(&self.spec, last));
        let next_blob_fee = headers().next_back().map(|last| next_blob_base_fee(&self.spec, last));
        let base_fees = headers().map(|header| header.base_fee_per_gas).chain(next_base_fee);
        let blob_fees = headers().map(|header| fees::blob_base_fee(&self.spec, header)).chain(next_blob_fee);
        let percentiles = &input.reward_percentiles;
        Ok(FeeHistory {
            oldest,
            base_fees: base_fees.map(|base_fee| base_fee.unwrap_or(0).into()).collect(),
            gas_used_ratios: headers().map(|header| ratio(header.gas_used, header.gas_limit)).collect(),
            blob_base_fees: blob_fees.map(Option::unwrap_or_default).collect(),
            blob_gas_used_ratios: headers()
                .map(|header| {
                    let most = fees::max_blob_gas(&self.spec, header.timestamp).unwrap_or(0);
                    ratio(header.blob_gas_used.unwrap_or(0), most)
                })
                .collect(),
            rewards: if percentiles.is_empty() {
                Vec::new()
            } else {
                let rewards = |row| context.check().map(|()| rewards(row, percentiles));
                rows.iter().map(rewards).collect::<Result<_, _>>()?
            },
        })
    }
}

/// The blob base fee of a block after `last` under the rules of `last`.
fn next_blob_base_fee(spec: &ChainSpec, last: &Header) -> Option<U256> {
    let params = spec.blob_params(last.timestamp)?;
    let excess = fees::next_excess_blob_gas(spec, last, last.timestamp)?;
    Some(fees::blob_base_fee_at(params, excess))
}

fn faults(input: &FeeHistoryInput, max_percentiles: usize) -> Vec<ErrorDetail> {
    let mut faults = Vec::new();
    let count = input.block_count.0;
    if !(1..=FeeHistory::MAX_BLOCKS).contains(&count) {
        let message = format!("expected a number from 1 to {}", FeeHistory::MAX_BLOCKS);
        faults.push(ErrorDetail::new("body.BlockCount", message).with_value(&input.block_count));
    }
    let percentiles = &input.reward_percentiles;
    if percentiles.len() > max_percentiles {
        let message = too_many(percentiles.len(), max_percentiles, "percentiles", "max-percentiles");
        faults.push(ErrorDetail::new("body.RewardPercentiles", message));
    }
    let mut last = 0.0;
    for (index, percentile) in percentiles.iter().enumerate().take(max_percentiles) {
        let message = if !(0.0..=100.0).contains(percentile) {
            "expected a number from 0 to 100".to_owned()
        } else if *percentile < last {
            format!("expected at least {last}, the one before")
        } else {
            last = *percentile;
            continue;
        };
        faults.push(ErrorDetail::new(format!("body.RewardPercentiles[{index}]"), message).with_value(percentile));
    }
    faults
}

/// A share; nothing of nothing.
fn ratio(used: u64, limit: u64) -> f64 {
    if limit == 0 { 0.0 } else { used as f64 / limit as f64 }
}

/// For each percentile, the tip of the transaction at which that share of the block's gas is reached, from the lowest
/// tip on; zeroes for an empty block. The percentiles do not decrease.
fn rewards(row: &FeeRow, percentiles: &[f64]) -> Vec<U256> {
    let gas_used = row.header.header.gas_used as f64;
    let mut tips = row.tips.iter();
    let Some((mut tip, mut gas_so_far)) = tips.next().copied() else {
        return vec![U256::zero(); percentiles.len()];
    };
    let reward = |percentile: &f64| {
        // Rounded down, as a conversion from a float does.
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
    use node_types::BlockNumberOrTag;
    use node_types::consensus::Header;
    use std::sync::Arc;

    #[test]
    fn rewards_are_weighted_by_gas() {
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
            let input = FeeHistoryInput { block_count: Quantity(count), newest_block, reward_percentiles: vec![50.0] };
            let output = world.node.fee_history(&Context::unbounded(), input).unwrap();
            let expected: Vec<_> = rewards.iter().map(|tip| vec![Quantity(U256::from(*tip))]).collect();
            assert_eq!(output.oldest_block, Quantity(oldest), "{count} up to {newest_block}");
            assert_eq!(output.base_fee_per_gas.len(), base_fees, "{count} up to {newest_block}");
            assert_eq!(output.gas_used_ratio.len(), base_fees - 1, "{count} up to {newest_block}");
            assert_eq!(output.reward, expected, "{count} up to {newest_block}");
        }
    }

    #[test]
    fn fees_and_ratios() {
        let world = World::new();
        world.push(vec![(transaction(1, 0, 3), Vec::new())]);
        let output = world.node.fee_history(&Context::unbounded(), FeeHistoryInput::default()).unwrap();
        // An almost empty block lowers the base fee by almost an eighth (EIP-1559).
        let next = BASE_FEE - BASE_FEE * (15_000_000 - GAS) / 15_000_000 / 8;
        assert_eq!(output.base_fee_per_gas, [BASE_FEE, BASE_FEE, next].map(|fee| Quantity(fee.into())));
        assert_eq!(output.gas_used_ratio, [0.0, 0.0007]);
        assert_eq!(output.reward, Vec::<Vec<_>>::new());
    }

    #[test]
    fn the_number_of_percentiles_is_an_option() {
        for (limit, count, accepted) in [(200, 101, true), (200, 200, true), (200, 201, false), (1, 2, false)] {
            let world = World::with(Finality::Head, Limits { percentiles: limit, ..Limits::default() });
            let input = FeeHistoryInput { reward_percentiles: vec![50.0; count], ..FeeHistoryInput::default() };
            let output = world.node.fee_history(&Context::unbounded(), input);
            assert_eq!(output.is_ok(), accepted, "{count} percentiles of at most {limit}: {output:?}");
        }
    }

    #[test]
    fn every_fault_is_told() {
        let world = World::new();
        let ok = FeeHistoryInput::default();
        let percentiles = |reward_percentiles| FeeHistoryInput { reward_percentiles, ..ok.clone() };
        let cases = [
            (FeeHistoryInput { block_count: Quantity(0), ..ok.clone() }, vec!["body.BlockCount"]),
            (FeeHistoryInput { block_count: Quantity(1_025), ..ok.clone() }, vec!["body.BlockCount"]),
            (percentiles(vec![-0.1]), vec!["body.RewardPercentiles[0]"]),
            (percentiles(vec![50.0, 100.5]), vec!["body.RewardPercentiles[1]"]),
            (percentiles(vec![f64::NAN]), vec!["body.RewardPercentiles[0]"]),
            (percentiles(vec![50.0, 40.0, 50.0]), vec!["body.RewardPercentiles[1]"]),
            (percentiles(vec![0.0; 101]), vec!["body.RewardPercentiles"]),
            (
                FeeHistoryInput { block_count: Quantity(0), ..percentiles(vec![-1.0, 101.0]) },
                vec!["body.BlockCount", "body.RewardPercentiles[0]", "body.RewardPercentiles[1]"],
            ),
        ];
        for (input, expected) in cases {
            let error = world.node.fee_history(&Context::unbounded(), input.clone()).unwrap_err();
            assert!(matches!(error, NodeError::Invalid(_)), "{input:?}: {error:?}");
            let locations: Vec<_> = error.details().into_iter().map(|detail| detail.location).collect();
            assert_eq!(locations, expected, "{input:?}");
        }
        let error = world.node.fee_history(&Context::unbounded(), percentiles(vec![50.0, 40.5])).unwrap_err();
        assert_eq!(error.details()[0].value.as_ref().unwrap().0.get(), "40.5");
        assert!(matches!(
            world.node.fee_history(
                &Context::unbounded(),
                FeeHistoryInput { newest_block: BlockNumberOrTag::Number(1), ..ok }
            ),
            Err(NodeError::BlockNotFound { location: "body.NewestBlock", .. })
        ));
    }
}
