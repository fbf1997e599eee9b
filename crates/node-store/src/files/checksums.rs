//! The file of checksums of the database.
//!
//! redb reads pages without checking them, so that a flipped bit would go unnoticed. This file has a checksum for each
//! block of the database except the first. redb never overwrites a block of the last commit, so these checksums do not
//! change either: a power cut can only damage the checksums of an unfinished commit, whose blocks are written again
//! before they are read.
//!
//! The first block contains redb's header. It is overwritten in place, and a bit that no checksum covers selects the
//! valid one of two commits. So this file has two copies of the header, which are written and synced one after the
//! other: at any time one copy is intact, and damage of the other is detected. If the sync of the copy that was written
//! last failed, or the process ended, that copy may not be durable, so the next header is written to it first.

use super::{File, Folder};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fmt, io};
use twox_hash::XxHash3_64;

/// The unit that has a checksum: redb's smallest page.
pub(super) const BLOCK: usize = 4096;

/// Bytes of the first block that are copied. redb's header has 320 bytes.
pub(super) const HEADER: usize = 512;

/// Offsets of the copies of the header, in blocks of their own.
const COPIES: [u64; 2] = [0, BLOCK as u64];

/// Offset of the checksums. That of the first block is present but unused.
const CHECKSUMS: u64 = 2 * BLOCK as u64;

/// Length of a checksum in bytes.
const CHECKSUM: usize = 8;

/// Length of a copy of the header: sequence (8), length of the database (8), header, checksum of these (8).
const COPY: usize = 16 + HEADER + 8;

/// The header of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The minimum length of the database, up to the end of the last commit.
    pub(super) length: u64,
    pub(super) bytes: [u8; HEADER],
}

impl Header {
    /// Returns the header of a database that does not exist yet.
    pub(super) const EMPTY: Self = Self { length: 0, bytes: [0; HEADER] };

    /// Returns whether the creation of the database was completed: redb writes the magic number at its start last.
    pub(super) fn is_complete(&self) -> bool {
        self.bytes[0] != 0
    }

    fn encode(&self, sequence: u64) -> [u8; COPY] {
        let mut copy = [0; COPY];
        copy[..8].copy_from_slice(&sequence.to_be_bytes());
        copy[8..16].copy_from_slice(&self.length.to_be_bytes());
        copy[16..16 + HEADER].copy_from_slice(&self.bytes);
        let sum = checksum(0, &copy[..16 + HEADER]);
        copy[16 + HEADER..].copy_from_slice(&sum);
        copy
    }

    /// Encodes a copy of the header.
    fn decode(copy: &[u8; COPY]) -> Option<(u64, Self)> {
        let (rest, sum) = copy.split_last_chunk::<CHECKSUM>()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let header = Self { length: u64::from_be_bytes(*length), bytes: *rest.first_chunk()? };
        (checksum(0, &copy[..16 + HEADER]) == *sum).then_some((u64::from_be_bytes(*sequence), header))
    }
}

pub(super) struct Checksums {
    file: Arc<dyn File>,
    /// Name of the file of the database.
    database: String,
    /// Locked while a header is written.
    written: Mutex<Written>,
    /// Checksums that are not in the file yet, by block.
    noted: Mutex<BTreeMap<u64, [u8; CHECKSUM]>>,
    /// Recently read parts of the file, by offset.
    read: Cache<u64, Arc<Part>>,
}

/// The state of the two copies.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// Number of copies written so far.
    sequence: u64,
    /// The copy to which the next header is written first.
    next: usize,
}

/// Number of checksums per read.
const PART_BLOCKS: usize = BLOCK / CHECKSUM;

/// Number of cached parts: 4 MiB, which covers 2 GiB of the database.
const PARTS: usize = 1024;

/// The checksums of consecutive blocks, fewer at the end of the file.
type Part = Vec<[u8; CHECKSUM]>;

impl fmt::Debug for Checksums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checksums of {} in {:?}", self.database, self.file)
    }
}

impl Checksums {
    /// Opens the file, if it exists, with the last header that was written completely. The header is `None` if both
    /// copies are damaged.
    pub(super) fn open(folder: &dyn Folder, name: &str, database: &str) -> io::Result<Option<(Self, Option<Header>)>> {
        let file = match folder.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (first, second) = match COPIES.map(|offset| read_copy(&*file, offset)) {
            // A copy that cannot be read counts as damaged if the other can be read.
            [Err(_), Ok(second @ Some(_))] => (None, second),
            [Ok(first @ Some(_)), Err(_)] => (first, None),
            [first, second] => (first?, second?),
        };
        // A damaged copy is the one that was written last; if both are intact, the one with the higher sequence is.
        let (next, newest) = match (first, second) {
            (Some(first), Some(second)) if first.0 > second.0 => (0, Some(first)),
            (Some(_), Some(second)) => (1, Some(second)),
            (Some(first), None) => (1, Some(first)),
            (None, second) => (0, second),
        };
        let (sequence, header) = newest.unzip();
        let written = Written { sequence: sequence.unwrap_or_default(), next };
        Ok(Some((Self { written: Mutex::new(written), ..Self::of(file, database) }, header)))
    }

