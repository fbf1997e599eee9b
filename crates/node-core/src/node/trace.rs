//! Traces of transactions, blocks and calls, and access lists.

use super::resolve::Snapshot;
use super::{Node, NodeError};
use crate::backend::{View, as_edited};
use crate::block::{Body, RecoveredTransaction, SealedHeader};
use crate::context::Context;
use crate::executor::{BlockExecution, Call};
use crate::trace::{AccessListOutcome, Trace, TraceError, Tracer, Tracing};
use node_types::wire::{BlockArgument, ErrorDetail};
use node_types::{BlockNumber, H256};
use std::sync::Arc;
use std::time::Duration;

/// Where traces name their block.
const LOCATION: &str = "params.block";

/// What to trace, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// What to record.
    pub tracer: Tracer,
    /// Longest time; none for as long as any call may take, which is the most.
    pub timeout: Option<Duration>,
}

/// The trace of a transaction in its block.
#[derive(Clone, Debug)]
pub struct TransactionTrace {
    /// Hash of the transaction.
    pub hash: H256,
    /// Its trace.
    pub trace: Trace,
}

impl Node {
    /// What a mined transaction did, run again where it was.
    pub fn trace_transaction(&self, context: &Context, hash: H256, options: &TraceOptions) -> Result<Trace, NodeError> {
        let snapshot = self.snapshot(context)?;
        let position = snapshot.view.transaction_position(hash)?.ok_or(NodeError::TransactionNotFound { hash })?;
        let replay = Replay::of(self, &snapshot, position.block)?;
        let context = self.trace_context(context, options);
        replay.after(self, &context, position.index, |mut block| {
            let transaction = &replay.body.transactions[position.index];
            block.trace(transaction, &self.tracing(options, 0))
        })
    }

    /// What each transaction of a block did, all run again in one go.
    pub fn trace_block(
        &self,
        context: &Context,
        block: BlockArgument,
        options: &TraceOptions,
    ) -> Result<Vec<TransactionTrace>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let replay = Replay::of(self, &snapshot, snapshot.canonical(block, LOCATION)?)?;
        let context = self.trace_context(context, options);
        replay.after(self, &context, 0, |mut block| {
            let mut written = 0;
            let trace_next = |transaction: &RecoveredTransaction| {
                let trace = block.trace(transaction, &self.tracing(options, written))?;
                written += trace.get().len() as u64;
                Ok(TransactionTrace { hash: transaction.hash, trace })
            };
            replay.body.transactions.iter().map(trace_next).collect()
        })
    }

    /// What a call would do, over the state after a block, or, with `index`, where transaction number `index` of the
    /// block began; in the environment of that block.
    pub fn trace_call(
        &self,
        context: &Context,
        block: BlockArgument,
        index: Option<u64>,
        call: &Call,
        options: &TraceOptions,
    ) -> Result<Trace, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let tracing = self.tracing(options, 0);
        let context = self.trace_context(context, options);
        let Some(index) = index else {
            let header = snapshot.header(snapshot.state(block, LOCATION)?)?;
            let trace = self.executor.trace_call(&context, &*snapshot.view, &header.header, call, &tracing);
            return trace.map_err(|error| self.not_traced(error));
        };
        let replay = Replay::of(self, &snapshot, snapshot.canonical(block, LOCATION)?)?;
        let count = replay.body.transactions.len();
        let index = usize::try_from(index).ok().filter(|index| *index < count.max(1)).ok_or_else(|| {
            let message = format!("the block has {count} transactions, expected an index below that, got {index}");
            NodeError::Invalid(vec![ErrorDetail::new("params.txIndex", message)])
        })?;
        replay.after(self, &context, index, |block| block.trace_call(call, &tracing))
    }

    /// The access list that a call needs, over the state after a block and in its environment.
    pub fn create_access_list(
        &self,
        context: &Context,
        block: BlockArgument,
        call: &Call,
    ) -> Result<AccessListOutcome, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        let header = snapshot.header(snapshot.state(block, LOCATION)?)?;
        self.executor
            .access_list(&self.call_context(context), &*snapshot.view, &header.header, call)
            .map_err(|error| self.not_traced(error.into()))
    }

    /// What the executor is to record, where `written` bytes are there already.
    fn tracing(&self, options: &TraceOptions, written: u64) -> Tracing {
        Tracing { tracer: options.tracer, max_bytes: self.limits.trace_bytes.saturating_sub(written) }
    }

    fn trace_context(&self, context: &Context, options: &TraceOptions) -> Context {
        let context = self.call_context(context);
        match options.timeout {
            Some(timeout) => context.with_timeout(timeout),
            None => context,
        }
    }

    fn not_traced(&self, error: TraceError) -> NodeError {
        match error {
            TraceError::TooLarge => NodeError::TraceTooLarge { limit: self.limits.trace_bytes },
            TraceError::Execution(error) => NodeError::of_call(error, self.limits.call_timeout),
        }
    }
}

/// A block that is run again.
struct Replay {
    /// Holds the state that the block began with.
    view: Arc<dyn View>,
    header: Arc<SealedHeader>,
    body: Arc<Body>,
}

impl Replay {
    /// A canonical block, or the pending one. What was edited by hand before it lies over its parent's state.
    fn of(node: &Node, snapshot: &Snapshot, number: BlockNumber) -> Result<Self, NodeError> {
        let parent = number.checked_sub(1).ok_or(NodeError::GenesisNotTraceable)?;
        let earliest = snapshot.view.earliest_state();
        if parent < earliest {
            return Err(NodeError::StatePruned { block: parent, earliest, location: LOCATION });
        }
        let (header, body) = (snapshot.header(number)?, snapshot.body(number)?);
        let view = as_edited(&*node.backend, snapshot.view.clone(), header.block_ref())?;
        Ok(Self { view, header, body })
    }

    /// Runs the first `count` transactions, and then `work`.
    fn after<T>(
        &self,
        node: &Node,
        context: &Context,
        count: usize,
        work: impl FnOnce(Box<dyn BlockExecution + '_>) -> Result<T, TraceError>,
    ) -> Result<T, NodeError> {
        let run = || {
            let mut block = node.executor.begin_block(context, &*self.view, &self.header.header)?;
            for transaction in self.body.transactions.iter().take(count) {
                block.transact(transaction)?;
            }
            work(block)
        };
        run().map_err(|error| node.not_traced(error))
    }
}
