//! Finds rows that belong to no block: counts the rows of each block, and searches the blocks that have surplus rows.

use super::base::{Base, stored};
use super::difference::{RowFault, Stop};
use super::{blocks, states};
use crate::keys::{Key, LogId, Suffix, Table, number_of, version_of};
use crate::values;
use crate::{postings, rows::Value};
use node_types::{BlockNumber, keccak256};
use std::collections::HashSet;

node_types::listed_enum! {
    /// A table in which a block may have any number of rows. Of postings, logs are counted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Counted {
        Accounts,
        Storage,
        Trie,
        Transactions,
        Postings,
    }
}

impl Counted {
    /// The tables of the state.
    const STATE: [Self; 3] = [Self::Accounts, Self::Storage, Self::Trie];

    /// Returns the counter of a table of the state.
    pub(super) fn of(table: Table) -> Self {
        match table {
            Table::Storage => Self::Storage,
            Table::Trie => Self::Trie,
            _ => Self::Accounts,
        }
    }

    fn table(self) -> Table {
        match self {
            Self::Accounts => Table::Accounts,
            Self::Storage => Table::Storage,
            Self::Trie => Table::Trie,
            Self::Transactions => Table::Transactions,
            Self::Postings => Table::Postings,
        }
    }
}

/// The number of rows of each block, from a block on.
#[derive(Default)]
pub(super) struct Counts {
    first: BlockNumber,
    rows: [Vec<u32>; Counted::ALL.len()],
}

impl Counts {
    /// Begins to count the rows of `first` and later blocks.
    pub(super) fn starting_at(first: BlockNumber) -> Self {
        Self { first, rows: Default::default() }
    }

    /// Adds rows of a block, which must not be before the first one.
    pub(super) fn add(&mut self, block: BlockNumber, counted: Counted, rows: usize) {
        let blocks = &mut self.rows[counted as usize];
        let index = (block - self.first) as usize;
        if blocks.len() <= index {
            blocks.resize(index + 1, 0);
        }
        blocks[index] = blocks[index].saturating_add(rows as u32);
    }

    /// Adds the rows of other blocks.
    pub(super) fn merge(&mut self, other: &Self) {
        for counted in Counted::ALL {
            for (block, rows) in (other.first..).zip(&other.rows[counted as usize]) {
                self.add(block, counted, *rows as usize);
            }
        }
    }

    fn get(&self, block: BlockNumber, counted: Counted) -> u32 {
        let index = block.checked_sub(self.first).map(|index| index as usize);
        index.and_then(|index| self.rows[counted as usize].get(index)).copied().unwrap_or(0)
    }
}

/// The blocks whose rows were counted: those up to and including `last`, and for rows of the state, those from
/// `first` on.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) first: BlockNumber,
    pub(super) last: BlockNumber,
}

/// Searches for rows of the state that belong to no block in `range`.
pub(super) fn check_state(base: &Base<'_>, range: Range, counts: &Counts) -> Result<(), Stop> {
    Counted::STATE.into_iter().try_for_each(|counted| check_counted(base, range, counts, counted))
}

/// A search of one table.
type Search<'a> = Box<dyn Fn() -> Result<(), Stop> + Send + Sync + 'a>;

/// Returns the searches of all tables for rows that belong to no block up to the head, which is the last of `range`.
/// If several find a difference, the one of the first search is reported.
pub(super) fn searches<'a>(base: &'a Base<'_>, range: Range, counts: &'a Counts) -> Vec<Search<'a>> {
    let mut searches: Vec<Search<'a>> = Vec::new();
    for table in [Table::Headers, Table::Bodies, Table::Receipts, Table::Changes, Table::Fees] {
        searches.push(Box::new(move || check_numbered(base, range.last, table)));
    }
    searches.push(Box::new(move || check_numbers(base, range.last)));
    for counted in Counted::ALL {
        searches.push(Box::new(move || check_counted(base, range, counts, counted)));
    }
    searches.push(Box::new(move || check_code(base)));
    searches
}

/// Returns the difference for a row that belongs to no block.
fn surplus(block: Option<BlockNumber>, table: Table, key: &[u8], found: &[u8]) -> Stop {
    RowFault::Surplus { found: found.to_vec() }.at(block, table.name(), key[1..].to_vec())
}

/// Checks that there is only one row per block. Its value was checked before.
fn check_numbered(base: &Base<'_>, head: BlockNumber, table: Table) -> Result<(), Stop> {
    let mut rows = base.tables().scan(table)?;
    while let Some((key, value)) = rows.next()? {
        let number = (key.len() == 6).then(|| number_of(key));
        if number.is_none_or(|number| !(base.chain.first..=head).contains(&number)) {
            return Err(surplus(number, table, key, value));
        }
    }
    Ok(())
}

fn check_numbers(base: &Base<'_>, head: BlockNumber) -> Result<(), Stop> {
    let mut rows = base.tables().scan(Table::Numbers)?;
    let mut count = 0;
    while rows.next()?.is_some() {
        count += 1;
    }
    if count == head - base.chain.first + 1 {
        return Ok(());
    }
    let mut rows = base.tables().scan(Table::Numbers)?;
    while let Some((key, value)) = rows.next()? {
        let number = values::decode_number(value).ok();
        let hash = match number.filter(|number| *number <= head) {
            Some(number) => blocks::hash_of(base.tables(), number)?,
            None => None,
        };
        if hash.is_none_or(|hash| *hash.as_bytes() != key[1..]) {
            return Err(surplus(number, Table::Numbers, key, value));
        }
    }
    Ok(())
}

