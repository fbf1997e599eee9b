//! Statistics of a store.

use super::Store;
use crate::error::StoreError;
use crate::keys::Table;
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_types::BlockNumber;

/// Statistics of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of the first block: 0, unless the chain continues another one.
    pub first_block: BlockNumber,
    /// The newest block.
    pub head: BlockRef,
    /// The earliest block whose state is stored.
    pub earliest_state: BlockNumber,
    /// The tables in runs.
    pub tables: Vec<TableStats>,
    /// The newest block in runs. Later ones are in memory and in the log.
    pub runs_head: BlockNumber,
    /// Number of rows in memory that are not in runs.
    pub rows_in_memory: usize,
    /// Number of runs, each a file. They are merged when there are several of about the same size.
    pub runs: usize,
    /// Size of the runs in bytes.
    pub run_bytes: u64,
    /// Size of the runs that will be merged next in bytes, 0 if there are too few of about the same size.
    pub next_merge_bytes: u64,
    /// Size of the log's files in bytes.
    pub log_file_bytes: u64,
}

impl Stats {
    /// Returns the rows of a table, and their bytes on disk.
    fn of(&self, table: Table) -> (u64, u64) {
        let found = self.tables.iter().find(|stats| stats.name == table.name());
        found.map_or((0, 0), |stats| (stats.rows, stats.disk_bytes))
    }

    /// Returns the number of leaves that blocks wrote or deleted. An account counts once for each block that changed
    /// it, and so does a slot. After pruning, only the remaining rows are counted.
    pub fn changed_leaves(&self) -> u64 {
        self.of(Table::Accounts).0 + self.of(Table::Storage).0
    }

    /// Returns the bytes on disk of the table `trie` divided by [`Self::changed_leaves`].
    pub fn trie_bytes_per_leaf(&self) -> f64 {
        self.of(Table::Trie).1 as f64 / self.changed_leaves().max(1) as f64
    }

    /// Returns the bytes on disk of all tables per block.
    pub fn bytes_per_block(&self) -> f64 {
        self.run_bytes as f64 / (self.runs_head - self.first_block + 1) as f64
    }
}

/// Statistics of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    pub name: String,
    pub rows: u64,
    /// Bytes of all keys and values, before compression.
    pub stored_bytes: u64,
    /// Bytes on disk, including indexes and filters. A compressed block with rows of two tables is counted for the
    /// second one.
    pub disk_bytes: u64,
}

impl Store {
    /// Returns the statistics. Rows of blocks that have left the chain are counted until their run is merged.
    ///
    /// # Errors
    /// At present, this never fails.
    pub fn stats(&self) -> Result<Stats, BackendError> {
        let chain = self.shared.chain();
        let stored = &chain.rows.tables;
        let of = |table: Table| {
            let sizes = stored.parts().filter_map(|part| part.run.properties().tables.get(table as usize));
            let empty = TableStats { name: table.name().to_owned(), rows: 0, stored_bytes: 0, disk_bytes: 0 };
            sizes.fold(empty, |sum, size| TableStats {
                rows: sum.rows + size.rows,
                stored_bytes: sum.stored_bytes + size.bytes,
                disk_bytes: sum.disk_bytes + size.disk,
                ..sum
            })
        };
        Ok(Stats {
            first_block: chain.first,
            head: chain.head,
            earliest_state: chain.earliest,
            tables: Table::ALL.into_iter().map(of).collect(),
            runs_head: chain.rows.limit,
            rows_in_memory: chain.rows.young.count() + chain.rows.old.count(),
            runs: stored.parts().count(),
            run_bytes: stored.parts().map(|part| part.run.size()).sum(),
            next_merge_bytes: self.shared.archive.plan().map_or(0, |plan| plan.bytes()),
            log_file_bytes: self.log_file_bytes()?,
        })
    }

    /// Size of the log's files in bytes.
    fn log_file_bytes(&self) -> Result<u64, StoreError> {
        let size = |name: &String| self.folder().open(name)?.size();
        let names = self.folder().list().map_err(StoreError::File)?;
        names.iter().filter(|name| name.ends_with(".log")).map(size).sum::<Result<u64, _>>().map_err(StoreError::File)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Options, Store};
    use node_core::backend::StateBackend;
    use node_core::backend::suite::Random;

    #[test]
    fn shows_what_remains_to_be_merged() {
        let chain = Random(1).chain(20);
        let folder = tempfile::tempdir().unwrap();
        let open = |merge| {
            let options = Options { merge, ..Options::default() };
            Store::open(folder.path(), chain.blocks()[0].clone(), options).unwrap()
        };
        let store = open(false);
        for block in chain.above(0) {
            store.append(block).unwrap();
            store.flush().unwrap();
        }
        let stats = store.stats().unwrap();
        assert!(stats.next_merge_bytes > 0 && stats.next_merge_bytes < stats.run_bytes, "{stats:?}");
        drop(store);
        let store = open(true);
        store.wait_for_merges();
        assert_eq!(store.stats().unwrap().next_merge_bytes, 0);
    }
}
