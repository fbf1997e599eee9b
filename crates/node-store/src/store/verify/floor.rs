//! Checks the earliest stored state, on which the later ones are based: computes every trie from its leaves.

use super::base::blame;
use super::difference::{Fault, Stop};
use super::states::{expect_code, header_of};
use crate::error::StoreError;
use crate::keys::{Key, Suffix, Table, TrieId, version_of};
use crate::rows::{Rows, Tables};
use crate::state::TrieReader;
use crate::trie::{self, RecomputeError, Source, Stored};
use crate::values::AccountRow;
use node_core::context::Context;
use node_core::trie::NibblePath;
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

/// Receives each row of an account or a slot that has no leaf: its key, its block, its value.
pub(super) type OnSurplus<'a> = &'a mut dyn FnMut(&Key, BlockNumber, Vec<u8>) -> Result<(), Stop>;

/// Checks the rows of the state as of a block, and its state root. Ignores rows that no state from there on needs, which
/// an interrupted pruning leaves.
pub(super) fn check(state: Earliest<'_>, surplus: OnSurplus<'_>) -> Result<(), Stop> {
    let root = check_trie(state, TrieId::ACCOUNTS, surplus)?;
    let header = header_of(&state.rows.database, state.block)?;
    let key = node_key(TrieId::ACCOUNTS, &NibblePath::ROOT);
    let compared = Fault::unless_equal("state root", header.state_root, root);
    compared.map_err(|fault| fault.of(state.block, &key, state.block))
}

fn node_key(trie: TrieId, position: &NibblePath) -> Key {
    Key::of_node(trie, position.len() as u8, position.packed())
}

/// Returns the root hash of a trie. Each of its leaves must have a row; rows without a leaf are passed to `surplus`.
fn check_trie(state: Earliest<'_>, trie: TrieId, surplus: OnSurplus<'_>) -> Result<H256, Stop> {
    let nodes = TrieReader { rows: state.rows, trie, at: Some(state.block), cache: None };
    let leaves = Leaves::open(&state.rows.database, trie, state.block)?.peekable();
    let mut walk = Walk { state, trie, nodes, leaves, surplus };
    let root = trie::recompute(&mut walk).map_err(|error| match error {
        RecomputeError::Read(stop) => stop,
        RecomputeError::WrongReference { position, expected, found } => {
            let fault = Fault::Differs { part: "reference".to_owned(), expected, found };
            fault.of(state.block, &node_key(trie, &position), state.block)
        }
    })?;
    walk.skip_surplus(None)?;
    Ok(root)
}

/// Reads the nodes of a trie, and in step with them its leaves from their table.
struct Walk<'a> {
    state: Earliest<'a>,
    trie: TrieId,
    nodes: TrieReader<'a>,
    leaves: Peekable<Leaves<'a>>,
    surplus: OnSurplus<'a>,
}

impl Source for Walk<'_> {
    type Error = Stop;

    fn node(&mut self, position: &NibblePath) -> Result<Arc<Stored>, Stop> {
        let key = node_key(self.trie, position);
        self.nodes.node(position).map_err(|error| blame(error, self.state.block, &key))
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
        let is_before = |row: &<Leaves<'_> as Iterator>::Item| match row {
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
        let is_this = |row: &<Leaves<'_> as Iterator>::Item| row.as_ref().is_ok_and(|leaf| leaf.hash == hash);
        let block = self.state.block;
        let Some(row) = self.leaves.next_if(is_this) else {
            return Err(Fault::Missing.of(block, &self.key(hash), block));
        };
        let Leaf { version, value, .. } = row?;
        let key = self.key(hash);
        if self.trie != TrieId::ACCOUNTS {
            return Ok(trie::encode_word_leaf(&value));
        }
        let at = |fault: Fault| fault.of(block, &key, version);
        let account = AccountRow::decode(&value).map_err(|error| at(Fault::malformed(error)))?;
        let account = account.ok_or_else(|| at(Fault::malformed("an account without a value")))?;
        if let Some((trie, root)) = account.storage {
            let computed = check_trie(self.state, trie, self.surplus)?;
            Fault::unless_equal("storage root", computed, root).map_err(at)?;
        }
        if account.state.has_code() {
            expect_code(&self.state.rows.database, block, account.state.code_hash)?;
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
struct Leaves<'a> {
    rows: redb::Range<'a, &'static [u8], &'static [u8]>,
    block: BlockNumber,
    /// The hash of the last row that counted; older rows with it are skipped.
    last: Option<H256>,
}

impl<'a> Leaves<'a> {
    fn open(tables: &'a Tables, trie: TrieId, block: BlockNumber) -> Result<Self, StoreError> {
        let rows = if trie == TrieId::ACCOUNTS {
            tables.table(Table::Accounts).range::<&[u8]>(..)?
        } else {
            let [from, to] = [(H256::zero(), u64::MAX), (H256::repeat_byte(0xff), 0)]
                .map(|(hash, version)| Key::of_slot(trie, hash).versioned(version));
            tables.table(Table::Storage).range::<&[u8]>(&*from..=&*to)?
        };
        Ok(Self { rows, block, last: None })
    }

    fn read(&mut self, key: &[u8], value: &[u8]) -> Option<Leaf> {
        // Keys of another form are found when rows are counted.
        let start = key.len().checked_sub(size_of::<H256>() + Suffix::Block.len())?;
        let version = version_of(Suffix::Block, key)?;
        let hash = H256::from_slice(&key[start..start + size_of::<H256>()]);
        if version > self.block || self.last == Some(hash) {
            return None;
        }
        self.last = Some(hash);
        (!value.is_empty()).then(|| Leaf { hash, version, value: value.to_vec() })
    }
}

impl Iterator for Leaves<'_> {
    type Item = Result<Leaf, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(row) = self.rows.next() {
            match row {
                Ok((key, value)) => match self.read(key.value(), value.value()) {
                    Some(leaf) => return Some(Ok(leaf)),
                    None => continue,
                },
                Err(error) => return Some(Err(error.into())),
            }
        }
        None
    }
}
