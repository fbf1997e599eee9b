//! Chain specifications from the network names of Ethereum's execution tests.

use super::format::Config;
use node_core::protocol::{Activation, BlobEntry, BlobParams, ChainSpec, DaoFork, UPGRADES, Upgrade};
use node_types::{Address, U256};
use std::ops::RangeInclusive;

/// The point of a transition.
#[derive(Clone, Copy)]
enum Point {
    Block(u64),
    Time(u64),
    TotalDifficulty(U256),
}

/// Mainnet's deposit contract, which the tests assume.
const DEPOSIT_CONTRACT: Address = node_types::H160([
    0, 0, 0, 0, 0x21, 0x9a, 0xb5, 0x40, 0x35, 0x6c, 0xbb, 0x83, 0x9c, 0xbe, 0x05, 0x30, 0x3d, 0x77, 0x05, 0xfa,
]);

/// Returns the schedule of a network: an upgrade, or a transition such as `BerlinToLondonAt5`.
pub(super) fn chain_spec(network: &str, config: &Config) -> Result<ChainSpec, String> {
    let unknown = || format!("unknown network {network}");
    let chain_id = config.chainid.map_or(Ok(1), |id| id.0.try_into().map_err(|_| format!("chain id {}", id.0)))?;
    let mut spec = ChainSpec { chain_id, deposit_contract: Some(DEPOSIT_CONTRACT), ..ChainSpec::default() };
    let Some((from, rest)) = network.split_once("To") else {
        activate(&mut spec, config, 0..=position(network).ok_or_else(unknown)?, None)?;
        return Ok(spec);
    };
    let (to, at) = rest.split_once("At").ok_or_else(unknown)?;
    let (from, point) = (position(from).ok_or_else(unknown)?, point(at).ok_or_else(unknown)?);
    activate(&mut spec, config, 0..=from, None)?;
    match (to, point) {
        // The DAO fork changes no rule and has no row in the table of upgrades.
        ("Dao", Point::Block(number)) => spec.dao_fork = Some(DaoFork { block: number, supported: true }),
        _ => activate(&mut spec, config, from + 1..=position(to).ok_or_else(unknown)?, Some(point))?,
    }
    Ok(spec)
}

/// Activates upgrades at `point`, or from genesis on if it is `None`.
fn activate(
    spec: &mut ChainSpec,
    config: &Config,
    range: RangeInclusive<usize>,
    point: Option<Point>,
) -> Result<(), String> {
    for upgrade in UPGRADES.get(range).unwrap_or_default() {
        let Upgrade { fork, test_name, .. } = upgrade;
        let mismatch = || format!("{test_name} cannot be activated at such a point");
        let (block, time) = match point {
            None => (Some(0), Some(0)),
            Some(Point::Block(number)) => (Some(number), None),
            Some(Point::Time(time)) => (None, Some(time)),
            Some(Point::TotalDifficulty(_)) => (None, None),
        };
        match upgrade.activation {
            Activation::Genesis => {}
            Activation::Block { optional, .. } => match block {
                Some(number) => spec.block_forks.push((*fork, number)),
                // A transition to Paris skips the glaciers before it.
                None if optional => {}
                None => return Err(mismatch()),
            },
            Activation::TotalDifficulty { .. } => match point {
                None => spec.terminal_total_difficulty = Some(U256::zero()),
                Some(Point::TotalDifficulty(total)) => spec.terminal_total_difficulty = Some(total),
                Some(_) => return Err(mismatch()),
            },
            Activation::Time { .. } | Activation::BlobTime { .. } => {
                let time = time.ok_or_else(mismatch)?;
                let params = blob_params(upgrade, config)?;
                if matches!(upgrade.activation, Activation::Time { .. }) {
                    spec.time_forks.push((*fork, time));
                } else if params.is_none() {
                    return Err(format!("no blob parameters for {test_name}"));
                }
                spec.blob_schedule.extend(params.map(|params| BlobEntry { upgrade: upgrade.name, params, time }));
            }
        }
    }
    Ok(())
}

