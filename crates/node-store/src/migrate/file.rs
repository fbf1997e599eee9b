//! Read-only access to the database file of layout 1, for redb.
//!
//! `chain.sums` has two copies of the database's header, and a checksum for each of its blocks. Blocks that redb
//! writes when it opens the database are kept in memory.

use crate::files::{Folder, Object, damage, naming};
use parking_lot::Mutex;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use twox_hash::XxHash3_64;

pub(super) const DATABASE: &str = "chain.redb";
const CHECKSUMS: &str = "chain.sums";

/// Size in bytes of the units that have a checksum.
const BLOCK: usize = 4096;

/// Bytes of the database's header.
const HEADER: usize = 512;

/// A copy of the header: sequence (8), length of the database (8), header, checksum of these (8).
const COPY: usize = 16 + HEADER + 8;

/// Offset of the checksums.
const SUMS: u64 = 2 * BLOCK as u64;

pub(super) struct DatabaseFile {
    file: Arc<dyn Object>,
    sums: Arc<dyn Object>,
    written: Mutex<Written>,
}

/// The data that redb has written, in memory.
struct Written {
    header: [u8; HEADER],
    length: u64,
    blocks: BTreeMap<u64, [u8; BLOCK]>,
}

impl fmt::Debug for DatabaseFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DatabaseFile").field(&self.file).finish()
    }
}

impl DatabaseFile {
    pub(super) fn open(folder: &dyn Folder) -> io::Result<Self> {
        let open = |name| folder.open(name).map_err(|error| naming(name, &error));
        let (file, sums) = (open(DATABASE)?, open(CHECKSUMS)?);
        let copies = [0, BLOCK as u64].map(|offset| read_copy(&*sums, offset));
        let newest = copies.into_iter().flatten().max_by_key(|(sequence, ..)| *sequence);
        let (_, length, header) = newest.ok_or_else(|| damage(format_args!("{CHECKSUMS} is damaged")))?;
        let size = file.size()?;
        if size < length {
            return Err(damage(format_args!("{DATABASE} is cut off: it has {size} bytes of {length}")));
        }
        Ok(Self { file, sums, written: Mutex::new(Written { header, length, blocks: BTreeMap::new() }) })
    }

    /// Reads a block that redb has not written, and checks it.
    fn block(&self, number: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_at(number * BLOCK as u64, out)?;
        let mut sum = [0; 8];
        self.sums.read_at(SUMS + 8 * number, &mut sum)?;
        if XxHash3_64::oneshot_with_seed(number, out) == u64::from_be_bytes(sum) {
            return Ok(());
        }
        Err(damage(format_args!("{DATABASE} is damaged: block {number} does not match its checksum")))
    }
}

/// Returns the sequence, length and header of a copy, or `None` if it is damaged.
fn read_copy(sums: &dyn Object, offset: u64) -> Option<(u64, u64, [u8; HEADER])> {
    let mut copy = [0; COPY];
    sums.read_at(offset, &mut copy).ok()?;
    let (rest, sum) = copy.split_last_chunk()?;
    let (sequence, header) = rest.split_first_chunk()?;
    let (length, header) = header.split_first_chunk()?;
    let intact = XxHash3_64::oneshot_with_seed(0, rest) == u64::from_be_bytes(*sum);
    intact.then_some((u64::from_be_bytes(*sequence), u64::from_be_bytes(*length), *header.first_chunk()?))
}

impl StorageBackend for DatabaseFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock();
        // redb reads and writes parts of the header, and whole blocks.
        if let Some(part) = usize::try_from(offset).ok().and_then(|start| written.header.get(start..start + out.len()))
        {
            out.copy_from_slice(part);
            return Ok(());
        }
        for (number, out) in (offset / BLOCK as u64..).zip(out.chunks_mut(BLOCK)) {
            match written.blocks.get(&number) {
                Some(block) => out.copy_from_slice(&block[..out.len()]),
                None => self.block(number, out)?,
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.written.lock().length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if let Some(part) = start.checked_add(data.len()).and_then(|end| written.header.get_mut(start..end)) {
            part.copy_from_slice(data);
            return Ok(());
        }
        let blocks = (offset / BLOCK as u64..).zip(data.as_chunks().0.iter().copied());
        written.blocks.extend(blocks);
        Ok(())
    }
}
