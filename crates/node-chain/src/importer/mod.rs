//! Import of single blocks, on any branch.

use crate::branch::is_preferred;
use crate::import_error::ImportError;
use crate::pipeline::known;
use crate::prepared::PreparedBlock;
use crate::validation::{
    Ancestor, BlockError, MAX_OMMER_DEPTH, validate_body, validate_header, validate_ommers, validate_outcome,
};
use node_core::backend::{BackendError, Branch, HeadChange, StateBackend, View};
use node_core::block::{BlockHashOrNumber, BlockRef, Body, ExecutedBlock, SealedHeader};
use node_core::context::Context;
use node_core::crypto::SenderRecovery;
use node_core::executor::{BlockOutcome, ExecutionError, Executor, TransactionError};
use node_core::protocol::ChainSpec;
use node_types::consensus::{Block, Header};
use node_types::{BlockNumber, H256};
use parking_lot::Mutex;
use std::sync::Arc;

/// Imports blocks into a backend. Every block is validated and executed before it is stored.
pub struct BlockImporter {
    backend: Arc<dyn StateBackend>,
    executor: Arc<dyn Executor>,
    senders: Arc<dyn SenderRecovery>,
    spec: Arc<ChainSpec>,
    /// Locked while the chain changes, so that the view on which a decision is based stays the newest.
    writing: Mutex<SideTip>,
}

/// A view of the branch that ends in the last imported side block, which the next block most likely extends.
type SideTip = Option<Arc<dyn View>>;

/// The result of importing a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The block was already stored, and the head stays.
    AlreadyKnown,
    /// The block is the new head and a child of the old one.
    Appended,
    /// The block is stored as a side block.
    SideBranch,
    /// The block is the new head, and its branch has become canonical. It may have been stored as a side block before.
    Switched(HeadChange),
}

impl BlockImporter {
    /// Creates an importer that imports into `backend` under the rules of `spec`.
    pub fn new(
        backend: Arc<dyn StateBackend>,
        executor: Arc<dyn Executor>,
        senders: Arc<dyn SenderRecovery>,
        spec: Arc<ChainSpec>,
    ) -> Self {
        Self { backend, executor, senders, spec, writing: Mutex::default() }
    }

    /// Returns the backend into which blocks are imported.
    pub fn backend(&self) -> &Arc<dyn StateBackend> {
        &self.backend
    }

    /// Returns the recovery of senders that this importer uses.
    pub fn senders(&self) -> &Arc<dyn SenderRecovery> {
        &self.senders
    }

    /// Decodes and imports a block; see [`import`](Self::import).
    ///
    /// # Errors
    /// Returns an [`ImportError`] if the bytes are not a valid block or the import fails. The chain is then unchanged.
    pub fn import_bytes(&self, context: &Context, bytes: &[u8]) -> Result<Imported, ImportError> {
        let block = PreparedBlock::decode(bytes, &*self.senders).map_err(ImportError::Decode)?;
        self.import(context, block)
    }

    /// Imports a block; see [`import`](Self::import).
    ///
    /// # Errors
    /// Returns an [`ImportError`] if the block is invalid or the import fails. The chain is then unchanged.
    pub fn import_block(&self, context: &Context, block: Block) -> Result<Imported, ImportError> {
        self.import(context, PreparedBlock::new(block, &*self.senders))
    }

    /// Returns the number of an encoded block if it is canonical. Reads only its header, so it takes less time than
    /// [`import_bytes`](Self::import_bytes).
    ///
    /// # Errors
    /// If the backend cannot be read.
    pub fn canonical_number(&self, bytes: &[u8]) -> Result<Option<BlockNumber>, BackendError> {
        Ok(known(&*self.backend.view()?, bytes))
    }

