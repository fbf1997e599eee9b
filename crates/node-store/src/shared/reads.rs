//! Reading parts of runs.

use super::disk_cache::{CacheFolder, DiskCache, RunKey};
use super::error::SharedError;
use super::manifest::SharedRun;
use super::names::LogNumber;
use super::objects::{Fault, Objects, ObjectsError};
use super::reader::header;
use crate::error::StoreError;
use node_core::backend::CacheUse;
use node_core::{remote, waiting};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kind of the error of a read while the store is not available. It says nothing about what was to be read.
pub(crate) const UNAVAILABLE: io::ErrorKind = io::ErrorKind::NetworkUnreachable;

/// Reads parts of the runs of a store, with copies on a disk if there is a folder for them. Identical reads under way are
/// shared.
#[derive(Debug)]
pub(crate) struct RunReads {
    objects: Arc<dyn Objects>,
    disk: Option<DiskCache>,
    under_way: Mutex<HashMap<Part, Arc<Read>>>,
    failed: AtomicU64,
}

/// The name of a run, and bytes of it.
type Part = (String, Range<u64>);

/// A read under way.
#[derive(Debug, Default)]
struct Read {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    has_ended: bool,
    /// `None` if it failed.
    bytes: Option<Arc<[u8]>>,
}

/// Ends a read, even if it panics.
struct Ending<'a> {
    reads: &'a RunReads,
    part: Part,
    read: Arc<Read>,
    bytes: Option<Arc<[u8]>>,
}

impl Ending<'_> {
    fn end_with(mut self, bytes: &Arc<[u8]>) {
        self.bytes = Some(Arc::clone(bytes));
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.reads.under_way.lock().remove(&self.part);
        *self.read.state.lock() = State { has_ended: true, bytes: self.bytes.take() };
        self.read.ended.notify_all();
    }
}

impl RunReads {
    /// Reads runs of `objects`, without copies on a disk.
    pub(super) fn direct(objects: Arc<dyn Objects>) -> Self {
        Self { objects, disk: None, under_way: Mutex::default(), failed: AtomicU64::new(0) }
    }

