//! redb on the port.

use super::{File, Folder};
use redb::StorageBackend;
use std::io;
use std::sync::Arc;

/// A file of a [`Folder`] as redb wants it.
///
/// redb's own locks are left out: whoever holds the folder has already locked it.
#[derive(Debug)]
pub struct DatabaseFile(Arc<dyn File>);

impl DatabaseFile {
    /// Opens the file, or creates it, durable by name.
    pub fn open(folder: &dyn Folder, name: &str) -> io::Result<Self> {
        match folder.open(name) {
            Ok(file) => Ok(Self(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = folder.create(name)?;
                folder.sync()?;
                Ok(Self(file))
            }
            Err(error) => Err(error),
        }
    }
}

impl StorageBackend for DatabaseFile {
    fn len(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;
    use proptest::prelude::*;
    use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("numbers");

    fn open(disk: &FaultyDisk) -> Result<Database, redb::DatabaseError> {
        let file = DatabaseFile::open(&*disk.folder(), "database")?;
        Database::builder().set_cache_size(1 << 20).create_with_backend(file)
    }

    fn value(round: u64, key: u64) -> Vec<u8> {
        vec![(round + key) as u8; 100]
    }

    /// Writes the keys 0 to 199, each with the value of this round.
    fn commit(database: &Database, round: u64) -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for key in 0..200 {
                table.insert(key, value(round, key).as_slice())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// The round whose values the database holds; 0 if it holds none.
    fn round(database: &Database, candidates: &[u64]) -> u64 {
        let transaction = database.begin_read().unwrap();
        let table = match transaction.open_table(TABLE) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) if candidates.contains(&0) => return 0,
            Err(error) => panic!("{error}"),
        };
        let found: Vec<_> = table
            .iter()
            .unwrap()
            .map(|row| row.unwrap())
            .map(|(key, value)| (key.value(), value.value().to_vec()))
            .collect();
        let holds = |round: u64| (0..200).map(|key| (key, value(round, key))).eq(found.iter().cloned());
        candidates.iter().copied().find(|round| holds(*round)).expect("the values of one round, and all of them")
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn commits_outlive_power_cuts(
            runs in prop::collection::vec((0..4_u64, any::<u64>(), prop::option::of(0..40_u64)), 1..6),
        ) {
            let disk = FaultyDisk::new();
            let mut committed = 0;
            for (commits, seed, failure) in runs {
                let database = open(&disk).unwrap();
                let mut tried = committed;
                if let Some(operation) = failure {
                    disk.fail_operation(operation);
                }
                for _ in 0..commits {
                    tried += 1;
                    if commit(&database, tried).is_err() {
                        break;
                    }
                    committed = tried;
                }
                // The crash comes first, or dropping the database would end it cleanly.
                disk.crash(seed);
                drop(database);
                committed = round(&open(&disk).unwrap(), &[committed, tried]);
            }
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_space_cures_it() {
        let disk = FaultyDisk::new();
        let database = open(&disk).unwrap();
        commit(&database, 1).unwrap();
        disk.set_capacity(Some(disk.used()));
        let mut last = 1;
        let error = loop {
            let transaction = database.begin_write().unwrap();
            let mut table = transaction.open_table(TABLE).unwrap();
            if let Err(error) = table.insert(1000 + last, [1; 100_000].as_slice()) {
                break redb::Error::from(error);
            }
            drop(table);
            if let Err(error) = transaction.commit() {
                break redb::Error::from(error);
            }
            last += 1;
        };
        let redb::Error::Io(source) = &error else { panic!("{error:?}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        disk.crash(1);
        disk.set_capacity(None);
        drop(database);
        let database = open(&disk).unwrap();
        let transaction = database.begin_read().unwrap();
        let table = transaction.open_table(TABLE).unwrap();
        let keys: Vec<u64> = table.iter().unwrap().map(|row| row.unwrap().0.value()).collect();
        assert_eq!(keys, (0..200).chain(1001..1000 + last).collect::<Vec<_>>());
    }
}
