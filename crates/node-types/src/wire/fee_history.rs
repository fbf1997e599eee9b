//! Fees of past blocks.

use super::decode::{Decode, Faults, Input, ObjectDecoder, decode_array, deserialize_by_decoding};
use super::{BlockTag, Quantity, Quantity64, Quantity256};
use serde::{Deserialize, Serialize};

/// The body of feeHistory.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Input_feeHistory))]
#[serde(rename_all = "PascalCase")]
pub struct FeeHistoryInput {
    /// How many blocks, 1 to 1,024.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub block_count: Quantity64,
    /// The last of them.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub newest_block: BlockTag,
    /// At most 100 percentiles of the tips of each block, each from 0 to 100, not decreasing.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Percentile>, required = false, max_items = 100))]
    pub reward_percentiles: Vec<f64>,
}

/// The answer of feeHistory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Output_feeHistory))]
#[serde(rename_all = "PascalCase")]
pub struct FeeHistoryOutput {
    /// Base fee of each block in wei per gas, and that of the block after the last; zero before London.
    pub base_fee_per_gas: Vec<Quantity256>,
    /// Gas used by each block, divided by its gas limit.
    pub gas_used_ratio: Vec<f64>,
    /// Height of the first block.
    pub oldest_block: Quantity64,
    /// For each block and percentile, the effective tip in wei per gas; empty where no percentile was asked for.
    pub reward: Vec<Vec<Quantity256>>,
}

impl Default for FeeHistoryInput {
    fn default() -> Self {
        Self { block_count: Quantity(2), newest_block: BlockTag::Latest, reward_percentiles: Vec::new() }
    }
}

/// Percentiles in one request.
const MAX_PERCENTILES: usize = 100;

impl Decode for FeeHistoryInput {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let mut object = ObjectDecoder::new(input, &["BlockCount", "NewestBlock", "RewardPercentiles"], faults)?;
        let block_count: Option<Quantity<u64>> =
            object.optional("BlockCount").map(|count| count.unwrap_or(Quantity(2)));
        if block_count.is_some_and(|count| !(1..=1024).contains(&count.0)) {
            object.fault("BlockCount", "expected a number from 1 to 1024");
        }
        let newest_block = object.optional_or_default("NewestBlock");
        let percentiles: Option<Percentiles> = object.optional_or_default("RewardPercentiles");
        Some(Self { block_count: block_count?, newest_block: newest_block?, reward_percentiles: percentiles?.0 })
    }
}

/// Percentiles that do not decrease.
#[derive(Default)]
struct Percentiles(Vec<f64>);

impl Decode for Percentiles {
    fn decode(input: Input<'_>, faults: &mut Faults) -> Option<Self> {
        let percentiles: Vec<f64> =
            decode_array::<Percentile>(input, MAX_PERCENTILES, faults)?.into_iter().map(|item| item.0).collect();
        if !percentiles.is_sorted() {
            input.fault("expected percentiles that do not decrease", faults);
            return None;
        }
        Some(Self(percentiles))
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
            // Rust reads more than decimal numbers: signs, exponents, `inf`.
            let text = input.string(faults)?;
            let decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if decimal { text.parse().ok() } else { None }
        };
        match number {
            Some(number) if (0.0..=100.0).contains(&number) => Some(Self(number)),
            _ => {
                input.fault("expected a number from 0 to 100", faults);
                None
            }
        }
    }
}

deserialize_by_decoding!(FeeHistoryInput);
