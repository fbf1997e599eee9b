//! Message calls that are no transactions.

use crate::convert::{ToNode, saturating_price};
use crate::database::StateDb;
use crate::executor::EvmExecutor;
use crate::machine::Machine;
use crate::refusal::{Offer, beyond_128_bits, refusal};
use crate::{overrides, revert, spec, transaction};
use node_core::backend::View;
use node_core::context::Context;
use node_core::executor::{Call, CallFailure, CallOutcome, ExecutionError, TransactionError};
use node_core::forks::{ChainSpec, Fork};
use node_types::U256;
use node_types::consensus::Header;
use revm::context::result::{ExecutionResult, HaltReason};
use revm::context::{BlockEnv, TxEnv};

/// A call that is ready to run, as often as wanted: no run sees what another did.
pub(crate) struct CallRun<'a> {
    context: &'a Context,
    machine: Machine<'a>,
    transaction: TxEnv,
    offer: Offer,
    call: &'a Call,
    /// Wei that the sender has beside the value of the call and the price of its blobs.
    available: U256,
    /// The fork in force.
    pub(crate) fork: Fork,
    /// Gas limit of the block.
    pub(crate) block_gas_limit: u64,
}

impl<'a> CallRun<'a> {
    /// Prepares `call` in the environment of `header`, over the state as of that block.
    ///
    /// Nonce, EIP-3607, EIP-7825 and the block's gas limit are not checked. Without a price neither are fees, and BASEFEE
    /// and BLOBBASEFEE read 0.
    pub(crate) fn new(
        executor: &'a EvmExecutor,
        context: &'a Context,
        view: &'a dyn View,
        header: &Header,
        call: &'a Call,
    ) -> Result<Self, ExecutionError> {
        context.check()?;
        let spec = executor.spec();
        let state_of = header.number;
        // Whatever the difficulty reads, the block is of the merged chain or it is not.
        let merged = header.difficulty.is_zero();
        let mut header = header.clone();
        call.block_overrides.apply(&mut header);
        let fork = spec.fork_at(header.number, header.timestamp, merged);
        let mut cfg = spec::configuration(spec, fork);
        cfg.disable_nonce_check = true;
        cfg.disable_eip3607 = true;
        cfg.disable_block_gas_limit = true;
        cfg.tx_gas_limit_cap = Some(u64::MAX);
        let environment = environment(spec, fork, &header, call);
        let mut db = StateDb::new(view, state_of, executor.codes(), fork);
        overrides::apply(&mut db, &call.overrides)?;
        let mut machine = Machine::new(fork, cfg, environment, db, context);
        overrides::apply_to_precompiles(&mut machine, &call.overrides)?;

        let balance = machine.balance(call.from)?;
        let blob_fees = call.highest_blob_fees();
        let available = blob_fees
            .and_then(|fees| fees.checked_add(call.value))
            .and_then(|required| balance.checked_sub(required))
            .ok_or_else(|| {
                let required = blob_fees.and_then(|fees| fees.checked_add(call.value)).unwrap_or(U256::MAX);
                TransactionError::InsufficientFunds { balance, required }
            })?;
        let offer = Offer {
            sender: call.from,
            fee_cap: call.gas_price,
            tip_cap: call.tip_cap(),
            input_length: call.input.len(),
            required: None,
        };
        let block_gas_limit = header.gas_limit;
        let transaction = transaction::of_call(call, fork, spec.chain_id);
        Ok(Self { context, machine, transaction, offer, call, available, fork, block_gas_limit })
    }

    /// Runs the call once, with as much gas as it may have.
    pub(crate) fn call(mut self) -> Result<CallOutcome, ExecutionError> {
        let budget = self.context.gas_budget();
        let gas = match self.call.gas {
            Some(gas) => gas.min(budget),
            None => budget.min(self.affordable_gas().unwrap_or(u64::MAX)),
        };
        match self.run(gas) {
            Ok(result) => Ok(outcome(result)),
            Err(ExecutionError::Refused(
                TransactionError::IntrinsicGas { limit, required } | TransactionError::FloorGas { limit, required },
            )) if self.call.gas.is_none_or(|asked| asked > limit) => self.too_little_gas(limit, required),
            Err(error) => Err(error),
        }
    }

