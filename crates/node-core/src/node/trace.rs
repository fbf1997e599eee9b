//! Traces of transactions, blocks and calls, and access lists.

use super::resolve::RequestView;
use super::transaction::position_of;
use super::{Field, Node, NodeError};
use crate::backend::View;
use crate::block::{BlockRef, Body, SealedHeader};
use crate::collecting::{gather, gather_call};
use crate::context::{Context, Interrupted};
use crate::edits::as_edited;
use crate::executor::{AccessListOutcome, BlockExecution, Call, TraceError, TracerJson, Tracing, WriteTrace};
use crate::protocol::Fork;
use crate::protocol::rewards::rewards;
use node_types::buffer::JsonBuffer;
use node_types::{Address, BlockId, BlockNumber, H256, U256};
use parking_lot::{Mutex, MutexGuard};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Options of a trace request.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// The tracer and its options; `None` for the defaults.
    pub tracer: Option<TracerJson>,
    /// Maximum duration; at most the timeout of calls, which is the default.
    pub timeout: Option<Duration>,
}

/// The rewards of a block before the merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRewards {
    pub block: BlockRef,
    /// The beneficiary of the block and its reward in wei; `None` after the merge.
    pub of_block: Option<(Address, U256)>,
    /// Those of the ommers, in their order.
    pub of_ommers: Vec<(Address, U256)>,
}

/// Limits the number of concurrent traces to the number of cores, because each may take a multiple of
/// [`Limits::trace_bytes`] of memory.
///
/// [`Limits::trace_bytes`]: super::Limits::trace_bytes
pub(super) struct TraceTurns {
    turns: Vec<Mutex<()>>,
    next: AtomicUsize,
}

impl Default for TraceTurns {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { turns: (0..cores.max(2)).map(|_| Mutex::default()).collect(), next: AtomicUsize::new(0) }
    }
}

impl TraceTurns {
    /// Waits until a trace may run. The guard must be held while it runs.
    fn wait(&self, context: &Context) -> Result<MutexGuard<'_, ()>, Interrupted> {
        match self.turns.iter().find_map(Mutex::try_lock) {
            Some(turn) => Ok(turn),
            None => context.lock(&self.turns[self.next.fetch_add(1, Ordering::Relaxed) % self.turns.len()]),
        }
    }
}

pub(super) fn trace_transaction(
    node: &Node,
    context: &Context,
    hash: H256,
    options: &TraceOptions,
    out: &mut JsonBuffer,
) -> Result<(), NodeError> {
    let in_pool = node.pool.status(hash);
    let snapshot = node.snapshot(context)?;
    let position = position_of(&*snapshot.view, hash, &in_pool)?.ok_or(NodeError::TransactionNotFound { hash })?;
    let replay = Replay::of(node, &snapshot, position.block)?;
    let transaction = replay.body.transactions.get(position.index).ok_or(NodeError::TransactionNotFound { hash })?;
    let context = node.trace_context(context, options);
    let _turn = node.traces.wait(&context)?;
    let index = position.index;
    replay.after(node, &context, index, index + 1, |mut block| block.trace(transaction, &node.tracing(options, 0), out))
}

pub(super) fn trace_block(
    node: &Node,
    context: &Context,
    block: BlockId,
    options: &TraceOptions,
    mut each: impl FnMut(H256, &mut WriteTrace<'_>) -> Result<(), TraceError>,
) -> Result<(), NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let replay = Replay::of(node, &snapshot, snapshot.canonical(block, Field::BlockNumber)?)?;
    let context = node.trace_context(context, options);
    let _turn = node.traces.wait(&context)?;
    replay.after(node, &context, 0, replay.body.transactions.len(), |mut block| {
        let mut written = 0;
        replay.body.transactions.iter().try_for_each(|transaction| {
            each(transaction.hash, &mut |out| {
                let start = out.len();
                block.trace(transaction, &node.tracing(options, written), out)?;
                written += (out.len() - start) as u64;
                Ok(())
            })
        })
    })
}

