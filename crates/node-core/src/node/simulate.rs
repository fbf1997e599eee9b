//! Simulation of consecutive blocks.

use super::{Field, Node, NodeError};
use crate::assembly::{add_fork_fields, commit_to, complete, is_merged_after};
use crate::backend::{BackendError, GrowingBranch, View};
use crate::block::{ExecutedBlock, RecoveredTransaction, SealedHeader};
use crate::collecting::gather;
use crate::context::Context;
use crate::executor::{
    BlockOverrides, Call, CallFailure, ExecutionError, OverrideError, SimulatedCallOutcome, SimulationRules,
    StateOverrides, TransactionError,
};
use crate::protocol::{Fork, fees};
use node_types::consensus::{EMPTY_OMMERS_HASH, Header, HeaderField};
use node_types::{BlockId, BlockNumber, U256};

/// Maximum number of blocks of a simulation, including those that fill gaps.
const MAX_BLOCKS: u64 = 256;

/// Default number of seconds between a block and its parent.
const BLOCK_TIME: u64 = 12;

/// Maximum total number of bytes that all calls may return.
const MAX_OUTPUT: usize = 32 << 20;

/// Blocks to simulate on top of a block.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// The blocks. Gaps between their numbers are filled with empty blocks.
    pub blocks: Vec<BlockStateCalls>,
    /// Whether to report transfers of ether as logs.
    pub trace_transfers: bool,
    /// Whether to enforce the rules on nonces and fees.
    pub validation: bool,
}

/// A block to simulate: the calls in it, and overrides.
#[derive(Clone, Debug, Default)]
pub struct BlockStateCalls {
    pub block_overrides: BlockOverrides,
    /// Overrides for the state, applied before the first call.
    pub state_overrides: StateOverrides,
    /// The transactions. Their own overrides are ignored.
    pub calls: Vec<Call>,
}

/// A simulated block with the outcomes of its calls.
#[derive(Clone, Debug)]
pub struct SimulatedBlock {
    /// The block. Its transactions are unsigned: r and s are zero.
    pub block: ExecutedBlock,
    /// The outcome of each transaction.
    pub calls: Vec<SimulatedCallOutcome>,
}

