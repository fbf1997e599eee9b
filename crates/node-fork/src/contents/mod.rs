//! What was fetched, by its hash.

mod check;
mod format;
mod names;
#[cfg(test)]
mod tests;

pub use check::Checked;
pub(crate) use names::name;

use crate::options::ForkOptions;
use format::{FILE_HEADER, FRAME_HEADER, Frame, Salt, read_frame, scan};
use node_core::backend::CacheUse;
use node_store::files::{File, Folder};
use node_types::{Bytes, H256, keccak256};
use parking_lot::{Mutex, RwLock};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The name of the file.
const FILE: &str = "fetched";

/// Maximum length of a content that is kept.
const MAX_LENGTH: usize = 256 << 20;

/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;

/// What a content is, which determines its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The RLP of a trie node, by its hash.
    Node = 1,
    /// Code, by its hash.
    Code = 2,
    /// The RLP of a header, by its hash.
    Header = 3,
    /// A block with the senders of its transactions, by the hash of its header.
    Block = 4,
    /// The receipts of a block, by the hash of its header.
    Receipts = 5,
    /// The hash of the ancestor of a block with a number, which was proven.
    Ancestor = 6,
    /// The same as an endpoint claimed it.
    ClaimedAncestor = 7,
    /// The total difficulty of a block as an endpoint claimed it, by the hash of its header.
    ClaimedDifficulty = 8,
    /// The block and the index of a transaction, by its hash.
    Position = 9,
    /// The numbers of blocks in which an endpoint found logs, by a hash of the search.
    ClaimedLogs = 10,
    /// An account as an endpoint claimed it, by a hash of the block and the address. Empty if it does not exist.
    ClaimedAccount = 11,
    /// A slot as an endpoint claimed it, by a hash of the block, the address and the slot.
    ClaimedSlot = 12,
    /// The address of an account that was read, or an address and a slot, by its hash.
    Name = 13,
}

impl Kind {
    const ALL: [Self; 13] = [
        Self::Node,
        Self::Code,
        Self::Header,
        Self::Block,
        Self::Receipts,
        Self::Ancestor,
        Self::ClaimedAncestor,
        Self::ClaimedDifficulty,
        Self::Position,
        Self::ClaimedLogs,
        Self::ClaimedAccount,
        Self::ClaimedSlot,
        Self::Name,
    ];