/// Checks the code. It remains stored when its block leaves the chain, so it may belong to no block.
fn check_code(base: &Base<'_>) -> Result<(), Stop> {
    let mut rows = base.tables().scan(Table::Code)?;
    while let Some((key, value)) = rows.next()? {
        base.context.check()?;
        let at = |fault: RowFault| fault.at(None, Table::Code.name(), key[1..].to_vec());
        RowFault::unless_equal("hash", &key[1..], keccak256(value)).map_err(at)?;
    }
    Ok(())
}

/// Returns the blocks to which a row belongs, each with a number that identifies a part of the row. `None` if the row
/// cannot be decoded.
fn owners(counted: Counted, key: &[u8], value: &[u8]) -> Option<Vec<(BlockNumber, u64)>> {
    match counted {
        Counted::Accounts | Counted::Storage | Counted::Trie => Some(vec![(version_of(Suffix::Block, key)?, 0)]),
        Counted::Transactions => Some(vec![(values::decode_position(value).ok()?.block, 0)]),
        Counted::Postings => {
            let ids = postings::decode(version_of(Suffix::Log, key)?, value).ok()?;
            Some(ids.into_iter().map(|id| (id.position().block, id.0)).collect())
        }
    }
}

fn check_counted(base: &Base<'_>, range: Range, counts: &Counts, counted: Counted) -> Result<(), Stop> {
    let table = counted.table();
    let of_state = Counted::STATE.contains(&counted);
    let first = base.chain.first;
    let looked_at = |block: BlockNumber| !of_state || (range.first..=range.last).contains(&block);
    let mut found = vec![0u32; (range.last - first) as usize + 1];
    let mut rows = base.tables().scan(table)?;
    let mut index = 0u64;
    while let Some((key, value)) = rows.next()? {
        index += 1;
        if index.is_multiple_of(1024) {
            base.context.check()?;
        }
        let Some(owners) = owners(counted, key, value) else {
            return Err(surplus(None, table, key, value));
        };
        for (block, _) in owners {
            if !(first..=base.chain.head.number).contains(&block) {
                return Err(surplus(Some(block), table, key, value));
            }
            if looked_at(block) {
                found[(block - first) as usize] += 1;
            }
        }
    }
    let differs =
        |block: &BlockNumber| looked_at(*block) && found[(*block - first) as usize] != counts.get(*block, counted);
    match (first..=range.last).find(differs) {
        Some(block) => Err(find(base, counted, block)?),
        None => Ok(()),
    }
}

/// Finds the difference for a block whose number of rows is wrong: its first surplus row, or a missing one.
fn find(base: &Base<'_>, counted: Counted, block: BlockNumber) -> Result<Stop, Stop> {
    let table = counted.table();
    let mut expected = expected(base, counted, block)?;
    let mut rows = base.tables().scan(table)?;
    while let Some((key, value)) = rows.next()? {
        let owners = owners(counted, key, value).unwrap_or_default();
        let suffix = if counted == Counted::Postings { Suffix::Log.len() } else { 0 };
        let prefix = &key[1..key.len() - suffix];
        for (_, id) in owners.into_iter().filter(|(owner, _)| *owner == block) {
            // A second row for the same id is surplus as well.
            if !expected.remove(&(prefix.to_vec(), id)) {
                return Ok(surplus(Some(block), table, key, value));
            }
        }
    }
    let (key, _) = expected.into_iter().next().unwrap_or_default();
    Ok(RowFault::Missing.at(Some(block), table.name(), key))
}

/// Returns the keys of the rows of one table that a block must have; for postings, the prefixes with the ids of the
/// logs.
fn expected(base: &Base<'_>, counted: Counted, block: BlockNumber) -> Result<HashSet<(Vec<u8>, u64)>, Stop> {
    match counted {
        Counted::Accounts | Counted::Storage | Counted::Trie if base.has_base() && block == base.chain.first => {
            Ok(HashSet::new())
        }
        Counted::Accounts | Counted::Storage | Counted::Trie => {
            let key = Key::of_block(Table::Changes, block);
            let at = |fault: RowFault| fault.of(block, &key, block);
            let row: Value = stored(base.tables(), &key, block)?.ok_or_else(|| at(RowFault::Missing))?;
            let changes = values::decode_changes_row(&row).map_err(|error| at(RowFault::malformed(error)))?;
            let header = states::header_of(base.tables(), block)?;
            let new = states::make(base, &header, &changes, None)?;
            let own = new.rows.iter().filter(|(key, _)| key.table() == counted.table());
            Ok(own.map(|(key, _)| (key.versioned(block)[1..].to_vec(), 0)).collect())
        }
        Counted::Transactions => {
            let transactions = &blocks::read(base.tables(), block)?.body.transactions;
            Ok(transactions.iter().map(|transaction| (transaction.hash.as_bytes().to_vec(), 0)).collect())
        }
        Counted::Postings => {
            let receipts = &blocks::read(base.tables(), block)?.receipts;
            let terms = postings::terms_of(block, receipts).unwrap_or_default();
            let each = |(key, ids): (Key, Vec<LogId>)| ids.into_iter().map(move |id| (key.prefix().to_vec(), id.0));
            Ok(terms.into_iter().flat_map(each).collect())
        }
    }
}
