//! Reading from a chain.

use super::ChainVersion;
use crate::error::StoreError;
use crate::keys::{Key, LogId, Table, TrieId};
use crate::rows::{Rows, Value};
use crate::state::{self, Before, TrieReader};
use crate::trie::BaseTrie;
use crate::values::{self, AccountRow};
use crate::{base, postings, trie};
use node_core::backend::{
    AccountProof, BackendError, FeeRow, LogSearch, StateView, StorageProof, View, first_without_state_root,
};
use node_core::block::{
    BlockHashOrNumber, BlockLogs, BlockRef, Body, ExecutedBlock, LogPosition, SealedHeader, TransactionPosition,
};
use node_core::collecting;
use node_core::context::Context;
use node_core::state::{AccountState, StateChanges};
use node_core::trie::NibblePath;
use node_types::consensus::Receipt;
use node_types::{Address, BlockNumber, Bytes, H256, KECCAK_EMPTY, U256, keccak256};
use std::ops::RangeInclusive;
use std::sync::Arc;

impl View for ChainVersion {
    fn first(&self) -> BlockNumber {
        self.first
    }

    fn head(&self) -> BlockRef {
        self.head
    }

    fn earliest_state(&self) -> BlockNumber {
        self.earliest
    }

    fn header(&self, id: BlockHashOrNumber) -> Result<Option<Arc<SealedHeader>>, BackendError> {
        match self.locate(id)? {
            Some((number, hash)) => match self.caches.headers.get(hash) {
                Some(header) => Ok(Some(header)),
                None => Ok(Some(self.canonical_header(number)?)),
            },
            None => Ok(self.side(id)?.map(|block| block.header)),
        }
    }

    fn body(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Body>>, BackendError> {
        let Some((number, hash)) = self.locate(id)? else {
            return Ok(self.side(id)?.map(|block| block.body));
        };
        let read = || -> Result<_, StoreError> {
            let row = self.block_row(Table::Bodies, number)?;
            Ok((Arc::new(values::decode_body(&row)?), row.len()))
        };
        Ok(Some(self.caches.bodies.get_or(hash, read)?))
    }

    fn receipts(&self, id: BlockHashOrNumber) -> Result<Option<Arc<Vec<Receipt>>>, BackendError> {
        let Some((number, hash)) = self.locate(id)? else {
            return Ok(self.side(id)?.map(|block| block.receipts));
        };
        let read = || -> Result<_, StoreError> {
            let row = self.block_row(Table::Receipts, number)?;
            Ok((Arc::new(values::decode_receipts(&row)?), row.len()))
        };
        Ok(Some(self.caches.receipts.get_or(hash, read)?))
    }

    fn canonical_hash(&self, number: BlockNumber) -> Result<Option<H256>, BackendError> {
        Ok(self.canonical(number)?)
    }

    fn logs(&self, numbers: &[BlockNumber]) -> Result<Vec<BlockLogs>, BackendError> {
        let Rows { tables, limit, .. } = &self.rows;
        let is_new = |number: &BlockNumber| *number <= *limit && self.caches.logs.get((tables.id(), *number)).is_none();
        tables
            .fetch_blocks(&[Table::Headers, Table::Bodies, Table::Receipts], numbers.iter().copied().filter(is_new))?;
        let mut rows = [Table::Headers, Table::Bodies, Table::Receipts].map(|table| tables.of_blocks(table));
        let decode = |header: &[u8], body: &[u8], receipts: &[u8]| -> Result<_, StoreError> {
            Ok((values::decode_block_logs(header, body, receipts)?, receipts.len()))
        };
        let mut of_block = |number: BlockNumber| -> Result<_, StoreError> {
            // Blocks in runs up to the limit are canonical.
            if number <= *limit {
                return self.caches.logs.get_or((tables.id(), number), || {
                    let [header, body, receipts] = rows.each_mut().map(|rows| rows.existing(number));
                    decode(header?, body?, receipts?)
                });
            }
            let header = self.block_row(Table::Headers, number)?;
            self.caches.new_logs.get_or(values::header_hash(&header)?, || {
                let [body, receipts] = [Table::Bodies, Table::Receipts].map(|table| self.block_row(table, number));
                decode(&header, &body?, &receipts?)
            })
        };
        let logs = |number: &BlockNumber| {
            self.check_block(*number)?;
            Ok(of_block(*number)?)
        };
        numbers.iter().map(logs).collect()
    }

    fn side_block(&self, hash: H256) -> Result<Option<ExecutedBlock>, BackendError> {
        Ok(self.side(hash.into())?)
    }

    fn changes(&self, number: BlockNumber) -> Result<Option<Arc<StateChanges>>, BackendError> {
        let dropped = self.earliest > self.first && number <= self.earliest;
        if dropped || !(self.first..=self.head.number).contains(&number) {
            return Ok(None);
        }
        // The changes of a large genesis block, and of the first block of a chain with a base, are not kept.
        if number == self.first && self.rows.get(&Key::of_block(Table::Changes, number))?.is_none() {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.changes_of(number)?)))
    }

    fn state(&self, at: BlockNumber) -> Result<Box<dyn StateView + '_>, BackendError> {
        self.check_state(at)?;
        Ok(Box::new(ChainState { chain: self, at }))
    }

    fn fork(&self, _ancestor: BlockNumber, _branch: &[ExecutedBlock]) -> Result<Option<Arc<dyn View>>, BackendError> {
        Ok(None)
    }

    fn transaction_position(&self, hash: H256) -> Result<Option<TransactionPosition>, BackendError> {
        let row = self.rows.get(&Key::of_hash(Table::Transactions, hash))?;
        Ok(row.map(|row| values::decode_position(&row)).transpose().map_err(StoreError::from)?)
    }

    fn log_candidates(&self, context: &Context, search: LogSearch<'_>) -> Result<Vec<LogPosition>, BackendError> {
        let LogSearch { filter, from, to, limit } = search;
        self.check(to)?;
        context.check()?;
        let Some(from) = LogId::at_or_after(from) else { return Ok(Vec::new()) };
        let found = postings::candidates(&self.rows, context, filter, from, to, limit)?;
        Ok(found.into_iter().map(LogId::position).collect())
    }

    fn fee_rows(&self, range: RangeInclusive<BlockNumber>) -> Result<Vec<FeeRow>, BackendError> {
        if !range.is_empty() {
            self.check_block(*range.start())?;
        }
        self.check(*range.end())?;
        self.rows.tables.fetch_blocks(&[Table::Headers, Table::Fees], range.clone())?;
        let row = |number| -> Result<FeeRow, StoreError> {
            let header = self.canonical_header(number)?;
            let tips = self.caches.tips.get_or(header.hash, || -> Result<_, StoreError> {
                let row = self.block_row(Table::Fees, number)?;
                Ok((Arc::new(values::decode_tips(&row)?), row.len()))
            })?;
            Ok(FeeRow { header, tips })
        };
        Ok(range.map(row).collect::<Result<_, _>>()?)
    }
}

