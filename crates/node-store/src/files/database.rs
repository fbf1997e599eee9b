//! A file for redb on the [`Folder`] port.

use super::checksums::{BLOCK, Checksums, HEADER, Header, damage};
use super::isolated::end_isolated;
use super::{File, Folder};
use parking_lot::{Mutex, RwLock};
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A file of a [`Folder`] as redb's storage backend, with a file of checksums.
///
/// Reads return the bytes that were written, or an error of the kind [`io::ErrorKind::InvalidData`]. This requires that
/// every commit has two phases: only then does redb never read a block of a commit that a crash interrupted.
///
/// redb's own locks are not implemented, because the folder is already locked. Clones are the same file.
#[derive(Clone, Debug)]
pub struct DatabaseFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: Arc<dyn File>,
    checksums: Checksums,
    header: Mutex<CurrentHeader>,
    /// Whether anything except the header was written since the last sync.
    unsynced: AtomicBool,
    /// Whether redb has got an error, after which it refuses every operation.
    failed: AtomicBool,
    /// Whether another value has taken over the file, so that this one must not change it any more.
    retired: RwLock<bool>,
    reads: Arc<FailedReads>,
}

/// Reads that failed since the folder was opened.
#[derive(Debug, Default)]
struct FailedReads {
    count: AtomicU64,
    /// Length and error of reads that have not succeeded since, by offset.
    unreadable: Mutex<BTreeMap<u64, (usize, String)>>,
}

/// Maximum number of unreadable places that are remembered.
const MAX_UNREADABLE: usize = 1000;

#[derive(Debug)]
struct CurrentHeader {
    durable: Header,
    /// The header that redb has written since. The next sync makes it durable, after all blocks.
    written: Option<[u8; HEADER]>,
}

impl DatabaseFile {
    /// Opens the file `name` and the file of its checksums, or creates both, with durable names.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if one of them is missing, truncated or damaged in a way that affects committed
    /// data. The files are not changed in that case.
    pub fn open(folder: &dyn Folder, name: &str, checksums: &str) -> io::Result<Self> {
        let file = match folder.open(name) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let size = file.as_ref().map_or(Ok(0), |file| file.size())?;
        let (found, header) = Checksums::open(folder, checksums, name)?.unzip();
        let header = match header.flatten() {
            Some(header) if header.is_complete() => header,
            // Its creation was not completed, so it starts again.
            Some(header) => Header { length: 0, ..header },
            None if size == 0 => Header::EMPTY,
            None => return Err(damage(format!("{checksums}, the checksums of {name}, is missing or damaged"))),
        };
        if size < header.length {
            let length = header.length;
            return Err(damage(format!("{name} is missing or cut off: it has {size} bytes of {length}")));
        }

        let is_new = file.is_none() || found.is_none();
        let checksums = found.map_or_else(|| Checksums::create(folder, checksums, name), Ok)?;
        // If its sync failed earlier, the header may only be in the memory of the operating system.
        checksums.write_header(&header)?;
        let file = file.map_or_else(|| folder.create(name), Ok)?;
        if is_new {
            folder.sync()?;
        }
        if size > header.length {
            // The end belongs to an unfinished commit. Its length may not be durable.
            file.set_len(header.length)?;
        }
        let header = Mutex::new(CurrentHeader { durable: header, written: None });
        Ok(Self(Arc::new(Inner {
            file,
            checksums,
            header,
            unsynced: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            retired: RwLock::new(false),
            reads: Arc::default(),
        })))
    }

