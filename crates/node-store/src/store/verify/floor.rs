//! Checks the earliest stored state, on which the later ones are based: computes every trie from its leaves.

use super::base::blame;
use super::difference::{RowFault, Stop};
use super::states::{expect_code, header_of};
use crate::error::StoreError;
use crate::keys::{Key, Suffix, Table, TrieId, version_of};
use crate::rows::{Rows, Scan, Tables};
use crate::state::TrieReader;
use crate::trie::{self, Branch, FROM_BASE, Node, Opaque, RecomputeError, Source, Stored};
use crate::values::AccountRow;
use node_core::context::Context;
use node_core::trie::{NibblePath, Reference};
use node_types::{BlockNumber, Bytes, H256};
use std::iter::Peekable;
use std::sync::Arc;

/// The state to check.
#[derive(Clone, Copy)]
pub(super) struct Earliest<'a> {
    pub(super) rows: &'a Rows,
    /// The block after which the state is checked.
    pub(super) block: BlockNumber,
    pub(super) context: &'a Context,
}

/// A function that receives each row of an account or slot that has no leaf: its key, its block, its value.
pub(super) type OnSurplus<'a> = &'a mut dyn FnMut(&Key, BlockNumber, Vec<u8>) -> Result<(), Stop>;

/// Checks the rows of the state as of a block, and its state root. Ignores rows that no later state needs.
pub(super) fn check(state: Earliest<'_>, surplus: OnSurplus<'_>) -> Result<(), Stop> {
    let header = header_of(&state.rows.tables, state.block)?;
    if state.rows.base.is_some() && !header.has_state_root() {
        // It has no tries.
        return Ok(());
    }
    let root = check_trie(state, TrieId::ACCOUNTS, header.state_root, surplus)?;
    let key = Key::of_node(TrieId::ACCOUNTS, &NibblePath::ROOT);
    let compared = RowFault::unless_equal("state root", header.state_root, root);
    compared.map_err(|fault| fault.of(state.block, &key, state.block))
}

/// Returns the root hash of a trie, which should be `root`. Each of its leaves must have a row; rows without a leaf are
/// passed to `surplus`.
fn check_trie(state: Earliest<'_>, trie: TrieId, root: H256, surplus: OnSurplus<'_>) -> Result<H256, Stop> {
    let nodes = TrieReader { rows: state.rows, trie, at: Some(state.block), replaces: false, cache: None, base: None };
    let leaves = Leaves::open(&state.rows.tables, trie, state.block)?.peekable();
    let mut walk = Walk { state, trie, nodes, leaves, surplus };
    let root = trie::recompute(&mut walk, root).map_err(|error| match error {
        RecomputeError::Read(stop) => stop,
        RecomputeError::WrongReference { position, expected, found } => {
            let fault = RowFault::Differs { part: "reference".to_owned(), expected, found };
            fault.of(state.block, &Key::of_node(trie, &position), state.block)
        }
    })?;
    walk.skip_surplus(None)?;
    Ok(root)
}

/// Reads the nodes of a trie, and in parallel its leaves from their table.
struct Walk<'a> {
    state: Earliest<'a>,
    trie: TrieId,
    nodes: TrieReader<'a>,
    leaves: Peekable<Leaves>,
    surplus: OnSurplus<'a>,
}

impl Source for Walk<'_> {
    type Error = Stop;

    fn node(&mut self, position: &NibblePath, reference: Option<&Reference>) -> Result<Arc<Stored>, Stop> {
        let key = Key::of_node(self.trie, position);
        let Earliest { rows, block, .. } = self.state;
        if rows.base.is_some() && self.trie.continues_base() && rows.newest(&key, block)?.is_none() {
            return Ok(Arc::new(Stored { node: Node::Empty, age: FROM_BASE }));
        }
        self.nodes.node(position, reference).map_err(|error| blame(error, self.state.block, &key))
    }

    fn open(&mut self, opaque: &Opaque) -> Result<Box<Branch>, Stop> {
        Ok(self.nodes.open(opaque)?)
    }

    fn value(&mut self, leaf: &NibblePath) -> Result<Bytes, Stop> {
        self.leaf(H256::from_slice(leaf.packed()))
    }
}