pub(super) fn block_rewards(node: &Node, context: &Context, block: BlockId) -> Result<BlockRewards, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let number = snapshot.canonical(block, Field::BlockNumber)?;
    let (header, body) = (snapshot.header(number)?, snapshot.body(number)?);
    let mut rewards = rewards(node.spec.fork(&header.header), &header.header, &body.ommers);
    let of_block = rewards.pop();
    Ok(BlockRewards { block: header.block_ref(), of_block, of_ommers: rewards })
}

pub(super) fn trace_call(
    node: &Node,
    context: &Context,
    call: &Call,
    block: BlockId,
    index: Option<u64>,
    options: &TraceOptions,
    out: &mut JsonBuffer,
) -> Result<(), NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let tracing = node.tracing(options, 0);
    let context = node.trace_context(context, options);
    let _turn = node.traces.wait(&context)?;
    let Some(index) = index else {
        let header = snapshot.header(snapshot.state(block, Field::BlockNumber)?)?;
        let start = out.len();
        let trace = gather_call(call, || {
            out.truncate(start);
            node.executor.trace_call(&context, &*snapshot.view, &header.header, call, &tracing, out)
        });
        return trace.map_err(|error| node.not_traced(error, &context));
    };
    let replay = Replay::of(node, &snapshot, snapshot.canonical(block, Field::BlockNumber)?)?;
    let count = replay.body.transactions.len();
    let index = usize::try_from(index).ok().filter(|index| *index < count.max(1)).ok_or_else(|| {
        let message = format!("the block has {count} transactions, expected an index below that, got {index}");
        NodeError::invalid(Field::TransactionIndex, message)
    })?;
    replay.after(node, &context, index, index, |block| block.trace_call(call, &tracing, out))
}

pub(super) fn create_access_list(
    node: &Node,
    context: &Context,
    call: &Call,
    block: BlockId,
) -> Result<AccessListOutcome, NodeError> {
    let snapshot = node.snapshot_for(context, block)?;
    let header = snapshot.header(snapshot.state(block, Field::BlockNumber)?)?;
    if node.spec.fork(&header.header) < Fork::Berlin {
        let number = header.header.number;
        let message = format!("access lists exist since Berlin (EIP-2930), block {number} is before it");
        return Err(NodeError::invalid(Field::BlockNumber, message));
    }
    let context = node.call_context(context);
    gather_call(call, || node.executor.access_list(&context, &*snapshot.view, &header.header, call))
        .map_err(|error| NodeError::of_call(error, &context))
}

impl Node {
    /// Returns the executor's options for a trace when `written` bytes have already been written.
    fn tracing(&self, options: &TraceOptions, written: u64) -> Tracing {
        Tracing { tracer: options.tracer.clone(), max_bytes: self.limits.trace_bytes.saturating_sub(written) }
    }

    fn trace_context(&self, context: &Context, options: &TraceOptions) -> Context {
        let context = self.call_context(context);
        match options.timeout {
            Some(timeout) => context.with_timeout(timeout),
            None => context,
        }
    }

    fn not_traced(&self, error: TraceError, context: &Context) -> NodeError {
        match error {
            TraceError::Options(message) => NodeError::invalid(Field::Request, message),
            TraceError::TooLarge => NodeError::TraceTooLarge { limit: self.limits.trace_bytes },
            TraceError::Full(full) => NodeError::ResponseTooLarge(full),
            TraceError::Execution(error) => NodeError::of_call(error, context),
        }
    }
}

/// A block that is executed again.
struct Replay {
    /// A view with the state before the block.
    view: Arc<dyn View>,
    header: Arc<SealedHeader>,
    body: Arc<Body>,
}

impl Replay {
    /// Reads a canonical block, or the pending one. The state includes edits that were made before it.
    fn of(node: &Node, snapshot: &RequestView, number: BlockNumber) -> Result<Self, NodeError> {
        let parent = number.checked_sub(1).ok_or(NodeError::GenesisNotTraceable)?;
        let earliest = snapshot.view.earliest_state();
        if parent < earliest {
            return Err(NodeError::StatePruned { block: parent, earliest, field: Field::BlockNumber });
        }
        let (header, body) = (snapshot.header(number)?, snapshot.body(number)?);
        let view = as_edited(&*node.backend, snapshot.view.clone(), header.block_ref())?;
        Ok(Self { view, header, body })
    }

