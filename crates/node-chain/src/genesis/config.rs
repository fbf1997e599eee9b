//! The property `config`: which rules are in force when.

use super::{GenesisError, number};
use node_core::forks::{BlobParams, ChainSpec, Fork};
use node_types::{Address, U256};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The properties of an object, unread.
pub(super) type RawObject<'a> = BTreeMap<String, &'a RawValue>;

/// Forks by height, in the order in which they build on each other, and whether a chain may leave one out.
const BLOCK_FORKS: [(&str, Fork, bool); 12] = [
    ("homesteadBlock", Fork::Homestead, false),
    ("eip150Block", Fork::TangerineWhistle, false),
    ("eip158Block", Fork::SpuriousDragon, false),
    ("byzantiumBlock", Fork::Byzantium, false),
    ("constantinopleBlock", Fork::Constantinople, false),
    ("petersburgBlock", Fork::Petersburg, false),
    ("istanbulBlock", Fork::Istanbul, false),
    ("muirGlacierBlock", Fork::MuirGlacier, true),
    ("berlinBlock", Fork::Berlin, false),
    ("londonBlock", Fork::London, false),
    ("arrowGlacierBlock", Fork::ArrowGlacier, true),
    ("grayGlacierBlock", Fork::GrayGlacier, true),
];

/// Forks by time, in the order in which they build on each other.
const TIME_FORKS: [(&str, Fork); 4] = [
    ("shanghaiTime", Fork::Shanghai),
    ("cancunTime", Fork::Cancun),
    ("pragueTime", Fork::Prague),
    ("osakaTime", Fork::Osaka),
];

/// Changes of blob parameters, with the names of their parameters in `blobSchedule`, in the order of activation.
const BLOB_CHANGES: [(&str, &str); 8] = [
    ("cancunTime", "cancun"),
    ("pragueTime", "prague"),
    ("osakaTime", "osaka"),
    ("bpo1Time", "bpo1"),
    ("bpo2Time", "bpo2"),
    ("bpo3Time", "bpo3"),
    ("bpo4Time", "bpo4"),
    ("bpo5Time", "bpo5"),
];

/// Keys that end like a fork's, and those of forks that are read one by one.
const OTHER_FORKS: [&str; 3] = ["eip155Block", "daoForkBlock", "mergeNetsplitBlock"];

/// Rules of sealing that this crate does not check and that change what a valid header is.
const FOREIGN_CONSENSUS: [&str; 8] = ["clique", "parlia", "bor", "optimism", "aura", "ibft2", "qbft", "istanbul"];

/// Most blobs a block, so that blob gas never overflows.
const MAX_BLOBS: u64 = 1 << 32;

/// Reads `config`.
pub(super) fn parse(config: &RawObject<'_>) -> Result<ChainSpec, GenesisError> {
    let config = Config(config);
    let passed = config.flag("terminalTotalDifficultyPassed")?.unwrap_or(false);
    let terminal_total_difficulty = match config.get("terminalTotalDifficulty") {
        Some(value) => Some(number::u256("config.terminalTotalDifficulty", value)?),
        None => passed.then(U256::zero),
    };
    config.refuse_unknown_rules(terminal_total_difficulty)?;

    let block_forks = config.block_forks()?;
    let time_forks = config.time_forks()?;
    if let Some((fork, _)) = time_forks.first() {
        let later = TIME_FORKS.iter().find(|(_, known)| known == fork).map_or("", |(key, _)| key);
        let missing = |earlier: &str| GenesisError::ForkMissing { earlier: earlier.into(), later: later.into() };
        if !block_forks.iter().any(|(fork, _)| *fork == Fork::London) {
            return Err(missing("londonBlock"));
        }
        if terminal_total_difficulty.is_none() {
            return Err(missing("terminalTotalDifficulty"));
        }
    }
    // A chain against the fork differs from one that has none only in extra data that it would refuse.
    let dao_fork = match config.flag("daoForkSupport")? {
        Some(true) => config.number("daoForkBlock")?,
        _ => None,
    };
    let deposit_contract = match config.get("depositContractAddress") {
        Some(value) => {
            const FIELD: &str = "config.depositContractAddress";
            number::address(FIELD, &number::string(FIELD, value)?)?
        }
        None => Address::zero(),
    };
    Ok(ChainSpec {
        // Networks without replay protection leave it out.
        chain_id: config.number("chainId")?.unwrap_or(0),
        block_forks,
        dao_fork,
        terminal_total_difficulty,
        time_forks,
        blob_schedule: config.blob_schedule()?,
        silent_forks: config.silent_forks(dao_fork)?,
        deposit_contract,
    })
}

struct Config<'a>(&'a RawObject<'a>);

