//! Whole blocks.

use crate::call::CallRun;
use crate::convert::{ToEvm, ToNode, saturating_price};
use crate::database::StateDb;
use crate::executor::EvmExecutor;
use crate::machine::Machine;
use crate::recovery::is_high_s;
use crate::refusal::{Offer, beyond_128_bits, refusal};
use crate::trace::{self, TracedRun};
use crate::{dao, requests, rewards, spec, system, transaction};
use node_core::backend::{BackendError, View};
use node_core::blobs;
use node_core::block::RecoveredTransaction;
use node_core::context::Context;
use node_core::crypto::SignatureError;
use node_core::executor::{BlockExecution, BlockOutcome, Call, ExecutionError, TransactionError};
use node_core::fees::{self, GAS_PER_BLOB};
use node_core::forks::{ChainSpec, Fork};
use node_core::trace::{Trace, TraceError, Tracing};
use node_types::consensus::{Bloom, Header, Log, Receipt, ReceiptOutcome, TransactionBody, Withdrawal};
use node_types::{BlockNumber, H256, U256};
use revm::context::result::ExecutionResult;
use revm_inspectors::tracing::TransactionContext;

/// A block while it is executed on revm.
pub(crate) struct EvmBlock<'a> {
    context: &'a Context,
    view: &'a dyn View,
    spec: &'a ChainSpec,
    header: &'a Header,
    fork: Fork,
    parent: BlockNumber,
    pub(crate) machine: Machine<'a>,
    /// Least price of blobs, in wei per blob gas.
    pub(crate) blob_base_fee: U256,
    /// Whether any sender may have code.
    pub(crate) contracts_send: bool,
    receipts: Vec<Receipt>,
    gas_used: u64,
    blob_gas_used: u64,
}

impl<'a> EvmBlock<'a> {
    /// Does what comes before the first transaction.
    pub(crate) fn begin(
        executor: &'a EvmExecutor,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Self, ExecutionError> {
        let mut block = Self::new(executor, context, view, header)?;
        block.start()?;
        Ok(block)
    }

    /// The block over its parent's state, before anything ran.
    pub(crate) fn new(
        executor: &'a EvmExecutor,
        context: &'a Context,
        view: &'a dyn View,
        header: &'a Header,
    ) -> Result<Self, ExecutionError> {
        context.check()?;
        // Nothing leads to a genesis block: it has no parent to start from.
        let parent = header.number.checked_sub(1).ok_or(BackendError::UnknownBlock(header.number))?;
        let spec = executor.spec();
        let fork = spec.fork(header);
        let db = StateDb::new(view, parent, executor.codes(), fork);
        let (cfg, env) = (spec::configuration(spec, fork), spec::environment(spec, fork, header));
        let machine = Machine::new(fork, cfg, env, db, context);
        let blob_base_fee = fees::blob_base_fee(spec, header).unwrap_or(U256::one());
        Ok(Self {
            context,
            view,
            spec,
            header,
            fork,
            parent,
            machine,
            blob_base_fee,
            contracts_send: false,
            receipts: Vec::new(),
            gas_used: 0,
            blob_gas_used: 0,
        })
    }

    /// Moves the balances of the DAO and calls system contracts.
    pub(crate) fn start(&mut self) -> Result<(), ExecutionError> {
        if self.spec.dao_fork == Some(self.header.number) {
            dao::move_balances(self.machine.db())?;
        }
        system::begin(&mut self.machine, self.fork, self.header)
    }

    /// Executes a transaction and keeps its receipt.
    pub(crate) fn execute(&mut self, transaction: &RecoveredTransaction) -> Result<ExecutionResult, ExecutionError> {
        let result = self.run(transaction)?;
        self.record(transaction, &result)?;
        Ok(result)
    }

