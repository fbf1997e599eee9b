//! Copies of parts of runs on a disk.

use super::manifest::SharedRun;
use super::names::{Epoch, RunName};
use crate::codec::Reader;
use crate::files::{File, Folder, LOCK_FILE, read_whole};
use node_core::backend::CacheUse;
use parking_lot::RwLock;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use twox_hash::XxHash3_64;

/// Where copies are kept.
#[derive(Clone, Debug)]
pub(crate) struct CacheFolder {
    pub(crate) folder: Arc<dyn Folder>,
    /// Maximum size in bytes.
    pub(crate) bytes: u64,
    /// Length in bytes of the parts of which copies are made.
    pub(crate) chunk: u64,
}

/// The file of the chunks, each in a slot of this length.
const CHUNKS: &str = "chunks";

/// The file that says what is in the slots.
const INDEX: &str = "index";

/// Length in bytes of an entry of the index: epoch and id of the run, checksum of its end, number of the chunk, and the
/// checksum of these, whose seed is that of the store and of the slot.
const ENTRY: usize = 40;

/// Maximum number of slots.
const MAX_SLOTS: u64 = 1 << 30;

/// Identifies the content of a run. Runs of copies of a store that were continued separately may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RunKey {
    name: RunName,
    /// The checksum of its last bytes.
    ending: u64,
}

impl RunKey {
    pub(super) fn of(run: &SharedRun) -> Self {
        Self { name: run.name, ending: XxHash3_64::oneshot_with_seed(run.size, &run.ending) }
    }
}

/// Copies of chunks of runs, in a file of bounded size. If there is no free slot for a new one, it replaces one that was
/// not used for long (the algorithm is CLOCK).
///
/// Nothing is synced, and chunks have no checksums: those of the frames that are in them show damage, whether by the disk,
/// by a crash between the writes of a chunk and of its entry, or because a slot was reused while it was read.
#[derive(Debug)]
pub(super) struct DiskCache {
    /// Kept because it may be locked as long as it is open.
    _folder: Arc<dyn Folder>,
    chunks: Arc<dyn File>,
    index: Arc<dyn File>,
    chunk: u64,
    seed: u64,
    /// Whether the chunk in a slot was used since the hand passed it.
    used: Vec<AtomicBool>,
    slots: RwLock<Slots>,
    hits: AtomicU64,
    misses: AtomicU64,
}

type Chunk = (RunKey, u64);

#[derive(Debug, Default)]
struct Slots {
    places: HashMap<Chunk, u32>,
    /// What is in each slot that was ever used. `None` if nothing is, or it is being written.
    owners: Vec<Option<Chunk>>,
    free: Vec<u32>,
    hand: usize,
}

impl Slots {
    /// Returns a slot that may be overwritten, or `None` if all are being written.
    fn take(&mut self, used: &[AtomicBool]) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.owners.len() < used.len() {
            self.owners.push(None);
            return u32::try_from(self.owners.len() - 1).ok();
        }
        // After one round, every slot is unused.
        for _ in 0..2 * used.len() {
            let slot = self.hand;
            self.hand = (self.hand + 1) % used.len();
            if !used[slot].swap(false, Ordering::Relaxed)
                && let Some(owner) = self.owners[slot].take()
            {
                self.places.remove(&owner);
                return u32::try_from(slot).ok();
            }
        }
        None
    }

    fn free(&mut self, slot: u32) {
        if let Some(owner) = self.owners[slot as usize].take() {
            self.places.remove(&owner);
        }
        self.free.push(slot);
    }
}

