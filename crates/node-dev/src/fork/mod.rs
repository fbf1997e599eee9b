//! Forks: development chains that continue another chain.

mod control;
mod error;
mod point;
mod record;
mod stated;
mod system;
mod url;

pub use error::OpenForkError;
pub use node_core::producer::ForkBlock;
pub use point::ForkPoint;
pub use url::{InvalidForkUrl, UrlHost};

use crate::Hardfork;
use node_chain::Genesis;
use node_chain::genesis::public_network;
use node_core::backend::{BackendError, BaseRead};
use node_core::block::ExecutedBlock;
use node_core::context::Context;
use node_core::producer::Replay;
use node_core::protocol::{ChainSpec, Relaxations};
use node_core::sources::Sources;
use node_evm::Secp256k1Recovery;
use node_fork::{Base, Contents, ForkError, ForkOptions};
use node_store::BASE_FOLDER;
use node_store::files::{DiskFolder, Folder, MemoryFolder, ReadOnlyFolder};
use node_types::{Address, H256};
use node_upstream::{Upstream, UpstreamError, UpstreamOptions};
use point::{Before, Start};
use record::Record;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use url::ForkUrl;

/// Default time limit of requests to a fork. It is longer than that of other chains, because what a request needs may
/// have to be read from the other chain first, in as many round trips as its reads depend on each other.
pub const FORK_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where a fork is, and how the other chain is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkSource {
    /// URLs of servers of the other chain, which are asked in turn. Each may end with `@` and the block that the fork begins
    /// with. A folder with a fork needs none: what was fetched before is there, and everything else is an error.
    pub urls: Vec<String>,
    /// Whether nothing is sent to the servers.
    pub offline: bool,
    /// The block that the fork begins with. `None` for that of the URLs, the newest one, or that of the folder.
    pub point: Option<ForkPoint>,
    /// How the servers are used.
    pub upstream: UpstreamOptions,
    /// How much is kept.
    pub limits: ForkOptions,
    /// Accounts that will be read first.
    pub accounts: Vec<Address>,
    /// The chain id of the other chain. `None` if it is not known.
    pub network: Option<u64>,
    /// The chain id of the fork. `None` for that of the other chain.
    pub chain_id: Option<u64>,
    /// The rules. `None` for those of the network if it is a public one, otherwise for those that a server states
    /// (`eth_config`), or else for the newest ones from its first block on.
    pub rules: Option<ForkRules>,
    /// Rules in which the fork is less strict than the protocol, besides those of the folder.
    pub relaxations: Relaxations,
}

/// The rules of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForkRules {
    /// Those of this hardfork, from the first block of the other chain on.
    Hardfork(Hardfork),
    /// Those of a genesis file.
    Spec(Box<ChainSpec>),
}

/// The beginning of a fork.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The rules of the chain.
    pub spec: ChainSpec,
    /// The state that it begins with.
    pub base: Base,
    /// Its first block, which is one of the other chain.
    pub first: ExecutedBlock,
    /// The chain id of the other chain.
    pub network: u64,
    is_network_given: bool,
    /// What its second block repeats.
    pub(crate) replay: Option<Replay>,
    /// How its servers are used.
    options: UpstreamOptions,
    /// Accounts that are read first.
    accounts: Vec<Address>,
}

impl Fork {
    /// Returns whether there is a fork in a data folder.
    pub fn exists(data_folder: &Path) -> bool {
        Record::exists(&data_folder.join(BASE_FOLDER))
    }

