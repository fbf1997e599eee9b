//! One version of the whole chain.

use super::state::States;
use super::stored::StoredBlock;
use crate::backend::candidates::Candidates;
use crate::backend::{AccountProof, BackendError, FeeRow, HeadChange, LogSearch, StateView, View};
use crate::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use crate::context::Context;
use crate::state::{AccountState, StateChanges};
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256};
use rpds::{HashTrieMapSync, VectorSync};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A chain with its states and indexes. Cloning is cheap because all parts are shared.
///
/// A failed method leaves the chain partly changed, so changes are always made to a clone.
#[derive(Clone)]
pub(super) struct MemoryChain {
    head: BlockRef,
    /// The canonical blocks by number.
    blocks: VectorSync<Arc<StoredBlock>>,
    numbers: HashTrieMapSync<H256, BlockNumber>,
    transactions: HashTrieMapSync<H256, TransactionPosition>,
    code: HashTrieMapSync<H256, Bytes>,
    states: States,
    /// All blocks that are not canonical. They are never dropped, since a branch of any length may become canonical.
    side_blocks: HashTrieMapSync<H256, Arc<StoredBlock>>,
}

impl MemoryChain {
    /// Creates a chain with only the genesis block.
    pub(super) fn new(genesis: ExecutedBlock) -> Result<Self, BackendError> {
        let head = genesis.header.block_ref();
        if head.number != 0 {
            return Err(BackendError::NotGenesis(head));
        }
        let (states, root) = States::genesis(&genesis.changes);
        check_root(&genesis.header, root)?;
        let mut chain = Self {
            head,
            blocks: VectorSync::new_sync(),
            numbers: HashTrieMapSync::new_sync(),
            transactions: HashTrieMapSync::new_sync(),
            code: HashTrieMapSync::new_sync(),
            states,
            side_blocks: HashTrieMapSync::new_sync(),
        };
        chain.code.insert_mut(KECCAK_EMPTY, Bytes::new());
        chain.push(genesis);
        Ok(chain)
    }

    pub(super) fn append(&mut self, block: ExecutedBlock) -> Result<HeadChange, BackendError> {
        let added = block.header.block_ref();
        self.extend(block)?;
        Ok(HeadChange { removed: Vec::new(), added: vec![added] })
    }

    /// Replaces all blocks above `ancestor` by `branch`.
    pub(super) fn switch(
        &mut self,
        ancestor: BlockNumber,
        branch: Vec<ExecutedBlock>,
    ) -> Result<HeadChange, BackendError> {
        self.check(ancestor)?;
        let mut change = HeadChange { removed: Vec::new(), added: Vec::new() };
        while self.head.number > ancestor {
            change.removed.push(self.head);
            self.pop();
        }
        for block in branch {
            change.added.push(block.header.block_ref());
            self.extend(block)?;
        }
        Ok(change)
    }

    /// Stores a side block, unless it is canonical. Returns whether it was stored.
    pub(super) fn keep_side_block(&mut self, block: ExecutedBlock) -> bool {
        let hash = block.header.hash;
        let is_side_block = !self.numbers.contains_key(&hash);
        if is_side_block {
            self.side_blocks.insert_mut(hash, Arc::new(block.into()));
        }
        is_side_block
    }

    fn extend(&mut self, block: ExecutedBlock) -> Result<(), BackendError> {
        let header = &block.header.header;
        if self.head.number.checked_add(1) != Some(header.number) || header.parent_hash != self.head.hash {
            return Err(BackendError::NotAChild { block: block.header.block_ref(), parent: self.head });
        }
        let root = self.states.apply(header.number, &block.changes);
        check_root(&block.header, root)?;
        self.push(block);
        Ok(())
    }

    /// Adds `block`, whose state is already applied, to the blocks and indexes.
    fn push(&mut self, block: ExecutedBlock) {
        self.head = block.header.block_ref();
        let BlockRef { number, hash } = self.head;
        self.numbers.insert_mut(hash, number);
        for (index, transaction) in block.body.transactions.iter().enumerate() {
            self.transactions.insert_mut(transaction.hash, TransactionPosition { block: number, index });
        }
        for (hash, code) in &block.changes.code {
            self.code.insert_mut(*hash, code.clone());
        }
        self.side_blocks.remove_mut(&hash);
        self.blocks.push_back_mut(Arc::new(block.into()));
    }

