//! Fees of past blocks.

use super::decode::{Decode, Faults, Input, decode_object, deserialize_by_decoding};
use super::{Quantity, Quantity64, Quantity256};
use crate::BlockNumberOrTag;
use serde::{Deserialize, Serialize};

/// The request body of feeHistory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct FeeHistoryInput {
    /// Number of blocks, from 1 to 1,024; 2 if absent.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub block_count: Quantity64,
    /// The last of the blocks; the latest if absent. Not a hash.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub newest_block: BlockNumberOrTag,
    /// Percentiles of the effective tips in each block: from 0 to 100, not decreasing. The node limits their number.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Percentile>, required = false))]
    pub reward_percentiles: Vec<f64>,
}

/// The response of feeHistory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "PascalCase")]
pub struct FeeHistoryOutput {
    /// Base fee of each block in wei per gas, and of the block after the last one; zero before London.
    pub base_fee_per_gas: Vec<Quantity256>,
    /// Gas used by each block, divided by its gas limit.
    pub gas_used_ratio: Vec<f64>,
    /// Number of the first block.
    pub oldest_block: Quantity64,
    /// For each block and percentile, the effective tip in wei per gas; empty if no percentiles were requested.
    pub reward: Vec<Vec<Quantity256>>,
}

impl Default for FeeHistoryInput {
    fn default() -> Self {
        Self { block_count: Quantity(2), newest_block: BlockNumberOrTag::Latest, reward_percentiles: Vec::new() }
    }
}

decode_object! {
    FeeHistoryInput {
        block_count: optional_or("BlockCount", BlockCount(Self::default().block_count)) as BlockCount,
        newest_block: optional_or_default("NewestBlock"),
        reward_percentiles: optional_or_default("RewardPercentiles") as Percentiles,
    }
}

deserialize_by_decoding!(FeeHistoryInput);

/// A number of blocks that one request may ask for.
struct BlockCount(Quantity64);

impl Decode for BlockCount {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let count = Quantity64::decode(input, faults)?;
        let most = faults.limits().fee_history_blocks;
        if !(1..=most).contains(&count.0) {
            input.fault(format_args!("expected a number from 1 to {most}"), faults);
            return None;
        }
        Some(Self(count))
    }
}

/// Percentiles that do not decrease, as plain numbers.
#[derive(Default)]
struct Percentiles(Vec<f64>);

impl Decode for Percentiles {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let (mut percentiles, mut count, mut last) = (Vec::new(), 0, 0.0);
        let limit = faults.limits().percentiles;
        input.elements(faults, |index, element, faults| {
            count = index + 1;
            let Some(Percentile(percentile)) = Percentile::decode(element, faults) else { return };
            if percentile < last {
                let message = format!("invalid reward percentile: expected at least {last}, the preceding percentile");
                element.fault(message, faults);
                return;
            }
            last = percentile;
            if count <= limit.most {
                percentiles.push(percentile);
            }
        })?;
        input.check_length(count, "percentiles", limit, faults);
        (percentiles.len() == count).then_some(Self(percentiles))
    }
}

/// A number from 0 to 100.
pub(super) struct Percentile(f64);

impl Decode for Percentile {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let number = if input.is_number() {
            input.json().parse().ok()
        } else if !input.is_string() {
            None
        } else {
            // `f64::from_str` also accepts signs, exponents and `inf`.
            let text = input.string(faults)?;
            let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if decimal { text.parse().ok() } else { None }
        };
        match number.filter(|number: &f64| number.is_finite()) {
            None => input.fault("expected a decimal number", faults),
            Some(percentile) if !(0.0..=100.0).contains(&percentile) => {
                input.fault("invalid reward percentile: expected a number from 0 to 100", faults);
            }
            Some(percentile) => return Some(Self(percentile)),
        }
        None
    }
}