impl DiskCache {
    /// Opens the cache. Of what is there, only copies of runs of `store` are used.
    pub(super) fn open(place: &CacheFolder, store: u64) -> io::Result<Self> {
        let CacheFolder { folder, bytes, chunk } = place;
        // With chunks of another length, the entries are those of another store.
        let seed = store ^ chunk.rotate_right(8);
        let names = folder.list()?;
        if let Some(other) = names.iter().filter(|name| ![CHUNKS, INDEX, LOCK_FILE].contains(&&***name)).min() {
            let text = format!("the folder of the cache has the file {other}, which does not belong to a cache");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        let open = |name: &str| match folder.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create(name),
            opened => opened,
        };
        let (chunks, index) = (open(CHUNKS)?, open(INDEX)?);
        let count = (bytes / chunk).clamp(1, MAX_SLOTS);
        for (file, length) in [(&chunks, *chunk), (&index, ENTRY as u64)] {
            if file.size()? > count * length {
                file.set_len(count * length)?;
            }
        }
        chunks.expect_random_reads();
        let mut slots = Slots::default();
        for (slot, entry) in read_whole(&*index, INDEX, u64::MAX)?.as_chunks::<ENTRY>().0.iter().enumerate() {
            let slot = slot as u32;
            slots.owners.push(None);
            match decode(entry, seed, slot) {
                Some(chunk) if !slots.places.contains_key(&chunk) => {
                    slots.owners[slot as usize] = Some(chunk);
                    slots.places.insert(chunk, slot);
                }
                _ => slots.free.push(slot),
            }
        }
        Ok(Self {
            _folder: Arc::clone(folder),
            chunks,
            index,
            chunk: *chunk,
            seed,
            used: (0..count).map(|_| AtomicBool::new(false)).collect(),
            slots: RwLock::new(slots),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// Returns the length of chunks in bytes.
    pub(super) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Returns whether there is a copy of a chunk.
    pub(super) fn has(&self, run: &RunKey, chunk: u64) -> bool {
        self.slots.read().places.contains_key(&(*run, chunk))
    }

    /// Fills `buffer` with bytes of a chunk. Returns whether there is a copy of it.
    ///
    /// # Errors
    /// Only if this thread must not wait for the disk.
    pub(super) fn read(&self, run: &RunKey, chunk: u64, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let slot = self.slots.read().places.get(&(*run, chunk)).copied();
        let Some(slot) = slot else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return Ok(false);
        };
        self.used[slot as usize].store(true, Ordering::Relaxed);
        match self.chunks.read_at(u64::from(slot) * self.chunk + offset, buffer) {
            Ok(()) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Err(_) => {
                self.remove(run, chunk);
                Ok(false)
            }
        }
    }

    /// Keeps a copy of a chunk. If it cannot be written, there is none.
    pub(super) fn insert(&self, run: &RunKey, chunk: u64, bytes: &[u8]) {
        let mut slots = self.slots.write();
        if slots.places.contains_key(&(*run, chunk)) {
            return;
        }
        let Some(slot) = slots.take(&self.used) else { return };
        drop(slots);
        let entry = encode(&(*run, chunk), self.seed, slot);
        let written = self
            .chunks
            .write_at(u64::from(slot) * self.chunk, bytes)
            .and_then(|()| self.index.write_at(u64::from(slot) * ENTRY as u64, &entry));
        let mut slots = self.slots.write();
        if written.is_ok() && !slots.places.contains_key(&(*run, chunk)) {
            slots.places.insert((*run, chunk), slot);
            slots.owners[slot as usize] = Some((*run, chunk));
        } else {
            slots.free(slot);
        }
    }

    /// Drops the copy of a chunk.
    pub(super) fn remove(&self, run: &RunKey, chunk: u64) {
        let mut slots = self.slots.write();
        if let Some(slot) = slots.places.get(&(*run, chunk)).copied() {
            slots.free(slot);
        }
    }

    /// Drops the copies of all runs but these.
    pub(super) fn keep_only(&self, runs: &HashSet<RunKey>) {
        let mut slots = self.slots.write();
        let others: Vec<u32> =
            slots.places.iter().filter(|((run, _), _)| !runs.contains(run)).map(|(_, slot)| *slot).collect();
        others.into_iter().for_each(|slot| slots.free(slot));
    }

    pub(super) fn usage(&self) -> CacheUse {
        CacheUse {
            name: "disk",
            bytes: self.slots.read().places.len() as u64 * self.chunk,
            capacity: self.used.len() as u64 * self.chunk,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}

fn sum(numbers: &[u8], seed: u64, slot: u32) -> u64 {
    XxHash3_64::oneshot_with_seed(seed ^ u64::from(slot), numbers)
}

fn encode((run, chunk): &Chunk, seed: u64, slot: u32) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    let numbers = [run.name.epoch.0, run.name.id, run.ending, *chunk];
    for (bytes, number) in entry.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *bytes = number.to_be_bytes();
    }
    let sum = sum(&entry[..ENTRY - 8], seed, slot);
    entry[ENTRY - 8..].copy_from_slice(&sum.to_be_bytes());
    entry
}

/// Returns the chunk in a slot, or `None` if it is not one of this store.
fn decode(entry: &[u8; ENTRY], seed: u64, slot: u32) -> Option<Chunk> {
    let mut reader = Reader::new(entry, "the index of a cache");
    let mut number = || reader.array().map(u64::from_be_bytes).ok();
    let (epoch, id, ending, chunk) = (Epoch(number()?), number()?, number()?, number()?);
    let is_intact = sum(&entry[..ENTRY - 8], seed, slot) == number()?;
    is_intact.then_some((RunKey { name: RunName { epoch, id }, ending }, chunk))
}
