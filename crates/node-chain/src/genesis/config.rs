//! The property `config` of a genesis file: the chain's schedule of forks.

use super::number::check_spelling;
use super::{GenesisError, number};
use node_core::protocol::{
    Activation, BlobEntry, BlobParams, ChainSpec, DaoFork, Fork, Relaxations, UPGRADES, Upgrade,
};
use node_types::U256;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A JSON object whose property values have not been parsed yet.
pub(super) type RawObject<'a> = BTreeMap<String, &'a RawValue>;

/// Keys of block numbers that are not in [`UPGRADES`].
const OTHER_BLOCKS: [&str; 3] = ["eip155Block", "daoForkBlock", "mergeNetsplitBlock"];

/// Keys of consensus engines other than Ethereum's, which change the rules for a valid header.
const FOREIGN_CONSENSUS: [&str; 8] = ["clique", "parlia", "bor", "optimism", "aura", "ibft2", "qbft", "istanbul"];

/// Other keys with an effect.
const OTHER_KEYS: [&str; 7] = [
    "chainId",
    "terminalTotalDifficultyPassed",
    "daoForkSupport",
    "depositContractAddress",
    "blobSchedule",
    "enableVerkleAtGenesis",
    "relaxations",
];

/// Upper bound of blobs per block, which keeps blob gas within 64 bits.
const MAX_BLOBS: u64 = 1 << 32;

/// Parses `config`.
pub(super) fn parse(config: &RawObject<'_>) -> Result<ChainSpec, GenesisError> {
    let upgrades = UPGRADES.iter().filter_map(|upgrade| upgrade.activation.key());
    let known = upgrades.chain(OTHER_BLOCKS).chain(FOREIGN_CONSENSUS).chain(OTHER_KEYS);
    config.keys().try_for_each(|key| check_spelling("config.", key, known.clone()))?;
    let config = Config(config);
    let passed = config.flag("terminalTotalDifficultyPassed")?.unwrap_or(false);
    let terminal_total_difficulty = match config.get(key_of(Fork::Paris)) {
        Some(value) => Some(number::u256(&format!("config.{}", key_of(Fork::Paris)), value)?),
        None => passed.then(U256::zero),
    };
    config.refuse_unknown_rules(terminal_total_difficulty)?;

    let by_block = config.block_upgrades()?;
    let by_time = config.time_upgrades()?;
    if let Some((first, _)) = by_time.first() {
        let missing = |earlier: &str| GenesisError::ForkMissing {
            earlier: earlier.to_owned(),
            later: first.activation.key().unwrap_or_default().to_owned(),
        };
        if !by_block.iter().any(|(upgrade, _)| upgrade.fork == Fork::London) {
            return Err(missing(key_of(Fork::London)));
        }
        if terminal_total_difficulty.is_none() {
            return Err(missing(key_of(Fork::Paris)));
        }
    }
    let dao_fork = config.number("daoForkBlock")?;
    let supported = config.flag("daoForkSupport")?.unwrap_or(false);
    let deposit_contract = match config.get("depositContractAddress") {
        Some(value) => {
            const FIELD: &str = "config.depositContractAddress";
            Some(number::address(FIELD, &number::string(FIELD, value)?)?)
        }
        None => None,
    };
    let forks = |upgrades: &[(&Upgrade, u64)]| -> Vec<(Fork, u64)> {
        let forks = upgrades.iter().filter(|(upgrade, _)| !matches!(upgrade.activation, Activation::BlobTime { .. }));
        forks.map(|(upgrade, at)| (upgrade.fork, *at)).collect()
    };
    Ok(ChainSpec {
        // Networks without replay protection leave it out.
        chain_id: config.number("chainId")?.unwrap_or(0),
        block_forks: forks(&by_block),
        dao_fork: dao_fork.map(|block| DaoFork { block, supported }),
        terminal_total_difficulty,
        time_forks: forks(&by_time),
        blob_schedule: config.blob_schedule(&by_time)?,
        merge_netsplit: config.number("mergeNetsplitBlock")?,
        deposit_contract,
        relaxations: config.relaxations()?,
    })
}

struct Config<'a>(&'a RawObject<'a>);

/// Returns the key of a fork that has one.
fn key_of(fork: Fork) -> &'static str {
    fork.upgrade().activation.key().unwrap_or_default()
}

