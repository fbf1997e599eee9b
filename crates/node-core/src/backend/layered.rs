//! Blocks on top of a view that does not hold them.

use super::candidates::Candidates;
use super::fees::fee_row;
use super::{AccountProof, BackendError, FeeRow, LogFilter, View};
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A view of a chain that leaves another view's chain behind a common ancestor: a side branch while it is imported, or
/// the pending block on the head.
///
/// Up to the ancestor the base answers; above it only the layers do. By hash, blocks of the base are found wherever
/// they are, as are side blocks. Proofs end at the ancestor.
pub struct LayeredView {
    base: Arc<dyn View>,
    ancestor: BlockNumber,
    head: BlockRef,
    /// The blocks above the ancestor, ascending.
    layers: Vec<ExecutedBlock>,
    pending: bool,
}

impl LayeredView {
    /// Lays `layers`, of which each follows the one before, over `base` from its canonical block `ancestor` on.
    /// `pending` says that the last of them is only being assembled.
    pub fn new(
        base: Arc<dyn View>,
        ancestor: BlockNumber,
        layers: Vec<ExecutedBlock>,
        pending: bool,
    ) -> Result<Self, BackendError> {
        let hash = base.canonical_hash(ancestor)?.ok_or(BackendError::UnknownBlock(ancestor))?;
        let mut head = BlockRef { number: ancestor, hash };
        for layer in &layers {
            let block = layer.header.block_ref();
            if head.number.checked_add(1) != Some(block.number) || layer.header.header.parent_hash != head.hash {
                return Err(BackendError::NotAChild { block, parent: head });
            }
            head = block;
        }
        Ok(Self { base, ancestor, head, layers, pending })
    }

    /// The layers up to block `at`, the newest first.
    fn layers_down_from(&self, at: BlockNumber) -> Result<impl Iterator<Item = &ExecutedBlock>, BackendError> {
        self.check(at)?;
        // Not above the head, so there are at least this many layers.
        let count = at.saturating_sub(self.ancestor) as usize;
        Ok(self.layers[..count].iter().rev())
    }

    fn layer(&self, number: BlockNumber) -> Option<&ExecutedBlock> {
        let above = number.checked_sub(self.ancestor)?.checked_sub(1)?;
        self.layers.get(usize::try_from(above).ok()?)
    }

    fn layer_by_hash(&self, hash: H256) -> Option<&ExecutedBlock> {
        self.layers.iter().find(|layer| layer.header.hash == hash)
    }

    /// What a block has: from its layer, or from the base.
    fn read<T>(
        &self,
        id: BlockHashOrNumber,
        of_layer: impl FnOnce(&ExecutedBlock) -> T,
        of_base: impl FnOnce(&dyn View) -> Result<Option<T>, BackendError>,
    ) -> Result<Option<T>, BackendError> {
        let layer = match id {
            BlockHashOrNumber::Number(number) if number > self.ancestor => return Ok(self.layer(number).map(of_layer)),
            BlockHashOrNumber::Number(_) => None,
            BlockHashOrNumber::Hash(hash) => self.layer_by_hash(hash),
        };
        match layer {
            Some(layer) => Ok(Some(of_layer(layer))),
            None => of_base(&*self.base),
        }
    }

    /// Refuses blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head.number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }
}

impl View for LayeredView {
    fn head(&self) -> BlockRef {
        self.head
    }

    fn earliest_state(&self) -> BlockNumber {
        self.base.earliest_state()
    }

    fn pending(&self) -> Option<BlockNumber> {
        self.pending.then_some(self.head.number)
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        self.read(id, |layer| Arc::clone(&layer.header), |base| base.header(id))
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        self.read(id, |layer| Arc::clone(&layer.body), |base| base.body(id))
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        self.read(id, |layer| Arc::clone(&layer.receipts), |base| base.receipts(id))
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        self.read(number.into(), |layer| layer.header.hash, |base| base.canonical_hash(number))
    }

