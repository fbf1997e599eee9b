//! Executed blocks, or state edits, on top of a view.

use super::candidates::Candidates;
use super::fee_row;
use super::state_cache::{CachedState, StateCache};
use super::{AccountProof, BackendError, FeeRow, LogSearch, StateView, View, has_storage_after};
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountChange, AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, U256};
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

/// A view whose chain branches off from its base after a common ancestor: a side branch during import, or the pending
/// block on top of the head. It can also be a view with edits to the state of one block, on the same chain as the
/// base.
///
/// Up to the ancestor, blocks are those of the base; above it, they are the layers. All blocks of the base, including
/// side blocks, can also be read by hash. There are no proofs for blocks above the ancestor, nor for edited accounts.
pub struct LayeredView {
    base: Arc<dyn View>,
    ancestor: BlockNumber,
    head: BlockRef,
    /// The blocks above the ancestor, ascending.
    layers: Vec<ExecutedBlock>,
    edits: Option<Edited>,
    /// The earliest block whose state can be read, if that of the base is earlier.
    floor: BlockNumber,
    cache: Option<Arc<StateCache>>,
}

/// Edits to the state as of a block, to which no header commits.
struct Edited {
    block: BlockNumber,
    changes: Arc<StateChanges>,
}

impl LayeredView {
    /// Puts `layers` on top of the canonical block `ancestor` of `base`.
    ///
    /// # Errors
    /// [`BackendError::UnknownBlock`] if `base` has no canonical block `ancestor`, and [`BackendError::NotAChild`]
    /// unless the first layer is a child of the ancestor and each other layer a child of the previous one.
    pub fn new(base: Arc<dyn View>, ancestor: BlockNumber, layers: Vec<ExecutedBlock>) -> Result<Self, BackendError> {
        let hash = base.canonical_hash(ancestor)?.ok_or(BackendError::UnknownBlock(ancestor))?;
        let mut head = BlockRef { number: ancestor, hash };
        for layer in &layers {
            let block = layer.header.block_ref();
            if head.number.checked_add(1) != Some(block.number) || layer.header.header.parent_hash != head.hash {
                return Err(BackendError::NotAChild { block, parent: head });
            }
            head = block;
        }
        Ok(Self { base, ancestor, head, layers, edits: None, floor: 0, cache: None })
    }

    /// Returns a view of `base` with `changes` applied to the state as of `block`. Everything else is unchanged.
    pub fn with_edits(base: Arc<dyn View>, block: BlockNumber, changes: Arc<StateChanges>) -> Self {
        let head = base.head();
        let edits = Some(Edited { block, changes });
        Self { base, ancestor: head.number, head, layers: Vec::new(), edits, floor: 0, cache: None }
    }

    /// Reads the state as of the head through `cache`, which discards its content if it belongs to another state.
    pub fn with_cache(self, cache: Arc<StateCache>) -> Self {
        cache.begin(self.head.hash);
        Self { cache: Some(cache), ..self }
    }

    /// Refuses to read states before that of block `floor`, as if they were pruned.
    #[must_use]
    pub fn with_floor(self, floor: BlockNumber) -> Self {
        Self { floor, ..self }
    }

    /// Returns the position of a transaction in the layers, or the one `below` them.
    fn position(
        &self,
        hash: H256,
        below: impl FnOnce(&dyn View) -> Result<Option<TransactionPosition>, BackendError>,
    ) -> Result<Option<TransactionPosition>, BackendError> {
        for layer in &self.layers {
            if let Some(index) = layer.body.transactions.iter().position(|transaction| transaction.hash == hash) {
                return Ok(Some(TransactionPosition { block: layer.header.header.number, index }));
            }
        }
        Ok(below(&*self.base)?.filter(|position| position.block <= self.ancestor))
    }

    fn layer(&self, number: BlockNumber) -> Option<&ExecutedBlock> {
        let above = number.checked_sub(self.ancestor)?.checked_sub(1)?;
        self.layers.get(usize::try_from(above).ok()?)
    }

    fn layer_by_hash(&self, hash: H256) -> Option<&ExecutedBlock> {
        self.layers.iter().find(|layer| layer.header.hash == hash)
    }

    /// Reads a part of a block from its layer or from the base.
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