    /// Executes the first `count` transactions, then calls `work`, which executes transactions up to `end`.
    fn after<T>(
        &self,
        node: &Node,
        context: &Context,
        count: usize,
        end: usize,
        work: impl FnOnce(Box<dyn BlockExecution + '_>) -> Result<T, TraceError>,
    ) -> Result<T, NodeError> {
        let execute = |count| {
            let mut block = node.executor.begin_block(context, &*self.view, &self.header.header)?;
            block.omit_state_roots();
            for transaction in self.body.transactions.iter().take(count) {
                block.transact(transaction)?;
            }
            Ok::<_, TraceError>(block)
        };
        let run = || {
            // What `work` writes cannot be taken back, so what it needs is fetched before.
            if self.view.is_partial() {
                gather(|| execute(end).map(drop))?;
            }
            work(execute(count)?)
        };
        run().map_err(|error| node.not_traced(error, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendError, StateBackend};
    use crate::block::RecoveredTransaction;
    use crate::edits::{EditableBackend, Edits};
    use crate::node::testing::World;
    use crate::node::{Finality, Limits};
    use crate::state::StateChanges;
    use crate::test_chain::{account, address, child, log, transaction};

    const OPTIONS: TraceOptions = TraceOptions { tracer: None, timeout: None };

    /// Three blocks: a sender's balance, two transactions of the sender, nothing.
    fn world() -> (World, [RecoveredTransaction; 2]) {
        world_with(Limits::default())
    }

    fn world_with(limits: Limits) -> (World, [RecoveredTransaction; 2]) {
        let world = World::with(Finality::Head, limits);
        world.change(account(1, 0, 100, &[]));
        let transactions = [transaction(1, 0, 5), transaction(1, 1, 5)];
        world.push(transactions.iter().map(|sent| (sent.clone(), vec![log(1, &[])])).collect());
        world.grow(1);
        (world, transactions)
    }

    #[test]
    fn traces_wait_for_their_turn() {
        let (world, [first, _]) = world();
        let trace = || {
            let context = Context::unbounded().with_timeout(Duration::from_millis(1));
            world.node.trace_transaction(&context, first.hash, &OPTIONS, &mut JsonBuffer::default())
        };
        let mut turns: Vec<_> = world.node.traces.turns.iter().map(Mutex::lock).collect();
        let late = trace();
        assert!(matches!(late, Err(NodeError::Interrupted(Interrupted::DeadlineExceeded))), "{late:?}");
        turns.pop();
        let context = Context::unbounded();
        world.node.trace_transaction(&context, first.hash, &OPTIONS, &mut JsonBuffer::default()).unwrap();
    }

    fn of_block(world: &World, block: BlockId) -> Result<Vec<String>, NodeError> {
        let mut traces = Vec::new();
        world.node.trace_block(&Context::unbounded(), block, &OPTIONS, |_, trace| {
            traces.push(written(&mut *trace)?);
            Ok(())
        })?;
        Ok(traces)
    }

    fn written<E>(write: impl FnOnce(&mut JsonBuffer) -> Result<(), E>) -> Result<String, E> {
        let mut out = JsonBuffer::default();
        write(&mut out)?;
        Ok(String::from_utf8(out.into()).unwrap())
    }

    #[test]
    fn traces_on_the_state_before_the_block() {
        let (world, transactions) = world();
        let expected = [0, 1].map(|index| format!("\"transaction {index} of a sender with 100\""));
        for (transaction, expected) in transactions.iter().zip(&expected) {
            let trace =
                |out: &mut _| world.node.trace_transaction(&Context::unbounded(), transaction.hash, &OPTIONS, out);
            assert_eq!(written(trace).unwrap(), *expected);
        }
        assert_eq!(of_block(&world, BlockId::number(2)).unwrap(), expected);
        assert_eq!(of_block(&world, BlockId::latest()).unwrap(), [""; 0]);
        let mut hashes = Vec::new();
        let traced = world.node.trace_block(&Context::unbounded(), BlockId::number(2), &OPTIONS, |hash, trace| {
            hashes.push(hash);
            trace(&mut JsonBuffer::default())
        });
        traced.unwrap();
        assert_eq!(hashes, transactions.map(|sent| sent.hash));
    }

    #[test]
    fn traces_the_pending_block() {
        let world = World::new();
        world.change(account(1, 0, u64::MAX, &[]));
        world.send(&transaction(1, 0, 5));
        let expected = format!("\"transaction 0 of a sender with {}\"", u64::MAX);
        assert_eq!(of_block(&world, BlockId::pending()).unwrap(), [expected]);
    }

    #[test]
    fn edits_before_a_block_are_part_of_its_state() {
        let world = World::new();
        world.change(account(1, 0, 100, &[]));
        let editable = EditableBackend::open(world.backend.clone()).unwrap();
        editable.edit::<BackendError>(|_| Ok(account(1, 0, 777, &[]))).unwrap();
        let sent = vec![(transaction(1, 0, 5), Vec::new())];
        let block = child(&*editable.view().unwrap(), 1, 0, sent, StateChanges::default());
        editable.append_edited(block, Edits::default(), &[]).unwrap();
        assert_eq!(of_block(&world, BlockId::number(2)).unwrap(), ["\"transaction 0 of a sender with 777\""]);
        // Edits after a block do not change its trace.
        world.push(vec![(transaction(1, 1, 5), Vec::new())]);
        editable.edit::<BackendError>(|_| Ok(account(1, 0, 888, &[]))).unwrap();
        assert_eq!(of_block(&world, BlockId::number(3)).unwrap(), ["\"transaction 0 of a sender with 777\""]);
    }

    #[test]
    fn traces_calls() {
        let (world, _) = world();
        let call = Call { from: address(9), ..Call::default() };
        let trace = |block, index| {
            written(|out| world.node.trace_call(&Context::unbounded(), &call, block, index, &OPTIONS, out))
        };
        let nine = format!("{:#x}", address(9));
        assert_eq!(trace(BlockId::latest(), None).unwrap(), format!("\"a call of {nine} on block 3\""));
        assert_eq!(trace(BlockId::earliest(), None).unwrap(), format!("\"a call of {nine} on block 0\""));
        assert_eq!(trace(BlockId::number(2), Some(1)).unwrap(), format!("\"a call of {nine} after 1 transactions\""));
        assert_eq!(trace(BlockId::number(3), Some(0)).unwrap(), format!("\"a call of {nine} after 0 transactions\""));
        for (block, index) in [(2, 2), (2, u64::MAX), (3, 1)] {
            assert!(
                matches!(trace(BlockId::number(block), Some(index)), Err(NodeError::Invalid(_))),
                "{index} of {block}"
            );
        }
        assert!(matches!(trace(BlockId::earliest(), Some(0)), Err(NodeError::GenesisNotTraceable)));
        let list = world.node.create_access_list(&Context::unbounded(), &call, BlockId::number(2)).unwrap();
        assert_eq!(list.access_list[0].storage_keys, [H256::from_low_u64_be(2)]);
    }

    #[test]
    fn rejects_unknown_blocks_and_transactions() {
        let (world, _) = world();
        let mut out = JsonBuffer::default();
        let unknown = world.node.trace_transaction(&Context::unbounded(), H256::zero(), &OPTIONS, &mut out);
        let unknown = unknown.unwrap_err();
        assert_eq!(unknown.to_string(), "transaction not found");
        let genesis = of_block(&world, BlockId::earliest()).unwrap_err();
        assert_eq!(genesis.to_string(), "genesis is not traceable");
        let beyond = of_block(&world, BlockId::number(4)).unwrap_err();
        assert!(matches!(beyond, NodeError::BlockNotFound { .. }), "{beyond}");
    }

    #[test]
    fn traces_of_a_block_share_the_limit() {
        let fits = "\"transaction 0 of a sender with 100\"".len() as u64 - 2;
        for (limit, expected) in [(0, false), (fits, false), (2 * fits + 1, false), (2 * fits + 2, true)] {
            let (world, transactions) = world_with(Limits { trace_bytes: limit, ..Limits::default() });
            let got = of_block(&world, BlockId::number(2));
            match (got, expected) {
                (Ok(traces), true) => assert_eq!(traces.len(), transactions.len()),
                (Err(NodeError::TraceTooLarge { limit: got }), false) => assert_eq!(got, limit),
                (other, _) => panic!("{limit}: {other:?}"),
            }
        }
    }
}
