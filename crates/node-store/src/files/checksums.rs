//! The file of checksums beside the database.
//!
//! redb reads pages without checking them, so that a flipped bit would become a wrong answer. This file has a checksum
//! of each block of the database but the first. redb never overwrites a block of the last commit, so that the checksums
//! of these stand still too: a power cut can spoil those of an unfinished commit only, whose blocks are written
//! again before they are read.
//!
//! The first block holds redb's header, which is overwritten in place, and says which of two commits is valid by a bit
//! that no checksum covers. So the header is kept here, in two copies that are written and synced one after the other:
//! at any moment one of them is whole, and one that is not is known for it.

use super::{File, Folder};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fmt, io};
use twox_hash::XxHash3_64;

/// The unit that has a checksum, which is redb's smallest page.
pub(super) const BLOCK: usize = 4096;

/// Bytes of the first block that are kept; redb's header is 320 bytes long.
pub(super) const HEADER: usize = 512;

/// Where the copies of the header are: in blocks of their own.
const COPIES: [u64; 2] = [0, BLOCK as u64];

/// Where the checksums are, that of the first block included, which means nothing.
const CHECKSUMS: u64 = 2 * BLOCK as u64;

/// Bytes of a checksum.
const CHECKSUM: usize = 8;

/// A copy of the header: sequence (8), length of the database (8), header, checksum of these (8).
const COPY: usize = 16 + HEADER + 8;

/// The header of the database.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Counts the headers that were written.
    pub(super) sequence: u64,
    /// The least length of the database, which holds everything that was committed.
    pub(super) length: u64,
    pub(super) bytes: [u8; HEADER],
}

impl Header {
    /// The header of a database that is to be created.
    pub(super) const EMPTY: Self = Self { sequence: 0, length: 0, bytes: [0; HEADER] };

    /// Whether the creation of the database was completed: the last thing redb writes then is the mark at its start.
    pub(super) fn is_complete(&self) -> bool {
        self.bytes[0] != 0
    }

    fn encode(&self) -> [u8; COPY] {
        let mut copy = [0; COPY];
        copy[..8].copy_from_slice(&self.sequence.to_be_bytes());
        copy[8..16].copy_from_slice(&self.length.to_be_bytes());
        copy[16..16 + HEADER].copy_from_slice(&self.bytes);
        let sum = checksum(0, &copy[..16 + HEADER]);
        copy[16 + HEADER..].copy_from_slice(&sum);
        copy
    }

    fn decode(copy: &[u8; COPY]) -> Option<Self> {
        let (rest, sum) = copy.split_last_chunk::<CHECKSUM>()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let header = Self {
            sequence: u64::from_be_bytes(*sequence),
            length: u64::from_be_bytes(*length),
            bytes: *rest.first_chunk()?,
        };
        (checksum(0, &copy[..16 + HEADER]) == *sum).then_some(header)
    }
}

pub(super) struct Checksums {
    file: Arc<dyn File>,
    /// The name of the database's file.
    database: String,
    /// Checksums that are not in the file yet, by block.
    noted: Mutex<BTreeMap<u64, [u8; CHECKSUM]>>,
    /// Parts of the file that were read lately, by their place.
    read: Cache<u64, Arc<Part>>,
}

/// Checksums that are read at once.
const PART_BLOCKS: usize = BLOCK / CHECKSUM;

/// Parts that are kept: 4 MiB, for 2 GiB of the database.
const PARTS: usize = 1024;

/// The checksums of consecutive blocks, as many as the file has.
type Part = Vec<[u8; CHECKSUM]>;

impl fmt::Debug for Checksums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checksums of {} in {:?}", self.database, self.file)
    }
}