    /// Opens the beginning of a fork. `data_folder` is the folder of the chain; `None` for a chain in memory. What was fetched
    /// before is read from there; the rest, from the servers.
    ///
    /// # Errors
    /// [`OpenForkError`].
    pub fn open(data_folder: Option<&Path>, source: &ForkSource, context: &Context) -> Result<Self, OpenForkError> {
        let urls = source.urls.iter().map(|url| url.parse()).collect::<Result<Vec<ForkUrl>, _>>()?;
        let point = ForkPoint::only(source.point.into_iter().chain(urls.iter().filter_map(|url| url.point)))?;
        let urls: Vec<_> = urls.into_iter().map(|url| url.url).collect();
        let upstream = match urls.is_empty() || source.offline {
            true => None,
            false => Some(Upstream::new(&urls, source.upstream.clone())?),
        };
        let folder = data_folder.map(|folder| folder.join(BASE_FOLDER));
        let recorded = folder.as_deref().map(Record::read).transpose()?.flatten();
        let record = match (&recorded, &upstream) {
            (Some(recorded), _) => continued(recorded, source, point)?,
            (None, Some(upstream)) => begun(upstream, source, point.unwrap_or_default(), context)?,
            (None, None) if folder.is_none() => return Err(OpenForkError::NoFolder),
            (None, None) => return Err(OpenForkError::NoFork),
        };
        if let (Some(_), Some(upstream)) = (&recorded, &upstream) {
            check_in_background(upstream.clone(), record.start.block.hash());
        }
        warn_of_ids(&record, source);
        let contents: Arc<dyn Folder> = match &folder {
            Some(path) => Arc::new(DiskFolder::open(path)?),
            None => Arc::new(MemoryFolder::default()),
        };
        let limits = ForkOptions { trusts: record.trusts, ..source.limits.clone() };
        let base =
            Base::open(contents, upstream, record.start.block.clone(), limits).map_err(OpenForkError::Contents)?;
        // The beneficiary is that of the next blocks, if no other is chosen.
        let accounts = [&source.accounts[..], &[record.start.block.header().beneficiary]].concat();
        let reads = reads_of(&accounts);
        // At the same time.
        let (first, replay, fetched) = thread::scope(|scope| {
            let fetched = scope.spawn(|| match &recorded {
                None => system::fetch_with(&base, reads),
                // A folder already has them.
                Some(_) => Ok(()),
            });
            let replay = scope.spawn(|| record.start.before.as_ref().map(|before| replay(&base, before)).transpose());
            (node_fork::first_block(&base, Arc::new(Secp256k1Recovery)), replay.join(), fetched.join())
        });
        let first = first?;
        let replay = replay.map_err(|_| OpenForkError::Panicked)??;
        fetched.map_err(|_| OpenForkError::Panicked)?.map_err(without_proofs)?;
        if let Some(folder) = folder.filter(|_| recorded.as_ref() != Some(&record)) {
            // Without the first block, the folder could not be opened offline.
            base.contents().sync().map_err(OpenForkError::Contents)?;
            record.write(&folder)?;
        }
        let (network, options) = (record.network, source.upstream.clone());
        let is_network_given = source.network.is_some();
        Ok(Self { spec: record.spec, base, first, network, is_network_given, replay, options, accounts })
    }

    /// Returns the state that the fork in a data folder begins with, without a server: what was fetched before. Returns `None`
    /// if there is no fork in the folder. Another process may have opened the fork, and fetch more in the meantime.
    ///
    /// # Errors
    /// [`OpenForkError`].
    pub fn known_base(data_folder: &Path) -> Result<Option<Base>, OpenForkError> {
        let folder = data_folder.join(BASE_FOLDER);
        let Some(Record { start: Start { block, .. }, trusts, .. }) = Record::read(&folder)? else { return Ok(None) };
        let options = ForkOptions { trusts, ..ForkOptions::default() };
        let contents =
            ReadOnlyFolder::open(&folder).and_then(|folder| Contents::open_read_only(Arc::new(folder), &options));
        let contents = contents.map_err(OpenForkError::Contents)?;
        Ok(Some(Base::new(Arc::new(contents), None, block, options)))
    }

    /// Copies what the fork in a data folder begins with, and what was fetched of it, to another data folder, durably. Does
    /// nothing if there is no fork. Another process may have opened the fork: what it fetched before the call is copied.
    ///
    /// # Errors
    /// [`OpenForkError`].
    pub fn copy(data_folder: &Path, dest: &Path) -> Result<(), OpenForkError> {
        let [from, to] = [data_folder, dest].map(|folder| folder.join(BASE_FOLDER));
        let Some(record) = Record::read(&from)? else { return Ok(()) };
        let from = ReadOnlyFolder::open(&from).map_err(OpenForkError::Contents)?;
        Contents::copy(&from, &DiskFolder::open(&to)?).map_err(OpenForkError::Contents)?;
        // Last, because it makes the folder that of a fork.
        record.write(&to)
    }

    /// Returns the rules with the header of the first block, like a genesis without accounts.
    pub fn genesis(&self) -> Genesis {
        let header = self.first.header.header.clone();
        Genesis { spec: self.spec.clone(), state_root: Some(header.state_root), header, alloc: BTreeMap::new() }
    }
}

/// Returns the record of the fork in a folder, which is as `source` says.
fn continued(recorded: &Record, source: &ForkSource, point: Option<ForkPoint>) -> Result<Record, OpenForkError> {
    let Start { block, before } = &recorded.start;
    if let Some(wanted) = point.filter(|point| point.is(block, before.as_ref()) == Some(false)) {
        return Err(OpenForkError::OtherBlock { found: block.header().number, hash: block.hash(), wanted });
    }
    if source.limits.trusts && !recorded.trusts {
        return Err(OpenForkError::Verified);
    }
    let relaxations = recorded.spec.relaxations.union(source.relaxations);
    let spec = ChainSpec { relaxations, ..recorded.spec.clone() };
    let chosen = |rules: &ForkRules| rules.spec(spec.chain_id, relaxations) == spec;
    if source.chain_id.is_some_and(|id| id != spec.chain_id) || !source.rules.as_ref().is_none_or(chosen) {
        return Err(OpenForkError::OtherRules);
    }
    Ok(Record { spec, ..recorded.clone() })
}