impl Walk<'_> {
    /// Returns the key of the row of a leaf.
    fn key(&self, hash: H256) -> Key {
        match self.trie {
            TrieId::ACCOUNTS => Key::of_hash(Table::Accounts, hash),
            trie => Key::of_slot(trie, hash),
        }
    }

    /// Reports the rows before the one with this hash, or all that are left.
    fn skip_surplus(&mut self, up_to: Option<H256>) -> Result<(), Stop> {
        let is_before = |row: &<Leaves as Iterator>::Item| match row {
            Ok(leaf) => up_to.is_none_or(|hash| leaf.hash < hash),
            Err(_) => true,
        };
        while let Some(leaf) = self.leaves.next_if(is_before) {
            self.state.context.check()?;
            let Leaf { hash, version, value } = leaf?;
            let key = self.key(hash);
            (self.surplus)(&key, version, value)?;
        }
        Ok(())
    }

    /// Returns the value of the next leaf of the trie, which must have a row.
    fn leaf(&mut self, hash: H256) -> Result<Bytes, Stop> {
        self.state.context.check()?;
        self.skip_surplus(Some(hash))?;
        let is_this = |row: &<Leaves as Iterator>::Item| row.as_ref().is_ok_and(|leaf| leaf.hash == hash);
        let block = self.state.block;
        let Some(row) = self.leaves.next_if(is_this) else {
            let key = self.key(hash);
            // A base may have leaves of slots that are zero; their rows are empty, as are those of slots without a leaf.
            let may_be_zero = self.trie != TrieId::ACCOUNTS && self.trie.continues_base();
            if may_be_zero && self.state.rows.newest(&key, block)?.is_some_and(|(_, word)| word.is_empty()) {
                return Ok(trie::encode_word_leaf(&[]));
            }
            return Err(RowFault::Missing.of(block, &key, block));
        };
        let Leaf { version, value, .. } = row?;
        let key = self.key(hash);
        if self.trie != TrieId::ACCOUNTS {
            return Ok(trie::encode_word_leaf(&value));
        }
        let at = |fault: RowFault| fault.of(block, &key, version);
        let account = AccountRow::decode(&value).map_err(|error| at(RowFault::malformed(error)))?;
        let account = account.ok_or_else(|| at(RowFault::malformed("an account without a value")))?;
        if let Some((trie, root)) = account.storage {
            let computed = check_trie(self.state, trie, root, self.surplus)?;
            RowFault::unless_equal("storage root", computed, root).map_err(at)?;
        }
        if account.state.has_code() {
            expect_code(self.state.rows, block, account.state.code_hash)?;
        }
        Ok(account.leaf().encode().into())
    }
}

/// The newest row of an account or slot that has a value.
struct Leaf {
    hash: H256,
    /// The block that wrote the row.
    version: BlockNumber,
    value: Vec<u8>,
}

/// The rows of the leaves of a trie after block `block`, ascending by hash.
struct Leaves {
    rows: Scan,
    /// The prefix of all keys.
    prefix: Vec<u8>,
    block: BlockNumber,
    /// The hash of the last relevant row; older rows with the same hash are skipped.
    last: Option<H256>,
}

impl Leaves {
    fn open(tables: &Tables, trie: TrieId, block: BlockNumber) -> Result<Self, StoreError> {
        let prefix = if trie == TrieId::ACCOUNTS {
            vec![Table::Accounts as u8]
        } else {
            let first = Key::of_slot(trie, H256::zero());
            first.as_slice()[..first.as_slice().len() - size_of::<H256>()].to_vec()
        };
        Ok(Self { rows: tables.scan_prefix(&prefix)?, prefix, block, last: None })
    }

    fn read(&mut self) -> Result<Option<Leaf>, StoreError> {
        while let Some((key, value)) = self.rows.next()? {
            let Some(rest) = key.strip_prefix(&*self.prefix) else { return Ok(None) };
            // Keys of any other form are found when rows are counted.
            let Some((hash, rest)) = rest.split_first_chunk().map(|(hash, rest)| (H256(*hash), rest)) else { continue };
            let Some(version) = version_of(Suffix::Block, rest) else { continue };
            if version > self.block || self.last == Some(hash) {
                continue;
            }
            self.last = Some(hash);
            if !value.is_empty() {
                return Ok(Some(Leaf { hash, version, value: value.to_vec() }));
            }
        }
        Ok(None)
    }
}

impl Iterator for Leaves {
    type Item = Result<Leaf, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