    /// Makes the head a side block. Code that it deployed stays, since code is looked up by hash.
    fn pop(&mut self) {
        let Some(block) = self.blocks.last().cloned() else { return };
        let BlockRef { number, hash } = block.header.block_ref();
        self.states.revert(number, &block.changes());
        for transaction in &block.body.transactions {
            self.transactions.remove_mut(&transaction.hash);
        }
        self.numbers.remove_mut(&hash);
        self.blocks.drop_last_mut();
        self.head = BlockRef { number: number - 1, hash: block.header.header.parent_hash };
        self.side_blocks.insert_mut(hash, block);
    }

    fn canonical(&self, number: BlockNumber) -> Option<&Arc<StoredBlock>> {
        self.blocks.get(usize::try_from(number).ok()?)
    }

    fn block(&self, id: BlockHashOrNumber) -> Option<&Arc<StoredBlock>> {
        match id {
            BlockHashOrNumber::Number(number) => self.canonical(number),
            BlockHashOrNumber::Hash(hash) => match self.numbers.get(&hash) {
                Some(number) => self.canonical(*number),
                None => self.side_blocks.get(&hash),
            },
        }
    }

    /// Returns an error for blocks above the head.
    fn check(&self, number: BlockNumber) -> Result<(), BackendError> {
        if number > self.head.number { Err(BackendError::UnknownBlock(number)) } else { Ok(()) }
    }
}

fn check_root(block: &SealedHeader, computed: H256) -> Result<(), BackendError> {
    let (block, header) = (block.header.number, block.header.state_root);
    if computed == header { Ok(()) } else { Err(BackendError::StateRootMismatch { block, header, computed }) }
}

impl View for MemoryChain {
    fn head(&self) -> BlockRef {
        self.head
    }

    fn earliest_state(&self) -> BlockNumber {
        0
    }

    /// Returns a copy that shares all unchanged parts. Its cost depends only on the blocks removed and added.
    fn fork(&self, ancestor: BlockNumber, branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        let mut fork = self.clone();
        fork.switch(ancestor, branch.to_vec())?;
        Ok(Some(Arc::new(fork)))
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        Ok(self.block(id).map(|block| Arc::clone(&block.header)))
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        Ok(self.block(id).map(|block| Arc::clone(&block.body)))
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        Ok(self.block(id).map(|block| Arc::clone(&block.receipts)))
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        Ok(self.canonical(number).map(|block| block.header.hash))
    }

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        let logs = |number: &BlockNumber| {
            let block = self.canonical(*number).ok_or(BackendError::UnknownBlock(*number))?;
            Ok(BlockLogs::of(&block.header, &block.body, &block.receipts))
        };
        numbers.iter().map(logs).collect()
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        Ok(self.side_blocks.get(&hash).map(|block| block.executed()))
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        Ok(self.canonical(number).map(|block| Arc::new(block.changes())))
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        self.check(at)?;
        Ok(Box::new(MemoryState { chain: self, at }))
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        Ok(self.transactions.get(&hash).copied())
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        self.check(search.to)?;
        let mut candidates = Candidates::new(search);
        for block in (search.from.block..=search.to).map_while(|number| self.canonical(number)) {
            context.check()?;
            if candidates.is_full() {
                break;
            }
            candidates.scan(&block.header, &block.receipts);
        }
        Ok(candidates.into_found())
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        self.check(*range.end())?;
        Ok(range.map_while(|number| Some(self.canonical(number)?.fee_row.clone())).collect())
    }
}

/// The state as of block `at`.
struct MemoryState<'a> {
    chain: &'a MemoryChain,
    at: BlockNumber,
}

impl StateView for MemoryState<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        Ok(self.chain.states.account(address, self.at))
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        Ok(self.chain.states.slot(address, slot, self.at))
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        Ok(self.chain.states.has_storage(address, self.at))
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        Ok(self.chain.code.get(&hash).cloned())
    }

    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        Ok(self.chain.states.prove(address, slots, self.at))
    }

    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        Ok(self.chain.states.root_with(changes, self.at))
    }
}