/// Why a simulation failed.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    #[error("block numbers must be in order: {number} <= {previous}")]
    NumberOrder { number: BlockNumber, previous: BlockNumber },
    #[error("block timestamps must be in order: {timestamp} <= {previous}")]
    TimeOrder { timestamp: u64, previous: u64 },
    #[error("too many blocks: at most {MAX_BLOCKS} may be simulated")]
    TooManyBlocks,
    #[error("the calls return more than {MAX_OUTPUT} bytes")]
    TooMuchOutput,
    /// The calls before this one have used too much of the gas that all may use.
    #[error(
        "block {block}, call {call}: {left} gas are left of what all calls together may use, and it needs {required}"
    )]
    GasUsedUp { block: BlockNumber, call: usize, left: u64, required: u64 },
    #[error("block {block}, call {call}: {reason}")]
    Refused { block: BlockNumber, call: usize, reason: TransactionError },
    #[error(transparent)]
    Override(#[from] OverrideError),
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl From<BackendError> for SimulateError {
    fn from(error: BackendError) -> Self {
        Self::Node(error.into())
    }
}

#[derive(Clone)]
struct Planned {
    number: BlockNumber,
    timestamp: u64,
    block: BlockStateCalls,
}

pub(super) fn simulate(
    node: &Node,
    context: &Context,
    simulation: Simulation,
    block: BlockId,
) -> Result<Vec<SimulatedBlock>, SimulateError> {
    let snapshot = node.snapshot_for(context, block)?;
    let base = snapshot.state(block, Field::BlockNumber)?;
    let Simulation { blocks, trace_transfers, validation } = simulation;
    let planned = plan(&*snapshot.header(base)?, blocks)?;
    let context = node.call_context(context);
    let mut run = Run { node, gas_left: context.gas_budget(), context, output: 0, trace_transfers, validation };
    let mut branch = GrowingBranch::new(snapshot.view.clone(), base)?;
    let mut simulated = Vec::with_capacity(planned.len());
    for planned in planned {
        let (view, before) = (branch.view()?, (run.gas_left, run.output));
        let block = gather(|| {
            (run.gas_left, run.output) = before;
            run.block(&*view, planned.clone())
        })?;
        branch.push(block.block.clone())?;
        simulated.push(block);
    }
    Ok(simulated)
}

/// Assigns each block a number and a timestamp, and fills gaps with empty blocks.
fn plan(base: &SealedHeader, blocks: Vec<BlockStateCalls>) -> Result<Vec<Planned>, SimulateError> {
    let first = base.header.number;
    let (mut number, mut timestamp) = (first, base.header.timestamp);
    let mut planned = Vec::with_capacity(blocks.len());
    for block in blocks {
        let asked = block.block_overrides.number.unwrap_or(number.saturating_add(1));
        if asked <= number {
            return Err(SimulateError::NumberOrder { number: asked, previous: number });
        }
        if asked - first > MAX_BLOCKS {
            return Err(SimulateError::TooManyBlocks);
        }
        for number in number + 1..asked {
            timestamp = timestamp.saturating_add(BLOCK_TIME);
            planned.push(Planned { number, timestamp, block: BlockStateCalls::default() });
        }
        let at = block.block_overrides.time.unwrap_or(timestamp.saturating_add(BLOCK_TIME));
        if at <= timestamp {
            return Err(SimulateError::TimeOrder { timestamp: at, previous: timestamp });
        }
        (number, timestamp) = (asked, at);
        planned.push(Planned { number, timestamp, block });
    }
    Ok(planned)
}

/// A running simulation.
struct Run<'a> {
    node: &'a Node,
    context: Context,
    /// Gas that the remaining calls may use.
    gas_left: u64,
    /// Bytes that the calls have returned.
    output: usize,
    trace_transfers: bool,
    validation: bool,
}