    /// Reads runs of `objects`. Copies of what was read are in `cache`, if it is given.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub(crate) fn new(objects: Arc<dyn Objects>, cache: Option<&CacheFolder>) -> Result<Self, StoreError> {
        let Some(cache) = cache else { return Ok(Self::direct(objects)) };
        // The first object is never deleted, and contains a random number.
        let first = header(&*objects, LogNumber(1))?.ok_or(SharedError::Vanished(LogNumber(1)))?;
        let disk = DiskCache::open(cache, first.sum()).map_err(StoreError::File)?;
        Ok(Self { disk: Some(disk), ..Self::direct(objects) })
    }

    /// Returns the size and the use of the copies on a disk, or `None` if there are none.
    pub(crate) fn disk_usage(&self) -> Option<CacheUse> {
        self.disk.as_ref().map(DiskCache::usage)
    }

    /// Returns the number of reads that failed because the store was not available.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Removes the copies of runs that are not listed.
    pub(crate) fn keep_only<'a>(&self, listed: impl Iterator<Item = &'a SharedRun>) {
        if let Some(disk) = &self.disk {
            disk.keep_only(&listed.map(RunKey::of).collect());
        }
    }

    /// Drops copies of these bytes.
    pub(super) fn forget(&self, run: &Place, offset: u64, length: usize) {
        if let Some(disk) = &self.disk {
            chunks(&(offset..offset + length as u64), disk.chunk()).for_each(|chunk| disk.remove(&run.key, chunk));
        }
    }

    /// Returns whether copies of these bytes are on the disk.
    pub(super) fn is_near(&self, run: &Place, range: &Range<u64>) -> bool {
        let Some(disk) = &self.disk else { return false };
        chunks(range, disk.chunk()).all(|chunk| disk.has(&run.key, chunk))
    }

    /// Fills each buffer with the bytes of a run at its offset. Reads all that are missing at the same time.
    pub(super) fn read(&self, run: &Place, parts: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let Some(disk) = &self.disk else {
            let ranges: Vec<_> = parts.iter().map(|(offset, buffer)| range_of(*offset, buffer)).collect();
            for ((_, buffer), bytes) in parts.iter_mut().zip(self.fetch(run, &ranges)?) {
                buffer.copy_from_slice(&bytes);
            }
            return Ok(());
        };
        let length = disk.chunk();
        let mut missing = BTreeSet::new();
        for (offset, buffer) in &mut *parts {
            let range = range_of(*offset, buffer);
            for chunk in chunks(&range, length) {
                let (from, to) = (range.start.max(chunk * length), range.end.min((chunk + 1) * length));
                let part = &mut buffer[(from - range.start) as usize..(to - range.start) as usize];
                if !disk.read(&run.key, chunk, from - chunk * length, part)? {
                    missing.insert(chunk);
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let spans: Vec<_> = joined(&missing)
            .into_iter()
            .map(|chunks| chunks.start * length..(chunks.end * length).min(run.size))
            .collect();
        let read = self.fetch(run, &spans)?;
        for (span, bytes) in spans.iter().zip(&read) {
            for (chunk, bytes) in chunks(span, length).zip(bytes.chunks(length as usize)) {
                disk.insert(&run.key, chunk, bytes);
            }
            for (offset, buffer) in &mut *parts {
                let range = range_of(*offset, buffer);
                let (from, to) = (range.start.max(span.start), range.end.min(span.end));
                if from < to {
                    let part = &mut buffer[(from - range.start) as usize..(to - range.start) as usize];
                    part.copy_from_slice(&bytes[(from - span.start) as usize..(to - span.start) as usize]);
                }
            }
        }
        Ok(())
    }

    /// Reads ranges of a run from the store at the same time. Waits for those that are being read already.
    fn fetch(&self, run: &Place, ranges: &[Range<u64>]) -> io::Result<Vec<Arc<[u8]>>> {
        if !waiting::is_allowed() {
            return Err(waiting::refuse());
        }
        let mut found: Vec<Option<Arc<[u8]>>> = vec![None; ranges.len()];
        // A read of another thread that failed is repeated, because its error belongs to that thread.
        while found.contains(&None) {
            let (mut own, mut others) = (Vec::new(), Vec::new());
            {
                let mut under_way = self.under_way.lock();
                for (index, range) in ranges.iter().enumerate().filter(|(index, _)| found[*index].is_none()) {
                    let part = (run.name.clone(), range.clone());
                    match under_way.get(&part) {
                        Some(read) => others.push((index, Arc::clone(read))),
                        None => {
                            let read = Arc::new(Read::default());
                            under_way.insert(part.clone(), Arc::clone(&read));
                            own.push((index, Ending { reads: self, part, read, bytes: None }));
                        }
                    }
                }
            }
            remote::record_step(own.len() as u64);
            if !own.is_empty() {
                let ranges: Vec<_> = own.iter().map(|(index, _)| ranges[*index].clone()).collect();
                let read = self.read_ranges(run, &ranges).inspect_err(|error| self.note(error))?;
                for ((index, ending), bytes) in own.into_iter().zip(read) {
                    ending.end_with(&bytes);
                    found[index] = Some(bytes);
                }
            }
            for (index, read) in others {
                let mut state = read.state.lock();
                while !state.has_ended {
                    read.ended.wait(&mut state);
                }
                found[index] = state.bytes.clone();
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn note(&self, error: &io::Error) {
        if error.kind() == UNAVAILABLE {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read_ranges(&self, run: &Place, ranges: &[Range<u64>]) -> io::Result<Vec<Arc<[u8]>>> {
        let deleted = || io::Error::new(io::ErrorKind::NotFound, format!("{} was deleted", run.name));
        let read = self.objects.read(&run.name, ranges).map_err(io_error)?.ok_or_else(deleted)?;
        let is_complete = |(range, bytes): (&Range<u64>, &Vec<u8>)| bytes.len() as u64 == range.end - range.start;
        if read.len() != ranges.len() || !ranges.iter().zip(&read).all(is_complete) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read.into_iter().map(Arc::from).collect())
    }
}

fn range_of(offset: u64, buffer: &[u8]) -> Range<u64> {
    offset..offset + buffer.len() as u64
}

/// Returns the numbers of the chunks of this length that have bytes of a range.
fn chunks(range: &Range<u64>, length: u64) -> Range<u64> {
    range.start / length..range.end.div_ceil(length)
}

/// Joins neighbours.
fn joined(numbers: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for number in numbers {
        match joined.last_mut() {
            Some(last) if last.end == *number => last.end += 1,
            _ => joined.push(*number..number + 1),
        }
    }
    joined
}

/// Where a run is.
#[derive(Debug)]
pub(super) struct Place {
    name: String,
    size: u64,
    key: RunKey,
}

impl Place {
    pub(super) fn of(run: &SharedRun) -> Self {
        Self { name: run.name.object(), size: run.size, key: RunKey::of(run) }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

fn io_error(error: ObjectsError) -> io::Error {
    let kind = match error.fault {
        Fault::Permission => io::ErrorKind::PermissionDenied,
        Fault::Transient | Fault::Cancelled => UNAVAILABLE,
        Fault::Permanent => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
