//! Calls that are not transactions.

pub(crate) mod access_list;
pub(crate) mod collector;
pub(crate) mod estimate;
pub(crate) mod overrides;
pub(crate) mod revert;

use crate::convert::{ToNode, saturating_price};
use crate::extension::EvmInspector;
use crate::machine::context::{MANY_BYTES, check_quick};
use crate::machine::halt::REVERTED;
use crate::machine::refusal::{TransactionTerms, refusal};
use crate::machine::{Machine, RunContext, spec, transaction};
use crate::state::StateDb;
use crate::trace;
use crate::trace::inspection::Inspection;
use crate::trace::tracer::Place;
use node_core::executor::{
    Call, CallFailure, CallOutcome, ExecutionError, Property, TraceError, Tracing, TransactionError,
};
use node_core::protocol::gas::{TRANSACTION_GAS, floor_gas, intrinsic_gas};
use node_core::protocol::{ChainSpec, Fork, blobs};
use node_types::U256;
use node_types::buffer::JsonBuffer;
use node_types::consensus::Header;
use revm::context::result::{ExecutionResult, HaltReason};
use revm::context::{BlockEnv, TxEnv};
use revm::context_interface::transaction::{AccessList, TransactionType};
use std::borrow::Cow;

/// Maximum gas of a call that is quick: with more, a single instruction can allocate much memory.
const MOST_QUICK_GAS: u64 = 50_000_000;

/// Returns whether preparing a call takes no more than microseconds.
fn is_quick(call: &Call) -> bool {
    call.overrides.is_empty() && call.authorization_list.is_empty() && call.access_list.is_empty()
}

/// A call that can be run any number of times. No run sees the changes of another.
pub(crate) struct CallRun<'a> {
    run: RunContext<'a>,
    machine: Machine<'a>,
    transaction: TxEnv,
    terms: TransactionTerms,
    call: Cow<'a, Call>,
    /// The amount in wei that the sender has left to pay for gas, after the value of the call and its blob fees.
    available: U256,
    pub(crate) fork: Fork,
    pub(crate) block_gas_limit: u64,
}

impl<'a> CallRun<'a> {
    /// Prepares `call` in the environment of `header`, on the state as of that block.
    ///
    /// The nonce, the sender's code (EIP-3607), the transaction gas cap (EIP-7825) and the block's gas limit are not
    /// checked. If the call has no gas price, fees are not checked either, and BASEFEE returns 0; if it has blobs
    /// without a blob fee cap, BLOBBASEFEE returns 0. BLOCKHASH knows the ancestors of `header`, also if the number of
    /// the block is overridden.
    pub(crate) fn new(run: RunContext<'a>, header: &Header, call: &'a Call) -> Result<Self, ExecutionError> {
        let db = StateDb::new(run.view, header.number, run.codes, run.spec.fork(header))?;
        let db = db.with_ancestors_of(header.number);
        Self::over(run, db, header, call)
    }

    /// Like [`new`](Self::new), but on the state `db`.
    pub(crate) fn over(
        run: RunContext<'a>,
        db: StateDb<'a>,
        header: &Header,
        call: &'a Call,
    ) -> Result<Self, ExecutionError> {
        let RunContext { spec, context, extensions, .. } = run;
        context.check()?;
        check_quick(is_quick(call))?;
        let (header, fork) = overridden(spec, header, call);
        let call = priced(call, fork);
        let mut db = db.with_fork(fork);
        let mut cfg = extensions.configured(spec::configuration(spec, fork));
        cfg.disable_nonce_check = true;
        cfg.disable_eip3607 = true;
        cfg.disable_block_gas_limit = true;
        cfg.tx_gas_limit_cap = Some(u64::MAX);
        let environment = environment(spec, fork, &header, &call);
        overrides::apply(&mut db, &call.overrides)?;
        let mut machine =
            Machine::new(fork, cfg, environment, db, context, extensions.precompiles(spec::spec_id(fork)));
        overrides::apply_to_precompiles(&mut machine, &call.overrides)?;

        if let Some((index, hash)) = blobs::unknown_version(&call.blob_versioned_hashes) {
            return Err(TransactionError::BlobVersion { index, hash }.into());
        }
        let balance = machine.balance(call.from)?;
        let terms = TransactionTerms {
            sender: call.from,
            price: match call.max_priority_fee_per_gas {
                Some(_) => Property::MaxFeePerGas,
                None => Property::GasPrice,
            },
            fee_cap: call.gas_price,
            tip_cap: call.tip_cap(),
            value: call.value,
            input_length: call.input.len(),
            required: call.highest_blob_fees().and_then(|fees| fees.checked_add(call.value)),
        };
        let available = terms.required.and_then(|required| balance.checked_sub(required));
        let block_gas_limit = header.gas_limit;
        let transaction = transaction::of_call(&call, fork, spec.chain_id);
        let is_payable = available.is_some();
        let available = available.unwrap_or_default();
        let mut call = Self { run, machine, transaction, terms, call, available, fork, block_gas_limit };
        if is_payable {
            return Ok(call);
        }
        let gas = call.least_gas(spec.chain_id);
        Err(call.insufficient_funds(gas)?.into())
    }