    fn logs(&self, number: BlockNumber) -> Result<Option<Arc<BlockLogs>>, BackendError> {
        let of_layer = |layer: &ExecutedBlock| Arc::new(BlockLogs::of(layer.header.hash, &layer.body, &layer.receipts));
        self.read(number.into(), of_layer, |base| base.logs(number))
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        if self.layer_by_hash(hash).is_some() { Ok(None) } else { self.base.side_block(hash) }
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        for layer in &self.layers {
            if let Some(index) = layer.body.transactions.iter().position(|transaction| transaction.hash == hash) {
                return Ok(Some(TransactionPosition { block: layer.header.header.number, index }));
            }
        }
        Ok(self.base.transaction_position(hash)?.filter(|position| position.block <= self.ancestor))
    }

    fn account(&self, address: Address, at: BlockNumber) -> Result<Option<AccountState>, BackendError> {
        match self.layers_down_from(at)?.find_map(|layer| layer.changes.accounts.get(&address)) {
            Some(change) => Ok(change.account),
            None => self.base.account(address, at.min(self.ancestor)),
        }
    }

    fn storage(&self, address: Address, slot: H256, at: BlockNumber) -> Result<U256, BackendError> {
        let mut changes = self.layers_down_from(at)?.filter_map(|layer| layer.changes.accounts.get(&address));
        match changes.find_map(|change| change.slot(slot)) {
            Some(value) => Ok(value),
            None => self.base.storage(address, slot, at.min(self.ancestor)),
        }
    }

    fn has_storage(&self, address: Address, at: BlockNumber) -> Result<bool, BackendError> {
        let changes: Vec<_> =
            self.layers_down_from(at)?.filter_map(|layer| layer.changes.accounts.get(&address)).collect();
        let base = at.min(self.ancestor);
        if changes.is_empty() {
            return self.base.has_storage(address, base);
        }
        let mut merged = AccountChange::default();
        changes.into_iter().rev().for_each(|change| merged.merge(change));
        self.base.has_storage_after(address, base, &merged)
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        match self.layers.iter().find_map(|layer| layer.changes.code.get(&hash)) {
            Some(code) => Ok(Some(code.clone())),
            None => self.base.code(hash),
        }
    }

    /// For blocks above the ancestor, [`BackendError::NoProofs`].
    fn proof(&self, address: Address, slots: &[H256], at: BlockNumber) -> Result<AccountProof, BackendError> {
        self.check(at)?;
        if at > self.ancestor { Err(BackendError::NoProofs(at)) } else { self.base.proof(address, slots, at) }
    }

    fn state_root(&self, at: BlockNumber, changes: &StateChanges) -> Result<H256, BackendError> {
        let layers: Vec<_> = self.layers_down_from(at)?.collect();
        let mut merged = StateChanges::default();
        for layer in layers.into_iter().rev() {
            merged.merge(&layer.changes);
        }
        merged.merge(changes);
        self.base.state_root(at.min(self.ancestor), &merged)
    }

    fn log_candidates(
        &self,
        context: &Context,
        filter: &LogFilter,
        from: LogPosition,
        to: BlockNumber,
        limit: usize,
    ) -> Result<Vec<LogPosition>, BackendError> {
        self.check(to)?;
        let of_base = if from.block <= self.ancestor {
            self.base.log_candidates(context, filter, from, to.min(self.ancestor), limit)?
        } else {
            Vec::new()
        };
        let mut candidates = Candidates::new(filter, from, limit).with_found(of_base);
        for layer in self.layers.iter().take_while(|layer| layer.header.header.number <= to) {
            context.check()?;
            candidates.scan(layer);
        }
        Ok(candidates.into_found())
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        self.check(*range.end())?;
        let mut rows = match *range.start() {
            start if start <= self.ancestor => self.base.fee_rows(start..=self.ancestor.min(*range.end()))?,
            _ => Vec::new(),
        };
        let layers = self.layers.iter().filter(|layer| range.contains(&layer.header.header.number));
        rows.extend(layers.map(fee_row));
        Ok(rows)
    }
}