/// Returns the blob parameters that an upgrade sets: the test's, or else mainnet's.
fn blob_params(upgrade: &Upgrade, config: &Config) -> Result<Option<BlobParams>, String> {
    let name = upgrade.test_name;
    let Some(given) = config.blob_schedule.get(name) else { return Ok(upgrade.blob_params) };
    let read =
        |number: super::hex::Number| number.0.try_into().map_err(|_| format!("blob schedule of {name}: {}", number.0));
    Ok(Some(BlobParams {
        target: read(given.target)?,
        max: read(given.max)?,
        base_fee_update_fraction: read(given.base_fee_update_fraction)?,
    }))
}

/// Returns the position of an upgrade in [`UPGRADES`].
fn position(name: &str) -> Option<usize> {
    let name = if name == "Merge" { "Paris" } else { name };
    UPGRADES.iter().position(|upgrade| upgrade.test_name == name)
}

/// Parses `5`, `Time15k` or `DiffC0000`.
fn point(text: &str) -> Option<Point> {
    if let Some(time) = text.strip_prefix("Time") {
        return Some(Point::Time(match time.strip_suffix('k') {
            Some(thousands) => thousands.parse::<u64>().ok()?.checked_mul(1000)?,
            None => time.parse().ok()?,
        }));
    }
    match text.strip_prefix("Diff") {
        Some(digits) => Some(Point::TotalDifficulty(U256::from_str_radix(digits, 16).ok()?)),
        None => Some(Point::Block(text.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::protocol::Fork;

    /// Returns the fork in force at a block number and time, before or after the merge.
    fn fork(network: &str, number: u64, time: u64, merged: bool) -> Fork {
        chain_spec(network, &Config::default()).unwrap().fork_at(number, time, merged)
    }

    #[test]
    fn network_names_select_forks() {
        let cases = [
            ("Frontier", (9, 0, false), Fork::Frontier),
            ("EIP158", (0, 0, false), Fork::SpuriousDragon),
            ("ConstantinopleFix", (0, 0, false), Fork::Petersburg),
            ("London", (0, 0, false), Fork::London),
            ("Merge", (0, 0, true), Fork::Paris),
            ("Cancun", (0, 0, true), Fork::Cancun),
            ("BPO2", (0, 0, true), Fork::Osaka),
            ("FrontierToHomesteadAt5", (4, 0, false), Fork::Frontier),
            ("FrontierToHomesteadAt5", (5, 0, false), Fork::Homestead),
            ("HomesteadToDaoAt5", (5, 0, false), Fork::Homestead),
            ("ByzantiumToConstantinopleFixAt5", (5, 0, false), Fork::Petersburg),
            ("ArrowGlacierToParisAtDiffC0000", (5, 0, false), Fork::ArrowGlacier),
            ("ParisToShanghaiAtTime15k", (0, 14_999, true), Fork::Paris),
            ("PragueToOsakaAtTime15k", (0, 15_000, true), Fork::Osaka),
        ];
        for (network, (number, time, merged), expected) in cases {
            assert_eq!(fork(network, number, time, merged), expected, "{network} block {number} at {time}");
        }
        let spec = |network| chain_spec(network, &Config::default()).unwrap();
        assert_eq!(spec("HomesteadToDaoAt5").dao_fork, Some(DaoFork { block: 5, supported: true }));
        assert_eq!(spec("ArrowGlacierToParisAtDiffC0000").terminal_total_difficulty, Some(0xc0000.into()));
        assert_eq!(spec("BPO1ToBPO2AtTime15k").blob_params(14_999).unwrap().max, 15);
        assert_eq!(spec("BPO1ToBPO2AtTime15k").blob_params(15_000).unwrap().max, 21);
    }

    #[test]
    fn rejects_unknown_names() {
        for network in
            ["", "Amsterdam", "Osaka2", "FrontierToHomestead", "FrontierToHomesteadAtx", "BPO5", "XToLondonAt5"]
        {
            assert!(chain_spec(network, &Config::default()).is_err(), "{network:?}");
        }
    }
}
