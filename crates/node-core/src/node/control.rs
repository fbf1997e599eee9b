//! Operations that control a development chain, which the node produces itself.
//!
//! Each operation fails with [`NodeError::NotProducing`] if the node does not produce blocks.

use super::{Node, NodeError};
use crate::backend::HeadChange;
use crate::block::BlockRef;
use crate::context::Context;
use crate::producer::{Producer, ProducerError};
use node_types::consensus::Withdrawal;
use node_types::{Address, Bytes, H256, U256};
use std::sync::Arc;

impl Node {
    pub(super) fn controlled(&self, context: &Context) -> Result<&Arc<Producer>, NodeError> {
        context.check()?;
        self.producer.as_ref().ok_or(NodeError::NotProducing)
    }

    /// Mines `blocks` blocks from the transactions of the pool, or empty ones if it has none, and returns the new
    /// head. `interval` is the number of seconds between them. `withdrawals` are those of the first block. It may take
    /// [`Producer::MINING_TIMEOUTS`] times the timeout of `context`; blocks mined until then remain.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, [`NodeError::Interrupted`], and
    /// [`NodeError::Backend`].
    pub fn mine(
        &self,
        context: &Context,
        blocks: u64,
        interval: Option<u64>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<BlockRef, NodeError> {
        let mined = self.controlled(context)?.mine_in(context, blocks, interval, withdrawals)?;
        match mined.last() {
            Some(head) => Ok(*head),
            None => Ok(self.snapshot(context)?.view.head()),
        }
    }

    /// Sets the timestamp of the next block in Unix seconds. The chain's clock continues from there.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_next_block_timestamp(&self, context: &Context, timestamp: u64) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_next_timestamp(timestamp)?)
    }

    /// Moves the chain's clock ahead by `seconds`.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn increase_time(&self, context: &Context, seconds: u64) -> Result<(), NodeError> {
        self.controlled(context)?.increase_time(seconds)?;
        Ok(())
    }

    /// Sets the base fee of the next block in wei per gas.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_next_block_base_fee(&self, context: &Context, base_fee: u64) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_next_base_fee(base_fee)?)
    }

    /// Takes a snapshot of the chain and returns its id.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn take_snapshot(&self, context: &Context) -> Result<u64, NodeError> {
        Ok(self.controlled(context)?.snapshot()?)
    }

    /// Reverts the chain to a snapshot. Returns false if there is no snapshot with this id.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn revert(&self, context: &Context, snapshot: u64) -> Result<bool, NodeError> {
        match self.controlled(context)?.revert(snapshot) {
            Ok(()) => Ok(true),
            Err(ProducerError::UnknownSnapshot(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the newest `blocks` blocks with empty ones.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn reorganize(&self, context: &Context, blocks: u64) -> Result<HeadChange, NodeError> {
        Ok(self.controlled(context)?.reorganize(context, blocks)?)
    }

    /// Starts or stops impersonating an account: while it is impersonated, anyone may send transactions from it.
    /// Returns whether this changed anything.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`].
    pub fn impersonate(&self, context: &Context, address: Address, allowed: bool) -> Result<bool, NodeError> {
        Ok(self.controlled(context)?.impersonate(address, allowed))
    }

    /// Sets the balance of an account in wei.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_balance(&self, context: &Context, address: Address, balance: U256) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_balance(address, balance)?)
    }

    /// Sets the nonce of an account.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_nonce(&self, context: &Context, address: Address, nonce: u64) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_nonce(address, nonce)?)
    }

    /// Sets the code of an account.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_code(&self, context: &Context, address: Address, code: Bytes) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_code(address, code)?)
    }

    /// Sets a storage slot of an account.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`], [`NodeError::Control`] if the change is refused, and [`NodeError::Backend`].
    pub fn set_storage(&self, context: &Context, address: Address, slot: H256, value: U256) -> Result<(), NodeError> {
        Ok(self.controlled(context)?.set_storage(address, slot, value)?)
    }

    /// Drops a transaction from the pool. Returns whether it was there.
    ///
    /// # Errors
    /// [`NodeError::NotProducing`] and [`NodeError::Backend`].
    pub fn drop_transaction(&self, context: &Context, hash: H256) -> Result<bool, NodeError> {
        self.controlled(context)?;
        Ok(self.pool.remove(hash)?)
    }
}