/// Finds the block with which a new fork begins, and its rules.
fn begun(
    upstream: &Upstream,
    source: &ForkSource,
    point: ForkPoint,
    context: &Context,
) -> Result<Record, OpenForkError> {
    // At the same time.
    let is_known = source.rules.is_some() || source.network.and_then(public_network).is_some();
    let (network, start, stated) = thread::scope(|scope| {
        let stated = scope.spawn(|| if is_known { None } else { stated::rules(upstream, context) });
        let network = scope.spawn(|| source.network.map_or_else(|| upstream.chain_id(context), Ok));
        let start = point.find(upstream, context);
        (network.join(), start, stated.join())
    });
    let (network, start) = (network.map_err(|_| OpenForkError::Panicked)??, start?);
    let chain_id = source.chain_id.unwrap_or(network);
    let relaxations = source.relaxations;
    let spec = match &source.rules {
        Some(rules) => rules.spec(chain_id, relaxations),
        None => match public_network(network) {
            Some((_, spec)) => ChainSpec { chain_id, relaxations, ..spec },
            None => match stated.map_err(|_| OpenForkError::Panicked)? {
                Some(spec) => ChainSpec { chain_id, relaxations, ..spec },
                None => ForkRules::Hardfork(Hardfork::default()).spec(chain_id, relaxations),
            },
        },
    };
    Ok(Record { network, start, spec, trusts: source.limits.trusts })
}

/// Warns if no server has the block that a fork in a folder begins with. The fork does not wait for that: it can be used as it
/// is in the folder, and a server with another chain cannot prove anything.
fn check_in_background(upstream: Upstream, first: H256) {
    let check = move || {
        let found = upstream.header(&Context::unbounded().with_timeout(FORK_CALL_TIMEOUT), first.into());
        // If none can be reached, the first read that needs one says so.
        if let Err(error @ UpstreamError::NotFound { .. }) = found {
            tracing::warn!(
                error = %Sources(&error),
                "no server has the block that the fork in the folder begins with (`fork-url`): what was not read before cannot \
                 be read"
            );
        }
    };
    if let Err(error) = thread::Builder::new().name("fork-check".to_owned()).spawn(check) {
        tracing::warn!(%error, "it is not checked whether the servers have the block that the fork begins with");
    }
}

/// Warns if the chain ids differ that the fork, its rules and the other chain have.
fn warn_of_ids(record: &Record, source: &ForkSource) {
    let (chain_id, network) = (record.spec.chain_id, record.network);
    if let Some(ForkRules::Spec(rules)) = source.rules.as_ref().filter(|_| source.chain_id.is_none())
        && rules.chain_id != chain_id
    {
        tracing::warn!(
            genesis = rules.chain_id,
            fork = chain_id,
            "the genesis file is that of a chain with another id than the fork has (`chain-id`), so its rules may be others"
        );
    }
    if chain_id != network {
        tracing::warn!(
            fork = chain_id,
            other = network,
            "the fork has another chain id than the chain that it continues: transactions that were signed for one of them are \
             not valid on the other"
        );
    }
}

/// Returns the reads of accounts without slots.
fn reads_of(accounts: &[Address]) -> Vec<BaseRead> {
    accounts.iter().map(|address| BaseRead { address: *address, slots: Vec::new() }).collect()
}

/// Returns why the first accounts could not be read.
fn without_proofs(error: BackendError) -> OpenForkError {
    let (BackendError::Upstream(source) | BackendError::Unobtainable(source)) = &error else { return error.into() };
    match source.downcast_ref() {
        Some(ForkError::Upstream(UpstreamError::Refused { .. }) | ForkError::Gone { .. }) => {
            OpenForkError::NoProofs(error)
        }
        _ => error.into(),
    }
}

/// Reads the block whose first transactions are executed again.
fn replay(base: &Base, before: &Before) -> Result<Replay, OpenForkError> {
    let block = node_fork::first_block(&base.at(before.block.clone()), Arc::new(Secp256k1Recovery))?;
    let mut transactions = block.body.transactions.iter();
    // The block of a transaction is the word of a server.
    let count = transactions.position(|found| found.hash == before.transaction);
    let count = count.ok_or(OpenForkError::NotMined(before.transaction))?;
    Ok(Replay { block, count })
}

impl ForkRules {
    fn spec(&self, chain_id: u64, relaxations: Relaxations) -> ChainSpec {
        let spec = match self {
            Self::Hardfork(hardfork) => hardfork.spec(),
            Self::Spec(spec) => (**spec).clone(),
        };
        ChainSpec { chain_id, relaxations, ..spec }
    }
}
