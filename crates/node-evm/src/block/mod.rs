//! Execution of a block.

pub(crate) mod dao;
pub(crate) mod log_book;
pub(crate) mod requests;
pub(crate) mod rewards;
pub(crate) mod simulated_logs;
pub(crate) mod simulation;
pub(crate) mod system;

use crate::call::CallRun;
use crate::convert::{ToNode, saturating_price};
use crate::extension::EvmInspector;
use crate::machine::refusal::{TransactionTerms, refusal};
use crate::machine::{Machine, RunContext, spec, transaction};
use crate::recovery::is_high_s;
use crate::state::StateDb;
use crate::trace::inspection::Inspection;
use crate::trace::tracer::Place;
use crate::trace::{self, TracedRun};
use node_core::backend::BackendError;
use node_core::block::RecoveredTransaction;
use node_core::crypto::SignatureError;
use node_core::executor::{
    BlockExecution, BlockOutcome, Call, ExecutionError, Property, TraceError, Tracing, TransactionError,
};
use node_core::protocol::fees::{self, GAS_PER_BLOB};
use node_core::protocol::{DaoFork, Fork, blobs};
use node_types::buffer::JsonBuffer;
use node_types::consensus::{Bloom, Header, HeaderField, Log, Receipt, ReceiptOutcome, TransactionBody, Withdrawal};
use node_types::{BlockNumber, H256, U256};
use revm::context::result::ExecutionResult;

/// A block that is being executed on revm.
pub(crate) struct EvmBlock<'a> {
    run: RunContext<'a>,
    header: &'a Header,
    fork: Fork,
    parent: BlockNumber,
    pub(crate) machine: Machine<'a>,
    /// In wei per blob gas.
    pub(crate) blob_base_fee: U256,
    /// Whether senders may have code, which EIP-3607 forbids.
    pub(crate) senders_with_code: bool,
    /// Whether receipts from before Byzantium have zero as state root.
    omits_state_roots: bool,
    /// The inspector of all transactions, if there is one.
    inspection: Option<Inspection<'a>>,
    receipts: Vec<Receipt>,
    gas_used: u64,
    blob_gas_used: u64,
}

impl<'a> EvmBlock<'a> {
    /// Creates the block and applies the changes that precede its first transaction.
    pub(crate) fn begin(run: RunContext<'a>, header: &'a Header) -> Result<Self, ExecutionError> {
        let mut block = Self::new(run, header)?;
        block.start()?;
        Ok(block)
    }

    /// Makes `inspector` inspect every further transaction.
    pub(crate) fn inspected_by(self, inspector: &'a mut dyn EvmInspector) -> Self {
        Self { inspection: Some(Inspection::Custom(inspector)), ..self }
    }

    /// Creates the block on its parent's state, without executing anything.
    pub(crate) fn new(run: RunContext<'a>, header: &'a Header) -> Result<Self, ExecutionError> {
        let RunContext { spec, codes, context, view, extensions } = run;
        context.check()?;
        // A genesis block has no parent state.
        let parent = header.number.checked_sub(1).ok_or(BackendError::UnknownBlock(header.number))?;
        let fork = spec.fork(header);
        let db = StateDb::new(view, parent, codes, fork)?;
        let cfg = extensions.configured(spec::configuration(spec, fork));
        let env = spec::environment(spec, fork, header);
        let machine = Machine::new(fork, cfg, env, db, context, extensions.precompiles(spec::spec_id(fork)));
        let blob_base_fee = fees::blob_base_fee(spec, header).unwrap_or(U256::one());
        Ok(Self {
            run,
            header,
            fork,
            parent,
            machine,
            blob_base_fee,
            senders_with_code: false,
            omits_state_roots: false,
            inspection: None,
            receipts: Vec::new(),
            gas_used: 0,
            blob_gas_used: 0,
        })
    }

    /// Applies the changes that precede the first transaction: the DAO fork and system calls.
    pub(crate) fn start(&mut self) -> Result<(), ExecutionError> {
        if self.run.spec.dao_fork == Some(DaoFork { block: self.header.number, supported: true }) {
            dao::move_balances(self.machine.db())?;
        }
        system::begin(&mut self.machine, self.fork, self.header)
    }

    /// Executes a transaction and stores its receipt.
    pub(crate) fn execute(&mut self, transaction: &RecoveredTransaction) -> Result<ExecutionResult, ExecutionError> {
        let result = self.run_transaction(transaction)?;
        self.record(transaction, &result)?;
        Ok(result)
    }

