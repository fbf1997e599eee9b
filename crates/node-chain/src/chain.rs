//! Import of blocks, one by one, on any branch.

use crate::branch::is_preferred;
use crate::import_error::ImportError;
use crate::prepared::PreparedBlock;
use crate::validation::{
    Ancestor, BlockError, MAX_OMMER_DEPTH, validate_body, validate_header, validate_ommers, validate_outcome,
};
use node_core::backend::{BackendError, Branch, HeadChange, StateBackend, View};
use node_core::block::{BlockHashOrNumber, BlockRef, Body, ExecutedBlock, SealedHeader};
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::executor::{BlockOutcome, ExecutionError, Executor, TransactionError};
use node_core::forks::ChainSpec;
use node_types::H256;
use node_types::consensus::{Block, Header};
use parking_lot::Mutex;
use std::sync::Arc;

/// A chain that grows: every block is validated and executed before it is kept.
pub struct Chain {
    backend: Arc<dyn StateBackend>,
    executor: Arc<dyn Executor>,
    senders: Arc<dyn SenderRecovery>,
    spec: Arc<ChainSpec>,
    /// Held while the chain changes: decisions are made on a view that must stay the newest.
    writing: Mutex<SideTip>,
}

/// The fork of the chain that ends in the side block imported last, for the next one most likely follows it.
type SideTip = Option<Arc<dyn View>>;

/// What became of an imported block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It was there already.
    AlreadyKnown,
    /// It is the new head, on top of the old one.
    Appended,
    /// It is kept beside the canonical chain.
    SideBranch,
    /// It is the new head, on another branch than the old one.
    Switched(HeadChange),
}

impl Chain {
    /// Imports into `backend`, by the rules of `spec`.
    pub fn new(
        backend: Arc<dyn StateBackend>,
        executor: Arc<dyn Executor>,
        senders: Arc<dyn SenderRecovery>,
        spec: Arc<ChainSpec>,
    ) -> Self {
        Self { backend, executor, senders, spec, writing: Mutex::default() }
    }

    /// Where the chain is kept.
    pub fn backend(&self) -> &Arc<dyn StateBackend> {
        &self.backend
    }

    /// Who recovers senders.
    pub fn senders(&self) -> &Arc<dyn SenderRecovery> {
        &self.senders
    }

    /// Decodes and imports one block. On an error nothing has changed.
    pub fn import_bytes(&self, context: &Context, bytes: &[u8]) -> Result<Imported, ImportError> {
        let block = PreparedBlock::decode(bytes, &*self.senders).map_err(ImportError::Decode)?;
        self.import(context, block)
    }

    /// Imports one block. On an error nothing has changed.
    pub fn import_block(&self, context: &Context, block: Block) -> Result<Imported, ImportError> {
        self.import(context, PreparedBlock::new(block, &*self.senders))
    }

    /// Imports one block that is prepared already. On an error nothing has changed.
    ///
    /// A block on a side branch is executed at once. Its branch becomes the canonical one when it is preferred: the
    /// heavier one before the merge, the longer one after it, the first seen on ties.
    pub fn import(&self, context: &Context, block: PreparedBlock) -> Result<Imported, ImportError> {
        context.check()?;
        let mut side_tip = self.writing.lock();
        let view = self.backend.view()?;
        if view.header(BlockHashOrNumber::Hash(block.hash))?.is_some() {
            return Ok(Imported::AlreadyKnown);
        }
        let (reference, parent_hash) = (block.block_ref(), block.header.parent_hash);
        let unknown_parent = || ImportError::UnknownParent { block: reference, parent: parent_hash };
        let parent = view.header(BlockHashOrNumber::Hash(parent_hash))?.ok_or_else(unknown_parent)?;
        let head = view.head();
        if head.hash == parent_hash {
            let executed = self.execute(context, &*view, &parent, block)?;
            self.backend.append(executed).map_err(|error| wrong_state_root(reference, error))?;
            return Ok(Imported::Appended);
        }

        let branch = || -> Result<Branch, ImportError> { Branch::to(&*view, parent_hash)?.ok_or_else(unknown_parent) };
        let branch_view = match &*side_tip {
            Some(tip) if tip.head().hash == parent_hash => Arc::clone(tip),
            _ => branch()?.view(Arc::clone(&view))?,
        };
        let executed = self.execute(context, &*branch_view, &parent, block)?;
        // The backend computes the root of what becomes canonical; that of side blocks nobody else does.
        let expected = branch_view.state_root(parent.header.number, &executed.changes)?;
        let got = executed.header.header.state_root;
        if got != expected {
            return Err(ImportError::Invalid { block: reference, source: BlockError::StateRoot { got, expected } });
        }
        let head = view.header(BlockHashOrNumber::Hash(head.hash))?.ok_or(BackendError::UnknownBlock(head.number))?;
        if is_preferred(&executed.header, &head) {
            let Branch { ancestor, mut blocks } = branch()?;
            blocks.push(executed);
            *side_tip = None;
            return Ok(Imported::Switched(self.backend.switch(ancestor, blocks)?));
        }
        let tip = branch_view.fork(parent.header.number, std::slice::from_ref(&executed))?;
        self.backend.keep_side_block(executed)?;
        *side_tip = tip;
        Ok(Imported::SideBranch)
    }