    /// Returns whether something else may be right later, or for another fork: it does not follow from the key alone.
    fn may_change(self) -> bool {
        matches!(
            self,
            Self::ClaimedAncestor
                | Self::ClaimedDifficulty
                | Self::Position
                | Self::ClaimedLogs
                | Self::ClaimedAccount
                | Self::ClaimedSlot
        )
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What was fetched for forks, in an append-only file of a folder: trie nodes and code by their hashes, blocks and
/// receipts by the hashes of their headers.
///
/// Forks of any blocks can share it, because nothing in it depends on a fork. What nothing proves is kept as a claim, apart
/// from the rest, which is verified before it is added. Everything has a checksum in the file; trie nodes and code are
/// hashed again when they are read from there. What turns out to be damaged is not known any more, and fetched again.
///
/// An index in memory takes about 70 bytes for each entry.
pub struct Contents {
    folder: Arc<dyn Folder>,
    file: Arc<dyn File>,
    salt: Salt,
    /// Maximum size of the file.
    limit: u64,
    /// The end of the last whole frame. Locked while frames are appended.
    end: Mutex<u64>,
    index: RwLock<HashMap<Key, Place>>,
    cache: Cache<Key, Bytes, Bytewise>,
    /// The end of what a power failure cannot destroy. Locked while the file is synced.
    synced: Mutex<Synced>,
    /// Whether the maximum size was reported.
    is_full: AtomicBool,
    /// Whether something that was added is only cached.
    lacks_some: AtomicBool,
    damaged: AtomicU64,
}

#[derive(Debug, Default)]
struct Synced {
    end: u64,
    /// Why an earlier attempt failed. Another one proves nothing.
    failure: Option<(io::ErrorKind, String)>,
}

/// A kind and a part of a key that nobody can find twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key([u8; 16]);

impl Key {
    fn of(kind: Kind, key: H256) -> Self {
        let mut bytes = [kind as u8; 16];
        bytes[1..].copy_from_slice(&key.0[..15]);
        Self(bytes)
    }

    fn kind(self) -> Option<Kind> {
        Kind::from_byte(self.0[0])
    }
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    /// Length of the content.
    length: u32,
}

#[derive(Clone)]
struct Bytewise;

impl Weighter<Key, Bytes> for Bytewise {
    fn weight(&self, _key: &Key, content: &Bytes) -> u64 {
        content.len() as u64 + 96
    }
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contents").field("folder", &self.folder).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// How much was fetched and kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentsStats {
    /// Number of entries in the file.
    pub entries: u64,
    /// Trie nodes among them.
    pub nodes: u64,
    /// Codes among them.
    pub codes: u64,
    /// Blocks among them.
    pub blocks: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Maximum size of the file in bytes.
    pub limit: u64,
    /// Entries that turned out to be damaged since the file was opened.
    pub damaged: u64,
}

impl Contents {
    /// Opens the contents in a folder, which may also have other files. Whatever was being written when a process ended
    /// is removed; other damage is skipped.
    ///
    /// # Errors
    /// If the file cannot be read, or is in another format.
    pub fn open(folder: Arc<dyn Folder>, options: &ForkOptions) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{FILE}: {error}"));
        let existing = match folder.open(FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        // Frames are written only once the header is durable, so a file without any may have been in creation.
        let existing = match existing {
            Some(file) if file.size()? > FILE_HEADER => Some(file),
            _ => None,
        };
        let (file, salt, found) = match existing {
            None => {
                let (file, salt) = (folder.create(FILE)?, Salt::random()?);
                file.write_at(0, &salt.file_header()).map_err(named)?;
                file.sync_data().map_err(named)?;
                folder.sync()?;
                (file, salt, format::Scan { end: FILE_HEADER, ..Default::default() })
            }
            Some(file) => {
                let salt = Salt::read(&*file).map_err(named)?;
                let size = file.size()?;
                let found = scan(&*file, salt, size).map_err(named)?;
                for damaged in &found.damaged {
                    tracing::warn!(
                        file = FILE,
                        from = damaged.start,
                        to = damaged.end,
                        "a part of what was fetched is damaged, and will be fetched again"
                    );
                }
                if found.end < size {
                    file.set_len(found.end).map_err(named)?;
                }
                (file, salt, found)
            }
        };
        Ok(Self::of(folder, file, salt, found, options.contents_bytes, options))
    }

    /// Opens the contents in a folder in which another process may be adding to them. The file is not changed, and what is
    /// added is only cached.
    ///
    /// # Errors
    /// If the file does not exist, cannot be read, or is in another format.
    pub fn open_read_only(folder: Arc<dyn Folder>, options: &ForkOptions) -> io::Result<Self> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{FILE}: {error}"));
        let file = folder.open(FILE)?;
        let salt = Salt::read(&*file).map_err(named)?;
        // What comes later is not read.
        let size = file.size()?;
        let found = scan(&*file, salt, size).map_err(named)?;
        let contents = Self::of(folder, file, salt, found, 0, options);
        contents.is_full.store(true, Ordering::Relaxed);
        Ok(contents)
    }

    fn of(
        folder: Arc<dyn Folder>,
        file: Arc<dyn File>,
        salt: Salt,
        found: format::Scan,
        limit: u64,
        options: &ForkOptions,
    ) -> Self {
        let mut index = HashMap::with_capacity(found.frames.len());
        for (offset, frame) in found.frames {
            index.insert(Key::of(frame.kind, frame.key), Place { offset, length: frame.length });
        }
        let cache_bytes = options.cache_bytes;
        Self {
            folder,
            file,
            salt,
            limit,
            end: Mutex::new(found.end),
            index: RwLock::new(index),
            cache: Cache::with_weighter((cache_bytes >> 9) as usize, cache_bytes, Bytewise),
            synced: Mutex::default(),
            is_full: AtomicBool::new(false),
            lacks_some: AtomicBool::new(false),
            damaged: AtomicU64::new(found.damaged.len() as u64),
        }
    }

    /// Returns a content, or `None` if it is not known.
    pub(crate) fn get(&self, kind: Kind, key: H256) -> io::Result<Option<Bytes>> {
        let short = Key::of(kind, key);
        if let Some(content) = self.cache.get(&short) {
            return Ok(Some(content));
        }
        let Some(place) = self.index.read().get(&short).copied() else { return Ok(None) };
        let Some(content) = self.read(short, kind, place)? else { return Ok(None) };
        let content = Bytes::from(content);
        // A copy of what is in memory has no use.
        if !self.folder.is_volatile() {
            self.cache.insert(short, content.clone());
        }
        Ok(Some(content))
    }

    /// Returns whether a content is known, without reading it.
    pub(crate) fn has(&self, kind: Kind, key: H256) -> bool {
        let key = Key::of(kind, key);
        self.index.read().contains_key(&key) || self.cache.peek(&key).is_some()
    }

    /// Reads the content with this key from its place in the file. If it is damaged, forgets it and returns `None`.
    fn read(&self, short: Key, kind: Kind, place: Place) -> io::Result<Option<Vec<u8>>> {
        let read = read_frame(&*self.file, self.salt, kind, place.offset, place.length)?;
        let is_whole = |(key, content): &(H256, Vec<u8>)| Key::of(kind, *key) == short && is_right(kind, *key, content);
        let content = read.filter(is_whole).map(|(_, content)| content);
        if content.is_none() {
            self.forget(short, place);
        }
        Ok(content)
    }

    /// Removes what is damaged from the index.
    fn forget(&self, key: Key, place: Place) {
        let mut index = self.index.write();
        if index.get(&key) == Some(&place) {
            index.remove(&key);
            self.damaged.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                file = FILE,
                offset = place.offset,
                "something that was fetched is damaged, and will be fetched again"
            );
        }
    }

