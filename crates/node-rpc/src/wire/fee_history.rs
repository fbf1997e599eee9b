//! Fees of past blocks.

use super::{Hex, hex};
use node_core::node;
use node_types::U256;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A number of blocks, as `0x` hex or as a JSON number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockCount(pub(crate) u64);

impl<'de> Deserialize<'de> for BlockCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number of blocks")]
        enum Written<'a> {
            Number(u64),
            Text(#[serde(borrow)] Cow<'a, str>),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Self(number)),
            Written::Text(text) => hex::parse(&text).map(Self).map_err(D::Error::custom),
        }
    }
}

/// The result of eth_feeHistory. Like geth, the default is the history of no blocks.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FeeHistory {
    oldest_block: Hex<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reward: Vec<Vec<Hex<U256>>>,
    base_fee_per_gas: Vec<Hex<u64>>,
    gas_used_ratio: Vec<f64>,
    base_fee_per_blob_gas: Vec<Hex<U256>>,
    blob_gas_used_ratio: Vec<f64>,
}

impl From<node::FeeHistory> for FeeHistory {
    fn from(found: node::FeeHistory) -> Self {
        let hex = |numbers: Vec<U256>| numbers.into_iter().map(Hex).collect();
        let base_fee = |fee: Option<u64>| Hex(fee.unwrap_or(0));
        let blob_base_fee = |fee: Option<U256>| Hex(fee.unwrap_or_default());
        Self {
            oldest_block: Hex(found.oldest_block),
            reward: found.rewards.into_iter().map(hex).collect(),
            base_fee_per_gas: found.base_fees.into_iter().map(base_fee).collect(),
            gas_used_ratio: found.gas_used_ratios,
            base_fee_per_blob_gas: found.blob_base_fees.into_iter().map(blob_base_fee).collect(),
            blob_gas_used_ratio: found.blob_gas_used_ratios.into_iter().map(Option::unwrap_or_default).collect(),
        }
    }
}