impl Run<'_> {
    /// Simulates a block on top of the head of `view`.
    fn block(&mut self, view: &dyn View, planned: Planned) -> Result<SimulatedBlock, SimulateError> {
        let Planned { number, timestamp, block } = planned;
        let BlockStateCalls { mut block_overrides, state_overrides, calls } = block;
        self.context.check().map_err(|interrupted| self.failed(interrupted.into()))?;
        let parent = view.header(view.head().number.into())?.ok_or(BackendError::UnknownBlock(view.head().number))?;
        let withdrawals = block_overrides.withdrawals.take().unwrap_or_default();
        let mut header = self.header(&parent, number, timestamp, &block_overrides);
        let withdrawals = commit_to(&mut header, withdrawals);
        let rules = SimulationRules {
            overrides: &state_overrides,
            blob_base_fee: block_overrides.blob_base_fee,
            validate: self.validation,
            trace_transfers: self.trace_transfers,
        };
        let (transactions, calls, outcome) = {
            let header = &header;
            let failed = |error| self.failed(error);
            let begun = self.node.executor.begin_simulated(&self.context, view, header, &rules);
            let mut execution = begun.map_err(failed)?;
            let fork = self.node.spec.fork(header);
            let (mut transactions, mut ended) = (Vec::with_capacity(calls.len()), Vec::with_capacity(calls.len()));
            let mut gas_in_block = header.gas_limit;
            let (mut gas_left, mut output) = (self.gas_left, self.output);
            for (index, call) in calls.into_iter().enumerate() {
                let refused = |reason| SimulateError::Refused { block: number, call: index, reason };
                let gas = call.gas.unwrap_or(gas_in_block);
                if gas > gas_in_block {
                    return Err(refused(TransactionError::BlockGasExceeded { limit: gas, available: gas_in_block }));
                }
                let nonce = match call.nonce {
                    Some(nonce) => nonce,
                    None => execution.nonce(call.from).map_err(failed)?,
                };
                let sender = call.from;
                let is_cut = gas > gas_left;
                let body = call
                    .into_body(fork, self.node.spec.chain_id, nonce, gas.min(gas_left))
                    .ok_or_else(|| refused(TransactionError::CannotCreate))?;
                let transaction = RecoveredTransaction::unsigned(sender, body);
                let mut call = execution.transact(&transaction).map_err(|error| match error {
                    ExecutionError::Refused(
                        TransactionError::IntrinsicGas { required, .. } | TransactionError::FloorGas { required, .. },
                    ) if is_cut => SimulateError::GasUsedUp { block: number, call: index, left: gas_left, required },
                    ExecutionError::Refused(reason) => refused(reason),
                    error => failed(error),
                })?;
                if is_cut && matches!(call.failure, Some(CallFailure::Halted { out_of_gas: true, .. })) {
                    call.failure = Some(CallFailure::GasCap { cap: gas_left });
                }
                gas_in_block = gas_in_block.saturating_sub(call.gas_used);
                gas_left = gas_left.saturating_sub(call.gas_used);
                output += size(&call);
                if output > MAX_OUTPUT {
                    return Err(SimulateError::TooMuchOutput);
                }
                transactions.push(transaction);
                ended.push(call);
            }
            let outcome = execution.finish(withdrawals.as_deref()).map_err(failed)?;
            (self.gas_left, self.output) = (gas_left, output);
            (transactions, ended, outcome)
        };
        let block = complete(view, header, transactions, withdrawals, outcome).map_err(|error| self.failed(error))?;
        Ok(SimulatedBlock { block: block.block, calls })
    }

    /// Returns the header of a block before it is executed. By default its fields follow from its parent, except that
    /// the base fee is zero unless the rules are enforced.
    fn header(&self, parent: &SealedHeader, number: BlockNumber, timestamp: u64, overrides: &BlockOverrides) -> Header {
        let spec = &self.node.spec;
        // Forks that activate by timestamp come after the merge.
        let merged = is_merged_after(spec, parent) || spec.is_active_at(Fork::Shanghai, timestamp);
        let fork = spec.fork_at(number, timestamp, merged);
        let base_fee = if self.validation { fees::next_base_fee(spec, &parent.header) } else { None };
        let mut header = Header {
            parent_hash: parent.hash,
            ommers_hash: EMPTY_OMMERS_HASH,
            beneficiary: parent.header.beneficiary,
            difficulty: if merged { U256::zero() } else { parent.header.difficulty },
            gas_limit: parent.header.gas_limit,
            ..Header::default()
        };
        overrides.apply(&mut header);
        header.number = number;
        header.timestamp = timestamp;
        header.base_fee_per_gas =
            fork.has(HeaderField::BaseFeePerGas).then(|| overrides.base_fee_per_gas.or(base_fee).unwrap_or(0));
        add_fork_fields(spec, fork, &mut header, &parent.header, overrides.beacon_root.unwrap_or_default());
        header
    }

    /// Converts the error of a block.
    fn failed(&self, error: ExecutionError) -> SimulateError {
        match error {
            ExecutionError::Override(error) => error.into(),
            error => NodeError::of_call(error, &self.context).into(),
        }
    }
}

/// Approximate number of bytes that a log without topics and data adds to the result.
const EMPTY_LOG: usize = 256;

