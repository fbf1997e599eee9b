//! Blocks, transactions and receipts as the chain and the pool hold them, for interfaces that write them in a form of
//! their own.

use super::resolve::Snapshot;
use super::{Node, NodeError};
use crate::backend::BackendError;
use crate::block::{BlockHashOrNumber, Body, RecoveredTransaction, SealedHeader};
use crate::context::Context;
use crate::pool::{PoolContent, PoolTransaction};
use node_types::consensus::Receipt;
use node_types::{BlockId, BlockNumber, H256};
use std::sync::Arc;

/// A block of any branch, or the pending one.
#[derive(Clone, Debug)]
pub struct FoundBlock {
    /// The header.
    pub header: Arc<SealedHeader>,
    /// Transactions, ommers, withdrawals.
    pub body: Arc<Body>,
    /// Whether it is the block that is assembled from the pool, which nobody has sealed.
    pub pending: bool,
}

/// A transaction of a block or of the pool.
#[derive(Clone, Debug)]
pub enum FoundTransaction {
    /// It is in a block.
    Mined {
        /// The block.
        block: FoundBlock,
        /// Position among the block's transactions, of which there are more.
        index: usize,
    },
    /// It waits in the pool.
    Pooled(Arc<PoolTransaction>),
}

/// A block with a receipt for each of its transactions.
#[derive(Clone, Debug)]
pub struct FoundReceipts {
    /// The block.
    pub block: FoundBlock,
    /// The receipts in the order of the transactions.
    pub receipts: Arc<Vec<Receipt>>,
}

/// A receipt with what the receipts before it tell.
#[derive(Clone, Copy, Debug)]
pub struct ReceiptInBlock<'a> {
    /// Position of the transaction in the block.
    pub index: usize,
    /// The transaction.
    pub transaction: &'a RecoveredTransaction,
    /// The receipt.
    pub receipt: &'a Receipt,
    /// Gas that the transaction used.
    pub gas_used: u64,
    /// Position of the first log of the receipt among all logs of the block.
    pub first_log: u64,
}

impl FoundBlock {
    /// Reads a block, canonical or not.
    pub(super) fn read(snapshot: &Snapshot, id: BlockHashOrNumber) -> Result<Option<Self>, NodeError> {
        let Some(header) = snapshot.view.header(id)? else { return Ok(None) };
        let number = header.header.number;
        let body = snapshot.view.body(id)?.ok_or(BackendError::UnknownBlock(number))?;
        Ok(Some(Self { header, body, pending: snapshot.is_pending(number) }))
    }

    /// The transaction at a position, if there is one.
    pub(super) fn transaction(self, index: usize) -> Option<FoundTransaction> {
        (index < self.body.transactions.len()).then_some(FoundTransaction::Mined { block: self, index })
    }
}

impl FoundTransaction {
    /// The transaction.
    pub fn recovered(&self) -> &RecoveredTransaction {
        match self {
            Self::Mined { block, index } => &block.body.transactions[*index],
            Self::Pooled(pooled) => &pooled.recovered,
        }
    }
}

impl FoundReceipts {
    /// Reads the receipts of a canonical block.
    pub(super) fn read(snapshot: &Snapshot, number: BlockNumber) -> Result<Self, NodeError> {
        let unknown = || BackendError::UnknownBlock(number);
        let block = FoundBlock::read(snapshot, number.into())?.ok_or_else(unknown)?;
        let receipts = snapshot.view.receipts(number.into())?.ok_or_else(unknown)?;
        Ok(Self { block, receipts })
    }

    /// Each receipt, in order.
    pub fn iter(&self) -> impl Iterator<Item = ReceiptInBlock<'_>> {
        receipts_in_block(&self.block.body, &self.receipts)
    }
}

/// The receipts of a block, in order.
pub(super) fn receipts_in_block<'a>(
    body: &'a Body,
    receipts: &'a [Receipt],
) -> impl Iterator<Item = ReceiptInBlock<'a>> {
    let pairs = body.transactions.iter().zip(receipts).enumerate();
    pairs.scan((0, 0), |(gas_before, first_log), (index, (transaction, receipt))| {
        let gas_used = receipt.cumulative_gas_used.saturating_sub(*gas_before);
        let placed = ReceiptInBlock { index, transaction, receipt, gas_used, first_log: *first_log };
        *gas_before = receipt.cumulative_gas_used;
        *first_log += receipt.logs.len() as u64;
        Some(placed)
    })
}

impl Node {
    /// The header of a block: by its hash of any branch, else of the canonical chain; none where there is none.
    pub fn find_header(&self, context: &Context, block: BlockId) -> Result<Option<Arc<SealedHeader>>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        match snapshot.known(block) {
            Some(id) => Ok(snapshot.view.header(id)?),
            None => Ok(None),
        }
    }

    /// A block: by its hash of any branch, else of the canonical chain; none where there is none.
    pub fn find_block(&self, context: &Context, block: BlockId) -> Result<Option<FoundBlock>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        match snapshot.known(block) {
            Some(id) => FoundBlock::read(&snapshot, id),
            None => Ok(None),
        }
    }

    /// A transaction by its hash, mined or in the pool; none where it is not known.
    pub fn find_transaction(&self, context: &Context, hash: H256) -> Result<Option<FoundTransaction>, NodeError> {
        // The pool is asked before the view is opened: what leaves it in between is in the view.
        let pooled = self.pool.get(hash);
        let snapshot = self.snapshot(context)?;
        match snapshot.view.transaction_position(hash)? {
            Some(position) => {
                let block = FoundBlock::read(&snapshot, position.block.into())?;
                Ok(block.and_then(|block| block.transaction(position.index)))
            }
            None => Ok(pooled.map(FoundTransaction::Pooled)),
        }
    }

    /// The transaction at a position of a block; none where there is none.
    pub fn find_transaction_at(
        &self,
        context: &Context,
        block: BlockId,
        index: u64,
    ) -> Result<Option<FoundTransaction>, NodeError> {
        let Ok(index) = usize::try_from(index) else { return Ok(None) };
        Ok(self.find_block(context, block)?.and_then(|block| block.transaction(index)))
    }

    /// The receipts of the block that holds a mined transaction, with the position of the transaction; none where no such
    /// transaction was mined.
    pub fn find_receipt(&self, context: &Context, hash: H256) -> Result<Option<(FoundReceipts, usize)>, NodeError> {
        let snapshot = self.snapshot(context)?;
        match snapshot.view.transaction_position(hash)? {
            Some(position) => Ok(Some((FoundReceipts::read(&snapshot, position.block)?, position.index))),
            None => Ok(None),
        }
    }

    /// The receipts of a canonical block; none where there is none.
    pub fn find_receipts(&self, context: &Context, block: BlockId) -> Result<Option<FoundReceipts>, NodeError> {
        let snapshot = self.snapshot_for(context, block)?;
        match snapshot.canonical(block, "block") {
            Ok(number) => FoundReceipts::read(&snapshot, number).map(Some),
            Err(NodeError::BlockNotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All transactions of the pool.
    pub fn find_pooled(&self, context: &Context) -> Result<PoolContent, NodeError> {
        context.check()?;
        Ok(self.pool.content())
    }
}
