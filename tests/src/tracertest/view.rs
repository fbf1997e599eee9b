//! A chain on which a block with any number can be executed.

use node_core::backend::{BackendError, FeeRow, LogSearch, StateView, View};
use node_core::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use node_core::context::Context;
use node_core::state::StateChanges;
use node_types::consensus::Receipt;
use node_types::{BlockNumber, H256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A view whose state as of every block is that at genesis.
pub(super) struct AnyNumber(pub(super) Arc<dyn View>);

impl View for AnyNumber {
    fn head(&self) -> BlockRef {
        self.0.head()
    }

    fn earliest_state(&self) -> BlockNumber {
        self.0.earliest_state()
    }

    fn state(&self, _: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        self.0.state(0)
    }

    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        self.0.fork(ancestor, branch)
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        self.0.header(id)
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        self.0.body(id)
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        self.0.receipts(id)
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        self.0.canonical_hash(number)
    }

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        self.0.logs(numbers)
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        self.0.side_block(hash)
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        self.0.changes(number)
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.0.transaction_position(hash)
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        self.0.log_candidates(context, search)
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        self.0.fee_rows(range)
    }
}
