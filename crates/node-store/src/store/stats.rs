//! Statistics of a store.

use super::Store;
use super::open::DATABASE;
use crate::error::StoreError;
use crate::keys::Table;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_types::BlockNumber;
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableHandle, UntypedTableHandle};

/// Statistics of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The newest block.
    pub head: BlockRef,
    /// The earliest block whose state is stored.
    pub earliest_state: BlockNumber,
    /// The tables of the database.
    pub tables: Vec<TableStats>,
    /// The newest block in the database. Later ones are in memory and in the log.
    pub database_head: BlockNumber,
    /// Number of rows in memory that are not in the database.
    pub rows_in_memory: usize,
    /// Size of the database's file in bytes, including free pages.
    pub database_file_bytes: u64,
    /// Size of the log's files in bytes.
    pub log_file_bytes: u64,
}

impl Stats {
    /// Returns the rows of a table, and the bytes of their keys and values.
    fn of(&self, table: Table) -> (u64, u64) {
        let found = self.tables.iter().find(|stats| stats.name == table.name());
        found.map_or((0, 0), |stats| (stats.rows, stats.stored_bytes))
    }

    /// Returns how many leaves blocks wrote or deleted. An account counts once for each block that changed it, and so
    /// does a slot. After pruning, counts only what is left.
    pub fn changed_leaves(&self) -> u64 {
        self.of(Table::Accounts).0 + self.of(Table::Storage).0
    }

    /// Returns the bytes of keys and values of the table `trie` per one of [`Self::changed_leaves`].
    pub fn trie_bytes_a_leaf(&self) -> f64 {
        self.of(Table::Trie).1 as f64 / self.changed_leaves().max(1) as f64
    }

    /// Returns the bytes of keys and values of all tables per block.
    pub fn bytes_a_block(&self) -> f64 {
        let bytes: u64 = self.tables.iter().map(|table| table.stored_bytes).sum();
        bytes as f64 / (self.database_head + 1) as f64
    }
}

/// Statistics of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// Name.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of all keys and values.
    pub stored_bytes: u64,
    /// Bytes of the pages of the table, including free space in them.
    pub page_bytes: u64,
}

impl Store {
    /// Counts rows and bytes of each table. Takes time in proportion to the size of the database.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn stats(&self) -> Result<Stats, BackendError> {
        let chain = self.shared.chain();
        let transaction = self.shared.database().begin_read().map_err(StoreError::from)?;
        let mut tables = Vec::new();
        for table in transaction.list_tables().map_err(StoreError::from)? {
            tables.push(stats_of(&transaction, table)?);
        }
        Ok(Stats {
            head: chain.head,
            earliest_state: chain.earliest,
            tables,
            database_head: chain.rows.limit,
            rows_in_memory: chain.rows.young.count() + chain.rows.old.count(),
            database_file_bytes: self.file_bytes(|name| name == DATABASE)?,
            log_file_bytes: self.file_bytes(|name| name.ends_with(".log"))?,
        })
    }

    /// Size of the log's files in bytes.
    fn file_bytes(&self, chosen: impl Fn(&str) -> bool) -> Result<u64, StoreError> {
        let size = |name: &String| self.folder().open(name)?.size();
        let names = self.folder().list().map_err(StoreError::File)?;
        names.iter().filter(|name| chosen(name)).map(size).sum::<Result<u64, _>>().map_err(StoreError::File)
    }
}

fn stats_of(transaction: &ReadTransaction, handle: UntypedTableHandle) -> Result<TableStats, StoreError> {
    let name = handle.name().to_owned();
    let table = transaction.open_untyped_table(handle)?;
    let stats = table.stats()?;
    let page_bytes = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
    Ok(TableStats { name, rows: table.len()?, stored_bytes: stats.stored_bytes(), page_bytes })
}
