//! Control of a chain that the node produces itself, for tests.

use super::{Node, NodeError, TransactionRequest, assemble};
use crate::block::BlockRef;
use crate::context::Context;
use crate::pool::PoolTransaction;
use crate::producer::{Producer, ProducerError};
use node_types::consensus::Withdrawal;
use node_types::wire::{
    ControlOutput, Data, DropTransactionInput, EmptyInput, ImpersonateInput, IncreaseTimeInput, MineInput, MineOutput,
    PoolContentOutput, Quantity, ReorganizeInput, ReorganizeOutput, SendRawTransactionOutput, SendTransactionInput,
    SetBalanceInput, SetCodeInput, SetNextBlockBaseFeeInput, SetNextBlockTimestampInput, SetNonceInput,
    SetStorageInput, SnapshotId, Transaction, UnsignedTransaction,
};
use node_types::{Address, U256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something was done.
const DONE: ControlOutput = ControlOutput { result: true };

impl Node {
    pub(super) fn controlled(&self) -> Result<&Arc<Producer>, NodeError> {
        self.producer.as_ref().ok_or(NodeError::NotProducing)
    }

    /// Makes blocks of what the pool holds, whether it holds anything or not.
    pub fn mine(&self, context: &Context, input: MineInput) -> Result<MineOutput, NodeError> {
        let MineInput { blocks, interval, withdrawals } = input;
        let withdrawals = withdrawals.into_iter().map(|withdrawal| Withdrawal {
            index: withdrawal.index,
            validator_index: withdrawal.validator_index,
            address: withdrawal.address.0,
            amount: withdrawal.amount.0,
        });
        let count = blocks.map_or(1, |blocks| blocks.0);
        let mined = self.controlled()?.mine(count, interval.map(|interval| interval.0), withdrawals.collect())?;
        let head = match mined.last() {
            Some(head) => *head,
            None => self.snapshot(context)?.view.head(),
        };
        let BlockRef { number, hash } = head;
        Ok(MineOutput { block_hash: Data(hash), block_number: Quantity(number) })
    }

    /// Lets the next block have a timestamp, from which time goes on.
    pub fn set_next_block_timestamp(
        &self,
        _context: &Context,
        input: SetNextBlockTimestampInput,
    ) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_next_timestamp(input.timestamp.0)?;
        Ok(DONE)
    }

    /// Lets the time of the chain jump ahead.
    pub fn increase_time(&self, _context: &Context, input: IncreaseTimeInput) -> Result<ControlOutput, NodeError> {
        self.controlled()?.increase_time(input.seconds.0)?;
        Ok(DONE)
    }

    /// Lets the next block have a base fee.
    pub fn set_next_block_base_fee(
        &self,
        _context: &Context,
        input: SetNextBlockBaseFeeInput,
    ) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_next_base_fee(input.base_fee.0)?;
        Ok(DONE)
    }

    /// Remembers the chain as it is.
    pub fn take_snapshot(&self, _context: &Context, _input: EmptyInput) -> Result<SnapshotId, NodeError> {
        Ok(SnapshotId { snapshot_id: Quantity(self.controlled()?.snapshot()?) })
    }

    /// Goes back to a snapshot. False where there is none of this number.
    pub fn revert(&self, _context: &Context, input: SnapshotId) -> Result<ControlOutput, NodeError> {
        match self.controlled()?.revert(input.snapshot_id.0) {
            Ok(()) => Ok(DONE),
            Err(ProducerError::UnknownSnapshot(_)) => Ok(ControlOutput { result: false }),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the newest blocks by empty ones.
    pub fn reorganize(&self, _context: &Context, input: ReorganizeInput) -> Result<ReorganizeOutput, NodeError> {
        let change = self.controlled()?.reorganize(input.blocks.0)?;
        let hashes = |blocks: Vec<BlockRef>| blocks.into_iter().map(|block| Data(block.hash)).collect();
        Ok(ReorganizeOutput { added: hashes(change.added), removed: hashes(change.removed) })
    }

    /// Lets anyone send transactions in the name of an account.
    pub fn impersonate(&self, _context: &Context, input: ImpersonateInput) -> Result<ControlOutput, NodeError> {
        let result = self.controlled()?.impersonate(input.address.0, true);
        Ok(ControlOutput { result })
    }

    /// Ends that.
    pub fn stop_impersonating(&self, _context: &Context, input: ImpersonateInput) -> Result<ControlOutput, NodeError> {
        let result = self.controlled()?.impersonate(input.address.0, false);
        Ok(ControlOutput { result })
    }

    /// Sends a transaction in the name of an impersonated account. What is not given is found out.
    pub fn send_transaction(
        &self,
        context: &Context,
        input: SendTransactionInput,
    ) -> Result<SendRawTransactionOutput, NodeError> {
        let producer = self.controlled()?;
        let sender = input.transaction.from.0;
        if !producer.is_impersonated(sender) {
            return Err(ProducerError::NotImpersonated(sender).into());
        }
        let hash = self.send_request(context, request(input.transaction), true)?;
        Ok(SendRawTransactionOutput { transaction_hash: Data(hash) })
    }

    /// Sets an account's balance.
    pub fn set_balance(&self, _context: &Context, input: SetBalanceInput) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_balance(input.address.0, input.balance.0)?;
        Ok(DONE)
    }

    /// Sets an account's nonce.
    pub fn set_nonce(&self, _context: &Context, input: SetNonceInput) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_nonce(input.address.0, input.nonce.0)?;
        Ok(DONE)
    }

    /// Sets an account's code.
    pub fn set_code(&self, _context: &Context, input: SetCodeInput) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_code(input.address.0, input.code.0)?;
        Ok(DONE)
    }

    /// Sets a storage slot of an account.
    pub fn set_storage(&self, _context: &Context, input: SetStorageInput) -> Result<ControlOutput, NodeError> {
        self.controlled()?.set_storage(input.address.0, input.position.0, input.value.0)?;
        Ok(DONE)
    }

    /// Drops a transaction of the pool. False where it is not in it.
    pub fn drop_transaction(
        &self,
        _context: &Context,
        input: DropTransactionInput,
    ) -> Result<ControlOutput, NodeError> {
        self.controlled()?;
        Ok(ControlOutput { result: self.pool.remove(input.transaction_hash.0)? })
    }

    /// All transactions of the pool.
    pub fn pool_content(&self, _context: &Context) -> Result<PoolContentOutput, NodeError> {
        let content = self.pool.content();
        Ok(PoolContentOutput { pending: pooled(content.pending), queued: pooled(content.queued) })
    }
}

fn request(transaction: UnsignedTransaction) -> TransactionRequest {
    let UnsignedTransaction { data, from, gas, max_fee_per_gas, max_priority_fee_per_gas, nonce, to, value } =
        transaction;
    TransactionRequest {
        from: from.0,
        to: to.map(|to| to.0),
        gas: gas.map(|gas| gas.0),
        max_fee_per_gas: max_fee_per_gas.map(|fee| fee.0),
        max_priority_fee_per_gas: max_priority_fee_per_gas.map(|fee| fee.0),
        nonce: nonce.map(|nonce| nonce.0),
        value: value.map_or_else(U256::zero, |value| value.0),
        input: data.unwrap_or_default().0,
        ..TransactionRequest::default()
    }
}

/// Transactions by sender, as they are answered.
fn pooled(transactions: BTreeMap<Address, Vec<Arc<PoolTransaction>>>) -> Vec<Transaction> {
    let all = transactions.into_values().flatten();
    all.map(|transaction| assemble::pooled_transaction(&transaction.recovered)).collect()
}
