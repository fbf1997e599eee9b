//! The names of Ethereum's tests for networks, as chain specifications.

use super::format::Config;
use node_core::forks::{BlobParams, ChainSpec, Fork};
use node_types::{Address, U256};

/// The steps of the rules in order of activation, by the names of the tests.
const STEPS: [(&str, Step); 24] = [
    ("Frontier", Step::Block(Fork::Frontier)),
    ("Homestead", Step::Block(Fork::Homestead)),
    ("EIP150", Step::Block(Fork::TangerineWhistle)),
    ("EIP158", Step::Block(Fork::SpuriousDragon)),
    ("Byzantium", Step::Block(Fork::Byzantium)),
    ("Constantinople", Step::Block(Fork::Constantinople)),
    ("ConstantinopleFix", Step::Block(Fork::Petersburg)),
    ("Istanbul", Step::Block(Fork::Istanbul)),
    ("MuirGlacier", Step::Block(Fork::MuirGlacier)),
    ("Berlin", Step::Block(Fork::Berlin)),
    ("London", Step::Block(Fork::London)),
    ("ArrowGlacier", Step::Block(Fork::ArrowGlacier)),
    ("GrayGlacier", Step::Block(Fork::GrayGlacier)),
    ("Paris", Step::Merge),
    ("Shanghai", Step::Time(Fork::Shanghai)),
    ("Cancun", Step::Time(Fork::Cancun)),
    ("Prague", Step::Time(Fork::Prague)),
    ("Osaka", Step::Time(Fork::Osaka)),
    ("BPO1", Step::Blobs),
    ("BPO2", Step::Blobs),
    ("BPO3", Step::Blobs),
    ("BPO4", Step::Blobs),
    ("BPO5", Step::Blobs),
    // The DAO fork is not one of the steps; it only follows Homestead.
    ("Dao", Step::Dao),
];

/// How a step is activated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Block(Fork),
    Dao,
    Merge,
    Time(Fork),
    Blobs,
}

/// The point of a transition.
#[derive(Clone, Copy)]
enum Point {
    Block(u64),
    Time(u64),
    TotalDifficulty(U256),
}

/// The deposit contract of mainnet, which the tests use.
const DEPOSIT_CONTRACT: Address = node_types::H160([
    0, 0, 0, 0, 0x21, 0x9a, 0xb5, 0x40, 0x35, 0x6c, 0xbb, 0x83, 0x9c, 0xbe, 0x05, 0x30, 0x3d, 0x77, 0x05, 0xfa,
]);

/// Returns the rules of a network: a step, or a transition such as `BerlinToLondonAt5`.
pub(super) fn chain_spec(network: &str, config: &Config) -> Result<ChainSpec, String> {
    let unknown = || format!("unknown network {network}");
    let chain_id = config.chainid.map_or(Ok(1), |id| id.0.try_into().map_err(|_| format!("chain id {}", id.0)))?;
    let mut spec = ChainSpec {
        chain_id,
        block_forks: Vec::new(),
        dao_fork: None,
        terminal_total_difficulty: None,
        time_forks: Vec::new(),
        blob_schedule: Vec::new(),
        silent_forks: Vec::new(),
        deposit_contract: DEPOSIT_CONTRACT,
    };
    match network.split_once("To") {
        None => activate(&mut spec, config, 0, position(network).ok_or_else(unknown)?, None)?,
        Some((from, rest)) => {
            let (to, at) = rest.split_once("At").ok_or_else(unknown)?;
            let (from, to) = (position(from).ok_or_else(unknown)?, position(to).ok_or_else(unknown)?);
            let point = point(at).ok_or_else(unknown)?;
            activate(&mut spec, config, 0, from, None)?;
            let first = if STEPS[to].1 == Step::Dao { to } else { from + 1 };
            activate(&mut spec, config, first, to, Some(point))?;
        }
    }
    Ok(spec)
}

