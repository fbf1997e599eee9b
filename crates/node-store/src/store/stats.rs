//! How much is stored.

use super::Store;
use crate::error::StoreError;
use node_core::backend::BackendError;
use node_types::BlockNumber;
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableHandle, UntypedTableHandle};

/// What a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The tables of the database.
    pub tables: Vec<TableStats>,
    /// The newest block in the database; later ones are in memory and in the log.
    pub database_head: BlockNumber,
    /// Rows in memory that are not in the database.
    pub rows_in_memory: usize,
}

/// What a table of the database holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// Its name.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of all keys and values.
    pub stored_bytes: u64,
    /// Bytes of the pages that hold them, with what is empty in these.
    pub page_bytes: u64,
}

impl Store {
    /// Counts rows and bytes of each table, in time linear in the size of the database.
    pub fn stats(&self) -> Result<Stats, BackendError> {
        let chain = self.shared.chain();
        let transaction = self.shared.database.begin_read().map_err(StoreError::from)?;
        let mut tables = Vec::new();
        for table in transaction.list_tables().map_err(StoreError::from)? {
            tables.push(stats_of(&transaction, table)?);
        }
        Ok(Stats {
            tables,
            database_head: chain.rows.limit,
            rows_in_memory: chain.rows.young.count() + chain.rows.old.count(),
        })
    }
}

fn stats_of(transaction: &ReadTransaction, handle: UntypedTableHandle) -> Result<TableStats, StoreError> {
    let name = handle.name().to_owned();
    let table = transaction.open_untyped_table(handle)?;
    let stats = table.stats()?;
    let page_bytes = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
    Ok(TableStats { name, rows: table.len()?, stored_bytes: stats.stored_bytes(), page_bytes })
}