    /// Opens the file again, as after the end of the process. This value can only be read from then on.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn reopen(&self, folder: &dyn Folder, name: &str, checksums: &str) -> io::Result<Self> {
        *self.0.retired.write() = true;
        let Self(mut opened) = Self::open(folder, name, checksums)?;
        if let Some(inner) = Arc::get_mut(&mut opened) {
            inner.reads = Arc::clone(&self.0.reads);
        }
        Ok(Self(opened))
    }

    /// Whether redb has got an error, after which it refuses every operation.
    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::SeqCst)
    }

    /// Returns the number of reads that failed.
    pub fn failed_reads(&self) -> u64 {
        self.0.reads.count.load(Ordering::Relaxed)
    }

    /// Returns the error of a read that failed, and that would fail again, or `None` if there is none.
    pub fn unreadable(&self) -> Option<String> {
        self.0.reads.unreadable.lock().values().next().map(|(_, error)| error.clone())
    }

    /// Repeats reads that have failed, up to the first that fails again.
    pub fn read_again(&self) {
        loop {
            let Some((offset, length)) =
                self.0.reads.unreadable.lock().iter().next().map(|(offset, (length, _))| (*offset, *length))
            else {
                return;
            };
            if self.0.read(offset, &mut vec![0; length]).is_err() {
                return;
            }
            self.0.reads.unreadable.lock().remove(&offset);
        }
    }

    /// Notes the outcome of an operation of redb.
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|_| self.0.failed.store(true, Ordering::SeqCst))
    }

    /// Runs an operation that changes the file.
    fn change<T>(&self, change: impl FnOnce(&Inner) -> io::Result<T>) -> io::Result<T> {
        let retired = self.0.retired.read();
        if *retired {
            return Err(io::Error::other("the database was opened again"));
        }
        self.noted(change(&self.0))
    }
}

impl StorageBackend for DatabaseFile {
    fn len(&self) -> io::Result<u64> {
        self.noted(self.0.file.size())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let result = self.0.read(offset, out).map_err(|error| {
            self.0.reads.count.fetch_add(1, Ordering::Relaxed);
            let mut unreadable = self.0.reads.unreadable.lock();
            if unreadable.len() < MAX_UNREADABLE {
                unreadable.insert(offset, (out.len(), error.to_string()));
            }
            drop(unreadable);
            end_isolated(error)
        });
        self.noted(result)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.change(|inner| inner.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(Inner::sync_data)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(|inner| inner.write(offset, data))
    }
}

impl Inner {
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Some(range) = within_header(offset, out.len())? {
            let header = self.header.lock();
            out.copy_from_slice(&header.written.as_ref().unwrap_or(&header.durable.bytes)[range]);
            return Ok(());
        }
        self.file.read_at(offset, out)?;
        self.checksums.check(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut header = self.header.lock();
        if length < header.durable.length {
            // Otherwise a crash would leave a file that is shorter than the header says.
            let shorter = Header { length, ..header.durable.clone() };
            self.checksums.write_header(&shorter)?;
            header.durable = shorter;
        }
        self.file.set_len(length)?;
        self.unsynced.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut header = self.header.lock();
        if self.unsynced.load(Ordering::SeqCst) {
            self.file.sync_data()?;
            self.checksums.sync()?;
            self.unsynced.store(false, Ordering::SeqCst);
        }
        if let Some(bytes) = header.written {
            let next = Header { length: self.file.size()?, bytes };
            self.checksums.write_header(&next)?;
            *header = CurrentHeader { durable: next, written: None };
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Some(range) = within_header(offset, data.len())? {
            let mut header = self.header.lock();
            let mut bytes = header.written.unwrap_or(header.durable.bytes);
            bytes[range].copy_from_slice(data);
            header.written = Some(bytes);
            // This program never reads it, but other tools can read the file because of it.
            return self.file.write_at(offset, data);
        }
        self.checksums.note(offset, data);
        self.file.write_at(offset, data)?;
        self.unsynced.store(true, Ordering::SeqCst);
        Ok(())
    }
}

/// Returns the range in the header of `length` bytes at `offset`, or `None` if they are whole blocks after the first.
/// redb reads and writes nothing else.
fn within_header(offset: u64, length: usize) -> io::Result<Option<Range<usize>>> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if start.saturating_add(length) <= HEADER {
        return Ok(Some(start..start + length));
    }
    if offset >= BLOCK as u64 && offset.is_multiple_of(BLOCK as u64) && length.is_multiple_of(BLOCK) {
        return Ok(None);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "neither the header nor whole blocks"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;
    use proptest::prelude::*;
    use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("numbers");

    fn open(disk: &FaultyDisk) -> Result<Database, redb::DatabaseError> {
        let file = DatabaseFile::open(&*disk.folder(), "database", "checksums")?;
        Database::builder().set_cache_size(1 << 20).create_with_backend(file)
    }

    fn value(round: u64, key: u64) -> Vec<u8> {
        vec![(round + key) as u8; 100]
    }

    /// Writes the keys 0 to 199, each with the number of the round as its value.
    fn commit(database: &Database, round: u64) -> Result<(), redb::Error> {
        let mut transaction = database.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut table = transaction.open_table(TABLE)?;
            for key in 0..200 {
                table.insert(key, value(round, key).as_slice())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// Returns the round in the database, or 0 if it is empty.
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
                // The crash comes first, because dropping the database would close it cleanly.
                disk.crash(seed);
                drop(database);
                committed = round(&open(&disk).unwrap(), &[committed, tried]);
            }
        }
    }