    /// The rules that revm leaves to the block: those on types, signatures, gas left and blobs.
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
            if got != self.spec.chain_id {
                return Err(TransactionError::ChainId { got, expected: self.spec.chain_id });
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

    /// The rules on blobs (EIP-4844, EIP-7594, EIP-7892).
    fn check_blobs(&self, versioned_hashes: &[H256], fee_cap: U256) -> Result<(), TransactionError> {
        if versioned_hashes.is_empty() {
            return Err(TransactionError::NoBlobs);
        }
        if let Some(hash) = blobs::unknown_version(versioned_hashes) {
            return Err(TransactionError::BlobVersion(hash));
        }
        let count = versioned_hashes.len() as u64;
        if let Some(limit) = blobs::max_blobs_per_transaction(self.fork).filter(|limit| count > *limit) {
            return Err(TransactionError::TooManyBlobs { count, limit });
        }
        let count = self.blob_gas_used / GAS_PER_BLOB + count;
        let limit = self.spec.blob_params(self.header.timestamp).map_or(0, |params| params.max);
        if count > limit {
            return Err(TransactionError::TooManyBlobs { count, limit });
        }
        if fee_cap < self.blob_base_fee {
            return Err(TransactionError::BlobFeeCapTooLow { cap: fee_cap, base_fee: self.blob_base_fee });
        }
        Ok(())
    }

    fn run(&mut self, transaction: &RecoveredTransaction) -> Result<ExecutionResult, ExecutionError> {
        let offer = self.prepare(transaction)?;
        let mut transaction = transaction::to_evm(transaction);
        if self.machine.rules().disable_nonce_check {
            // revm looks at it all the same, and refuses the highest one.
            transaction.nonce = 0;
        }
        self.machine.transact(transaction).map_err(|fault| refusal(&mut self.machine, &offer, fault))
    }

    /// Checks what the machine leaves to the block, and makes the machine ready for the transaction.
    fn prepare(&mut self, transaction: &RecoveredTransaction) -> Result<Offer, ExecutionError> {
        self.context.check()?;
        self.check(transaction)?;
        let offer = offer(transaction);
        let body = &transaction.transaction.body;
        let prices = [body.max_fee_per_gas(), max_fee_per_blob_gas(body)];
        if prices.iter().any(|price| U256::from(saturating_price(*price)) != *price) {
            let balance = self.machine.balance(offer.sender)?;
            return Err(beyond_128_bits(balance, offer.required).into());
        }
        self.machine.let_contracts_send(self.contracts_send || transaction.is_impersonating());
        Ok(offer)
    }

    /// Makes the receipt of a transaction. Logs that tell transfers are not in it.
    fn record(&mut self, transaction: &RecoveredTransaction, result: &ExecutionResult) -> Result<(), ExecutionError> {
        let outcome = self.outcome(result.is_success())?;
        let body = &transaction.transaction.body;
        self.gas_used += result.tx_gas_used();
        self.blob_gas_used += body.blob_versioned_hashes().len() as u64 * GAS_PER_BLOB;
        let logs: Vec<Log> = match result {
            ExecutionResult::Success { logs, .. } => {
                let noted = self.machine.noted_logs(logs.len());
                let told = |index: usize| noted.get(index).is_some_and(|entry| entry.told);
                logs.iter().enumerate().filter(|(index, _)| !told(*index)).map(|(_, log)| log.to_node()).collect()
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
        let changes = self.machine.db().changes();
        Ok(ReceiptOutcome::StateRoot(self.view.state_root(self.parent, &changes)?))
    }
}

impl BlockExecution for EvmBlock<'_> {
    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<&Receipt, ExecutionError> {
        self.execute(transaction)?;
        // The one that was just pushed.
        Ok(&self.receipts[self.receipts.len() - 1])
    }

    fn trace(&mut self, transaction: &RecoveredTransaction, tracing: &Tracing) -> Result<Trace, TraceError> {
        let offer = self.prepare(transaction)?;
        let block = self.view.canonical_hash(self.header.number).map_err(ExecutionError::from)?;
        let place = TransactionContext {
            block_hash: block.map(|hash| hash.to_evm()),
            tx_index: Some(self.receipts.len()),
            tx_hash: Some(transaction.hash.to_evm()),
        };
        let TracedRun { trace, result, state } =
            trace::run(&mut self.machine, transaction::to_evm(transaction), &offer, place, tracing)?;
        self.machine.db().commit(state).map_err(ExecutionError::from)?;
        self.record(transaction, &result)?;
        Ok(trace)
    }

    fn trace_call(self: Box<Self>, call: &Call, tracing: &Tracing) -> Result<Trace, TraceError> {
        CallRun::over(self.spec, self.context, self.machine.into_db(), self.header, call)?.trace(tracing)
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
        let Self { context, spec, header, fork, mut machine, receipts, gas_used, blob_gas_used, .. } = *self;
        context.check()?;
        rewards::pay_rewards(machine.db(), fork, header, ommers)?;
        rewards::pay_withdrawals(machine.db(), fork, withdrawals.unwrap_or_default())?;
        let requests = match fork {
            fork if fork >= Fork::Prague => Some(requests::collect(&mut machine, spec, &receipts)?),
            _ => None,
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

fn offer(transaction: &RecoveredTransaction) -> Offer {
    let body = &transaction.transaction.body;
    Offer {
        sender: transaction.sender,
        fee_cap: body.max_fee_per_gas(),
        tip_cap: body.max_priority_fee_per_gas(),
        input_length: body.input().len(),
        required: fees::highest_cost(body),
    }
}