    /// Checks the rules that revm does not check: transaction type, chain id, signature, remaining gas and blobs.
    fn check(&self, transaction: &RecoveredTransaction) -> Result<(), TransactionError> {
        let body = &transaction.transaction.body;
        let kind = body.transaction_type();
        if !self.fork.allows(kind) {
            return Err(TransactionError::TypeNotSupported(kind as u8));
        }
        if let Some(got) = body.chain_id() {
            if self.fork < Fork::SpuriousDragon {
                return Err(TransactionError::ReplayProtectionTooEarly { chain_id: got });
            }
            if got != self.run.spec.chain_id {
                return Err(TransactionError::ChainId { got, expected: self.run.spec.chain_id });
            }
        }
        if self.fork >= Fork::Homestead && is_high_s(&transaction.transaction.signature) {
            return Err(TransactionError::Signature(SignatureError::HighS));
        }
        let available = self.header.gas_limit.saturating_sub(self.gas_used);
        if body.gas_limit() > available {
            return Err(TransactionError::BlockGasExceeded { limit: body.gas_limit(), available });
        }
        if let TransactionBody::Blob(blob) = body {
            self.check_blobs(&blob.blob_versioned_hashes, blob.max_fee_per_blob_gas)?;
        }
        Ok(())
    }

    /// Checks the rules on blobs (EIP-4844, EIP-7594, EIP-7892).
    fn check_blobs(&self, versioned_hashes: &[H256], fee_cap: U256) -> Result<(), TransactionError> {
        if versioned_hashes.is_empty() {
            return Err(TransactionError::NoBlobs);
        }
        if let Some((index, hash)) = blobs::unknown_version(versioned_hashes) {
            return Err(TransactionError::BlobVersion { index, hash });
        }
        let count = versioned_hashes.len() as u64;
        if let Some(limit) = blobs::max_blobs_per_transaction(self.fork).filter(|limit| count > *limit) {
            return Err(TransactionError::TooManyBlobs { count, limit });
        }
        let count = self.blob_gas_used / GAS_PER_BLOB + count;
        let limit = self.run.spec.blob_params(self.header.timestamp).map_or(0, |params| params.max);
        if count > limit {
            return Err(TransactionError::TooManyBlobs { count, limit });
        }
        if fee_cap < self.blob_base_fee {
            return Err(TransactionError::BlobFeeCapTooLow { cap: fee_cap, base_fee: self.blob_base_fee });
        }
        Ok(())
    }

    fn run_transaction(&mut self, transaction: &RecoveredTransaction) -> Result<ExecutionResult, ExecutionError> {
        let terms = self.prepare(transaction)?;
        let mut transaction = transaction::to_evm(transaction);
        if self.machine.rules().disable_nonce_check {
            // revm refuses the maximum nonce even if it does not check nonces.
            transaction.nonce = 0;
        }
        let (result, state) = match &mut self.inspection {
            Some(inspection) => self.machine.inspect(transaction, inspection),
            None => self.machine.run(transaction),
        };
        let result = result.map_err(|fault| refusal(&mut self.machine, &terms, fault))?;
        if self.fork.has(HeaderField::RequestsHash) {
            requests::check(self.run.spec, result.logs())?;
        }
        self.machine.db().commit(state)?;
        Ok(result)
    }

    /// Checks the rules that revm does not check, and configures the machine for the transaction.
    fn prepare(&mut self, transaction: &RecoveredTransaction) -> Result<TransactionTerms, ExecutionError> {
        self.run.context.check()?;
        self.check(transaction)?;
        let terms = terms(transaction);
        let body = &transaction.transaction.body;
        let prices = [body.max_fee_per_gas(), max_fee_per_blob_gas(body)];
        if prices.iter().any(|price| U256::from(saturating_price(*price)) != *price) {
            let balance = self.machine.balance(terms.sender)?;
            return Err(terms.beyond_128_bits(balance).into());
        }
        self.machine.allow_senders_with_code(self.senders_with_code || transaction.is_impersonating());
        Ok(terms)
    }