impl ChainVersion {
    /// Returns the error for proofs of the state as of block `block`, which has no state root.
    fn no_state_root(&self, block: BlockNumber) -> Result<BackendError, BackendError> {
        let first = first_without_state_root(self, block)?.unwrap_or(block);
        // What was missing then is missing as long as there is no upstream, so it need not be stored.
        let (parent, changes) = (first.saturating_sub(1), self.changes(first)?.unwrap_or_default());
        let applied = state::fetch(&self.rows, None, parent, &changes)
            .and_then(|()| state::apply(&self.rows, None, Before::Block(parent), first, &changes));
        let reason = match applied {
            Err(StoreError::Base(BackendError::Unobtainable(reason) | BackendError::Upstream(reason))) => reason,
            Err(error) => return Err(error.into()),
            Ok(_) => "a trie node could not be had, which is known by now".into(),
        };
        Ok(BackendError::NoStateRoot { block, first, reason })
    }

    /// Returns code by its hash, or `None` if it was never deployed.
    pub(super) fn code(&self, hash: H256) -> Result<Option<Bytes>, StoreError> {
        if hash == KECCAK_EMPTY {
            return Ok(Some(Bytes::new()));
        }
        if let Some(code) = self.caches.code.get(hash) {
            return Ok(Some(code));
        }
        let code = match self.rows.get(&Key::of_hash(Table::Code, hash))? {
            Some(code) => Some(Bytes::from(&*code)),
            None => match &self.rows.base {
                Some(base) => base.code(hash).map_err(StoreError::Base)?,
                None => None,
            },
        };
        // What is lacking reads as if it was empty.
        if let Some(code) = code.as_ref().filter(|_| !collecting::lacks_something()) {
            self.caches.code.insert(hash, code.clone(), code.len());
        }
        Ok(code)
    }

    /// Returns a side block, or `None` if there is none with this hash or `id` is a number.
    pub(crate) fn side(&self, id: BlockHashOrNumber) -> Result<Option<ExecutedBlock>, StoreError> {
        match id {
            BlockHashOrNumber::Number(_) => Ok(None),
            BlockHashOrNumber::Hash(hash) => self.side_blocks.get(hash, &self.rows.tables),
        }
    }
}