    /// Gas asked for by the caller.
    pub(crate) fn asked_gas(&self) -> Option<u64> {
        self.call.gas
    }

    /// Gas that the context grants.
    pub(crate) fn gas_budget(&self) -> u64 {
        self.context.gas_budget()
    }

    /// Gas that the sender can pay for after the value; none where gas costs nothing.
    pub(crate) fn affordable_gas(&self) -> Option<u64> {
        let gas = self.available.checked_div(self.call.gas_price)?;
        Some(u64::try_from(gas).unwrap_or(u64::MAX))
    }

    /// Runs the call with a gas limit.
    pub(crate) fn run(&mut self, gas_limit: u64) -> Result<ExecutionResult, ExecutionError> {
        self.context.check()?;
        self.offer.required = self.required(gas_limit);
        let prices = [self.call.gas_price, self.call.max_fee_per_blob_gas];
        if prices.iter().any(|price| U256::from(saturating_price(*price)) != *price) {
            let balance = self.machine.balance(self.call.from)?;
            return Err(beyond_128_bits(balance, self.offer.required).into());
        }
        let transaction = TxEnv { gas_limit, ..self.transaction.clone() };
        self.machine.simulate(transaction).map_err(|fault| refusal(&mut self.machine, &self.offer, fault))
    }

    /// The answer where it was not the caller who set a limit below what the call costs before any code runs.
    fn too_little_gas(mut self, limit: u64, required: u64) -> Result<CallOutcome, ExecutionError> {
        if limit == self.context.gas_budget() {
            return Ok(CallOutcome::Failed(CallFailure::GasCap { cap: limit }));
        }
        let balance = self.machine.balance(self.call.from)?;
        let required = self.required(required).unwrap_or(U256::MAX);
        Err(TransactionError::InsufficientFunds { balance, required }.into())
    }

    /// The most that the call can cost in wei with a gas limit; none where that does not fit 256 bits.
    fn required(&self, gas_limit: u64) -> Option<U256> {
        let fee = self.call.gas_price.checked_mul(gas_limit.into())?;
        fee.checked_add(self.call.highest_blob_fees()?)?.checked_add(self.call.value)
    }
}

/// What the code of `call` can learn of the block `header`. Where fees are not checked they read 0.
fn environment(spec: &ChainSpec, fork: Fork, header: &Header, call: &Call) -> BlockEnv {
    let mut environment = spec::environment(spec, fork, header);
    if call.is_free() {
        environment.basefee = 0;
    }
    let free_blobs = call.max_fee_per_blob_gas.is_zero() && (call.is_free() || !call.blob_versioned_hashes.is_empty());
    let price = if free_blobs { Some(U256::zero()) } else { call.block_overrides.blob_base_fee };
    if let (Some(blob), Some(price)) = (&mut environment.blob_excess_gas_and_price, price) {
        blob.blob_gasprice = saturating_price(price);
    }
    environment
}

/// How a run ended.
fn outcome(result: ExecutionResult) -> CallOutcome {
    match result {
        ExecutionResult::Success { output, gas, .. } => {
            CallOutcome::Returned { output: output.into_data().to_node(), gas_used: gas.tx_gas_used() }
        }
        ExecutionResult::Revert { output, .. } => CallOutcome::Failed(reverted(&output)),
        ExecutionResult::Halt { reason, .. } => CallOutcome::Failed(halted(&reason)),
    }
}

/// A revert with its reason.
pub(crate) fn reverted(output: &revm::primitives::Bytes) -> CallFailure {
    CallFailure::Reverted { reason: revert::reason(output), output: output.to_node() }
}

/// An exceptional halt in words.
pub(crate) fn halted(reason: &HaltReason) -> CallFailure {
    CallFailure::Halted { reason: reason.to_string() }
}