    #[test]
    fn a_full_disk_is_an_error_until_there_is_space() {
        let disk = FaultyDisk::new();
        let database = open(&disk).unwrap();
        commit(&database, 1).unwrap();
        disk.set_capacity(Some(disk.used()));
        let mut last = 1;
        let error = loop {
            let mut transaction = database.begin_write().unwrap();
            transaction.set_quick_repair(true);
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

    #[test]
    fn a_flipped_bit_in_a_header_leaves_the_other_copy() {
        let disk = FaultyDisk::new();
        let database = open(&disk).unwrap();
        commit(&database, 1).unwrap();
        drop(database);
        let header = || {
            let mut header = [0; HEADER];
            DatabaseFile::open(&*disk.folder(), "database", "checksums").unwrap().read(0, &mut header).unwrap();
            header
        };
        let (expected, checksums) = (header(), disk.content("checksums").unwrap());
        for bit in (0..540 * 8).chain(4096 * 8..(4096 + 540) * 8) {
            disk.flip_bit("checksums", bit);
            assert_eq!(header(), expected, "bit {bit}");
            disk.put("checksums", checksums.clone());
        }
    }

    #[test]
    fn rejects_blocks_that_differ_from_those_written() {
        let disk = FaultyDisk::new();
        let file = DatabaseFile::open(&*disk.folder(), "database", "checksums").unwrap();
        let blocks: Vec<u8> = (0..40 * BLOCK).map(|at| (at / 100) as u8).collect();
        file.set_len(100 * BLOCK as u64).unwrap();
        file.write(BLOCK as u64, &blocks).unwrap();
        let mut read = vec![0; blocks.len()];
        file.read(BLOCK as u64, &mut read).unwrap();
        assert_eq!(read, blocks);
        let pages = disk.content("database").unwrap();
        for bit in [0, 77, BLOCK * 8 * 39, BLOCK * 8 * 40 - 1] {
            disk.flip_bit("database", BLOCK * 8 + bit);
            let error = file.read(BLOCK as u64, &mut read).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            let damaged = format!("database is damaged: block {} does not match its checksum", 1 + bit / 8 / BLOCK);
            assert_eq!(error.to_string(), damaged);
            disk.put("database", pages.clone());
        }
        // Two blocks are exchanged, and one is replaced by one that was never written.
        let mut exchanged = pages.clone();
        exchanged[BLOCK..3 * BLOCK].rotate_left(BLOCK);
        disk.put("database", exchanged);
        assert_eq!(file.read(BLOCK as u64, &mut read[..BLOCK]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        disk.put("database", pages);
        let never = file.read(60 * BLOCK as u64, &mut read[..BLOCK]).unwrap_err();
        assert_eq!(never.kind(), io::ErrorKind::InvalidData);
        for (offset, length) in [(0, BLOCK), (BLOCK + 1, BLOCK), (BLOCK, 100)] {
            let error = file.read(offset as u64, &mut read[..length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
