//! Base fee and blob base fee (EIP-1559, EIP-4844, EIP-7918).

use crate::protocol::{BlobParams, ChainSpec, Fork};
use node_types::U256;
use node_types::consensus::{Header, TransactionBody};

/// Base fee of the first London block, in wei per gas.
pub const INITIAL_BASE_FEE: u64 = 1_000_000_000;

/// Blob gas of one blob (EIP-4844).
pub const GAS_PER_BLOB: u64 = 1 << 17;

/// Ratio of the gas limit to the gas target (EIP-1559).
pub const ELASTICITY_MULTIPLIER: u64 = 2;

/// The denominator of the largest change of the base fee per block, one eighth (EIP-1559).
const BASE_FEE_CHANGE_DENOMINATOR: u64 = 8;

/// Blob base fee without excess blob gas, in wei per blob gas (EIP-4844).
const MIN_BLOB_BASE_FEE: u64 = 1;

/// Amount of gas whose cost at the base fee is the reserve price of a blob (EIP-7918).
const BLOB_BASE_COST: u64 = 1 << 13;

/// Returns the maximum cost of a transaction in wei: gas, blob gas and value. Returns `None` if it exceeds 256 bits,
/// which no balance could cover.
pub fn highest_cost(body: &TransactionBody) -> Option<U256> {
    let blob_fees = match body {
        TransactionBody::Blob(tx) => {
            let blob_gas = U256::from(GAS_PER_BLOB) * U256::from(tx.blob_versioned_hashes.len());
            blob_gas.checked_mul(tx.max_fee_per_blob_gas)?
        }
        _ => U256::zero(),
    };
    let gas = U256::from(body.gas_limit()).checked_mul(body.max_fee_per_gas())?;
    gas.checked_add(blob_fees)?.checked_add(body.value())
}

/// Returns the base fee in wei per gas of the block after `parent`, or `None` before London (EIP-1559).
///
/// The result saturates at 64 bits, which is the size of the header's field.
pub fn next_base_fee(spec: &ChainSpec, parent: &Header) -> Option<u64> {
    let Some(base_fee) = parent.base_fee_per_gas else {
        let london = spec.fork_at(parent.number.saturating_add(1), parent.timestamp, parent.difficulty.is_zero());
        return (london >= Fork::London).then_some(INITIAL_BASE_FEE);
    };
    if base_fee == 0 && spec.relaxations.constant_zero_base_fee {
        return Some(0);
    }
    // The target can be zero only because of the gas limit of an unusual genesis block.
    let target = (parent.gas_limit / ELASTICITY_MULTIPLIER).max(1);
    let step = |distance: u64| {
        let step =
            u128::from(base_fee) * u128::from(distance) / u128::from(target) / u128::from(BASE_FEE_CHANGE_DENOMINATOR);
        u64::try_from(step).unwrap_or(u64::MAX)
    };
    Some(if parent.gas_used > target {
        base_fee.saturating_add(step(parent.gas_used - target).max(1))
    } else {
        base_fee.saturating_sub(step(target - parent.gas_used))
    })
}

/// Returns the excess blob gas of the block after `parent`, or `None` before Cancun (EIP-4844, EIP-7918).
///
/// `timestamp` is the timestamp of that block in Unix seconds. The blob parameters are those of that block, not of
/// its parent.
pub fn next_excess_blob_gas(spec: &ChainSpec, parent: &Header, timestamp: u64) -> Option<u64> {
    let params = spec.blob_params(timestamp)?;
    let excess = parent.excess_blob_gas.unwrap_or(0);
    let used = parent.blob_gas_used.unwrap_or(0);
    let total = excess.saturating_add(used);
    let target = params.target.saturating_mul(GAS_PER_BLOB);
    if total < target {
        return Some(0);
    }
    if spec.is_active_at(Fork::Osaka, timestamp) && is_below_reserve_price(params, parent) {
        let growth = u128::from(used) * u128::from(params.max.saturating_sub(params.target));
        let growth = growth / u128::from(params.max.max(1));
        return Some(excess.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX)));
    }
    Some(total - target)
}

/// Returns whether the price of a blob is below the reserve price, which depends on the base fee (EIP-7918).
fn is_below_reserve_price(params: BlobParams, parent: &Header) -> bool {
    let reserve = U256::from(BLOB_BASE_COST) * U256::from(parent.base_fee_per_gas.unwrap_or(0));
    let price = blob_base_fee_at(params, parent.excess_blob_gas.unwrap_or(0));
    // A price that overflows is above any reserve price.
    price.checked_mul(GAS_PER_BLOB.into()).is_some_and(|price| reserve > price)
}

/// Returns the blob base fee of the block `header` in wei per blob gas, or `None` before Cancun.
pub fn blob_base_fee(spec: &ChainSpec, header: &Header) -> Option<U256> {
    let params = spec.blob_params(header.timestamp)?;
    Some(blob_base_fee_at(params, header.excess_blob_gas?))
}