    /// Makes the block `hash` the head, whichever branch is preferred otherwise.
    ///
    /// A canonical block sets the chain back to it; blocks above it are kept as side blocks.
    pub fn set_head(&self, hash: H256) -> Result<HeadChange, ImportError> {
        let _writing = self.writing.lock();
        let view = self.backend.view()?;
        let branch = Branch::to(&*view, hash)?.ok_or(ImportError::UnknownBlock(hash))?;
        Ok(self.backend.switch(branch.ancestor, branch.blocks)?)
    }

    /// Validates and executes a block on top of `parent`, a canonical block of `view`. The state root is left to the
    /// caller.
    fn execute(
        &self,
        context: &Context,
        view: &dyn View,
        parent: &SealedHeader,
        block: PreparedBlock,
    ) -> Result<ExecutedBlock, ImportError> {
        let reference = block.block_ref();
        let invalid = |source| ImportError::Invalid { block: reference, source };
        validate_header(&self.spec, &block.header, parent).map_err(invalid)?;
        validate_body(self.spec.fork(&block.header), &block).map_err(invalid)?;
        if !block.ommers.is_empty() {
            validate_ommers(&self.spec, &block.ommers, &ancestors(view, parent)?).map_err(invalid)?;
        }
        let transactions_root = block.transactions_root;
        let (header, body) = block.seal(parent.total_difficulty).map_err(invalid)?;
        let outcome = self.run(context, view, &header, &body)?;
        validate_outcome(&header.header, transactions_root, &outcome).map_err(invalid)?;
        Ok(ExecutedBlock {
            header: Arc::new(header),
            body: Arc::new(body),
            receipts: Arc::new(outcome.receipts),
            changes: Arc::new(outcome.changes),
        })
    }

    /// Executes a block.
    fn run(
        &self,
        context: &Context,
        view: &dyn View,
        header: &SealedHeader,
        body: &Body,
    ) -> Result<BlockOutcome, ImportError> {
        let failed = |error| execution_error(header.block_ref(), BlockError::Refused, error);
        let mut execution = self.executor.begin_block(context, view, &header.header).map_err(failed)?;
        for (index, transaction) in body.transactions.iter().enumerate() {
            let refused = |source| BlockError::Transaction { index, source };
            execution.transact(transaction).map_err(|error| execution_error(header.block_ref(), refused, error))?;
        }
        execution.finish(&body.ommers, body.withdrawals.as_deref()).map_err(failed)
    }
}

/// The ancestors that the rules of ommers look at, `parent` first.
fn ancestors(view: &dyn View, parent: &SealedHeader) -> Result<Vec<Ancestor>, BackendError> {
    let mut ancestors = Vec::with_capacity(MAX_OMMER_DEPTH + 1);
    let mut hash = parent.hash;
    while ancestors.len() <= MAX_OMMER_DEPTH {
        let (Some(header), Some(body)) = (view.header(hash.into())?, view.body(hash.into())?) else { break };
        hash = header.header.parent_hash;
        ancestors.push(Ancestor { header, ommers: body.ommers.iter().map(Header::hash).collect() });
    }
    Ok(ancestors)
}

/// Tells what the block is to blame for from what it is not. `refused` says what is wrong with it after a refusal.
fn execution_error(
    block: BlockRef,
    refused: impl FnOnce(TransactionError) -> BlockError,
    error: ExecutionError,
) -> ImportError {
    let source = match error {
        ExecutionError::Refused(source) => refused(source),
        ExecutionError::Override(error) => return BackendError::Storage(Box::new(error)).into(),
        ExecutionError::SystemContract { address, reason } => BlockError::SystemContract { address, reason },
        ExecutionError::Backend(error) => return error.into(),
        ExecutionError::Interrupted(error) => return error.into(),
    };
    ImportError::Invalid { block, source }
}

/// A backend that computes another state root than the header's has found the block invalid.
fn wrong_state_root(block: BlockRef, error: BackendError) -> ImportError {
    match error {
        BackendError::StateRootMismatch { header, computed, .. } => {
            ImportError::Invalid { block, source: BlockError::StateRoot { got: header, expected: computed } }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests;
