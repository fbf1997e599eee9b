//! A simulated disk in memory that loses power, tears writes, fills up, fails and corrupts data. The same seed yields
//! the same faults.

mod content;
mod handles;

use super::Folder;
use content::{Contents, Fate, Random};
use handles::FaultyFolder;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A simulated disk that distinguishes unsynced writes from durable ones. Clones refer to the same disk.
///
/// Handles of files and folders belong to one run of a process: after [`crash`](Self::crash) or [`kill`](Self::kill)
/// they fail, and [`folder`](Self::folder) returns a new one.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk {
    disk: Arc<Mutex<Disk>>,
}

impl FaultyDisk {
    /// Creates an empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the folder for the current run of the process.
    pub fn folder(&self) -> Arc<dyn Folder> {
        let run = self.disk.lock().run;
        Arc::new(FaultyFolder::new(Arc::clone(&self.disk), run))
    }

    /// Simulates a power failure. Every unsynced write, change of length, creation and removal is preserved or lost
    /// independently of the others; a write may also be torn at any byte or at sector boundaries. The same seed has
    /// the same effect.
    pub fn crash(&self, seed: u64) {
        let mut disk = self.disk.lock();
        let mut random = Random(seed);
        let fate = Fate::choose(&mut random);
        let names = std::mem::take(&mut disk.unsynced_names);
        let mut durable_names = std::mem::take(&mut disk.durable_names);
        for change in &names {
            if fate.keeps(&mut random) {
                change.apply(&mut durable_names);
            }
        }
        disk.names = durable_names.clone();
        disk.durable_names = durable_names;
        for content in &mut disk.contents {
            content.crash(fate, &mut random);
        }
        disk.end_run();
    }

    /// Simulates the end of the process, but not of the operating system: all writes remain visible, and unsynced
    /// writes are still not durable.
    pub fn kill(&self) {
        self.disk.lock().end_run();
    }

    /// Makes the `n`th operation from now fail like [`fail_operation_with`](Self::fail_operation_with): with an
    /// unspecified error if `n` is even, and for lack of space if it is odd.
    pub fn fail_operation(&self, n: u64) {
        let kind = if n.is_multiple_of(2) { io::ErrorKind::Other } else { io::ErrorKind::StorageFull };
        self.fail_operation_with(n, kind);
    }

    /// Makes the `n`th operation from now, counted from 0, fail with an error of this kind. A failed write has written
    /// a part of its data. A failed sync drops the changes, but reads still return them.
    pub fn fail_operation_with(&self, n: u64, kind: io::ErrorKind) {
        self.disk.lock().failure = Some((n, kind));
    }

    /// Cancels a planned failure that has not happened yet. Returns whether there was one.
    pub fn fail_nothing(&self) -> bool {
        self.disk.lock().failure.take().is_some()
    }

    /// Limits the total size of all files in bytes. `None` removes the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.lock().capacity = bytes;
    }

    /// Returns the total size of all files in bytes.
    pub fn used(&self) -> u64 {
        self.disk.lock().used()
    }

    /// Makes every sync of a file take this long.
    pub fn set_sync_time(&self, time: Duration) {
        self.disk.lock().sync_time = time;
    }

    /// Returns the number of file syncs requested so far.
    pub fn syncs(&self) -> u64 {
        self.disk.lock().syncs
    }

    /// Returns the names of all files, sorted.
    pub fn names(&self) -> Vec<String> {
        self.disk.lock().names.keys().cloned().collect()
    }

    /// Returns the visible contents of a file.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk.lock();
        disk.names.get(name).map(|index| disk.contents[*index].seen().to_vec())
    }

    /// Replaces the contents of a file durably, bypassing the folder's handles. Creates the file if it does not
    /// exist.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut disk = self.disk.lock();
        let content = Contents::durable(&bytes);
        let index = disk.names.get(name).copied().unwrap_or(disk.contents.len());
        match disk.contents.get_mut(index) {
            Some(old) => *old = content,
            None => disk.contents.push(content),
        }
        disk.names.insert(name.to_owned(), index);
        disk.durable_names.insert(name.to_owned(), index);
    }

    /// Removes a file durably, bypassing the folder's handles.
    pub fn delete(&self, name: &str) {
        let mut disk = self.disk.lock();
        disk.names.remove(name);
        disk.durable_names.remove(name);
    }

    /// Flips one bit of a file, counted from the lowest bit of its first byte. Does nothing if the bit is beyond the
    /// end of the file.
    pub fn flip_bit(&self, name: &str, bit: usize) {
        if let Some(mut bytes) = self.content(name) {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            self.put(name, bytes);
        }
    }

    /// Truncates a file to its first `size` bytes.
    pub fn truncate(&self, name: &str, size: usize) {
        if let Some(mut bytes) = self.content(name) {
            bytes.truncate(size);
            self.put(name, bytes);
        }
    }
}