    /// Runs the call once with its highest gas limit.
    pub(crate) fn call(mut self) -> Result<CallOutcome, ExecutionError> {
        match self.run(self.gas_limit()) {
            Ok(result) => Ok(self.outcome(result)),
            Err(ExecutionError::Refused(
                TransactionError::IntrinsicGas { limit, .. } | TransactionError::FloorGas { limit, .. },
            )) if self.is_limited_by(limit) && limit == self.gas_budget() => {
                Ok(CallOutcome::Failed(CallFailure::GasCap { cap: limit }))
            }
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Runs the call once with its highest gas limit and appends its trace to `out`.
    pub(crate) fn trace(mut self, tracing: &Tracing, out: &mut JsonBuffer) -> Result<(), TraceError> {
        let transaction = self.transaction(self.gas_limit())?;
        let tracers = &self.run.extensions.tracers;
        match trace::run(&mut self.machine, transaction, &self.terms, Place::default(), tracing, tracers, out) {
            Ok(_) => Ok(()),
            Err(TraceError::Execution(error)) => Err(self.explained(error).into()),
            Err(error) => Err(error),
        }
    }

    /// Runs the call once with its highest gas limit, under `inspector`.
    pub(crate) fn inspect(mut self, inspector: &'a mut dyn EvmInspector) -> Result<CallOutcome, ExecutionError> {
        let transaction = self.transaction(self.gas_limit())?;
        let (result, _) = self.machine.inspect(transaction, &mut Inspection::Custom(inspector));
        match result {
            Ok(result) => Ok(self.outcome(result)),
            Err(fault) => {
                let error = refusal(&mut self.machine, &self.terms, fault);
                Err(self.explained(error))
            }
        }
    }

    /// Converts the result of the last run.
    fn outcome(&self, result: ExecutionResult) -> CallOutcome {
        match result {
            ExecutionResult::Success { output, gas, .. } => {
                CallOutcome::Returned { output: output.into_data().to_node(), gas_used: gas.tx_gas_used() }
            }
            ExecutionResult::Revert { output, .. } => CallOutcome::Failed(reverted(&output)),
            ExecutionResult::Halt { reason, .. } => CallOutcome::Failed(self.halted(reason)),
        }
    }

    /// Returns the failure of the last run, which halted for `reason`.
    pub(crate) fn halted(&self, reason: HaltReason) -> CallFailure {
        self.machine.halted(reason)
    }

    /// Returns the error text of a run for an access list, or `None` if it succeeded.
    pub(crate) fn failure(&self, result: &ExecutionResult) -> Option<String> {
        match result {
            ExecutionResult::Success { .. } => None,
            ExecutionResult::Revert { .. } => Some(REVERTED.to_owned()),
            ExecutionResult::Halt { reason, .. } => Some(self.machine.halt_text(reason.clone()).into_owned()),
        }
    }

    /// Returns the access list that the caller has set.
    pub(crate) fn access_list(&self) -> AccessList {
        self.transaction.access_list.clone()
    }

    /// Runs the call with an access list under `inspection`.
    pub(crate) fn with_access_list(
        &mut self,
        access_list: AccessList,
        inspection: &mut Inspection<'a>,
    ) -> Result<ExecutionResult, ExecutionError> {
        let mut transaction = TxEnv { access_list, ..self.transaction(self.gas_limit())? };
        if transaction.tx_type == TransactionType::Legacy as u8 {
            transaction.tx_type = TransactionType::Eip2930 as u8;
        }
        let (result, _) = self.machine.inspect(transaction, inspection);
        result.map_err(|fault| {
            let error = refusal(&mut self.machine, &self.terms, fault);
            self.explained(error)
        })
    }

    /// Returns the highest gas limit of a run: the one that the caller has set, or otherwise the gas that the sender
    /// can pay for; at most the gas budget.
    fn gas_limit(&self) -> u64 {
        let gas = self.call.gas.or_else(|| self.affordable_gas());
        gas.unwrap_or(u64::MAX).min(self.gas_budget())
    }

    /// Returns the gas limit that the caller has set.
    pub(crate) fn requested_gas(&self) -> Option<u64> {
        self.call.gas
    }

    /// Returns the maximum gas limit of a transaction, or `None` if only that of the block applies.
    pub(crate) fn transaction_gas_cap(&self) -> Option<u64> {
        self.run.spec.transaction_gas_cap(self.fork)
    }

    pub(crate) fn gas_budget(&self) -> u64 {
        self.run.context.gas_budget()
    }

    /// Returns the gas that the sender can pay for, or `None` if the gas price is zero.
    pub(crate) fn affordable_gas(&self) -> Option<u64> {
        let gas = self.available.checked_div(self.call.gas_price)?;
        Some(u64::try_from(gas).unwrap_or(u64::MAX))
    }

    /// Runs the call with a gas limit.
    pub(crate) fn run(&mut self, gas_limit: u64) -> Result<ExecutionResult, ExecutionError> {
        let transaction = self.transaction(gas_limit)?;
        check_quick(gas_limit <= MOST_QUICK_GAS)?;
        // Where nothing is charged, the account of the fee recipient need not be read.
        self.machine.rules().disable_fee_charge = self.call.is_free() && self.call.blob_versioned_hashes.is_empty();
        let result = self.machine.simulate(transaction);
        let result = result.map_err(|fault| refusal(&mut self.machine, &self.terms, fault))?;
        check_quick(result.output().is_none_or(|output| output.len() <= MANY_BYTES))?;
        Ok(result)
    }

    /// Returns the call with a gas limit as a revm transaction.
    fn transaction(&mut self, gas_limit: u64) -> Result<TxEnv, ExecutionError> {
        self.run.context.check()?;
        self.terms.required = self.required(gas_limit);
        let prices = [self.call.gas_price, self.call.max_fee_per_blob_gas];
        if prices.iter().any(|price| U256::from(saturating_price(*price)) != *price) {
            let balance = self.machine.balance(self.call.from)?;
            return Err(self.terms.beyond_128_bits(balance).into());
        }
        Ok(TxEnv { gas_limit, ..self.transaction.clone() })
    }

    /// Returns whether the gas budget or the sender's balance, rather than the caller, has set the gas limit of a run.
    fn is_limited_by(&self, limit: u64) -> bool {
        self.call.gas.is_none_or(|asked| asked > limit)
    }

    /// Explains a gas limit below the intrinsic gas that results from what the sender can pay for.
    fn explained(&mut self, error: ExecutionError) -> ExecutionError {
        match error {
            ExecutionError::Refused(
                TransactionError::IntrinsicGas { limit, required } | TransactionError::FloorGas { limit, required },
            ) if self.is_limited_by(limit) && limit != self.gas_budget() => match self.insufficient_funds(required) {
                Ok(error) => error.into(),
                Err(error) => error,
            },
            error => error,
        }
    }

    /// Returns the gas limit that the caller has set, at most the gas budget, or otherwise the gas that the call needs
    /// before any code runs.
    fn least_gas(&self, chain_id: u64) -> u64 {
        let intrinsic = || {
            let body = Call::clone(&self.call).into_body(self.fork, chain_id, 0, 0)?;
            Some(intrinsic_gas(self.fork, &body).max(floor_gas(self.fork, &body).unwrap_or(0)))
        };
        self.call.gas.or_else(intrinsic).unwrap_or(TRANSACTION_GAS).min(self.gas_budget())
    }

    /// Returns the error that the sender cannot pay for `gas`.
    pub(crate) fn insufficient_funds(&mut self, gas: u64) -> Result<TransactionError, ExecutionError> {
        let balance = self.machine.balance(self.call.from)?;
        Ok(TransactionTerms { required: self.required(gas), ..self.terms }.insufficient_funds(balance))
    }

    /// Returns the maximum cost of the call in wei with a gas limit, or `None` if it exceeds 256 bits.
    fn required(&self, gas_limit: u64) -> Option<U256> {
        let fee = self.call.gas_price.checked_mul(gas_limit.into())?;
        fee.checked_add(self.call.highest_blob_fees()?)?.checked_add(self.call.value)
    }
}

/// Returns the header of the block that `call` runs in, with its overrides, and the fork in force.
fn overridden(spec: &ChainSpec, header: &Header, call: &Call) -> (Header, Fork) {
    // Overriding the difficulty does not change whether the block is after the merge.
    let merged = header.difficulty.is_zero();
    let mut header = header.clone();
    call.block_overrides.apply(&mut header);
    let fork = spec.fork_at(header.number, header.timestamp, merged);
    (header, fork)
}

/// Returns the call with the price that it pays. As in geth, fee caps have no effect without a base fee (EIP-1559): before
/// London there is one only if it is overridden.
fn priced(call: &Call, fork: Fork) -> Cow<'_, Call> {
    if fork >= Fork::London || call.max_priority_fee_per_gas.is_none() {
        return Cow::Borrowed(call);
    }
    let capped = |base_fee: u64| call.gas_price.min(call.tip_cap().saturating_add(base_fee.into()));
    let gas_price = call.block_overrides.base_fee_per_gas.map_or(U256::zero(), capped);
    Cow::Owned(Call { gas_price, max_priority_fee_per_gas: None, ..call.clone() })
}

/// Returns the block environment of `call`. Fees that are not checked are 0.
fn environment(spec: &ChainSpec, fork: Fork, header: &Header, call: &Call) -> BlockEnv {
    let mut environment = spec::environment(spec, fork, header);
    if call.is_free() {
        environment.basefee = 0;
    }
    let free_blobs = call.max_fee_per_blob_gas.is_zero() && !call.blob_versioned_hashes.is_empty();
    let price = if free_blobs { Some(U256::zero()) } else { call.block_overrides.blob_base_fee };
    if let (Some(blob), Some(price)) = (&mut environment.blob_excess_gas_and_price, price) {
        blob.blob_gasprice = saturating_price(price);
    }
    environment
}

/// Returns the failure of a reverted call, with the decoded reason.
pub(crate) fn reverted(output: &revm::primitives::Bytes) -> CallFailure {
    CallFailure::Reverted { reason: revert::reason(output), output: output.to_node() }
}