impl Checksums {
    /// Opens the file, if there is one.
    pub(super) fn open(folder: &dyn Folder, name: &str, database: &str) -> io::Result<Option<Self>> {
        match folder.open(name) {
            Ok(file) => Ok(Some(Self::of(file, database))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the file. Its name is durable only after the folder is synced.
    pub(super) fn create(folder: &dyn Folder, name: &str, database: &str) -> io::Result<Self> {
        Ok(Self::of(folder.create(name)?, database))
    }

    fn of(file: Arc<dyn File>, database: &str) -> Self {
        Self { file, database: database.to_owned(), noted: Mutex::default(), read: Cache::new(PARTS) }
    }

    /// The last header that was written as a whole; nothing if there is none, or both copies are damaged.
    pub(super) fn header(&self) -> io::Result<Option<Header>> {
        let mut newest: Option<Header> = None;
        for offset in COPIES {
            let mut copy = [0; COPY];
            match self.file.read_at(offset, &mut copy) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
                result => result?,
            }
            let found = Header::decode(&copy);
            newest = newest.into_iter().chain(found).max_by_key(|header| header.sequence);
        }
        Ok(newest)
    }

    /// Writes a header, durably. After a crash, or an error, the last one that was durable or this is found.
    pub(super) fn write_header(&self, header: &Header) -> io::Result<()> {
        for offset in COPIES {
            self.file.write_at(offset, &header.encode())?;
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Notes that these blocks are written from `offset` on.
    pub(super) fn note(&self, offset: u64, blocks: &[u8]) {
        let sums = (offset / BLOCK as u64..).zip(blocks.chunks(BLOCK));
        let sums: Vec<_> = sums.map(|(index, block)| (index, checksum(index, block))).collect();
        self.noted.lock().extend(sums);
    }

    /// Makes what was noted durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        // Readers wait: what is taken out here is in the file when they look there.
        let mut noted = self.noted.lock();
        let sums: Vec<_> = noted.iter().collect();
        for run in sums.chunk_by(|(before, _), (block, _)| **before + 1 == **block) {
            let bytes: Vec<u8> = run.iter().flat_map(|(_, sum)| **sum).collect();
            self.file.write_at(place(*run[0].0), &bytes)?;
        }
        self.file.sync_data()?;
        noted.keys().for_each(|block| drop(self.read.remove(&(block / PART_BLOCKS as u64))));
        noted.clear();
        Ok(())
    }

    /// Refuses blocks that are not what was written from `offset` on.
    pub(super) fn check(&self, offset: u64, blocks: &[u8]) -> io::Result<()> {
        for (index, block) in (offset / BLOCK as u64..).zip(blocks.chunks(BLOCK)) {
            let found = checksum(index, block);
            // What was read may have been overtaken by what was noted while it was read.
            if self.noted.lock().get(&index) == Some(&found) || self.read_lately(index)? == Some(found) {
                continue;
            }
            self.read.remove(&(index / PART_BLOCKS as u64));
            if self.noted.lock().get(&index) != Some(&found) && self.read_lately(index)? != Some(found) {
                return Err(self.damaged(index));
            }
        }
        Ok(())
    }

    /// The checksum of a block in the file, unless the file ends before.
    fn read_lately(&self, block: u64) -> io::Result<Option<[u8; CHECKSUM]>> {
        let (part, index) = (block / PART_BLOCKS as u64, block as usize % PART_BLOCKS);
        if let Some(sums) = self.read.get(&part) {
            return Ok(sums.get(index).copied());
        }
        let start = place(part * PART_BLOCKS as u64);
        let left = usize::try_from(self.file.size()?.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(BLOCK) / CHECKSUM * CHECKSUM];
        if !bytes.is_empty() {
            self.file.read_at(start, &mut bytes)?;
        }
        let sums: Part = bytes.as_chunks().0.to_vec();
        let sum = sums.get(index).copied();
        self.read.insert(part, Arc::new(sums));
        Ok(sum)
    }

    fn damaged(&self, block: u64) -> io::Error {
        damage(format!("{} is damaged: block {block} does not match its checksum", self.database))
    }
}

/// What to answer when a file is not as it was written.
pub(super) fn damage(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Where the checksum of a block is.
fn place(block: u64) -> u64 {
    CHECKSUMS + block * CHECKSUM as u64
}

/// The checksum of a block. Its number is the seed, so that a block in the wrong place is found too.
fn checksum(block: u64, bytes: &[u8]) -> [u8; CHECKSUM] {
    XxHash3_64::oneshot_with_seed(block, bytes).to_be_bytes()
}
