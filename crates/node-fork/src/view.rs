//! A view of a chain together with the chain that it continues.

use crate::history::History;
use crate::state::ReadOnlyState;
use node_core::backend::{BackendError, FeeRow, LogSearch, StateView, View, fee_row};
use node_core::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use node_core::context::Context;
use node_core::state::StateChanges;
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, H256};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

/// A view of a fork. What the fork's own chain does not have is read from its [`History`].
pub(crate) struct ForkView {
    pub(crate) inner: Arc<dyn View>,
    pub(crate) history: Arc<History>,
}

impl ForkView {
    fn is_before(&self, number: BlockNumber) -> bool {
        number < self.history.end()
    }

    /// Reads a part of a block from the fork's own chain, or from the history.
    fn read<T>(
        &self,
        id: BlockHashOrNumber,
        of_fork: impl FnOnce(&dyn View) -> Result<Option<T>, BackendError>,
        of_history: impl FnOnce(&History, H256) -> Result<Option<T>, BackendError>,
    ) -> Result<Option<T>, BackendError> {
        match id {
            BlockHashOrNumber::Number(number) if self.is_before(number) => {
                // It exists, whatever an endpoint says.
                let hash = self.history.hash(number)?;
                let part = of_history(&self.history, hash)?.ok_or_else(|| self.history.missing_block(hash))?;
                Ok(Some(part))
            }
            BlockHashOrNumber::Number(_) => of_fork(&*self.inner),
            BlockHashOrNumber::Hash(hash) => match of_fork(&*self.inner)? {
                Some(part) => Ok(Some(part)),
                None => of_history(&self.history, hash),
            },
        }
    }

    /// Reads something of several blocks from before the fork, which are fetched together.
    fn each_before<T>(
        &self,
        mut numbers: &[BlockNumber],
        read: impl Fn(BlockNumber) -> Result<T, BackendError>,
    ) -> Result<Vec<T>, BackendError> {
        let mut all = Vec::new();
        while !numbers.is_empty() {
            let (some, later) = numbers.split_at(self.history.prefetch(numbers)?);
            for number in some {
                all.push(read(*number)?);
            }
            numbers = later;
        }
        Ok(all)
    }

    fn fee_row_before(&self, number: BlockNumber) -> Result<FeeRow, BackendError> {
        let hash = self.history.hash(number)?;
        let (header, body, receipts) =
            (self.history.header(hash)?, self.history.body(hash)?, self.history.receipts(hash)?);
        match (header, body, receipts) {
            (Some(header), Some(body), Some(receipts)) => {
                Ok(fee_row(&ExecutedBlock { header, body, receipts, changes: Arc::default() }))
            }
            _ => Err(self.history.missing_block(hash)),
        }
    }

    /// Returns an error for blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head().number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }
}

impl View for ForkView {
    fn head(&self) -> BlockRef {
        self.inner.head()
    }

    fn first(&self) -> BlockNumber {
        self.inner.first()
    }

    fn is_partial(&self) -> bool {
        true
    }

    fn read_names(&self, visit: &mut dyn FnMut(Address, Option<H256>) -> ControlFlow<()>) -> Result<(), BackendError> {
        self.history.base().read_names(visit)
    }

    /// Returns 0: how many states an upstream has shows only when they are read.
    fn earliest_state(&self) -> BlockNumber {
        0
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        if !self.is_before(at) {
            return self.inner.state(at);
        }
        Ok(Box::new(ReadOnlyState(self.history.base().at(self.history.ancestor(at)?))))
    }

    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        let fork = self.inner.fork(ancestor, branch)?;
        Ok(fork.map(|inner| Arc::new(Self { inner, history: Arc::clone(&self.history) }) as Arc<dyn View>))
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        self.read(id, |view| view.header(id), History::header)
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        self.read(id, |view| view.body(id), History::body)
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        self.read(id, |view| view.receipts(id), History::receipts)
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        if self.is_before(number) { self.history.hash(number).map(Some) } else { self.inner.canonical_hash(number) }
    }

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        let (before, own) = numbers.split_at(numbers.partition_point(|number| self.is_before(*number)));
        let own = self.inner.logs(own)?;
        let mut logs = self.each_before(before, |number| self.history.logs(number))?;
        logs.extend(own);
        Ok(logs)
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        self.inner.side_block(hash)
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        if self.is_before(number) { Ok(None) } else { self.inner.changes(number) }
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        match self.inner.transaction_position(hash)? {
            Some(position) => Ok(Some(position)),
            None => self.history.position(hash),
        }
    }

    fn own_transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.inner.transaction_position(hash)
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        context.check()?;
        self.check(search.to)?;
        let mut found = Vec::new();
        if self.is_before(search.from.block) && search.from.block <= search.to {
            let to = search.to.min(self.history.end() - 1);
            found = self.history.log_positions(context, LogSearch { to, ..search })?;
        }
        if self.is_before(search.to) || found.len() == search.limit {
            return Ok(found);
        }
        let from = search.from.max(LogPosition { block: self.history.end(), log_index: 0 });
        let limit = search.limit - found.len();
        found.extend(self.inner.log_candidates(context, LogSearch { from, limit, ..search })?);
        Ok(found)
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        if range.is_empty() || !self.is_before(*range.start()) {
            return self.inner.fee_rows(range);
        }
        self.check(*range.end())?;
        let numbers: Vec<_> = (*range.start()..=(*range.end()).min(self.history.end() - 1)).collect();
        let mut rows = self.each_before(&numbers, |number| self.fee_row_before(number))?;
        if !self.is_before(*range.end()) {
            rows.extend(self.inner.fee_rows(self.history.end()..=*range.end())?);
        }
        Ok(rows)
    }
}
