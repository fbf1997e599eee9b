//! Execution of simulated blocks.

use crate::block::EvmBlock;
use crate::call::{overrides, reverted};
use crate::convert::{ToEvm, ToNode, saturating_price};
use crate::machine::RunContext;
use node_core::block::RecoveredTransaction;
use node_core::executor::{
    BlockExecution, BlockOutcome, ExecutionError, SimulatedCallOutcome, SimulatedExecution, SimulationRules,
    TransactionError,
};
use node_types::consensus::{Header, TransactionBody, Withdrawal};
use node_types::{Address, Bytes, U256};
use revm::context::result::ExecutionResult;
use std::cmp::Ordering;

/// A simulated block that is being executed on revm.
pub(crate) struct EvmSimulation<'a> {
    block: EvmBlock<'a>,
    validate: bool,
    blob_base_fee: U256,
}

impl<'a> EvmSimulation<'a> {
    /// Applies the overrides to the parent's state, and then the changes that precede the first transaction.
    pub(crate) fn begin(
        run: RunContext<'a>,
        header: &'a Header,
        simulated: &SimulationRules<'_>,
    ) -> Result<Self, ExecutionError> {
        let mut block = EvmBlock::new(run, header)?;
        overrides::apply_to_precompiles(&mut block.machine, simulated.overrides)?;
        overrides::apply(block.machine.db(), simulated.overrides)?;
        block.senders_with_code = true;
        let rules = block.machine.rules();
        rules.disable_nonce_check = !simulated.validate;
        rules.disable_block_gas_limit = true;
        rules.tx_gas_limit_cap = Some(u64::MAX);
        block.machine.number_logs(simulated.trace_transfers);
        let blob_base_fee = simulated.blob_base_fee.unwrap_or(block.blob_base_fee);
        block.start()?;
        Ok(Self { block, validate: simulated.validate, blob_base_fee })
    }

    /// Sets the base fees that the next transaction is checked against. Without validation, a transaction with a gas
    /// price of zero is not checked.
    fn set_fees(&mut self, body: &TransactionBody) {
        let free = body.max_fee_per_gas().is_zero() && body.max_priority_fee_per_gas().is_zero();
        self.block.machine.rules().disable_base_fee = free && !self.validate;
        let blobs_free = matches!(body, TransactionBody::Blob(blob) if blob.max_fee_per_blob_gas.is_zero());
        let price = if blobs_free && !self.validate { U256::zero() } else { self.blob_base_fee };
        self.block.blob_base_fee = price;
        if let Some(blob) = &mut self.block.machine.block_mut().blob_excess_gas_and_price {
            blob.blob_gasprice = saturating_price(price);
        }
    }

    /// With validation, checks the nonce. This check precedes the check of fees.
    fn check_nonce(&mut self, transaction: &RecoveredTransaction) -> Result<(), ExecutionError> {
        let (got, expected) = (transaction.transaction.body.nonce(), self.nonce(transaction.sender)?);
        match got.cmp(&expected) {
            _ if !self.validate => Ok(()),
            Ordering::Less => Err(TransactionError::NonceTooLow { got, expected }.into()),
            Ordering::Greater => Err(TransactionError::NonceTooHigh { got, expected }.into()),
            Ordering::Equal if got == u64::MAX => Err(TransactionError::NonceOverflow.into()),
            Ordering::Equal => Ok(()),
        }
    }

    /// Wraps the nonce of the sender around to 0. Only an override can set the maximum nonce, and only without
    /// validation may such an account send.
    fn wrap_nonce(&mut self, sender: Address) -> Result<(), ExecutionError> {
        let address = sender.to_evm();
        let db = self.block.machine.db();
        let account = db.account(address)?.cloned();
        db.set_account(address, account.map(|account| revm::state::AccountInfo { nonce: 0, ..account }))?;
        Ok(())
    }
}

impl SimulatedExecution for EvmSimulation<'_> {
    fn nonce(&mut self, sender: Address) -> Result<u64, ExecutionError> {
        let account = self.block.machine.db().account(sender.to_evm())?;
        Ok(account.map_or(0, |account| account.nonce))
    }

    fn transact(&mut self, transaction: &RecoveredTransaction) -> Result<SimulatedCallOutcome, ExecutionError> {
        self.check_nonce(transaction)?;
        self.set_fees(&transaction.transaction.body);
        let last_nonce = self.nonce(transaction.sender)? == u64::MAX;
        let result = self.block.execute(transaction)?;
        if last_nonce {
            self.wrap_nonce(transaction.sender)?;
        }
        let gas_used = result.tx_gas_used();
        let max_used_gas = result.gas().total_gas_spent().max(gas_used);
        let call = |output, logs, failure| SimulatedCallOutcome { output, logs, gas_used, max_used_gas, failure };
        Ok(match result {
            ExecutionResult::Success { output, logs, .. } => {
                let entries = self.block.machine.log_entries(logs.len()).iter();
                let logs = entries.zip(&logs).map(|(entry, log)| (entry.index, log.to_node())).collect();
                call(output.into_data().to_node(), logs, None)
            }
            ExecutionResult::Revert { output, .. } => call(Bytes::new(), Vec::new(), Some(reverted(&output))),
            ExecutionResult::Halt { reason, .. } => {
                call(Bytes::new(), Vec::new(), Some(self.block.machine.halted(reason)))
            }
        })
    }

    fn finish(self: Box<Self>, withdrawals: Option<&[Withdrawal]>) -> Result<BlockOutcome, ExecutionError> {
        Box::new(self.block).finish(&[], withdrawals)
    }
}
