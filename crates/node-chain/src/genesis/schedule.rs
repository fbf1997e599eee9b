//! Checks that a chain is continued under the rules by which its blocks were executed.

use super::{Genesis, GenesisError};
use node_core::block::SealedHeader;
use node_core::protocol::{BlobEntry, BlobParams, ChainSpec, Fork, Relaxations};
use node_types::{BlockNumber, U256};
use std::collections::BTreeMap;
use std::fmt;

/// The difference between a genesis and the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continued {
    /// Whether the genesis should be recorded, because none is recorded or the rules differ.
    pub is_new: bool,
    /// The forks that are scheduled differently than in the recorded genesis, all of them after the head.
    pub changes: Vec<ForkChange>,
}

/// Why a chain cannot be continued with a genesis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContinueError {
    #[error("the genesis that is recorded in the folder is damaged")]
    Record(#[source] GenesisError),
    #[error("the chain has the id {recorded}, expected {given}")]
    ChainId { recorded: u64, given: u64 },
    /// Blocks that were executed under weaker rules cannot be executed again under stricter ones.
    #[error("the chain was produced with weaker rules than those of the given genesis, which it still needs: {0}")]
    Relaxations(Relaxations),
    #[error("the fork schedules differ at or below the head, block {head} at time {time}: {change}")]
    Schedule {
        head: BlockNumber,
        /// The timestamp of the head in Unix seconds.
        time: u64,
        change: Box<ForkChange>,
    },
    /// A side block, which may become canonical without being executed again, was executed under different rules.
    #[error(
        "the fork schedules differ at or below the side block {number} at time {time}: {change}; to use the new schedule, \
         import the chain into another folder"
    )]
    SideBlock {
        number: BlockNumber,
        /// The timestamp of the block in Unix seconds.
        time: u64,
        change: Box<ForkChange>,
    },
}

/// A fork that two schedules activate at different points, or with different blob parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkChange {
    /// The fork, or the parameters that change.
    pub fork: String,
    /// Where the recorded genesis activates it; `None` if it does not.
    pub recorded: Option<ActivationPoint>,
    /// Where the given genesis activates it; `None` if it does not.
    pub given: Option<ActivationPoint>,
    /// The blob parameters in the recorded and in the given genesis, if this is an entry of the blob schedule.
    pub blob_params: [Option<BlobParams>; 2],
}

impl ForkChange {
    /// Returns whether the rules for `block` differ.
    pub fn concerns(&self, block: &SealedHeader) -> bool {
        self.recorded.into_iter().chain(self.given).any(|point| point.is_reached(block))
    }
}

impl fmt::Display for ForkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let described = |point: &Option<ActivationPoint>, params: &Option<BlobParams>| match (point, params) {
            (None, _) => "is never active".to_owned(),
            (Some(point), None) => format!("is active from {point}"),
            (Some(point), Some(params)) => {
                let BlobParams { target, max, base_fee_update_fraction } = params;
                format!("is active from {point} with {target}/{max}/{base_fee_update_fraction}")
            }
        };
        let Self { fork, recorded, given, blob_params: [old, new] } = self;
        let (recorded, given) = (described(recorded, old), described(given, new));
        write!(f, "{fork} {recorded} in the folder, {given} in the given genesis")
    }
}

/// Where a fork becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivationPoint {
    Block(BlockNumber),
    /// After a block with this total difficulty.
    TotalDifficulty(U256),
    /// At a timestamp in Unix seconds.
    Time(u64),
}

impl fmt::Display for ActivationPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(number) => write!(f, "block {number}"),
            Self::TotalDifficulty(difficulty) => write!(f, "total difficulty {difficulty}"),
            Self::Time(time) => write!(f, "time {time}"),
        }
    }
}

impl ActivationPoint {
    fn is_reached(self, block: &SealedHeader) -> bool {
        match self {
            Self::Block(number) => number <= block.header.number,
            Self::TotalDifficulty(difficulty) => difficulty <= block.total_difficulty,
            Self::Time(time) => time <= block.header.timestamp,
        }
    }
}