impl Config<'_> {
    /// Returns the property, or `None` if it is absent or null.
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key).copied().filter(|value| value.get() != "null")
    }

    fn number(&self, key: &str) -> Result<Option<u64>, GenesisError> {
        self.get(key).map(|value| number::u64(&format!("config.{key}"), value)).transpose()
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, GenesisError> {
        self.get(key).map(|value| number::typed(&format!("config.{key}"), value)).transpose()
    }

    /// Refuses keys of unknown forks and other consensus engines. Other unknown keys are ignored.
    fn refuse_unknown_rules(&self, terminal_total_difficulty: Option<U256>) -> Result<(), GenesisError> {
        let known = |key: &str| {
            OTHER_BLOCKS.contains(&key) || UPGRADES.iter().any(|upgrade| upgrade.activation.key() == Some(key))
        };
        for key in self.0.keys().filter(|key| self.get(key).is_some()) {
            let is_fork = key.ends_with("Block") || key.ends_with("Time");
            let enabled = key == "enableVerkleAtGenesis" && self.flag(key)?.unwrap_or(false);
            if enabled || is_fork && !known(key) {
                return Err(GenesisError::UnknownFork { key: key.clone() });
            }
            // A chain that is merged from genesis has no blocks that the older engine sealed.
            let foreign = FOREIGN_CONSENSUS.contains(&key.as_str());
            if foreign && !terminal_total_difficulty.is_some_and(|difficulty| difficulty.is_zero()) {
                return Err(GenesisError::UnsupportedConsensus { key: key.clone() });
            }
        }
        Ok(())
    }

    /// Returns the upgrades that activate at a block number, with that number.
    fn block_upgrades(&self) -> Result<Vec<(&'static Upgrade, u64)>, GenesisError> {
        let (eip155, eip158) = (self.number("eip155Block")?, self.number("eip158Block")?);
        if eip155 != eip158 {
            return Err(GenesisError::SplitSpuriousDragon { eip155, eip158 });
        }
        self.upgrades(|upgrade| matches!(upgrade.activation, Activation::Block { .. }))
    }

    /// Returns the upgrades that activate at a timestamp, with that timestamp.
    fn time_upgrades(&self) -> Result<Vec<(&'static Upgrade, u64)>, GenesisError> {
        self.upgrades(|upgrade| upgrade.activation.is_by_time())
    }

    /// Returns the selected upgrades that are set, in order. An upgrade must not activate before an earlier one, and
    /// all earlier ones must be set unless they are optional.
    fn upgrades(&self, select: fn(&Upgrade) -> bool) -> Result<Vec<(&'static Upgrade, u64)>, GenesisError> {
        let mut set = Vec::new();
        let mut last: Option<(&str, u64)> = None;
        let mut missing: Option<&str> = None;
        for upgrade in UPGRADES.iter().filter(|upgrade| select(upgrade)) {
            let Some(key) = upgrade.activation.key() else { continue };
            let mut at = self.number(key)?;
            if upgrade.fork == Fork::Petersburg && at.is_none() {
                at = self.number(key_of(Fork::Constantinople))?;
            }
            let Some(at) = at else {
                if !upgrade.activation.is_optional() {
                    missing = missing.or(Some(key));
                }
                continue;
            };
            if let Some(earlier) = missing {
                return Err(GenesisError::ForkMissing { earlier: earlier.to_owned(), later: key.to_owned() });
            }
            if let Some((earlier, earlier_at)) = last.filter(|(_, earlier_at)| *earlier_at > at) {
                return Err(GenesisError::ForkOrder {
                    earlier: earlier.to_owned(),
                    earlier_at,
                    later: key.to_owned(),
                    later_at: at,
                });
            }
            last = Some((key, at));
            set.push((upgrade, at));
        }
        Ok(set)
    }

    /// Returns the rules in which the chain is less strict than the protocol.
    fn relaxations(&self) -> Result<Relaxations, GenesisError> {
        let Some(value) = self.get("relaxations") else { return Ok(Relaxations::default()) };
        let given: RawObject<'_> = number::typed("config.relaxations", value)?;
        const KEYS: [&str; 4] = ["codeSizeLimit", "noTransactionGasCap", "equalTimestamps", "constantZeroBaseFee"];
        given.keys().try_for_each(|key| check_spelling("config.relaxations.", key, KEYS))?;
        let flag = |key: &str| match given.get(key) {
            Some(value) => number::typed(&format!("config.relaxations.{key}"), value),
            None => Ok(false),
        };
        let limit = given.get("codeSizeLimit");
        Ok(Relaxations {
            code_size_limit: limit.map(|value| number::u64("config.relaxations.codeSizeLimit", value)).transpose()?,
            no_transaction_gas_cap: flag("noTransactionGasCap")?,
            equal_timestamps: flag("equalTimestamps")?,
            constant_zero_base_fee: flag("constantZeroBaseFee")?,
        })
    }

    /// Returns the blob parameters of the upgrades since Cancun. For forks they default to mainnet's.
    fn blob_schedule(&self, by_time: &[(&Upgrade, u64)]) -> Result<Vec<BlobEntry>, GenesisError> {
        let given: RawObject<'_> = match self.get("blobSchedule") {
            Some(value) => number::typed("config.blobSchedule", value)?,
            None => RawObject::new(),
        };
        let names = UPGRADES.iter().map(|upgrade| upgrade.name);
        given.keys().try_for_each(|key| check_spelling("config.blobSchedule.", key, names.clone()))?;
        let mut schedule = Vec::new();
        for (upgrade, at) in by_time.iter().filter(|(upgrade, _)| upgrade.fork >= Fork::Cancun) {
            let name = upgrade.name;
            let params = match given.get(name).filter(|value| value.get() != "null") {
                Some(value) => Some(blob_params(name, value)?),
                None if matches!(upgrade.activation, Activation::BlobTime { .. }) => {
                    return Err(GenesisError::BlobScheduleMissing { fork: name.to_owned() });
                }
                None => upgrade.blob_params,
            };
            schedule.extend(params.map(|params| BlobEntry { upgrade: name, params, time: *at }));
        }
        Ok(schedule)
    }
}

fn blob_params(name: &str, value: &RawValue) -> Result<BlobParams, GenesisError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RawBlobParams<'a> {
        #[serde(borrow)]
        target: &'a RawValue,
        #[serde(borrow)]
        max: &'a RawValue,
        #[serde(borrow)]
        base_fee_update_fraction: &'a RawValue,
    }
    let raw: RawBlobParams<'_> = number::typed(&format!("config.blobSchedule.{name}"), value)?;
    let read = |field: &str, value| number::u64(&format!("config.blobSchedule.{name}.{field}"), value);
    let (target, max) = (read("target", raw.target)?, read("max", raw.max)?);
    let fraction = read("baseFeeUpdateFraction", raw.base_fee_update_fraction)?;
    if target == 0 || target > max || max > MAX_BLOBS || fraction == 0 {
        return Err(GenesisError::BlobSchedule { fork: name.to_owned(), target, max, fraction });
    }
    Ok(BlobParams { target, max, base_fee_update_fraction: fraction })
}