    /// Returns the state as of a block without the cache.
    fn uncached(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        self.check(at)?;
        if at < self.floor {
            return Err(BackendError::StatePruned { block: at, earliest: self.floor });
        }
        let base = self.base.state(at.min(self.ancestor))?;
        if let Some(edits) = self.edits.as_ref().filter(|edits| edits.block == at) {
            return Ok(Box::new(ChangedState { base, changes: vec![&edits.changes], at, proves_unchanged: true }));
        }
        if at <= self.ancestor {
            return Ok(base);
        }
        // `at` is not above the head, so there are at least this many layers.
        let layers = &self.layers[..(at - self.ancestor) as usize];
        let changes = layers.iter().map(|layer| &*layer.changes).collect();
        Ok(Box::new(ChangedState { base, changes, at, proves_unchanged: false }))
    }

    /// Returns an error for blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head.number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }
}

impl View for LayeredView {
    fn first(&self) -> BlockNumber {
        self.base.first()
    }

    fn is_partial(&self) -> bool {
        self.base.is_partial()
    }

    fn read_names(&self, visit: &mut dyn FnMut(Address, Option<H256>) -> ControlFlow<()>) -> Result<(), BackendError> {
        self.base.read_names(visit)
    }

    fn head(&self) -> BlockRef {
        self.head
    }

    fn earliest_state(&self) -> BlockNumber {
        self.base.earliest_state().max(self.floor)
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        let state = self.uncached(at)?;
        Ok(match self.cache.as_deref().filter(|_| at == self.head.number) {
            Some(cache) => Box::new(CachedState { state, cache }),
            None => state,
        })
    }

    /// Returns `None` unless the fork begins below the edits, because the base's fork would not contain the edits. A
    /// second layer on top of this view works instead.
    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        match &self.edits {
            Some(edits) if ancestor < edits.block => self.base.fork(ancestor, branch),
            _ => Ok(None),
        }
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

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        let (of_base, of_layers) = numbers.split_at(numbers.partition_point(|number| *number <= self.ancestor));
        let mut logs = self.base.logs(of_base)?;
        for number in of_layers {
            let layer = self.layer(*number).ok_or(BackendError::UnknownBlock(*number))?;
            logs.push(BlockLogs::of(&layer.header, &layer.body, &layer.receipts));
        }
        Ok(logs)
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        if self.layer_by_hash(hash).is_some() { Ok(None) } else { self.base.side_block(hash) }
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        match self.layer(number) {
            Some(layer) => Ok(Some(Arc::clone(&layer.changes))),
            None => self.base.changes(number),
        }
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.position(hash, |base| base.transaction_position(hash))
    }

    fn own_transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        self.position(hash, |base| base.own_transaction_position(hash))
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        self.check(search.to)?;
        let of_base = if search.from.block <= self.ancestor {
            let to = search.to.min(self.ancestor);
            self.base.log_candidates(context, LogSearch { to, ..search })?
        } else {
            Vec::new()
        };
        let mut candidates = Candidates::new(search).with_found(of_base);
        for layer in self.layers.iter().take_while(|layer| layer.header.header.number <= search.to) {
            context.check()?;
            candidates.scan(&layer.header, &layer.receipts);
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

struct ChangedState<'a> {
    base: Box<dyn StateView + 'a>,
    /// Oldest first; never empty.
    changes: Vec<&'a StateChanges>,
    at: BlockNumber,
    /// Whether the header of the block commits to the accounts that are not changed.
    proves_unchanged: bool,
}

impl ChangedState<'_> {
    /// Returns the changes of an account, newest first.
    fn of(&self, address: Address) -> impl DoubleEndedIterator<Item = &AccountChange> {
        self.changes.iter().rev().filter_map(move |changes| changes.accounts.get(&address))
    }
}

impl StateView for ChangedState<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        match self.of(address).next() {
            Some(change) => Ok(change.account),
            None => self.base.account(address),
        }
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        match self.of(address).find_map(|change| change.slot(slot)) {
            Some(value) => Ok(value),
            None => self.base.storage(address, slot),
        }
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        let mut changes = self.of(address).rev().peekable();
        if changes.peek().is_none() {
            return self.base.has_storage(address);
        }
        let mut merged = AccountChange::default();
        changes.for_each(|change| merged.merge(change));
        has_storage_after(&*self.base, address, &merged)
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        match self.changes.iter().find_map(|changes| changes.code.get(&hash)) {
            Some(code) => Ok(Some(code.clone())),
            None => self.base.code(hash),
        }
    }

    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        match self.of(address).next() {
            _ if !self.proves_unchanged => Err(BackendError::NoProofs(self.at)),
            Some(_) => Err(BackendError::Uncommitted(self.at)),
            None => self.base.proof(address, slots),
        }
    }

    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        let mut merged = StateChanges::default();
        self.changes.iter().for_each(|changes| merged.merge(changes));
        merged.merge(changes);
        self.base.root_after(&merged)
    }
}