/// The state as of block `at` of a chain.
struct ChainState<'a> {
    chain: &'a ChainVersion,
    at: BlockNumber,
}

impl ChainState<'_> {
    /// Returns the newest row of an account or slot.
    fn newest(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        let ChainVersion { rows, caches, .. } = self.chain;
        if let Some((_, value)) = rows.newest_in_memory(key, self.at) {
            return Ok(Some(value));
        }
        let (place, block) = ((rows.tables.id(), *key), self.at.min(rows.limit));
        let cached = caches.newest.get(place);
        if let Some(row) = cached.filter(|row| row.as_ref().is_none_or(|(version, _)| *version <= block)) {
            return Ok(row.map(|(_, value)| value));
        }
        rows.tables.fetch(&[(*key, block)])?;
        let row = rows.tables.newest(key, block)?;
        // For an earlier block, runs may have a newer row.
        if block >= rows.tables.end() {
            caches.newest.insert(place, row.clone(), row.as_ref().map_or(0, |(_, value)| value.len()));
        }
        Ok(row.map(|(_, value)| value))
    }

    /// Fetches rows together that will be read.
    fn fetch(&self, keys: impl Iterator<Item = Key>) -> Result<(), StoreError> {
        self.chain.rows.tables.fetch(&keys.map(|key| (key, self.at)).collect::<Vec<_>>())
    }

    /// Returns an account, without a value if it does not exist. Returns `None` if it has no row.
    fn recorded(&self, address_hash: H256) -> Result<Option<Option<AccountRow>>, StoreError> {
        let row = self.newest(&Key::of_hash(Table::Accounts, address_hash))?;
        Ok(row.map(|row| AccountRow::decode(&row)).transpose()?)
    }

    fn account_row(&self, address: Address, address_hash: H256) -> Result<Option<AccountRow>, StoreError> {
        match (self.recorded(address_hash)?, &self.chain.rows.base) {
            (Some(account), base) => {
                if let (Some(_), Some(base)) = (account, base) {
                    base.note_read(address, None).map_err(StoreError::Base)?;
                }
                Ok(account)
            }
            (None, Some(base)) => {
                let encoded = self.of_base(Key::of_hash(Table::Accounts, address_hash), || {
                    Ok(base::account(&**base, address)?.map(|account| account.encode()).unwrap_or_default())
                });
                Ok(AccountRow::decode(&encoded?)?)
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns a slot of the storage trie of an account.
    fn slot(&self, trie: TrieId, address: Address, slot: H256, slot_hash: H256) -> Result<U256, StoreError> {
        let base = self.chain.rows.base.as_ref().filter(|_| trie.continues_base());
        let row = match trie {
            TrieId::UNCHANGED if base.is_some() => None,
            _ => self.newest(&Key::of_slot(trie, slot_hash))?,
        };
        let value = match (row, base) {
            (Some(row), base) => {
                if let Some(base) = base {
                    base.note_read(address, Some(slot)).map_err(StoreError::Base)?;
                }
                row
            }
            (None, Some(base)) => self.of_base(Key::of_base_slot(address, slot_hash), || {
                Ok(values::encode_word(base.storage(address, slot).map_err(StoreError::Base)?))
            })?,
            (None, None) => return Ok(U256::zero()),
        };
        Ok(values::decode_word(&value)?)
    }

    /// Returns an account or slot of the base, as the value that a row would have, from the cache or from `read`.
    fn of_base(&self, key: Key, read: impl FnOnce() -> Result<Vec<u8>, StoreError>) -> Result<Value, StoreError> {
        let cache = self.chain.caches.base.as_ref();
        if let Some(value) = cache.and_then(|cache| cache.get(key)) {
            return Ok(value);
        }
        let value = Value::from(&*read()?);
        // What is lacking reads as if it did not exist.
        if let Some(cache) = cache.filter(|_| !collecting::lacks_something()) {
            cache.insert(key, value.clone(), value.len());
        }
        Ok(value)
    }

    /// Has the base fetch what a proof needs, if there is a base.
    fn fetch_base(&self, address: Address, address_hash: H256, slots: &[H256]) -> Result<(), StoreError> {
        let rows = &self.chain.rows;
        let Some(base) = &rows.base else { return Ok(()) };
        let lacking = base::lacking(rows, self.at, address, self.recorded(address_hash)?, slots.iter())?;
        lacking.map_or(Ok(()), |read| base.fetch(&[read]).map_err(StoreError::Base))
    }
}

impl StateView for ChainState<'_> {
    fn account(&self, address: Address) -> Result<Option<AccountState>, BackendError> {
        Ok(self.account_row(address, keccak256(address))?.map(|account| account.state))
    }

    fn storage(&self, address: Address, slot: H256) -> Result<U256, BackendError> {
        let trie = match self.recorded(keccak256(address))? {
            Some(account) => account.and_then(|account| account.storage).map(|(trie, _)| trie),
            // The account itself need not be known.
            None => self.chain.rows.base.as_ref().map(|_| TrieId::UNCHANGED),
        };
        match trie {
            Some(trie) => Ok(self.slot(trie, address, slot, keccak256(slot))?),
            None => Ok(U256::zero()),
        }
    }

    fn has_storage(&self, address: Address) -> Result<bool, BackendError> {
        Ok(self.account_row(address, keccak256(address))?.is_some_and(|account| account.storage.is_some()))
    }

    fn code(&self, hash: H256) -> Result<Option<Bytes>, BackendError> {
        Ok(self.chain.code(hash)?)
    }

    fn proof(&self, address: Address, slots: &[H256]) -> Result<AccountProof, BackendError> {
        if !self.has_root()? {
            return Err(self.chain.no_state_root(self.at)?);
        }
        if self.chain.rows.base.as_ref().is_some_and(|base| !base.is_proven()) {
            return Err(BackendError::Unproven(self.at));
        }
        let hash = keccak256(address);
        self.fetch(state::keys_of_proof(TrieId::ACCOUNTS, hash))?;
        self.fetch_base(address, hash, slots)?;
        let account = self.account_row(address, hash)?;
        let rows = &self.chain.rows;
        let reader = |trie, base| TrieReader { rows, trie, at: Some(self.at), replaces: false, cache: None, base };
        let base = rows.base.as_deref().map(BaseTrie::accounts);
        let leaf = account.map(|account| account.leaf());
        let value = leaf.map(|leaf| leaf.encode().into());
        let proof = trie::prove(&mut reader(TrieId::ACCOUNTS, base), &NibblePath::from(hash), value.as_ref())?;
        let storage = account.and_then(|account| account.storage);
        if let Some((trie, _)) = storage {
            self.fetch(slots.iter().flat_map(|slot| state::keys_of_proof(trie, keccak256(slot))))?;
        }
        let prove_slot = |slot: &H256| -> Result<StorageProof, StoreError> {
            let Some((trie, _)) = storage else {
                return Ok(StorageProof { slot: *slot, value: U256::zero(), proof: Vec::new() });
            };
            let hash = keccak256(slot);
            let value = self.slot(trie, address, *slot, hash)?;
            let base = state::storage_base(rows, trie, address, storage);
            let word = (!value.is_zero()).then(|| trie::encode_word_leaf(&values::encode_word(value)));
            let proof = trie::prove(&mut reader(trie, base), &NibblePath::from(hash), word.as_ref())?;
            Ok(StorageProof { slot: *slot, value, proof })
        };
        Ok(AccountProof { account: leaf, proof, storage: slots.iter().map(prove_slot).collect::<Result<_, _>>()? })
    }

    fn root_after(&self, changes: &StateChanges) -> Result<H256, BackendError> {
        // The result will be discarded, and the changes may be wrong.
        if collecting::lacks_something() {
            return Ok(H256::zero());
        }
        if !self.has_root()? {
            return Ok(H256::zero());
        }
        match self.computed_root(changes) {
            Err(StoreError::Base(BackendError::Unobtainable(_))) => Ok(H256::zero()),
            root => Ok(root?),
        }
    }
}

impl ChainState<'_> {
    /// Returns whether the header of the block commits to the state.
    fn has_root(&self) -> Result<bool, StoreError> {
        Ok(self.chain.rows.base.is_none() || self.chain.canonical_header(self.at)?.header.has_state_root())
    }

    /// Returns the root of the state after `changes` are applied to it.
    fn computed_root(&self, changes: &StateChanges) -> Result<H256, StoreError> {
        // Before the lock is taken, because it may take long.
        state::fetch(&self.chain.rows, None, self.at, changes)?;
        if self.at == self.chain.head.number
            // If the lock is not free, a block is being appended.
            && let Some(mut next) = self.chain.caches.next.try_lock()
            && let Some(root) = next.prepare(&self.chain.rows, self.chain.head, changes)?
        {
            return Ok(root);
        }
        // Applied as changes of the block after the head, regardless of the block of this state, so that new storage
        // tries get unused ids.
        Ok(state::apply(&self.chain.rows, None, Before::Block(self.at), self.chain.head.number + 1, changes)?.root)
    }
}