    /// Stores the receipt of a transaction, without logs that represent transfers of ether.
    fn record(&mut self, transaction: &RecoveredTransaction, result: &ExecutionResult) -> Result<(), ExecutionError> {
        let outcome = self.outcome(result.is_success())?;
        let body = &transaction.transaction.body;
        self.gas_used += result.tx_gas_used();
        self.blob_gas_used += body.blob_versioned_hashes().len() as u64 * GAS_PER_BLOB;
        let logs: Vec<Log> = match result {
            ExecutionResult::Success { logs, .. } => {
                let entries = self.machine.log_entries(logs.len());
                let is_transfer = |index: usize| entries.get(index).is_some_and(|entry| entry.is_transfer);
                let by_code = logs.iter().enumerate().filter(|(index, _)| !is_transfer(*index));
                by_code.map(|(_, log)| log.to_node()).collect()
            }
            ExecutionResult::Revert { .. } | ExecutionResult::Halt { .. } => Vec::new(),
        };
        self.receipts.push(Receipt {
            transaction_type: body.transaction_type(),
            outcome,
            cumulative_gas_used: self.gas_used,
            logs_bloom: logs.iter().collect::<Bloom>(),
            logs,
        });
        Ok(())
    }

    fn outcome(&mut self, succeeded: bool) -> Result<ReceiptOutcome, ExecutionError> {
        if self.fork >= Fork::Byzantium {
            return Ok(ReceiptOutcome::Success(succeeded));
        }
        if self.omits_state_roots {
            return Ok(ReceiptOutcome::StateRoot(H256::zero()));
        }
        let changes = self.machine.db().changes();
        Ok(ReceiptOutcome::StateRoot(self.run.view.state(self.parent)?.root_after(&changes)?))
    }
}

impl BlockExecution for EvmBlock<'_> {
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<&Receipt, ExecutionError> {
        self.execute(transaction)?;
        // `execute` has pushed one.
        Ok(&self.receipts[self.receipts.len() - 1])
    }

    fn omit_state_roots(&mut self) {
        self.omits_state_roots = true;
    }

    fn trace(
        &mut self,
        transaction: &RecoveredTransaction,
        tracing: &Tracing,
        out: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        let terms = self.prepare(transaction)?;
        let block = self.run.view.canonical_hash(self.header.number).map_err(ExecutionError::from)?;
        let place = Place {
            block_hash: block,
            index: Some(self.receipts.len()),
            hash: Some(transaction.hash),
            first_log: self.receipts.iter().map(|receipt| receipt.logs.len() as u64).sum(),
        };
        let evm = transaction::to_evm(transaction);
        let tracers = &self.run.extensions.tracers;
        let TracedRun { result, state } = trace::run(&mut self.machine, evm, &terms, place, tracing, tracers, out)?;
        self.machine.db().commit(state).map_err(ExecutionError::from)?;
        self.record(transaction, &result)?;
        Ok(())
    }

    fn trace_call(self: Box<Self>, call: &Call, tracing: &Tracing, out: &mut JsonBuffer) -> Result<(), TraceError> {
        CallRun::over(self.run, self.machine.into_db(), self.header, call)?.trace(tracing, out)
    }

    fn gas_used(&self) -> u64 {
        self.gas_used
    }

    fn blob_gas_used(&self) -> u64 {
        self.blob_gas_used
    }

    fn finish(
        self: Box<Self>,
        ommers: &[Header],
        withdrawals: Option<&[Withdrawal]>,
    ) -> Result<BlockOutcome, ExecutionError> {
        let Self { run, header, fork, mut machine, receipts, gas_used, blob_gas_used, .. } = *self;
        run.context.check()?;
        rewards::pay_rewards(machine.db(), fork, header, ommers)?;
        rewards::pay_withdrawals(machine.db(), fork, withdrawals.unwrap_or_default())?;
        let requests = if fork.has(HeaderField::RequestsHash) {
            Some(requests::collect(&mut machine, run.spec, &receipts)?)
        } else {
            None
        };
        let changes = machine.db().changes();
        Ok(BlockOutcome { receipts, gas_used, blob_gas_used, requests, changes })
    }
}

fn max_fee_per_blob_gas(body: &TransactionBody) -> U256 {
    match body {
        TransactionBody::Blob(body) => body.max_fee_per_blob_gas,
        _ => U256::zero(),
    }
}

fn terms(transaction: &RecoveredTransaction) -> TransactionTerms {
    let body = &transaction.transaction.body;
    TransactionTerms {
        sender: transaction.sender,
        price: Property::fee_of(body),
        fee_cap: body.max_fee_per_gas(),
        tip_cap: body.max_priority_fee_per_gas(),
        input_length: body.input().len(),
        value: body.value(),
        required: fees::highest_cost(body),
    }
}