    /// Creates the file. Its name is durable after the folder is synced.
    pub(super) fn create(folder: &dyn Folder, name: &str, database: &str) -> io::Result<Self> {
        Ok(Self::of(folder.create(name)?, database))
    }

    fn of(file: Arc<dyn File>, database: &str) -> Self {
        Self {
            file,
            database: database.to_owned(),
            written: Mutex::default(),
            noted: Mutex::default(),
            read: Cache::new(PARTS),
        }
    }

    /// Writes a header durably. After a crash or an error, either this header or the last durable one is found.
    pub(super) fn write_header(&self, header: &Header) -> io::Result<()> {
        let mut written = self.written.lock();
        for _ in COPIES {
            written.sequence += 1;
            self.file.write_at(COPIES[written.next], &header.encode(written.sequence))?;
            self.file.sync_data()?;
            // The durable copy stays until the other is durable.
            written.next = 1 - written.next;
        }
        Ok(())
    }

    /// Records the checksums of blocks that are written at `offset`.
    pub(super) fn note(&self, offset: u64, blocks: &[u8]) {
        let sums = (offset / BLOCK as u64..).zip(blocks.chunks(BLOCK));
        let sums: Vec<_> = sums.map(|(index, block)| (index, checksum(index, block))).collect();
        self.noted.lock().extend(sums);
    }

    /// Makes the recorded checksums durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        // Readers wait, so that they find in the file the checksums that are removed here.
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

    /// Fails unless the blocks are those that were written at `offset`.
    pub(super) fn check(&self, offset: u64, blocks: &[u8]) -> io::Result<()> {
        for (index, block) in (offset / BLOCK as u64..).zip(blocks.chunks(BLOCK)) {
            let found = checksum(index, block);
            // A block that was written during the read has a newer checksum.
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

    /// Returns the checksum of a block in the file, or `None` if the file ends before.
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

/// Decodes a copy of the header. `None` if it is damaged.
fn read_copy(file: &dyn File, offset: u64) -> io::Result<Option<(u64, Header)>> {
    let mut copy = [0; COPY];
    match file.read_at(offset, &mut copy) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    Ok(Header::decode(&copy))
}

/// Returns the error for a file that is damaged.
pub(super) fn damage(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Returns the offset of the checksum of a block.
fn place(block: u64) -> u64 {
    CHECKSUMS + block * CHECKSUM as u64
}

/// Returns the checksum of a block. Its number is the seed, so that a block in the wrong place is detected too.
fn checksum(block: u64, bytes: &[u8]) -> [u8; CHECKSUM] {
    XxHash3_64::oneshot_with_seed(block, bytes).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;

    fn header(number: u8) -> Header {
        Header { length: number.into(), bytes: [number; HEADER] }
    }

    fn open(disk: &FaultyDisk) -> io::Result<(Checksums, Option<Header>)> {
        Ok(Checksums::open(&*disk.folder(), "checksums", "database")?.unwrap())
    }

    /// Operations fail in two successive runs of the process, and the power is cut: an intact header remains.
    #[test]
    fn a_header_survives_successive_failures() {
        for (first, second, tries, seed) in cases() {
            let disk = FaultyDisk::new();
            let created = Checksums::create(&*disk.folder(), "checksums", "database").unwrap();
            created.write_header(&header(1)).unwrap();
            disk.folder().sync().unwrap();
            let mut durable = 1;
            // After a failure the caller may try again.
            let mut write = |checksums: &Checksums, first: u8| {
                for number in first..first + tries {
                    if checksums.write_header(&header(number)).is_ok() {
                        durable = number;
                    }
                }
            };
            disk.fail_operation(first);
            write(&created, 2);
            disk.kill();
            disk.fail_operation(second);
            if let Ok((opened, found)) = open(&disk) {
                assert!(found.is_some());
                write(&opened, 4);
            }
            disk.crash(seed);
            disk.fail_nothing();
            let found = open(&disk).unwrap().1;
            let found = found.unwrap_or_else(|| panic!("no header after {first}, {second}, {tries}, {seed}"));
            let number = found.bytes[0];
            assert!((durable..6).contains(&number) && found == header(number), "{number} after {durable}");
        }
    }

    /// The operation that fails in each run, how often each run writes a header, and how the power is cut.
    fn cases() -> impl Iterator<Item = (u64, u64, u8, u64)> {
        (0..10 * 10 * 2 * 40).map(|case| (case % 10, case / 10 % 10, 1 + (case / 100 % 2) as u8, case / 200))
    }

    /// Early folders have the same sequence in both copies.
    #[test]
    fn of_equal_copies_the_second_counts_as_newer() {
        let disk = FaultyDisk::new();
        let mut file = vec![0; 2 * BLOCK];
        file[..COPY].copy_from_slice(&header(1).encode(7));
        file[BLOCK..BLOCK + COPY].copy_from_slice(&header(1).encode(7));
        disk.put("checksums", file);
        let (opened, found) = open(&disk).unwrap();
        assert_eq!((found, opened.written.lock().next), (Some(header(1)), 1));
        disk.fail_operation(0);
        opened.write_header(&header(2)).unwrap_err();
        disk.crash(1);
        assert_eq!(open(&disk).unwrap().1, Some(header(1)));
    }
}
