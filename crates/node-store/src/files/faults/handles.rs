//! Files and folders on a simulated disk.

use super::content::{Change, Contents};
use super::{Disk, NameChange};
use crate::files::memory::position;
use crate::files::{File, Folder, Object};
use node_core::waiting;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct FaultyFolder {
    disk: Arc<Mutex<Disk>>,
    run: u64,
}

impl FaultyFolder {
    pub(super) fn new(disk: Arc<Mutex<Disk>>, run: u64) -> Self {
        Self { disk, run }
    }

    fn handle(&self, index: usize) -> Arc<dyn File> {
        Arc::new(FaultyFile { disk: Arc::clone(&self.disk), run: self.run, index })
    }
}

impl Folder for FaultyFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let disk = operate(&self.disk, self.run)?;
        let index = disk.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(*index))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut disk = operate(&self.disk, self.run)?;
        if let Some(&index) = disk.names.get(name) {
            disk.contents[index].change(Change::SetLen(0));
            return Ok(self.handle(index));
        }
        let index = disk.contents.len();
        disk.contents.push(Contents::default());
        disk.names.insert(name.to_owned(), index);
        disk.unsynced_names.push(NameChange::Create(name.to_owned(), index));
        Ok(self.handle(index))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(operate(&self.disk, self.run)?.names.keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = operate(&self.disk, self.run)?;
        disk.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        disk.unsynced_names.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = operate(&self.disk, self.run)?;
        disk.unsynced_names.clear();
        disk.durable_names = disk.names.clone();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn is_volatile(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: Arc<Mutex<Disk>>,
    run: u64,
    index: usize,
}

impl Object for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        let disk = operate(&self.disk, self.run)?;
        Ok(disk.contents[self.index].seen().len() as u64)
    }

    /// Every read counts as one that must wait for the disk.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if !waiting::is_allowed() {
            return Err(waiting::refuse());
        }
        let disk = operate(&self.disk, self.run)?;
        disk.contents[self.index].seen().read(position(offset)?, buffer)
    }
}

impl File for FaultyFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = lock(&self.disk, self.run)?;
        let offset = position(offset)?;
        let fits = disk.room(disk.contents[self.index].seen().len()).saturating_sub(offset).min(data.len());
        let (written, result) = if let Err(error) = disk.count_operation() {
            (fits / 2, Err(error))
        } else if fits < data.len() {
            (fits, Err(io::ErrorKind::StorageFull.into()))
        } else {
            (fits, Ok(()))
        };
        if written > 0 {
            disk.contents[self.index].change(Change::Write { offset, data: data[..written].to_vec() });
        }
        result
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        let mut disk = operate(&self.disk, self.run)?;
        let size = position(size)?;
        if size > disk.room(disk.contents[self.index].seen().len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.contents[self.index].change(Change::SetLen(size));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let time = self.disk.lock().sync_time;
        std::thread::sleep(time);
        let mut disk = lock(&self.disk, self.run)?;
        disk.syncs += 1;
        if let Err(error) = disk.count_operation() {
            disk.contents[self.index].fail_sync();
            return Err(error);
        }
        disk.contents[self.index].sync();
        Ok(())
    }
}

/// Begins an operation. Fails if this is the operation that must fail.
fn operate(disk: &Mutex<Disk>, run: u64) -> io::Result<MutexGuard<'_, Disk>> {
    let mut disk = lock(disk, run)?;
    disk.count_operation().map(|()| disk)
}

fn lock(disk: &Mutex<Disk>, run: u64) -> io::Result<MutexGuard<'_, Disk>> {
    let disk = disk.lock();
    if disk.run == run { Ok(disk) } else { Err(io::Error::other("the process of this handle has ended")) }
}