    /// Adds what the caller has verified. If it cannot be written, it is only kept as long as there is memory for it.
    pub(crate) fn add(&self, contents: Vec<(Kind, H256, Bytes)>) {
        let (mut bytes, mut places) = (Vec::new(), HashMap::new());
        let mut end = self.end.lock();
        for (kind, key, content) in contents {
            debug_assert!(is_right(kind, key, &content));
            let short = Key::of(kind, key);
            let is_known = places.contains_key(&short) || self.index.read().contains_key(&short);
            if is_known
                && !(kind.may_change() && self.get(kind, key).is_ok_and(|known| known.as_ref() != Some(&content)))
            {
                continue;
            }
            let offset = *end + bytes.len() as u64;
            if content.len() > MAX_LENGTH || offset + (FRAME_HEADER + content.len()) as u64 > self.limit {
                self.report_full();
                self.cache.insert(short, content);
                continue;
            }
            Frame::of(self.salt, kind, key, &content).put(self.salt, &mut bytes);
            bytes.extend_from_slice(&content);
            places.insert(short, Place { offset, length: content.len() as u32 });
            // Until it is written, and if it cannot be.
            if !self.folder.is_volatile() {
                self.cache.insert(short, content);
            }
        }
        if bytes.is_empty() {
            return;
        }
        if let Err(error) = self.file.write_at(*end, &bytes) {
            tracing::warn!(file = FILE, error = &error as &dyn std::error::Error, "what was fetched cannot be kept");
            self.lacks_some.store(true, Ordering::Relaxed);
            // The next frames take the place of what was written.
            return;
        }
        *end += bytes.len() as u64;
        self.index.write().extend(places);
    }

    fn report_full(&self) {
        self.lacks_some.store(true, Ordering::Relaxed);
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                file = FILE,
                limit = self.limit,
                "what was fetched has reached its maximum size; more is only cached in memory"
            );
        }
    }

    /// Makes everything that was added durable.
    ///
    /// # Errors
    /// If the file cannot be synced, or could not be before: then nothing is known about what was written, and the
    /// contents must be opened again.
    pub fn sync(&self) -> io::Result<()> {
        let mut synced = self.synced.lock();
        if let Some((kind, message)) = &synced.failure {
            return Err(io::Error::new(*kind, message.clone()));
        }
        let end = *self.end.lock();
        if end <= synced.end {
            return Ok(());
        }
        if let Err(error) = self.file.sync_data() {
            synced.failure = Some((error.kind(), format!("{FILE}: {error}")));
            return Err(error);
        }
        synced.end = end;
        Ok(())
    }

    /// Copies the contents in a folder to an empty one, durably. Another process may be adding to them: what it added before
    /// the call is in the copy. Returns the number of bytes.
    ///
    /// # Errors
    /// If reading or writing fails.
    pub fn copy(from: &dyn Folder, to: &dyn Folder) -> io::Result<u64> {
        let (file, copy) = (from.open(FILE)?, to.create(FILE)?);
        // The file only grows. The end of the copy may be a part of a frame, as after a kill.
        let size = file.size()?;
        let mut bytes = Vec::new();
        for offset in (0..size).step_by(PIECE as usize) {
            bytes.resize((size - offset).min(PIECE) as usize, 0);
            file.read_at(offset, &mut bytes)?;
            copy.write_at(offset, &bytes)?;
        }
        copy.sync_data()?;
        to.sync()?;
        Ok(size)
    }

    /// Returns how much is kept.
    pub fn stats(&self) -> ContentsStats {
        let mut stats = ContentsStats {
            bytes: *self.end.lock(),
            limit: self.limit,
            damaged: self.damaged.load(Ordering::Relaxed),
            ..ContentsStats::default()
        };
        for key in self.index.read().keys() {
            stats.entries += 1;
            match key.kind() {
                Some(Kind::Node) => stats.nodes += 1,
                Some(Kind::Code) => stats.codes += 1,
                Some(Kind::Block) => stats.blocks += 1,
                _ => {}
            }
        }
        stats
    }

    /// Returns the statistics of the cache of contents.
    pub(crate) fn cache_use(&self) -> CacheUse {
        CacheUse {
            name: "fetched",
            bytes: self.cache.weight(),
            capacity: self.cache.capacity(),
            hits: self.cache.hits(),
            misses: self.cache.misses(),
        }
    }
}

/// Returns whether a content has its key, if that is its hash.
fn is_right(kind: Kind, key: H256, content: &[u8]) -> bool {
    match kind {
        Kind::Node | Kind::Code | Kind::Header | Kind::Name => keccak256(content) == key,
        _ => true,
    }
}