impl Genesis {
    /// Checks whether a chain with this genesis block and the head `head` can be continued under this genesis's fork
    /// schedule, as far as its canonical blocks are concerned. `recorded` is the genesis file under which the chain was
    /// executed so far, or `None` if it was not recorded.
    ///
    /// # Errors
    /// [`ContinueError::Schedule`] if the two schedules differ at or below the head, [`ContinueError::ChainId`] if
    /// the chain ids differ, and [`ContinueError::Record`] if the recorded genesis cannot be parsed.
    pub fn continue_from(&self, recorded: Option<&[u8]>, head: &SealedHeader) -> Result<Continued, ContinueError> {
        let Some(recorded) = recorded else {
            return Ok(Continued { is_new: true, changes: Vec::new() });
        };
        let recorded = Self::parse(recorded).map_err(ContinueError::Record)?;
        if recorded.spec.chain_id != self.spec.chain_id {
            return Err(ContinueError::ChainId { recorded: recorded.spec.chain_id, given: self.spec.chain_id });
        }
        let weaker = recorded.spec.relaxations;
        if weaker.union(self.spec.relaxations) != self.spec.relaxations {
            return Err(ContinueError::Relaxations(weaker));
        }
        let changes = changes(&recorded.spec, &self.spec);
        match changes.iter().find(|change| change.concerns(head)) {
            Some(change) => Err(ContinueError::Schedule {
                head: head.header.number,
                time: head.header.timestamp,
                change: Box::new(change.clone()),
            }),
            None => Ok(Continued { is_new: recorded.spec != self.spec, changes }),
        }
    }
}

fn changes(recorded: &ChainSpec, given: &ChainSpec) -> Vec<ForkChange> {
    let blobs = blob_changes(recorded, given);
    let [recorded, given] = [recorded, given].map(points);
    let mut changes = Vec::new();
    for fork in recorded.keys().chain(given.keys().filter(|fork| !recorded.contains_key(*fork))) {
        let [recorded, given] = [&recorded, &given].map(|points| points.get(fork).copied());
        if recorded != given {
            changes.push(ForkChange { fork: fork.clone(), recorded, given, blob_params: [None; 2] });
        }
    }
    changes.extend(blobs);
    changes.sort_by_key(|change| change.recorded.into_iter().chain(change.given).min());
    changes
}

/// Returns the entries of the blob schedule that were moved, changed, removed or added.
///
/// Earlier versions could record the parameters of an upgrade under the name of another one. Therefore entries with the
/// same parameters are the same entry even if their names differ.
fn blob_changes(recorded: &ChainSpec, given: &ChainSpec) -> Vec<ForkChange> {
    let (mut recorded, mut given) = (recorded.blob_schedule.clone(), given.blob_schedule.clone());
    let mut pairs = Vec::new();
    let is_same: [fn(&BlobEntry, &BlobEntry) -> bool; 4] = [
        |old, new| (old.params, old.time) == (new.params, new.time),
        |old, new| (old.upgrade, old.params) == (new.upgrade, new.params),
        |old, new| old.params == new.params,
        |old, new| old.upgrade == new.upgrade,
    ];
    for is_same in is_same {
        recorded.retain(|old| {
            let new = given.iter().position(|new| is_same(old, new)).map(|at| given.remove(at));
            pairs.extend(new.map(|new| (Some(*old), Some(new))));
            new.is_none()
        });
    }
    pairs.extend(recorded.into_iter().map(|old| (Some(old), None)));
    pairs.extend(given.into_iter().map(|new| (None, Some(new))));
    let changed = pairs.into_iter().filter_map(|(old, new)| {
        let entry = new.or(old)?;
        let [recorded, given] = [old, new].map(|entry| entry.map(|entry| ActivationPoint::Time(entry.time)));
        let blob_params = [old, new].map(|entry| entry.map(|entry| entry.params));
        let is_changed = recorded != given || blob_params[0] != blob_params[1];
        let fork = format!("the blob schedule entry {}", entry.upgrade);
        is_changed.then_some(ForkChange { fork, recorded, given, blob_params })
    });
    changed.collect()
}

/// Returns everything that a chain schedules except for blob parameters, by name, with its activation point.
fn points(spec: &ChainSpec) -> BTreeMap<String, ActivationPoint> {
    let mut points = BTreeMap::new();
    for (forks, point) in [
        (&spec.block_forks, ActivationPoint::Block as fn(u64) -> ActivationPoint),
        (&spec.time_forks, ActivationPoint::Time),
    ] {
        for (fork, at) in forks {
            points.insert(fork.upgrade().name.to_owned(), point(*at));
        }
    }
    if let Some(dao) = spec.dao_fork {
        let name = if dao.supported { "the DAO fork" } else { "the refusal of the DAO fork" };
        points.insert(name.to_owned(), ActivationPoint::Block(dao.block));
    }
    if let Some(difficulty) = spec.terminal_total_difficulty {
        points.insert(Fork::Paris.upgrade().name.to_owned(), ActivationPoint::TotalDifficulty(difficulty));
    }
    if let Some(contract) = spec.deposit_contract
        && let Some(time) = points.get(Fork::Prague.upgrade().name).copied()
    {
        points.insert(format!("the deposit contract {contract:#x}"), time);
    }
    points
}
