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
        block_count: optional_or("BlockCount", Self::default().block_count),
        newest_block: optional_or_default("NewestBlock"),
        reward_percentiles: optional_or_default("RewardPercentiles") as Percentiles,
    }
}

deserialize_by_decoding!(FeeHistoryInput);

/// The percentiles as plain numbers.
#[derive(Default)]
struct Percentiles(Vec<f64>);

impl Decode for Percentiles {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let percentiles = Vec::<Percentile>::decode(input, faults)?;
        Some(Self(percentiles.into_iter().map(|percentile| percentile.0).collect()))
    }
}

/// A finite number. The operation checks whether it is a percentile.
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
        let number = number.filter(|number: &f64| number.is_finite());
        if number.is_none() {
            input.fault("expected a decimal number", faults);
        }
        number.map(Self)
    }
}
