//! The earliest state that is kept, from which the others are made: every trie is computed again from its leaves.

use super::Base;
use super::difference::{Fault, Stop};
use super::states::{expect_code, header_of};
use crate::error::StoreError;
use crate::keys::{Key, Suffix, Table, TrieId, version_of};
use crate::rows::Tables;
use crate::state::TrieReader;
use crate::trie::{self, Broken, Path, Source, Stored};
use crate::values::AccountRow;
use node_types::{BlockNumber, Bytes, H256};
use std::sync::Arc;

/// Checks the rows of the state as of block `floor`. Rows that no state from there on needs are not looked at: a pruning
/// that was broken off leaves such.
pub(super) fn check(base: &Base<'_>, floor: BlockNumber) -> Result<(), Stop> {
    let root = check_trie(base, floor, TrieId::ACCOUNTS)?;
    let header = header_of(base, floor)?;
    let key = node_key(TrieId::ACCOUNTS, &Path::ROOT);
    Fault::unless_equal("state root", header.state_root, root).map_err(|fault| fault.of(floor, &key, floor))
}

fn node_key(trie: TrieId, position: &Path) -> Key {
    Key::of_node(trie, position.len() as u8, position.packed())
}

/// The root hash of a trie as of `floor`, of which every leaf is a row, and every row a leaf.
fn check_trie(base: &Base<'_>, floor: BlockNumber, trie: TrieId) -> Result<H256, Stop> {
    let nodes = TrieReader { rows: &base.chain.rows, trie, at: Some(floor), cache: None };
    let leaves = Leaves::open(base.tables(), trie, floor)?;
    let mut walk = Walk { base, floor, trie, nodes, leaves, stop: None };
    let computed = trie::recompute(&mut walk);
    if let Some(stop) = walk.stop.take() {
        return Err(stop);
    }
    match computed? {
        Err(Broken { position, expected, found }) => {
            let fault = Fault::Differs { part: "reference".to_owned(), expected, found };
            Err(fault.of(floor, &node_key(trie, &position), floor))
        }
        Ok(root) => match walk.leaves.next()? {
            Some((hash, version, found)) => Err(Fault::Surplus { found }.of(floor, &walk.key(hash), version)),
            None => Ok(root),
        },
    }
}

/// Reads the nodes of a trie, and its leaves from their table beside it.
struct Walk<'a> {
    base: &'a Base<'a>,
    floor: BlockNumber,
    trie: TrieId,
    nodes: TrieReader<'a>,
    leaves: Leaves<'a>,
    /// Why the walk ended early.
    stop: Option<Stop>,
}

impl Source for Walk<'_> {
    fn node(&mut self, position: &Path) -> Result<Arc<Stored>, StoreError> {
        let read = self.nodes.node(position);
        self.keep(read.map_err(|error| self.base.blame(error, self.floor, &node_key(self.trie, position))))
    }

    fn value(&mut self, leaf: &Path) -> Result<Bytes, StoreError> {
        let value = self.leaf(H256::from_slice(leaf.packed()));
        self.keep(value)
    }
}

impl Walk<'_> {
    /// Keeps why the walk ends, for which the trie has no words.
    fn keep<T>(&mut self, result: Result<T, Stop>) -> Result<T, StoreError> {
        result.map_err(|stop| {
            self.stop = Some(stop);
            StoreError::Missing { table: Table::Trie.name() }
        })
    }

    /// The key of the row of a leaf.
    fn key(&self, hash: H256) -> Key {
        match self.trie {
            TrieId::ACCOUNTS => Key::of_hash(Table::Accounts, hash),
            trie => Key::of_slot(trie, hash),
        }
    }

    /// The value of the leaf that is next in the trie, which must be the next row, too.
    fn leaf(&mut self, hash: H256) -> Result<Bytes, Stop> {
        self.base.context.check()?;
        let (found, version, value) = match self.leaves.next()? {
            Some(row) if row.0 <= hash => row,
            _ => return Err(Fault::Missing.of(self.floor, &self.key(hash), self.floor)),
        };
        let key = self.key(found);
        if found < hash {
            return Err(Fault::Surplus { found: value }.of(self.floor, &key, version));
        }
        if self.trie != TrieId::ACCOUNTS {
            return Ok(trie::encode_word_leaf(&value));
        }
        let at = |fault: Fault| fault.of(self.floor, &key, version);
        let account = AccountRow::decode(&value).map_err(|error| at(Fault::malformed(error)))?;
        let account = account.ok_or_else(|| at(Fault::malformed("an account without a value")))?;
        if let Some((trie, root)) = account.storage {
            let computed = check_trie(self.base, self.floor, trie)?;
            Fault::unless_equal("storage root", computed, root).map_err(at)?;
        }
        if account.state.has_code() {
            expect_code(self.base, self.floor, account.state.code_hash)?;
        }
        Ok(account.leaf().encode().into())
    }
}

/// The leaves of a trie as of a block, ascending: hash, block that wrote it, value.
struct Leaves<'a> {
    rows: redb::Range<'a, &'static [u8], &'static [u8]>,
    floor: BlockNumber,
    /// The one answered last.
    last: Option<H256>,
}

impl<'a> Leaves<'a> {
    fn open(tables: &'a Tables, trie: TrieId, floor: BlockNumber) -> Result<Self, StoreError> {
        let rows = if trie == TrieId::ACCOUNTS {
            tables.table(Table::Accounts).range::<&[u8]>(..)?
        } else {
            let [from, to] = [(H256::zero(), u64::MAX), (H256::repeat_byte(0xff), 0)]
                .map(|(hash, version)| Key::of_slot(trie, hash).versioned(version));
            tables.table(Table::Storage).range::<&[u8]>(&*from..=&*to)?
        };
        Ok(Self { rows, floor, last: None })
    }

    fn next(&mut self) -> Result<Option<(H256, u64, Vec<u8>)>, StoreError> {
        for row in self.rows.by_ref() {
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            // Keys of another form are found when rows are counted.
            let Some(start) = key.len().checked_sub(size_of::<H256>() + Suffix::Block.len()) else { continue };
            let Some(version) = version_of(Suffix::Block, key) else { continue };
            let hash = H256::from_slice(&key[start..start + 32]);
            if version > self.floor || self.last == Some(hash) {
                continue;
            }
            self.last = Some(hash);
            if !value.is_empty() {
                return Ok(Some((hash, version, value.to_vec())));
            }
        }
        Ok(None)
    }
}
