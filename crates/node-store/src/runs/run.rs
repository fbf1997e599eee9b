//! Reading a run.

use super::block::{Block, BlockCursor};
use super::cache::FrameCache;
use super::failures::FailedReads;
use super::format::{FOOTER, Handle, RunId, read_footer, read_frame};
use super::{Properties, TableSize, filter};
use crate::codec::{Malformed, Reader};
use crate::files::{Folder, Object, damage, naming};
use crate::keys::Table;
use crate::shared::UNAVAILABLE;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// An immutable sorted file of rows.
pub(crate) struct Run {
    id: RunId,
    /// For single rows.
    file: Arc<dyn Object>,
    /// The same file, for reading many rows in order.
    scanned: Arc<dyn Object>,
    size: u64,
    properties: Properties,
    root: Block,
    shared: Arc<RunsShared>,
}

/// The cache and the failures that all runs of a store share.
pub(crate) struct RunsShared {
    pub(crate) cache: FrameCache,
    pub(crate) failed: FailedReads,
}

impl RunsShared {
    /// Returns an empty cache of `bytes` bytes, and no failures.
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { cache: FrameCache::new(bytes), failed: FailedReads::default() })
    }

    /// Forgets what is known of other runs than `runs`.
    pub(crate) fn keep_only<'a>(&self, runs: impl Iterator<Item = &'a Arc<Run>>) {
        let ids: HashSet<_> = runs.map(|run| run.id()).collect();
        self.failed.forget(|id| ids.contains(&id));
        self.cache.forget(|id| ids.contains(&id));
    }
}

impl Run {
    pub(crate) fn open(folder: &dyn Folder, id: RunId, shared: Arc<RunsShared>) -> io::Result<Self> {
        let open = || folder.open(&id.file_name()).map_err(|error| naming(&id.file_name(), &error));
        let (file, scanned) = (open()?, open()?);
        file.expect_random_reads();
        Ok(Self { file, ..Self::read(scanned, id, shared)? })
    }

    /// Opens the run in `file`.
    pub(crate) fn read(file: Arc<dyn Object>, id: RunId, shared: Arc<RunsShared>) -> io::Result<Self> {
        let size = file.size()?;
        let damaged = || damage(format_args!("{} is truncated or damaged", id.file_name()));
        let start = size.checked_sub(FOOTER as u64).ok_or_else(damaged)?;
        let mut footer = [0; FOOTER];
        file.read_at(start, &mut footer)?;
        let handle = read_footer(id, &footer).ok_or_else(damaged)?;
        let content = read_frame(&*file, size, id, handle)?;
        let mut reader = Reader::new(&content, "the properties of a run");
        let read = |reader: &mut Reader<'_>| Ok((read_handle(reader)?, Properties::read(reader)?));
        let (root, properties) = read(&mut reader).map_err(|_: Malformed| damaged())?;
        let root = Block::new(read_frame(&*file, size, id, root)?)?;
        Ok(Self { id, file: Arc::clone(&file), scanned: file, size, properties, root, shared })
    }

    pub(crate) fn id(&self) -> RunId {
        self.id
    }

