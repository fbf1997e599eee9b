//! A node for tests, with a chain in memory and an executor that runs no code.

use super::{Finality, Limits, Node};
use crate::backend::{CacheUse, MemoryBackend, View};
use crate::block::{ExecutedBlock, RecoveredTransaction};
use crate::clock::ManualClock;
use crate::context::Context;
use crate::crypto::{BlobError, BlobVerifier, SenderRecovery, SignatureError};
use crate::executor::{
    AccessListOutcome, BlockExecution, BlockOutcome, Call, CallOutcome, Contracts, EstimateOutcome, ExecutionError,
    Executor, NamedContract, SimulatedCallOutcome, SimulatedExecution, SimulationRules, TraceError, Tracing,
    TransactionError,
};
use crate::protocol::{ChainSpec, Fork};
use crate::state::StateChanges;
use crate::test_chain::{self, GAS, account, address, backend, log, receipt};
use node_types::buffer::JsonBuffer;
use node_types::consensus::{
    AccessListItem, BlobSidecar, Header, Log, PooledTransaction, Receipt, Signature, Withdrawal,
};
use node_types::{Address, BlockNumber, H256};
use parking_lot::Mutex;
use std::sync::Arc;

/// A node with its parts.
pub(super) struct World {
    pub(super) node: Node,
    pub(super) backend: Arc<MemoryBackend>,
    pub(super) executor: Arc<FakeExecutor>,
    pub(super) clock: Arc<ManualClock>,
}

impl World {
    /// Creates a node whose chain has only a genesis block.
    pub(super) fn new() -> Self {
        Self::with(Finality::Head, Limits::default())
    }

    pub(super) fn with(finality: Finality, limits: Limits) -> Self {
        let backend = backend();
        let executor = Arc::new(FakeExecutor::default());
        let clock = Arc::new(ManualClock::at(0));
        let spec = ChainSpec::at_genesis(1, Fork::Cancun);
        let node = Node::builder(backend.clone(), executor.clone(), Arc::new(spec))
            .clock(clock.clone())
            .finality(finality)
            .limits(limits)
            .client_version("test/1")
            .open();
        Self { node: node.unwrap(), backend, executor, clock }
    }

    /// Appends a block with transactions that emit logs.
    pub(super) fn push(&self, transactions: Vec<(RecoveredTransaction, Vec<Log>)>) -> ExecutedBlock {
        test_chain::push(&*self.backend, transactions, StateChanges::default())
    }

    /// Appends a block with changes of the state and nothing else.
    pub(super) fn change(&self, changes: StateChanges) -> ExecutedBlock {
        test_chain::push(&*self.backend, Vec::new(), changes)
    }

    /// Appends `count` empty blocks.
    pub(super) fn grow(&self, count: usize) {
        (0..count).for_each(|_| drop(self.push(Vec::new())));
    }

    /// Puts a transaction into the pool.
    pub(super) fn send(&self, transaction: &RecoveredTransaction) {
        let transaction = PooledTransaction { transaction: transaction.transaction.clone(), sidecar: None };
        self.node.pool().add_transaction(transaction).unwrap();
    }
}

/// A call that an executor received.
#[derive(Clone, Debug)]
pub(super) struct SeenCall {
    pub(super) block: BlockNumber,
    pub(super) gas_budget: u64,
    pub(super) call: Call,
}

/// Returns preset outcomes of calls; each transaction of a block uses 21,000 gas and emits one log.
#[derive(Default)]
pub(super) struct FakeExecutor {
    pub(super) call: Mutex<Option<Result<CallOutcome, ExecutionError>>>,
    pub(super) estimate: Mutex<Option<Result<EstimateOutcome, ExecutionError>>>,
    pub(super) seen: Mutex<Option<SeenCall>>,
    /// Number of blocks that were begun.
    pub(super) begun: Mutex<usize>,
    /// A system contract whose absence makes every block fail when it is finished.
    pub(super) missing: Mutex<Option<Address>>,
}

