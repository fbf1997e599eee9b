//! The write-ahead log: ordered byte strings that are durable before they are acknowledged.
//!
//! Entries are numbered from 1 without gaps and stored in segments, which are files. Segments whose entries are in
//! runs are dropped. After a crash every acknowledged entry exists unchanged. Other entries may exist or not, but
//! there are never gaps.

mod cut;
mod entries;
mod error;
mod format;
mod mark;
mod recovery;
mod segment;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

pub use entries::{Entries, Entry};
pub use error::WalError;
pub use format::{MAX_PAYLOAD, Sequence};

pub(crate) use cut::remove_after;
pub(crate) use mark::MARK_NAME;
pub(crate) use tail::LogTail;

use crate::files::Folder;
use format::{FrameHeader, checksum};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use writer::Writer;

/// Returns whether a file of this name belongs to a log.
pub(crate) fn is_log_file(name: &str) -> bool {
    name == mark::MARK_NAME || format::parse_segment_name(name).is_some()
}

/// Sizes of segments and buffers.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Size in bytes at which a new segment is started.
    pub segment_bytes: u64,
    /// Maximum number of bytes of entries in memory that wait for a sync. An append that would exceed it syncs first.
    pub buffer_bytes: usize,
    /// Maximum length of a payload in bytes, at most [`MAX_PAYLOAD`].
    pub payload_bytes: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, buffer_bytes: 4 << 20, payload_bytes: MAX_PAYLOAD }
    }
}

/// A write-ahead log. Threads may share it.
///
/// An append copies the entry to memory. A sync makes all appended entries durable with one write and one sync of the
/// file. While one caller syncs, others append and wait, and the next of them syncs for all.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use node_store::files::DiskFolder;
/// use node_store::wal::{Sequence, Wal, WalOptions};
/// use std::sync::Arc;
///
/// # let temporary = tempfile::tempdir()?;
/// # let path = temporary.path();
/// let folder = Arc::new(DiskFolder::open(path)?);
/// let log = Wal::open(folder, Sequence(0), WalOptions::default())?;
/// let sequence = log.append(b"entry")?;
/// log.sync_through(sequence)?;
/// assert_eq!(log.entries_after(Sequence(0)).count(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Wal {
    folder: Arc<dyn Folder>,
    buffer_bytes: usize,
    payload_bytes: usize,
    /// The seed of the checksums in segments that this value creates.
    salt: u64,
    /// Never locked while `pending` is locked, because its holder may wait for the disk.
    writer: Mutex<Writer>,
    pending: Mutex<Pending>,
    sync_ended: Condvar,
}

/// Size in bytes beyond which a buffer that grew for one large entry is freed.
const KEPT_BUFFER: usize = 16 << 20;

/// Entries that are appended but not durable yet.
#[derive(Debug)]
struct Pending {
    /// Complete frames, in order.
    frames: Vec<u8>,
    /// An empty buffer for the next frames.
    spare: Vec<u8>,
    /// Whether a caller is writing earlier frames.
    syncing: bool,
    /// The last appended entry.
    last: Sequence,
    /// The last durable entry.
    synced: Sequence,
    /// Bytes of the frames that became durable since the log was opened.
    synced_bytes: u64,
    /// The failure after which the log accepts nothing until it is rolled back. Until then, `frames` has all entries
    /// that are not durable.
    poison: Option<WalError>,
}

impl Wal {
    /// Checks that the folder has a log. Once a log is created, it has at least one segment at any time.
    ///
    /// # Errors
    /// [`WalError::NoSegments`] if it has no log.
    pub fn check_presence(folder: &dyn Folder) -> Result<(), WalError> {
        if recovery::has_segments(folder)? { Ok(()) } else { Err(WalError::NoSegments) }
    }

    /// Opens the log of a folder, or creates one, and recovers it after a crash: removes an incomplete tail, and makes
    /// all remaining entries durable.
    ///
    /// `flushed` is the last entry that is durable in runs. It and earlier entries need not be in the log, and damage
    /// to them is not an error.
    ///
    /// # Errors
    /// [`WalError::Corrupt`] or [`WalError::Missing`] if a later entry was durable and cannot be read, and
    /// [`WalError::Repeated`] if an entry is in two segments. In these cases the segments are not changed.
    pub fn open(folder: Arc<dyn Folder>, flushed: Sequence, options: WalOptions) -> Result<Self, WalError> {
        Self::open_keeping(folder, flushed, flushed, options)
    }