/// Returns the blob base fee in wei per blob gas for an amount of excess blob gas. The result saturates at 256 bits.
pub fn blob_base_fee_at(params: BlobParams, excess_blob_gas: u64) -> U256 {
    fake_exponential(MIN_BLOB_BASE_FEE, excess_blob_gas, params.base_fee_update_fraction)
}

/// Returns the maximum blob gas of a block with `timestamp` in Unix seconds, or `None` before Cancun.
pub fn max_blob_gas(spec: &ChainSpec, timestamp: u64) -> Option<u64> {
    Some(spec.blob_params(timestamp)?.max.saturating_mul(GAS_PER_BLOB))
}

/// Returns `factor * e^(numerator / denominator)`, computed in integers by the Taylor series of EIP-4844.
///
/// Returns the maximum if a term exceeds 256 bits. This also bounds the work: within a few hundred steps the terms
/// either exceed 256 bits or become zero.
fn fake_exponential(factor: u64, numerator: u64, denominator: u64) -> U256 {
    if denominator == 0 {
        return U256::MAX;
    }
    let mut sum = U256::zero();
    let mut term = U256::from(factor) * U256::from(denominator);
    let mut i = 1u64;
    while !term.is_zero() {
        let Some(next) = sum.checked_add(term) else { return U256::MAX };
        sum = next;
        // The product of two 64-bit numbers fits.
        let divisor = U256::from(denominator) * U256::from(i);
        let product = term.full_mul(numerator.into()) / divisor;
        let Ok(next) = U256::try_from(product) else { return U256::MAX };
        term = next;
        i += 1;
    }
    sum / U256::from(denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::BlobEntry;

    /// Returns a chain with London at block 10, then Cancun at timestamp 100, Prague at 200, Osaka at 300, and two
    /// changes of blob parameters at 400 and 500.
    fn spec() -> ChainSpec {
        ChainSpec {
            chain_id: 1,
            block_forks: vec![(Fork::Berlin, 5), (Fork::London, 10)],
            terminal_total_difficulty: Some(U256::zero()),
            time_forks: vec![(Fork::Shanghai, 50), (Fork::Cancun, 100), (Fork::Prague, 200), (Fork::Osaka, 300)],
            blob_schedule: [
                ("cancun", BlobParams::CANCUN, 100),
                ("prague", BlobParams::PRAGUE, 200),
                ("bpo1", BlobParams::BPO1, 400),
                ("bpo2", BlobParams::BPO2, 500),
            ]
            .map(|(upgrade, params, time)| BlobEntry { upgrade, params, time })
            .to_vec(),
            ..ChainSpec::default()
        }
    }

    #[test]
    fn base_fee_follows_the_gas_used() {
        // Base fee, gas limit, gas used of the parent; base fee of the child (cases of EIP-1559 clients among them).
        let cases: [(u64, u64, u64, u64); 12] = [
            (1_000_000_000, 20_000_000, 10_000_000, 1_000_000_000),
            (1_000_000_000, 20_000_000, 9_000_000, 987_500_000),
            (1_000_000_000, 20_000_000, 11_000_000, 1_012_500_000),
            (1_000_000_000, 30_000_000, 0, 875_000_000),
            (1_000_000_000, 30_000_000, 30_000_000, 1_125_000_000),
            // Increases are rounded up to one, decreases are not.
            (7, 30_000_000, 15_000_001, 8),
            (7, 30_000_000, 14_999_999, 7),
            (7, 30_000_000, 0, 7),
            (0, 30_000_000, 30_000_000, 1),
            // Gas limits of unusual genesis blocks, and a price at the maximum.
            (1_000, 0, 0, 875),
            (1_000, 1, 1, 1_000),
            (u64::MAX, 30_000_000, 30_000_000, u64::MAX),
        ];
        for (base_fee, gas_limit, gas_used, expected) in cases {
            let parent =
                Header { number: 20, base_fee_per_gas: Some(base_fee), gas_limit, gas_used, ..Header::default() };
            let got = next_base_fee(&spec(), &parent);
            assert_eq!(got, Some(expected), "base fee {base_fee}, gas used {gas_used} of {gas_limit}");
        }
    }

    #[test]
    fn base_fee_begins_with_london() {
        for (number, difficulty, expected) in
            [(8, 1, None), (9, 1, Some(INITIAL_BASE_FEE)), (10, 1, Some(INITIAL_BASE_FEE)), (0, 0, Some(1_000_000_000))]
        {
            let parent = Header { number, difficulty: difficulty.into(), ..Header::default() };
            assert_eq!(next_base_fee(&spec(), &parent), expected, "parent {number}");
        }
    }

    #[test]
    fn excess_blob_gas_follows_the_blobs() {
        const BLOB: u64 = GAS_PER_BLOB;
        const GWEI: u64 = 1_000_000_000;
        // Timestamp of the child; excess and used blob gas and base fee of the parent; excess of the child.
        let cases: [(u64, u64, u64, u64, Option<u64>); 13] = [
            (99, 0, 0, 1, None),
            (100, 0, 0, 1, Some(0)),
            (100, 0, 2 * BLOB, 1, Some(0)),
            (100, 0, 3 * BLOB, 1, Some(0)),
            (100, BLOB, 3 * BLOB, 1, Some(BLOB)),
            (199, 10 * BLOB, 6 * BLOB, GWEI, Some(13 * BLOB)),
            // The child's parameters apply: from Prague on the target is six.
            (200, 10 * BLOB, 6 * BLOB, GWEI, Some(10 * BLOB)),
            // Osaka: a blob costs 131072 wei, and 8192 gas cost more than that from a base fee of 17 on.
            (300, 0, 9 * BLOB, 16, Some(3 * BLOB)),
            (300, 0, 9 * BLOB, 17, Some(3 * BLOB)),
            (300, BLOB, 9 * BLOB, 16, Some(4 * BLOB)),
            (300, BLOB, 9 * BLOB, 17, Some(4 * BLOB)),
            (500, BLOB, 21 * BLOB, 17, Some(8 * BLOB)),
            (100, u64::MAX, u64::MAX, 1, Some(u64::MAX - 3 * BLOB)),
        ];
        for (timestamp, excess, used, base_fee, expected) in cases {
            let parent = Header {
                excess_blob_gas: Some(excess),
                blob_gas_used: Some(used),
                base_fee_per_gas: Some(base_fee),
                ..Header::default()
            };
            let got = next_excess_blob_gas(&spec(), &parent, timestamp);
            assert_eq!(got, expected, "at {timestamp}, excess {excess}, used {used}, base fee {base_fee}");
        }
    }

    #[test]
    fn excess_blob_gas_grows_below_the_reserve_price() {
        // Below the reserve price the excess grows by used * (max - target) / max instead of shrinking.
        let below = Header {
            excess_blob_gas: Some(100 * GAS_PER_BLOB),
            blob_gas_used: Some(3 * GAS_PER_BLOB),
            base_fee_per_gas: Some(1_000_000_000),
            ..Header::default()
        };
        assert_eq!(next_excess_blob_gas(&spec(), &below, 299), Some(97 * GAS_PER_BLOB));
        assert_eq!(next_excess_blob_gas(&spec(), &below, 300), Some(101 * GAS_PER_BLOB));
        let above = Header { base_fee_per_gas: Some(1), ..below };
        assert_eq!(next_excess_blob_gas(&spec(), &above, 300), Some(97 * GAS_PER_BLOB));
    }

    #[test]
    fn blob_base_fee_is_exponential() {
        // Excess blob gas, blob base fee in wei, both with the update fraction of Cancun.
        let cases: [(u64, u128); 6] = [
            (0, 1),
            (2_314_057, 1),
            (2_314_058, 2),
            (10 * 1024 * 1024, 23),
            (148_099_578, 18_446_739_238_971_471_609),
            (148_099_579, 18_446_744_762_204_311_910),
        ];
        for (excess, expected) in cases {
            assert_eq!(blob_base_fee_at(BlobParams::CANCUN, excess), expected.into(), "excess {excess}");
        }
    }

    #[test]
    fn matches_the_series_of_eip_4844() {
        // Factor, numerator, denominator, result.
        let cases: [(u64, u64, u64, u64); 13] = [
            (1, 0, 1, 1),
            (38_493, 0, 1000, 38_493),
            (0, 1234, 2345, 0),
            (1, 2, 1, 6),
            (1, 4, 2, 6),
            (1, 3, 1, 16),
            (1, 6, 2, 18),
            (1, 4, 1, 49),
            (1, 8, 2, 50),
            (10, 8, 2, 542),
            (11, 8, 2, 596),
            (1, 5, 1, 136),
            (2, 5, 2, 23),
        ];
        for (factor, numerator, denominator, expected) in cases {
            let got = fake_exponential(factor, numerator, denominator);
            assert_eq!(got, expected.into(), "{factor} * e^({numerator} / {denominator})");
        }
    }

    #[test]
    fn extreme_inputs_saturate() {
        for (numerator, denominator) in [(u64::MAX, 1), (u64::MAX, 3_338_477), (1 << 40, 3_338_477), (1, 0)] {
            assert_eq!(fake_exponential(1, numerator, denominator), U256::MAX, "e^({numerator} / {denominator})");
        }
        assert_eq!(fake_exponential(u64::MAX, u64::MAX, u64::MAX).bits(), 66);
    }

    #[test]
    fn maximum_blob_gas_follows_the_schedule() {
        for (timestamp, blobs) in
            [(99, None), (100, Some(6)), (200, Some(9)), (399, Some(9)), (400, Some(15)), (500, Some(21))]
        {
            assert_eq!(
                max_blob_gas(&spec(), timestamp),
                blobs.map(|blobs: u64| blobs * GAS_PER_BLOB),
                "at {timestamp}"
            );
        }
    }
}