impl FakeExecutor {
    /// Transactions with this tip are refused in blocks.
    pub(super) const REFUSED_TIP: u64 = 666;

    /// Transactions with this tip make their block fail when it is finished.
    pub(super) const INVALID_TIP: u64 = 667;

    /// Returns the only precompiled contract.
    pub(super) fn precompile() -> NamedContract {
        NamedContract { name: "NOTHING", address: address(1) }
    }
}

impl Executor for FakeExecutor {
    fn begin_block<'a>(
        &'a self,
        _context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError> {
        *self.begun.lock() += 1;
        Ok(Box::new(FakeExecution {
            before: Some((view, header.number - 1)),
            base_fee: header.base_fee_per_gas,
            failing: *self.missing.lock(),
            ..FakeExecution::default()
        }))
    }

    fn begin_simulated<'a>(
        &'a self,
        _context: &'a Context,
        _view: &'a dyn View,
        _header: &'a Header,
        _rules: &SimulationRules<'_>,
    ) -> Result<Box<dyn SimulatedExecution + 'a>, ExecutionError> {
        *self.begun.lock() += 1;
        Ok(Box::new(FakeSimulation::default()))
    }

    fn call(
        &self,
        context: &Context,
        _view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<CallOutcome, ExecutionError> {
        let seen = SeenCall { block: header.number, gas_budget: context.gas_budget(), call: call.clone() };
        *self.seen.lock() = Some(seen);
        self.call.lock().take().unwrap()
    }

    fn contracts(&self, _fork: Fork) -> Contracts {
        Contracts { precompiles: vec![Self::precompile()], system: Vec::new() }
    }

    fn estimate(
        &self,
        context: &Context,
        _view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<EstimateOutcome, ExecutionError> {
        let seen = SeenCall { block: header.number, gas_budget: context.gas_budget(), call: call.clone() };
        *self.seen.lock() = Some(seen);
        self.estimate.lock().take().unwrap()
    }

    fn trace_call(
        &self,
        _context: &Context,
        _view: &dyn View,
        header: &Header,
        call: &Call,
        tracing: &Tracing,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        trace_of(&format!("a call of {:#x} on block {}", call.from, header.number), tracing, out)
    }

    fn access_list(
        &self,
        _context: &Context,
        _view: &dyn View,
        header: &Header,
        call: &Call,
    ) -> Result<AccessListOutcome, ExecutionError> {
        let storage_keys = vec![H256::from_low_u64_be(header.number)];
        let access_list = vec![AccessListItem { address: call.from, storage_keys }];
        Ok(AccessListOutcome { access_list, gas_used: GAS, error: None })
    }

    fn caches(&self) -> Vec<CacheUse> {
        Vec::new()
    }
}

/// Appends a trace that contains its argument; its length counts as its size.
fn trace_of(what: &str, tracing: &Tracing, out: &mut JsonBuffer) -> Result<(), TraceError> {
    if what.len() as u64 > tracing.max_bytes {
        return Err(TraceError::TooLarge);
    }
    serde_json::to_writer(&mut *out, what).map_err(|_| out.full().unwrap().into())
}

#[derive(Default)]
struct FakeExecution<'a> {
    /// The view and block that have the state before the block.
    before: Option<(&'a dyn View, BlockNumber)>,
    base_fee: Option<u64>,
    /// The system contract that fails at the end.
    failing: Option<Address>,
    receipts: Vec<Receipt>,
    changes: StateChanges,
}

impl BlockExecution for FakeExecution<'_> {
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<&Receipt, ExecutionError> {
        let body = &transaction.transaction.body;
        if body.effective_tip(self.base_fee) == Some(FakeExecutor::REFUSED_TIP.into()) {
            return Err(TransactionError::Other("refused".into()).into());
        }
        if body.effective_tip(self.base_fee) == Some(FakeExecutor::INVALID_TIP.into()) {
            self.failing = Some(transaction.sender);
        }
        let sender = transaction.sender.as_bytes()[19];
        self.changes.merge(&account(sender, body.nonce() + 1, 1, &[]));
        self.receipts.push(receipt(vec![log(sender, &[body.nonce()])], self.gas_used() + GAS));
        Ok(&self.receipts[self.receipts.len() - 1])
    }

    /// Appends a trace that contains the sender's balance before the block.
    fn trace(
        &mut self,
        transaction: &RecoveredTransaction,
        tracing: &Tracing,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        self.transact(transaction)?;
        let (view, parent) = self.before.unwrap();
        let account =
            view.state(parent).and_then(|state| state.account(transaction.sender)).map_err(ExecutionError::from)?;
        let balance = account.unwrap_or_default().balance;
        trace_of(&format!("transaction {} of a sender with {balance}", self.receipts.len() - 1), tracing, out)
    }

    fn trace_call(self: Box<Self>, call: &Call, tracing: &Tracing, out: &mut JsonBuffer) -> Result<(), TraceError> {
        trace_of(&format!("a call of {:#x} after {} transactions", call.from, self.receipts.len()), tracing, out)
    }

    fn gas_used(&self) -> u64 {
        self.receipts.last().map_or(0, |receipt| receipt.cumulative_gas_used)
    }

    fn blob_gas_used(&self) -> u64 {
        0
    }

    fn finish(
        self: Box<Self>,
        _ommers: &[Header],
        _withdrawals: Option<&[Withdrawal]>,
    ) -> Result<BlockOutcome, ExecutionError> {
        if let Some(address) = self.failing {
            return Err(ExecutionError::SystemContract { address, reason: "there is no code".into() });
        }
        let gas_used = self.gas_used();
        Ok(BlockOutcome { receipts: self.receipts, gas_used, blob_gas_used: 0, requests: None, changes: self.changes })
    }
}