    /// Like [`open`](Self::open), but keeps the segments with entries after `removable` even if they are in runs.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(crate) fn open_keeping(
        folder: Arc<dyn Folder>,
        flushed: Sequence,
        removable: Sequence,
        options: WalOptions,
    ) -> Result<Self, WalError> {
        let mut recovered = recovery::recover(&*folder, flushed, removable)?;
        let removed = std::mem::take(&mut recovered.removed);
        // The keys of its hasher are the standard library's only source of random numbers.
        let salt = RandomState::new().build_hasher().finish();
        let last = recovered.last;
        let writer = Writer::begin(Arc::clone(&folder), recovered, salt, options.segment_bytes)?;
        recovery::remove_segments(&*folder, &removed)?;
        let (frames, spare) = Default::default();
        let pending = Pending { frames, spare, syncing: false, last, synced: last, synced_bytes: 0, poison: None };
        Ok(Self {
            folder,
            buffer_bytes: options.buffer_bytes,
            payload_bytes: options.payload_bytes.min(MAX_PAYLOAD),
            salt,
            writer: Mutex::new(writer),
            pending: Mutex::new(pending),
            sync_ended: Condvar::new(),
        })
    }

    /// Appends an entry and returns its sequence. It is durable once [`sync_through`](Self::sync_through) returns for
    /// it.
    ///
    /// # Errors
    /// [`WalError::TooLarge`] for a payload above the limit, and [`WalError::Poisoned`] after a failed write.
    pub fn append(&self, payload: &[u8]) -> Result<Sequence, WalError> {
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= self.payload_bytes);
        let Some(length) = length else {
            return Err(WalError::TooLarge { size: payload.len(), limit: self.payload_bytes });
        };
        let payload_sum = checksum(self.salt, payload);
        let mut pending = self.pending_with_room(FrameHeader::SIZE + payload.len())?;
        let sequence = pending.last.next();
        let header = FrameHeader { length, sequence, synced: pending.synced, payload_sum };
        pending.frames.extend_from_slice(&header.encode(self.salt));
        pending.frames.extend_from_slice(payload);
        pending.last = sequence;
        Ok(sequence)
    }

    /// Makes all entries durable that were appended before this call.
    ///
    /// # Errors
    /// Those of [`sync_through`](Self::sync_through).
    pub fn sync(&self) -> Result<(), WalError> {
        let last = self.last();
        self.sync_through(last)
    }

    /// Waits until all entries up to `sequence` are durable. They must have been appended, and not been removed by
    /// [`roll_back`](Self::roll_back).
    ///
    /// # Errors
    /// If writing or syncing fails. After that, every append, and every sync of an entry that is not durable, fails
    /// with [`WalError::Poisoned`] until the log is rolled back. Without a rollback, the entries may or may not exist
    /// when the log is opened again.
    pub fn sync_through(&self, sequence: Sequence) -> Result<(), WalError> {
        let mut pending = self.pending.lock();
        loop {
            if pending.synced >= sequence {
                return Ok(());
            }
            pending.check()?;
            if !pending.syncing {
                break;
            }
            self.sync_ended.wait(&mut pending);
        }
        pending.syncing = true;
        let spare = std::mem::take(&mut pending.spare);
        let frames = std::mem::replace(&mut pending.frames, spare);
        let through = pending.last;
        drop(pending);

        let result = self.writer.lock().commit(&frames, through);

        let mut pending = self.pending.lock();
        pending.syncing = false;
        match &result {
            Ok(()) => {
                pending.synced = through;
                pending.synced_bytes += frames.len() as u64;
                pending.keep(frames);
            }
            Err(error) => {
                pending.poison = Some(error.clone());
                let newer = std::mem::replace(&mut pending.frames, frames);
                pending.frames.extend(newer);
            }
        }
        self.sync_ended.notify_all();
        result
    }

    /// Returns whether a failure has stopped the log.
    pub fn has_failed(&self) -> bool {
        self.pending.lock().poison.is_some()
    }

    /// After a failure, removes all entries after `kept` that are not durable, and makes the others durable, so that
    /// the log accepts entries again. The numbers of removed entries are used again. Does nothing if there was no
    /// failure.
    ///
    /// # Errors
    /// If the disk still fails. In that case it is unknown whether the entries exist when the log is opened again,
    /// unless the creation of a segment failed: then they are removed.
    pub fn roll_back(&self, kept: Sequence) -> Result<(), WalError> {
        let mut pending = self.pending.lock();
        while pending.syncing {
            self.sync_ended.wait(&mut pending);
        }
        if pending.poison.is_none() {
            return Ok(());
        }
        pending.syncing = true;
        pending.truncate(kept, self.salt);
        let frames = std::mem::take(&mut pending.frames);
        let through = kept.clamp(pending.synced, pending.last);
        drop(pending);

        let mut writer = self.writer.lock();
        let result = writer.roll_back().and_then(|()| writer.commit(&frames, through));
        drop(writer);

        let mut pending = self.pending.lock();
        pending.syncing = false;
        if result.is_ok() {
            pending.poison = None;
            (pending.last, pending.synced) = (through, through);
            pending.synced_bytes += frames.len() as u64;
            pending.keep(frames);
        } else {
            pending.frames = frames;
        }
        self.sync_ended.notify_all();
        result
    }

    /// Returns the last appended entry, durable or not.
    pub fn last(&self) -> Sequence {
        self.pending.lock().last
    }

    /// Returns the last durable entry.
    pub fn synced(&self) -> Sequence {
        self.pending.lock().synced
    }

    /// Returns the number of bytes that became durable since the log was opened, of which each entry has
    /// [`Entry::logged_bytes`].
    pub(crate) fn synced_bytes(&self) -> u64 {
        self.pending.lock().synced_bytes
    }

    /// Returns the first entry that the log has, or the next one if it has none.
    pub(crate) fn first(&self) -> Sequence {
        self.writer.lock().segments().first().copied().unwrap_or_default()
    }

    /// Returns the durable entries after `sequence` in order, read from the disk one at a time.
    pub fn entries_after(&self, sequence: Sequence) -> Entries {
        let segments = self.writer.lock().segments().to_vec();
        Entries::new(Arc::clone(&self.folder), segments, sequence, self.synced())
    }

    /// Removes the segments without an entry after `sequence`.
    ///
    /// # Errors
    /// Fails if a file cannot be removed or created. The log then accepts no entries until it is rolled back.
    pub fn drop_through(&self, sequence: Sequence) -> Result<(), WalError> {
        let dropped = self.writer.lock().forget_segments(sequence).inspect_err(|error| {
            // Frames must not be written to the previous segment after a new one may have been created.
            self.pending.lock().poison = Some(error.clone());
        })?;
        if dropped.is_empty() {
            return Ok(());
        }
        // If the names reappear after a crash, opening ignores them, because their entries are in runs.
        recovery::remove_segments(&*self.folder, &dropped)?;
        self.folder.sync().map_err(WalError::io("sync", "the folder"))
    }

    /// Removes the newest segment if it has no entries and is not the only one, because the log was opened in vain.
    /// Nothing may be appended afterwards. If the segment cannot be removed, it does no harm.
    pub(crate) fn remove_empty_segment(&self) {
        if let Some(segment) = self.writer.lock().empty_segment() {
            let _ = recovery::remove_segments(&*self.folder, &[segment]);
        }
    }

    /// Syncs until a frame of this size fits into the buffer. A frame that is larger than the buffer gets an empty
    /// buffer.
    fn pending_with_room(&self, size: usize) -> Result<MutexGuard<'_, Pending>, WalError> {
        loop {
            let pending = self.pending.lock();
            pending.check()?;
            if pending.frames.is_empty() || pending.frames.len().saturating_add(size) <= self.buffer_bytes {
                return Ok(pending);
            }
            let last = pending.last;
            drop(pending);
            self.sync_through(last)?;
        }
    }
}

impl Pending {
    fn check(&self) -> Result<(), WalError> {
        match &self.poison {
            Some(WalError::Io { source, .. }) => Err(WalError::Poisoned { source: Arc::clone(source) }),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Removes the frames of the entries after `kept`.
    fn truncate(&mut self, kept: Sequence, salt: u64) {
        let mut end = 0;
        while let Some(bytes) = self.frames[end..].first_chunk()
            && let Some(header) = FrameHeader::decode(bytes, salt)
            && header.sequence <= kept
        {
            end += FrameHeader::SIZE + header.length as usize;
        }
        self.frames.truncate(end);
    }

    fn keep(&mut self, mut frames: Vec<u8>) {
        if frames.capacity() <= KEPT_BUFFER {
            frames.clear();
            self.spare = frames;
        }
    }
}