/// Returns the approximate number of bytes that a call adds to the result.
fn size(call: &SimulatedCallOutcome) -> usize {
    let logs: usize = call.logs.iter().map(|(_, log)| EMPTY_LOG + 32 * log.topics.len() + log.data.len()).sum();
    let reverted = match &call.failure {
        Some(CallFailure::Reverted { output, .. }) => output.len(),
        _ => 0,
    };
    call.output.len() + logs + reverted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::StateBackend;
    use crate::block::BlockRef;
    use crate::node::testing::World;
    use crate::test_chain::{BASE_FEE, BLOCK_TIME as CHAIN_BLOCK_TIME, GAS, GAS_LIMIT, address};
    use node_types::consensus::Log;
    use node_types::{Bytes, H256};

    fn at(number: Option<u64>, time: Option<u64>) -> BlockStateCalls {
        let block_overrides = BlockOverrides { number, time, ..BlockOverrides::default() };
        BlockStateCalls { block_overrides, ..BlockStateCalls::default() }
    }

    fn with_calls(calls: Vec<Call>) -> BlockStateCalls {
        BlockStateCalls { calls, ..BlockStateCalls::default() }
    }

    fn call(gas: Option<u64>) -> Call {
        Call {
            from: address(1),
            to: Some(address(2)),
            gas,
            max_priority_fee_per_gas: Some(0.into()),
            ..Call::default()
        }
    }

    fn simulate(world: &World, blocks: Vec<BlockStateCalls>) -> Result<Vec<SimulatedBlock>, SimulateError> {
        let simulation = Simulation { blocks, ..Simulation::default() };
        world.node.simulate(&Context::unbounded(), simulation, BlockId::latest())
    }

    #[test]
    fn gaps_are_filled_and_each_block_follows_the_one_before() {
        let world = World::new();
        world.grow(2);
        let head = world.backend.view().unwrap().head();
        let blocks = simulate(&world, vec![at(None, None), at(Some(6), None), at(None, Some(1_000))]).unwrap();
        let begun = 2 * CHAIN_BLOCK_TIME;
        let times = [begun + 12, begun + 24, begun + 36, begun + 48, 1_000];
        let mut parent = head;
        for (block, (number, time)) in blocks.iter().zip((3..).zip(times)) {
            let header = &block.block.header;
            assert_eq!((header.header.number, header.header.timestamp), (number, time));
            assert_eq!((header.header.parent_hash, header.hash), (parent.hash, header.header.hash()));
            assert_eq!(header.header.base_fee_per_gas, Some(0), "without validation");
            assert_eq!(header.header.gas_limit, GAS_LIMIT);
            parent = BlockRef { number, hash: header.hash };
        }
        assert_eq!(blocks.len(), times.len());
        assert_eq!(world.backend.view().unwrap().head(), head, "the simulation changes nothing");
        let simulation = Simulation { blocks: vec![at(None, None)], validation: true, ..Simulation::default() };
        let valid = world.node.simulate(&Context::unbounded(), simulation, BlockId::earliest()).unwrap();
        let header = &valid[0].block.header.header;
        assert_eq!((header.number, header.base_fee_per_gas), (1, Some(BASE_FEE - BASE_FEE / 8)));
    }

    #[test]
    fn what_is_out_of_order_or_too_much() {
        let world = World::new();
        world.grow(2);
        let now = 2 * CHAIN_BLOCK_TIME;
        let cases = [
            (vec![at(Some(2), None)], "block numbers must be in order: 2 <= 2".to_owned()),
            (vec![at(Some(4), None), at(Some(4), None)], "block numbers must be in order: 4 <= 4".to_owned()),
            (vec![at(None, Some(now))], format!("block timestamps must be in order: {now} <= {now}")),
            (vec![at(Some(259), None)], SimulateError::TooManyBlocks.to_string()),
            (vec![at(Some(u64::MAX), None)], SimulateError::TooManyBlocks.to_string()),
            (vec![at(None, Some(u64::MAX)), at(None, None)], {
                format!("block timestamps must be in order: {0} <= {0}", u64::MAX)
            }),
        ];
        for (blocks, expected) in cases {
            assert_eq!(simulate(&world, blocks.clone()).unwrap_err().to_string(), expected, "{blocks:?}");
        }
        assert_eq!(simulate(&world, vec![at(Some(258), None)]).unwrap().len(), 256);
    }

    #[test]
    fn all_calls_share_the_gas_of_one() {
        let world = World::new();
        world.grow(1);
        let limits = |blocks: &[SimulatedBlock]| -> Vec<_> {
            let transactions = blocks.iter().flat_map(|block| &block.block.body.transactions);
            transactions.map(|transaction| transaction.transaction.body.gas_limit()).collect()
        };
        let simulation = |calls: usize| Simulation {
            blocks: vec![with_calls(vec![call(None); calls]), with_calls(vec![call(None)])],
            ..Simulation::default()
        };
        let run = |budget, calls| {
            let context = Context::unbounded().with_gas_budget(budget);
            world.node.simulate(&context, simulation(calls), BlockId::latest())
        };
        // The rest of the budget, but at most the rest of the gas limit of the block.
        assert_eq!(limits(&run(100_000, 2).unwrap()), [100_000, 100_000 - GAS, 100_000 - 2 * GAS]);
        assert_eq!(limits(&run(u64::MAX, 2).unwrap()), [GAS_LIMIT, GAS_LIMIT - GAS, GAS_LIMIT]);
        match run(2 * GAS, 2) {
            Err(SimulateError::GasUsedUp { block: 3, call: 0, left: 0, .. }) => {}
            other => panic!("{other:?}"),
        }
        match simulate(&world, vec![with_calls(vec![call(None), call(Some(GAS_LIMIT))])]) {
            Err(SimulateError::Refused {
                call: 1,
                reason: TransactionError::BlockGasExceeded { limit, available },
                ..
            }) => {
                assert_eq!((limit, available), (GAS_LIMIT, GAS_LIMIT - GAS));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_answer_has_a_bound() {
        let world = World::new();
        let long = Call { input: vec![0; MAX_OUTPUT / 2].into(), ..call(None) };
        let calls = |count| vec![with_calls(vec![long.clone(); count])];
        assert_eq!(simulate(&world, calls(1)).unwrap()[0].calls[0].output.len(), MAX_OUTPUT / 2);
        assert!(matches!(simulate(&world, calls(3)), Err(SimulateError::TooMuchOutput)));
        // Logs without topics and data count too.
        let logs = vec![(0, Log::default()); 1_000];
        let logging =
            SimulatedCallOutcome { output: Bytes::new(), logs, gas_used: GAS, max_used_gas: GAS, failure: None };
        assert_eq!(size(&logging), 1_000 * EMPTY_LOG);
    }

    #[test]
    fn nonces_follow_each_other_and_blobs_create_nothing() {
        let world = World::new();
        let blocks = simulate(&world, vec![with_calls(vec![call(None); 3])]).unwrap();
        let transactions = &blocks[0].block.body.transactions;
        let nonces: Vec<_> = transactions.iter().map(|transaction| transaction.transaction.body.nonce()).collect();
        assert_eq!(nonces, [0, 1, 2]);
        assert!(transactions.iter().all(|transaction| transaction.sender == address(1)));
        let creation = Call { to: None, blob_versioned_hashes: vec![H256::zero()], ..call(None) };
        let refused = simulate(&world, vec![with_calls(vec![creation])]).unwrap_err();
        assert!(matches!(refused, SimulateError::Refused { reason: TransactionError::CannotCreate, .. }), "{refused}");
    }

    #[test]
    fn a_simulation_ends_with_its_request() {
        let world = World::new();
        let context = Context::unbounded();
        context.cancel();
        let simulation = Simulation { blocks: vec![at(None, None)], ..Simulation::default() };
        let ended = world.node.simulate(&context, simulation, BlockId::latest()).unwrap_err();
        assert!(matches!(ended, SimulateError::Node(NodeError::Interrupted(_))), "{ended}");
    }
}
