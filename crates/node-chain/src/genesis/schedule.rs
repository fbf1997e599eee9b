//! Checks that a chain is continued under the rules by which its blocks were executed.

use super::{Genesis, GenesisError};
use node_core::block::SealedHeader;
use node_core::forks::ChainSpec;
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
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ContinueError {
    /// The recorded genesis cannot be read.
    #[error("the genesis that is recorded in the folder is damaged")]
    Record(#[source] GenesisError),
    /// The chain has a different id.
    #[error("the chain has the id {recorded}, expected {given}")]
    ChainId { recorded: u64, given: u64 },
    /// Existing blocks were executed under different rules.
    #[error("the fork schedules differ at or below the head, block {head} at time {time}: {change}")]
    Schedule {
        head: BlockNumber,
        /// The timestamp of the head in Unix seconds.
        time: u64,
        change: ForkChange,
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
        change: ForkChange,
    },
}

/// A fork that two schedules activate at different points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkChange {
    /// The fork, or the parameters that change.
    pub fork: String,
    /// Where the recorded genesis activates it; `None` if it does not.
    pub recorded: Option<ActivationPoint>,
    /// Where the given genesis activates it; `None` if it does not.
    pub given: Option<ActivationPoint>,
}

impl ForkChange {
    /// Returns whether the rules for `block` differ.
    pub fn concerns(&self, block: &SealedHeader) -> bool {
        self.recorded.into_iter().chain(self.given).any(|point| point.is_reached(block))
    }
}

impl fmt::Display for ForkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = |point: &Option<ActivationPoint>| {
            point.map_or("is never active".to_owned(), |point| format!("is active from {point}"))
        };
        let Self { fork, recorded, given } = self;
        write!(f, "{fork} {} in the folder, {} in the given genesis", point(recorded), point(given))
    }
}

/// Where a fork becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActivationPoint {
    /// At a block number.
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
        let changes = changes(&recorded.spec, &self.spec);
        match changes.iter().find(|change| change.concerns(head)) {
            Some(change) => Err(ContinueError::Schedule {
                head: head.header.number,
                time: head.header.timestamp,
                change: change.clone(),
            }),
            None => Ok(Continued { is_new: recorded.spec != self.spec, changes }),
        }
    }
}

fn changes(recorded: &ChainSpec, given: &ChainSpec) -> Vec<ForkChange> {
    let [recorded, given] = [recorded, given].map(points);
    let mut changes = Vec::new();
    for fork in recorded.keys().chain(given.keys().filter(|fork| !recorded.contains_key(*fork))) {
        let [recorded, given] = [&recorded, &given].map(|points| points.get(fork).copied());
        if recorded != given {
            changes.push(ForkChange { fork: fork.clone(), recorded, given });
        }
    }
    changes.sort_by_key(|change| change.recorded.into_iter().chain(change.given).min());
    changes
}

/// Returns everything that a chain schedules, by name, with its activation point.
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
        points.insert("paris".to_owned(), ActivationPoint::TotalDifficulty(difficulty));
    }
    for (params, time) in &spec.blob_schedule {
        let (target, max, fraction) = (params.target, params.max, params.base_fee_update_fraction);
        let name = format!("the blob schedule entry {target}/{max}/{fraction} of time {time}");
        points.insert(name, ActivationPoint::Time(*time));
    }
    if let Some(contract) = spec.deposit_contract
        && let Some(time) = points.get("prague").copied()
    {
        points.insert(format!("the deposit contract {contract:#x}"), time);
    }
    points
}