    /// Returns the length of the file in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Reads bytes of the file without checking them, for copying it.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.scanned.read_at(offset, buffer)
    }

    /// Returns the file, for copying it.
    pub(crate) fn scanned_file(&self) -> &Arc<dyn Object> {
        &self.scanned
    }

    /// Returns whether the run uses the cache of `shared`.
    pub(crate) fn uses(&self, shared: &Arc<RunsShared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Returns whether the run has rows of `table`.
    pub(crate) fn has(&self, table: Table) -> bool {
        self.properties.tables.get(table as usize).is_some_and(|size| size.rows > 0)
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Returns a cursor at the first row whose key is at or above `key`, or `None` if there is none.
    pub(crate) fn seek(self: &Arc<Self>, key: &[u8]) -> io::Result<Option<Cursor>> {
        self.find(key, None, true)
    }

    /// Like [`Self::seek`], but may return `None` if no row has a key whose [`filter_part`](crate::keys::filter_part)
    /// is `part`.
    pub(crate) fn seek_part(self: &Arc<Self>, part: &[u8], key: &[u8]) -> io::Result<Option<Cursor>> {
        self.find(key, Some(filter::hash(part)), true)
    }

    /// Like [`Self::seek`], but does not cache what it reads. For reading many rows in order, which would displace
    /// others from the cache.
    pub(crate) fn scan(self: &Arc<Self>, key: &[u8]) -> io::Result<Option<Cursor>> {
        self.find(key, None, false)
    }

    fn find(self: &Arc<Self>, key: &[u8], hash: Option<u64>, keep: bool) -> io::Result<Option<Cursor>> {
        let Some(top) = self.root.value_at(key)? else { return Ok(None) };
        let mut below;
        let mut reader = index_entry(top);
        for _ in 1..self.properties.levels {
            below = self.block(read_handle_of(&mut reader)?, true)?;
            reader = index_entry(below.value_at(key)?.ok_or_else(|| self.inconsistent())?);
        }
        let index = read_handle_of(&mut reader)?;
        if let Some(hash) = hash
            && !reader.is_empty()
            && !filter::may_have(&self.content(read_handle_of(&mut reader)?, true)?, hash)
        {
            return Ok(None);
        }
        let index = self.block(index, true)?;
        let found = index.value_at(key)?.ok_or_else(|| self.inconsistent())?;
        let rows = self.block(read_handle_of(&mut index_entry(found))?, keep)?;
        let entry = rows.seek(key)?.ok_or_else(|| self.inconsistent())?;
        Ok(Some(Cursor { run: Arc::clone(self), entry, keep }))
    }

    pub(super) fn file(&self) -> &dyn Object {
        &*self.file
    }

    pub(super) fn root(&self) -> &Block {
        &self.root
    }

    /// Returns the content of a frame if it is cached.
    pub(super) fn cached(&self, handle: Handle) -> Option<Arc<[u8]>> {
        self.shared.cache.get((self.id, handle.offset))
    }

    /// Caches the content of a frame.
    pub(super) fn cache(&self, handle: Handle, content: Arc<[u8]>) {
        self.shared.cache.insert((self.id, handle.offset), content);
    }

    #[cold]
    pub(super) fn inconsistent(&self) -> io::Error {
        damage(format_args!("the index of {} does not match its rows", self.id.file_name()))
    }

    fn block(&self, handle: Handle, keep: bool) -> io::Result<Block> {
        Block::new(self.content(handle, keep)?)
    }

    /// Returns the content of a frame, from the cache if possible. Caches it if `keep` is set.
    pub(super) fn content(&self, handle: Handle, keep: bool) -> io::Result<Arc<[u8]>> {
        let file = if keep { &self.file } else { &self.scanned };
        let read = || {
            let content = read_frame(&**file, self.size, self.id, handle);
            content.inspect_err(|error| {
                // A read that would have to wait is repeated. A store that is not available is reported as a whole.
                if ![io::ErrorKind::WouldBlock, UNAVAILABLE].contains(&error.kind()) {
                    self.shared.failed.note(file, self.id, handle, error);
                }
            })
        };
        self.shared.cache.get_or((self.id, handle.offset), keep, read)
    }
}

/// A position in a run.
pub(crate) struct Cursor {
    run: Arc<Run>,
    entry: BlockCursor,
    /// Whether blocks that are read are cached.
    keep: bool,
}

impl Cursor {
    pub(crate) fn key(&self) -> &[u8] {
        self.entry.key()
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.entry.value()
    }

    /// Moves to the row with this key if it is near, in the same block of rows. Returns whether it is.
    pub(crate) fn move_to(&mut self, key: &[u8]) -> io::Result<bool> {
        let Some(entry) = self.entry.seek(key)?.filter(|entry| entry.key() == key) else { return Ok(false) };
        self.entry = entry;
        Ok(true)
    }

    /// Moves to the next row. Returns whether there is one.
    pub(crate) fn advance(&mut self) -> io::Result<bool> {
        if self.entry.advance()? {
            return Ok(true);
        }
        // The lowest key above the last one of the block.
        let mut key = self.entry.key().to_vec();
        key.push(0);
        let Some(next) = self.run.find(&key, None, self.keep)? else { return Ok(false) };
        self.entry = next.entry;
        Ok(true)
    }
}

pub(super) fn index_entry(value: &[u8]) -> Reader<'_> {
    Reader::new(value, "the index of a run")
}

fn read_handle(reader: &mut Reader<'_>) -> Result<Handle, Malformed> {
    Ok(Handle { offset: reader.varint()?, length: reader.varint()? })
}

pub(super) fn read_handle_of(reader: &mut Reader<'_>) -> io::Result<Handle> {
    read_handle(reader).map_err(damage)
}

/// Maximum number of levels of an index. Each has at most half as many entries as the one below it.
const MAX_LEVELS: usize = 64;

impl Properties {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (first, last) = (reader.varint()?, reader.varint()?);
        let levels = usize::try_from(reader.varint()?).ok().filter(|levels| *levels <= MAX_LEVELS);
        let levels = levels.ok_or_else(|| reader.malformed())?;
        let tables = (0..reader.count(3)?)
            .map(|_| Ok(TableSize { rows: reader.varint()?, bytes: reader.varint()?, disk: reader.varint()? }));
        Ok(Self { blocks: first..=last, levels, tables: tables.collect::<Result<_, _>>()? })
    }
}
