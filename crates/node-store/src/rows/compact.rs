//! Writing the rows of several runs to a single one.

use super::scan::Scan;
use super::tables::Tables;
use crate::error::StoreError;
use crate::keys::{LogId, Suffix, Table, TrieId, number_of, trie_of, version_of};
use crate::runs::RunWriter;
use crate::values::AccountRow;
use crate::{postings, trie};
use node_types::BlockNumber;
use std::collections::HashSet;

/// The first byte of the row of a deleted record or side block.
pub(crate) const DELETED: u8 = 0;

/// The first byte of the row of an existing record or side block; its value follows.
pub(crate) const PRESENT: u8 = 1;

/// The rules for leaving out rows.
#[derive(Default)]
pub(crate) struct Rules {
    /// Whether there are no older runs, in which a deleted row could still be found.
    pub(crate) is_bottom: bool,
    /// If states are pruned, the states that are kept.
    pub(crate) pruned: Option<Pruned>,
}

/// The states that are kept by pruning.
pub(crate) struct Pruned {
    /// The earliest block whose state is kept.
    floor: BlockNumber,
    /// Whether the chain has a base, which would show through if the row of a deletion were left out.
    has_base: bool,
    /// The storage tries of accounts in these states.
    tries: HashSet<TrieId>,
}

impl Pruned {
    /// Reads the accounts of all states from `floor` on.
    pub(crate) fn new(tables: &Tables, floor: BlockNumber, has_base: bool) -> Result<Self, StoreError> {
        let mut pruned = Self { floor, has_base, tries: HashSet::new() };
        let mut versions = Versions::default();
        let mut scan = tables.scan(Table::Accounts)?;
        while let Some((key, value)) = scan.next()? {
            if versions.needs(Table::Accounts, key, value, &pruned) {
                let account = AccountRow::decode(value)?;
                pruned.tries.extend(account.and_then(|account| account.storage).map(|(trie, _)| trie));
            }
        }
        Ok(pruned)
    }
}

/// Writes the rows of `scan`. Calls `check` for each; after an error the run is not complete.
pub(crate) fn compact(
    scan: &mut Scan,
    rules: &Rules,
    out: &mut RunWriter,
    check: &mut dyn FnMut() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut chunks = Chunks::default();
    let mut versions = Versions::default();
    while let Some((key, value)) = scan.next()? {
        check()?;
        let table = Table::of_key(key);
        if table == Some(Table::Postings) {
            chunks.add(key, value, out)?;
            continue;
        }
        chunks.end(out)?;
        let keep = match (table, &rules.pruned) {
            (Some(Table::SideBlocks | Table::Records), _) => !(rules.is_bottom && value.first() == Some(&DELETED)),
            (Some(Table::Changes), Some(pruned)) => number_of(key) > pruned.floor,
            (Some(table @ (Table::Accounts | Table::Storage | Table::Trie)), Some(pruned)) => {
                versions.needs(table, key, value, pruned)
            }
            _ => true,
        };
        if keep {
            out.add(key, value).map_err(StoreError::File)?;
        }
    }
    chunks.end(out)
}

/// Joins consecutive chunks of logs of one term.
#[derive(Default)]
struct Chunks {
    term: Vec<u8>,
    ids: Vec<LogId>,
}

impl Chunks {
    fn add(&mut self, key: &[u8], value: &[u8], out: &mut RunWriter) -> Result<(), StoreError> {
        let term = &key[..key.len().saturating_sub(Suffix::Log.len())];
        if self.term != term {
            self.end(out)?;
            self.term = term.to_vec();
        }
        self.ids.extend(postings::decode(version_of(Suffix::Log, key).unwrap_or_default(), value)?);
        while self.ids.len() > postings::CHUNK {
            let rest = self.ids.split_off(postings::CHUNK);
            self.write(out)?;
            self.ids = rest;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut RunWriter) -> Result<(), StoreError> {
        self.write(out)?;
        self.ids.clear();
        Ok(())
    }

    fn write(&self, out: &mut RunWriter) -> Result<(), StoreError> {
        let Some(last) = self.ids.last() else { return Ok(()) };
        let key = [&self.term[..], &last.0.to_be_bytes()].concat();
        out.add(&key, &postings::encode(&self.ids)).map_err(StoreError::File)
    }
}

/// Finds the rows that only pruned states needed.
#[derive(Default)]
struct Versions {
    /// The key of the last row without its version.
    prefix: Vec<u8>,
    /// Whether older rows of `prefix` are no longer needed.
    covered: bool,
}

impl Versions {
    /// Returns whether a state that is kept needs the row. Rows of one key come newest first.
    ///
    /// Of the rows up to the floor, the newest is needed, with the rows that it is a delta of, unless it marks a
    /// deletion of what the base does not have.
    fn needs(&mut self, table: Table, key: &[u8], value: &[u8], pruned: &Pruned) -> bool {
        let prefix = &key[..key.len().saturating_sub(Suffix::Block.len())];
        if self.prefix != prefix {
            self.prefix = prefix.to_vec();
            self.covered = false;
        }
        let version = version_of(Suffix::Block, key).unwrap_or_default();
        if version > pruned.floor {
            return true;
        }
        let trie = if table == Table::Accounts { Some(TrieId::ACCOUNTS) } else { trie_of(key) };
        let has_account = trie.is_some_and(|trie| trie == TrieId::ACCOUNTS || pruned.tries.contains(&trie));
        if self.covered || !has_account {
            return false;
        }
        self.covered = table != Table::Trie || !trie::is_delta(value);
        let is_nothing = if table == Table::Trie { trie::is_empty(value) } else { value.is_empty() };
        !is_nothing || pruned.has_base && trie.is_some_and(TrieId::continues_base)
    }
}