impl Config<'_> {
    /// A property that is there and not null.
    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.get(key).copied().filter(|value| value.get() != "null")
    }

    fn number(&self, key: &str) -> Result<Option<u64>, GenesisError> {
        self.get(key).map(|value| number::u64(&format!("config.{key}"), value)).transpose()
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, GenesisError> {
        self.get(key).map(|value| number::typed(&format!("config.{key}"), value)).transpose()
    }

    /// Whatever names a fork or a way of sealing has to be known; the rest may say what it likes.
    fn refuse_unknown_rules(&self, terminal_total_difficulty: Option<U256>) -> Result<(), GenesisError> {
        let known = |key: &str| {
            OTHER_FORKS.contains(&key)
                || BLOCK_FORKS.iter().any(|(known, ..)| *known == key)
                || TIME_FORKS.iter().any(|(known, _)| *known == key)
                || BLOB_CHANGES.iter().any(|(known, _)| *known == key)
        };
        for key in self.0.keys().filter(|key| self.get(key).is_some()) {
            let names_fork = key.ends_with("Block") || key.ends_with("Time");
            let enabled = key == "enableVerkleAtGenesis" && self.flag(key)?.unwrap_or(false);
            if enabled || names_fork && !known(key) {
                return Err(GenesisError::UnknownFork { key: key.clone() });
            }
            // Where the chain is merged from the start, nothing was ever sealed by the older way.
            let foreign = FOREIGN_CONSENSUS.contains(&key.as_str());
            if foreign && !terminal_total_difficulty.is_some_and(|difficulty| difficulty.is_zero()) {
                return Err(GenesisError::UnsupportedConsensus { key: key.clone() });
            }
        }
        Ok(())
    }

    /// Heights of forks that change no rule of this chain.
    fn silent_forks(&self, dao_fork: Option<u64>) -> Result<Vec<u64>, GenesisError> {
        let dao = if dao_fork.is_none() { self.number("daoForkBlock")? } else { None };
        Ok(dao.into_iter().chain(self.number("mergeNetsplitBlock")?).collect())
    }

    fn block_forks(&self) -> Result<Vec<(Fork, u64)>, GenesisError> {
        let (eip155, eip158) = (self.number("eip155Block")?, self.number("eip158Block")?);
        if eip155 != eip158 {
            return Err(GenesisError::SplitSpuriousDragon { eip155, eip158 });
        }
        let mut steps = Vec::new();
        for (key, fork, optional) in BLOCK_FORKS {
            let mut at = self.number(key)?;
            if fork == Fork::Petersburg && at.is_none() {
                at = self.number("constantinopleBlock")?;
            }
            steps.push((key, at, optional, fork));
        }
        steps_in_order(&steps)
    }

    fn time_forks(&self) -> Result<Vec<(Fork, u64)>, GenesisError> {
        let mut steps = Vec::new();
        for (key, fork) in TIME_FORKS {
            steps.push((key, self.number(key)?, false, fork));
        }
        steps_in_order(&steps)
    }

    fn blob_schedule(&self) -> Result<Vec<(BlobParams, u64)>, GenesisError> {
        let mut steps = Vec::new();
        for (key, name) in BLOB_CHANGES {
            steps.push((key, self.number(key)?, name.starts_with("bpo"), name));
        }
        let given: RawObject<'_> = match self.get("blobSchedule") {
            Some(value) => number::typed("config.blobSchedule", value)?,
            None => RawObject::new(),
        };
        let mut schedule: Vec<(BlobParams, u64)> = Vec::new();
        for (name, at) in steps_in_order(&steps)? {
            let params = match (given.get(name).filter(|value| value.get() != "null"), name) {
                (Some(value), _) => blob_params(name, value)?,
                (None, "cancun") => BlobParams::CANCUN,
                (None, "prague") => BlobParams::PRAGUE,
                // Osaka leaves the parameters as they are.
                (None, "osaka") => continue,
                (None, _) => return Err(GenesisError::BlobScheduleMissing { fork: name.to_owned() }),
            };
            schedule.push((params, at));
        }
        Ok(schedule)
    }
}

/// Checks that every step that is set comes after all before it, and that none is missing in between.
fn steps_in_order<T: Copy>(steps: &[(&str, Option<u64>, bool, T)]) -> Result<Vec<(T, u64)>, GenesisError> {
    let mut set: Vec<(T, u64)> = Vec::new();
    let mut last: Option<(&str, u64)> = None;
    let mut missing: Option<&str> = None;
    for (key, at, optional, value) in steps {
        let Some(at) = *at else {
            if !optional {
                missing = missing.or(Some(key));
            }
            continue;
        };
        if let Some(earlier) = missing {
            return Err(GenesisError::ForkMissing { earlier: earlier.to_owned(), later: (*key).to_owned() });
        }
        if let Some((earlier, earlier_at)) = last.filter(|(_, earlier_at)| *earlier_at > at) {
            return Err(GenesisError::ForkOrder {
                earlier: earlier.to_owned(),
                earlier_at,
                later: (*key).to_owned(),
                later_at: at,
            });
        }
        last = Some((key, at));
        set.push((*value, at));
    }
    Ok(set)
}

fn blob_params(name: &str, value: &RawValue) -> Result<BlobParams, GenesisError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry<'a> {
        #[serde(borrow)]
        target: &'a RawValue,
        #[serde(borrow)]
        max: &'a RawValue,
        #[serde(borrow)]
        base_fee_update_fraction: &'a RawValue,
    }
    let entry: Entry<'_> = number::typed(&format!("config.blobSchedule.{name}"), value)?;
    let read = |field: &str, value| number::u64(&format!("config.blobSchedule.{name}.{field}"), value);
    let (target, max) = (read("target", entry.target)?, read("max", entry.max)?);
    let fraction = read("baseFeeUpdateFraction", entry.base_fee_update_fraction)?;
    if target == 0 || target > max || max > MAX_BLOBS || fraction == 0 {
        return Err(GenesisError::BlobSchedule { fork: name.to_owned(), target, max, fraction });
    }
    Ok(BlobParams { target, max, base_fee_update_fraction: fraction })
}