/// Each transaction uses 21,000 gas and returns its input.
#[derive(Default)]
struct FakeSimulation<'a> {
    execution: FakeExecution<'a>,
}

impl SimulatedExecution for FakeSimulation<'_> {
    fn nonce(&mut self, sender: Address) -> Result<u64, ExecutionError> {
        let account = self.execution.changes.accounts.get(&sender).and_then(|change| change.account);
        Ok(account.map_or(0, |account| account.nonce))
    }

    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<SimulatedCallOutcome, ExecutionError> {
        let body = &transaction.transaction.body;
        if body.gas_limit() < GAS {
            return Err(TransactionError::IntrinsicGas { limit: body.gas_limit(), required: GAS }.into());
        }
        let logs = self.execution.transact(transaction)?.logs.iter().cloned().map(|log| (0, log)).collect();
        let output = body.input().clone();
        Ok(SimulatedCallOutcome { output, logs, gas_used: GAS, max_used_gas: GAS, failure: None })
    }

    fn finish(self: Box<Self>, withdrawals: Option<&[Withdrawal]>) -> Result<BlockOutcome, ExecutionError> {
        Box::new(self.execution).finish(&[], withdrawals)
    }
}

/// Takes the sender from r, where `test_chain::transaction` puts it.
impl SenderRecovery for FakeExecutor {
    fn recover(&self, _message: H256, signature: &Signature, _low_s: bool) -> Result<Address, SignatureError> {
        Ok(address((signature.r - 1).byte(0)))
    }
}

impl BlobVerifier for FakeExecutor {
    fn verify(&self, _versioned_hashes: &[H256], _sidecar: &BlobSidecar) -> Result<(), BlobError> {
        Err(BlobError::Proof)
    }

    fn with_cell_proofs(&self, _sidecar: BlobSidecar) -> Result<BlobSidecar, BlobError> {
        Err(BlobError::Proof)
    }
}