/// Activates the steps from `first` to `last` at `point`, or at genesis.
fn activate(
    spec: &mut ChainSpec,
    config: &Config,
    first: usize,
    last: usize,
    point: Option<Point>,
) -> Result<(), String> {
    for (name, step) in &STEPS[first..=last] {
        let mismatch = || format!("{name} cannot be activated at such a point");
        let (block, time) = match point {
            None => (Some(0), Some(0)),
            Some(Point::Block(number)) => (Some(number), None),
            Some(Point::Time(time)) => (None, Some(time)),
            Some(Point::TotalDifficulty(_)) => (None, None),
        };
        match *step {
            Step::Block(Fork::Frontier) => {}
            Step::Block(fork) => match block {
                Some(number) => spec.block_forks.push((fork, number)),
                // Two difficulty bomb delays lie between a transition to Paris and its start; they change nothing here.
                None if matches!(fork, Fork::ArrowGlacier | Fork::GrayGlacier) => {}
                None => return Err(mismatch()),
            },
            Step::Dao => spec.dao_fork = Some(block.ok_or_else(mismatch)?),
            Step::Merge => match point {
                None => spec.terminal_total_difficulty = Some(U256::zero()),
                Some(Point::TotalDifficulty(total)) => spec.terminal_total_difficulty = Some(total),
                Some(_) => return Err(mismatch()),
            },
            Step::Time(fork) => {
                let time = time.ok_or_else(mismatch)?;
                spec.time_forks.push((fork, time));
                if let Some(params) = blob_params(name, config)? {
                    spec.blob_schedule.push((params, time));
                }
            }
            Step::Blobs => {
                let params = blob_params(name, config)?.ok_or_else(|| format!("no blob parameters for {name}"))?;
                spec.blob_schedule.push((params, time.ok_or_else(mismatch)?));
            }
        }
    }
    Ok(())
}

/// Blob parameters introduced by a step: those of the test, else those of mainnet.
fn blob_params(name: &str, config: &Config) -> Result<Option<BlobParams>, String> {
    let Some(given) = config.blob_schedule.get(name) else {
        return Ok(match name {
            "Cancun" => Some(BlobParams::CANCUN),
            "Prague" => Some(BlobParams::PRAGUE),
            "BPO1" => Some(BlobParams { target: 10, max: 15, base_fee_update_fraction: 8_346_193 }),
            "BPO2" => Some(BlobParams { target: 14, max: 21, base_fee_update_fraction: 11_684_671 }),
            _ => None,
        });
    };
    let read =
        |number: super::hex::Number| number.0.try_into().map_err(|_| format!("blob schedule of {name}: {}", number.0));
    Ok(Some(BlobParams {
        target: read(given.target)?,
        max: read(given.max)?,
        base_fee_update_fraction: read(given.base_fee_update_fraction)?,
    }))
}

fn position(name: &str) -> Option<usize> {
    let name = if name == "Merge" { "Paris" } else { name };
    let position = STEPS.iter().position(|(step, _)| *step == name)?;
    Some(position)
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

    /// The forks at a few blocks, given by number, time, and whether they are merged.
    fn fork(network: &str, number: u64, time: u64, merged: bool) -> Fork {
        chain_spec(network, &Config::default()).unwrap().fork_at(number, time, merged)
    }

    #[test]
    fn names_select_rules() {
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
        assert_eq!(spec("HomesteadToDaoAt5").dao_fork, Some(5));
        assert_eq!(spec("ArrowGlacierToParisAtDiffC0000").terminal_total_difficulty, Some(0xc0000.into()));
        assert_eq!(spec("BPO1ToBPO2AtTime15k").blob_params(14_999).unwrap().max, 15);
        assert_eq!(spec("BPO1ToBPO2AtTime15k").blob_params(15_000).unwrap().max, 21);
    }

    #[test]
    fn unknown_names_fail() {
        for network in
            ["", "Amsterdam", "Osaka2", "FrontierToHomestead", "FrontierToHomesteadAtx", "BPO5", "XToLondonAt5"]
        {
            assert!(chain_spec(network, &Config::default()).is_err(), "{network:?}");
        }
    }
}
