//! The active fork rules, and which data the node stores.

use super::{Node, NodeError};
use crate::backend::BackendError;
use crate::block::{BlockRef, SealedHeader};
use crate::context::Context;
use crate::executor::NamedContract;
use crate::protocol::BlobParams;
use crate::protocol::fork_id::{self, fork_id};
use node_types::BlockNumber;

/// The current, the next and the last scheduled fork rules (EIP-7910).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkConfigs {
    /// Rules of the head.
    pub current: ForkConfig,
    /// Rules of the next scheduled fork; `None` if no fork is scheduled.
    pub next: Option<ForkConfig>,
    /// Rules of the last scheduled fork; `None` if no fork is scheduled.
    pub last: Option<ForkConfig>,
}

/// The rules of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkConfig {
    /// Unix seconds; `None` for rules that do not activate by timestamp.
    pub activation_time: Option<u64>,
    /// Blob parameters; `None` before Cancun.
    pub blob_params: Option<BlobParams>,
    pub chain_id: u64,
    /// Identifier (EIP-6122).
    pub fork_id: [u8; 4],
    pub precompiles: Vec<NamedContract>,
    /// System contracts that blocks call.
    pub system_contracts: Vec<NamedContract>,
}

/// The head, and the earliest block whose state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The newest mined block.
    pub head: BlockRef,
    /// The first block whose state is kept, with its proofs. Blocks, transactions, receipts and logs are always kept.
    pub earliest_state: BlockNumber,
}

pub(super) fn fork_configs(node: &Node, context: &Context) -> Result<ForkConfigs, NodeError> {
    let snapshot = node.snapshot(context)?;
    let head = snapshot.header(snapshot.latest())?;
    let genesis = snapshot.view.header(0.into())?.ok_or(BackendError::UnknownBlock(0))?;
    let now = head.header.timestamp;
    let begun = fork_id::times(&node.spec).filter(|at| *at <= now).max();
    let coming = || fork_id::times(&node.spec).filter(|at| *at > now);
    let merged = head.header.difficulty.is_zero();
    // Forks that activate by timestamp come after the merge, and those that activate by number before it.
    let at = |time: u64| node.fork_config(&genesis, BlockNumber::MAX, time, true);
    Ok(ForkConfigs {
        current: ForkConfig {
            activation_time: begun.filter(|_| merged),
            ..node.fork_config(&genesis, head.header.number, now, merged)
        },
        next: coming().min().map(at),
        last: coming().max().map(at),
    })
}

pub(super) fn capabilities(node: &Node, context: &Context) -> Result<Capabilities, NodeError> {
    let snapshot = node.snapshot(context)?;
    Ok(Capabilities { head: snapshot.mined_head()?, earliest_state: snapshot.view.earliest_state() })
}

impl Node {
    fn fork_config(&self, genesis: &SealedHeader, number: BlockNumber, time: u64, merged: bool) -> ForkConfig {
        let contracts = self.executor.contracts(self.spec.fork_at(number, time, merged));
        ForkConfig {
            activation_time: Some(time),
            blob_params: self.spec.blob_params(time).filter(|_| merged),
            chain_id: self.spec.chain_id,
            fork_id: fork_id(&self.spec, genesis, number, time),
            precompiles: contracts.precompiles,
            system_contracts: contracts.system,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::testing::World;

    #[test]
    fn reports_the_head_and_the_earliest_state() {
        let world = World::new();
        world.grow(2);
        let got = world.node.capabilities(&Context::unbounded()).unwrap();
        assert_eq!((got.head.number, got.earliest_state), (2, 0));
    }

    #[test]
    fn has_no_rules_after_the_last_fork() {
        let world = World::new();
        world.grow(1);
        let got = world.node.fork_configs(&Context::unbounded()).unwrap();
        assert_eq!((got.next, got.last), (None, None));
        assert_eq!(got.current.chain_id, world.node.spec().chain_id);
        assert_eq!(got.current.precompiles, [crate::node::testing::FakeExecutor::precompile()]);
    }
}