    /// Imports a prepared block.
    ///
    /// A block on a side branch is executed immediately. Its branch becomes canonical if it has a higher total
    /// difficulty than the canonical branch before the merge, or is longer after the merge. In a tie the canonical
    /// branch stays. The same applies to a block that is already stored, but it is not executed again.
    ///
    /// # Errors
    /// Returns an [`ImportError`] if the block is invalid, its parent is unknown, the backend fails or `context`
    /// interrupts the import. The chain is then unchanged.
    pub fn import(&self, context: &Context, block: PreparedBlock) -> Result<Imported, ImportError> {
        context.check()?;
        let mut side_tip = self.writing.lock();
        let view = self.backend.view()?;
        let head = view.head();
        let head_header = || -> Result<Arc<SealedHeader>, BackendError> {
            view.header(BlockHashOrNumber::Hash(head.hash))?.ok_or(BackendError::UnknownBlock(head.number))
        };
        if let Some(known) = view.header(BlockHashOrNumber::Hash(block.hash))? {
            // A canonical block is never preferred. A side block is if the head was set back.
            if !is_preferred(&known, &*head_header()?) {
                return Ok(Imported::AlreadyKnown);
            }
            let Branch { ancestor, blocks } =
                Branch::to(&*view, block.hash)?.ok_or(ImportError::UnknownBlock(block.hash))?;
            *side_tip = None;
            return Ok(Imported::Switched(self.backend.switch(ancestor, blocks)?));
        }
        let (reference, parent_hash) = (block.block_ref(), block.header.parent_hash);
        let unknown_parent = || ImportError::UnknownParent { block: reference, parent: parent_hash };
        let Some(parent) = view.header(BlockHashOrNumber::Hash(parent_hash))? else {
            return Err(match view.canonical_hash(0)? {
                Some(genesis) if reference.number == 1 => ImportError::OtherGenesis { parent: parent_hash, genesis },
                _ => unknown_parent(),
            });
        };
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
        // The backend checks state roots of canonical blocks only.
        let expected = branch_view.state(parent.header.number)?.root_after(&executed.changes)?;
        let got = executed.header.header.state_root;
        if got != expected {
            return Err(ImportError::Invalid { block: reference, source: BlockError::StateRoot { got, expected } });
        }
        if is_preferred(&executed.header, &*head_header()?) {
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

    /// Appends a block that was executed before its parent was stored. If the head has become another block in the
    /// meantime, the block is imported from scratch.
    ///
    /// # Errors
    /// Those of [`import`](Self::import).
    pub(crate) fn append(&self, context: &Context, block: ExecutedBlock) -> Result<Imported, ImportError> {
        context.check()?;
        let appended = {
            let _writing = self.writing.lock();
            self.backend.append(block.clone())
        };
        match appended {
            Ok(()) => Ok(Imported::Appended),
            Err(BackendError::NotAChild { .. }) => {
                self.import_block(context, block.body.with_header(&block.header.header))
            }
            Err(error) => Err(wrong_state_root(block.header.block_ref(), error)),
        }
    }

    /// Makes the block `hash` the head, whether or not its branch is preferred.
    ///
    /// If the block is canonical, the blocks above it become side blocks.
    ///
    /// # Errors
    /// Returns an [`ImportError`] if the block is unknown or the backend fails. The chain is then unchanged.
    pub fn set_head(&self, hash: H256) -> Result<HeadChange, ImportError> {
        let _writing = self.writing.lock();
        let view = self.backend.view()?;
        let branch = Branch::to(&*view, hash)?.ok_or(ImportError::UnknownBlock(hash))?;
        Ok(self.backend.switch(branch.ancestor, branch.blocks)?)
    }

    /// Validates and executes a block on top of `parent`, a canonical block of `view`. Does not check the state root.
    pub(crate) fn execute(
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

    /// Executes a block without validating its header and body.
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

/// Returns the ancestors that [`validate_ommers`] needs, `parent` first.
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

/// Separates faults of the block from faults of the backend. `refused` converts a refusal to a fault of the block.
fn execution_error(
    block: BlockRef,
    refused: impl FnOnce(TransactionError) -> BlockError,
    error: ExecutionError,
) -> ImportError {
    let source = match error {
        ExecutionError::Refused(source) => refused(source),
        // Blocks are imported without overrides.
        ExecutionError::Override(error) => return ImportError::Internal(Box::new(error)),
        ExecutionError::SystemContract { address, reason } => BlockError::SystemContract { address, reason },
        ExecutionError::Internal(error) => return ImportError::Internal(error),
        ExecutionError::Backend(error) => return error.into(),
        ExecutionError::Interrupted(error) => return error.into(),
    };
    ImportError::Invalid { block, source }
}

/// Converts the backend's error for a wrong state root to a fault of the block.
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