#[derive(Debug, Default)]
struct Disk {
    /// Number of the current run of the process. Handles of older runs fail.
    run: u64,
    /// The index in `contents` of each file name.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    contents: Vec<Contents>,
    /// The number of operations before the one that must fail, and the kind of its error.
    failure: Option<(u64, io::ErrorKind)>,
    capacity: Option<u64>,
    sync_time: Duration,
    syncs: u64,
}

#[derive(Debug)]
enum NameChange {
    Create(String, usize),
    Remove(String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, index) => names.insert(name.clone(), *index),
            Self::Remove(name) => names.remove(name),
        };
    }
}

impl Disk {
    fn used(&self) -> u64 {
        self.names.values().map(|index| self.contents[*index].seen().len() as u64).sum()
    }

    fn end_run(&mut self) {
        self.run += 1;
        self.failure = None;
        // Without handles, a file without a name no longer exists.
        let created = self.unsynced_names.iter().filter_map(|change| match change {
            NameChange::Create(_, index) => Some(index),
            NameChange::Remove(_) => None,
        });
        let named: BTreeSet<&usize> = self.names.values().chain(self.durable_names.values()).chain(created).collect();
        for (index, content) in self.contents.iter_mut().enumerate() {
            if !named.contains(&index) {
                *content = Contents::default();
            }
        }
    }

    /// Counts an operation.
    ///
    /// # Errors
    /// If this is the operation that must fail.
    fn count_operation(&mut self) -> io::Result<()> {
        match self.failure.take() {
            Some((0, kind)) => Err(io::Error::new(kind, "simulated failure of the disk")),
            Some((left, kind)) => {
                self.failure = Some((left - 1, kind));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns the size to which a file of `size` bytes may grow.
    fn room(&self, size: usize) -> usize {
        self.capacity.map_or(usize::MAX, |capacity| {
            size.saturating_add(usize::try_from(capacity.saturating_sub(self.used())).unwrap_or(usize::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crashes_preserve_synced_content_and_some_unsynced_content() {
        let mut seen = [false; 3];
        for seed in 0..64 {
            let disk = FaultyDisk::new();
            let folder = disk.folder();
            let file = folder.create("a").unwrap();
            folder.sync().unwrap();
            file.write_at(0, &[1; 1000]).unwrap();
            file.sync_data().unwrap();
            file.write_at(1000, &[2; 1000]).unwrap();
            disk.crash(seed);
            assert!(file.size().is_err(), "a handle outlived the crash");
            let content = disk.content("a").unwrap();
            assert_eq!(content[..1000], [1; 1000], "seed {seed}");
            let kept = content[1000..].iter().filter(|byte| **byte == 2).count();
            seen[match kept {
                0 => 0,
                1000 => 1,
                _ => 2,
            }] = true;
        }
        assert_eq!(seen, [true; 3], "lost, kept, torn");
    }

    #[test]
    fn names_need_a_sync_of_the_folder() {
        let mut kept = [false; 2];
        for seed in 0..64 {
            let disk = FaultyDisk::new();
            let folder = disk.folder();
            folder.create("a").unwrap();
            folder.sync().unwrap();
            folder.create("b").unwrap().sync_data().unwrap();
            disk.crash(seed);
            assert!(disk.content("a").is_some(), "seed {seed}");
            kept[usize::from(disk.content("b").is_some())] = true;
        }
        assert_eq!(kept, [true; 2], "lost, kept");
    }

    #[test]
    fn a_full_disk_accepts_what_fits() {
        let disk = FaultyDisk::new();
        let file = disk.folder().create("a").unwrap();
        disk.set_capacity(Some(5));
        assert_eq!(file.write_at(0, &[1; 8]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!((file.size().unwrap(), disk.used()), (5, 5));
        file.write_at(0, &[2; 5]).unwrap();
        assert_eq!(file.set_len(6).unwrap_err().kind(), io::ErrorKind::StorageFull);
        disk.set_capacity(None);
        file.set_len(6).unwrap();
    }

    #[test]
    fn a_failed_sync_drops_changes_that_reads_still_return() {
        let disk = FaultyDisk::new();
        let folder = disk.folder();
        let file = folder.create("a").unwrap();
        folder.sync().unwrap();
        file.write_at(0, b"lost").unwrap();
        disk.fail_operation(0);
        file.sync_data().unwrap_err();
        file.sync_data().unwrap();
        assert_eq!(disk.content("a").unwrap(), b"lost");
        disk.crash(0);
        assert_eq!(disk.content("a").unwrap(), b"");
    }
}
