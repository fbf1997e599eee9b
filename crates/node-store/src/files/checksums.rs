//! The file of checksums beside the database.
//!
//! redb reads pages without checking them, so that a flipped bit would become a wrong answer. This file has a checksum
//! of each block of the database but the first. redb never overwrites a block of the last commit, so that the checksums
//! of these stand still too: a power cut can spoil those of an unfinished commit only, whose blocks are written
//! again before they are read.
//!
//! The first block holds redb's header, which is overwritten in place, and says which of two commits is valid by a bit
//! that no checksum covers. So the header is kept here, in two copies that are written and synced one after the other:
//! at any moment one of them is whole, and one that is not is known for it. Of the copy that was written last nobody knows
//! whether it is durable, if its sync failed or the process ended, so that the next header goes there first.

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The least length of the database, which holds everything that was committed.
    pub(super) length: u64,
    pub(super) bytes: [u8; HEADER],
}

impl Header {
    /// The header of a database that is to be created.
    pub(super) const EMPTY: Self = Self { length: 0, bytes: [0; HEADER] };

    /// Whether the creation of the database was completed: the last thing redb writes then is the mark at its start.
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

    /// The header of a copy, with its sequence.
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
    /// The name of the database's file.
    database: String,
    /// Held while a header is written.
    written: Mutex<Written>,
    /// Checksums that are not in the file yet, by block.
    noted: Mutex<BTreeMap<u64, [u8; CHECKSUM]>>,
    /// Parts of the file that were read lately, by their place.
    read: Cache<u64, Arc<Part>>,
}

/// Which copy was written last.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    /// Counts the copies that were written.
    sequence: u64,
    /// Which copy the next header goes to first.
    next: usize,
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
    /// Opens the file, if there is one, with the last header that was written as a whole; none if both copies are damaged.
    pub(super) fn open(folder: &dyn Folder, name: &str, database: &str) -> io::Result<Option<(Self, Option<Header>)>> {
        let file = match folder.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (first, second) = match COPIES.map(|offset| read_copy(&*file, offset)) {
            // A copy that cannot be read is damaged, as long as there is the other.
            [Err(_), Ok(second @ Some(_))] => (None, second),
            [Ok(first @ Some(_)), Err(_)] => (first, None),
            [first, second] => (first?, second?),
        };
        // A damaged copy is the one that was written last; else that with the higher number is.
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

    /// Creates the file. Its name is durable only after the folder is synced.
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

    /// Writes a header, durably. After a crash, or an error, the last one that was durable or this is found.
    pub(super) fn write_header(&self, header: &Header) -> io::Result<()> {
        let mut written = self.written.lock();
        for _ in COPIES {
            written.sequence += 1;
            self.file.write_at(COPIES[written.next], &header.encode(written.sequence))?;
            self.file.sync_data()?;
            // The one that is durable now stays until the other is.
            written.next = 1 - written.next;
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

/// A copy of the header with its sequence; none if it is damaged.
fn read_copy(file: &dyn File, offset: u64) -> io::Result<Option<(u64, Header)>> {
    let mut copy = [0; COPY];
    match file.read_at(offset, &mut copy) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    Ok(Header::decode(&copy))
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

    /// The disk fails, the process ends, it fails again, and the power is cut: there is always a header.
    #[test]
    fn a_header_outlives_failures_that_follow_one_another() {
        for (first, second, tries, seed) in cases() {
            let disk = FaultyDisk::new();
            let created = Checksums::create(&*disk.folder(), "checksums", "database").unwrap();
            created.write_header(&header(1)).unwrap();
            disk.folder().sync().unwrap();
            let mut durable = 1;
            // Whoever meets a failure may try again.
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

    /// Which operation fails, which of the next run, how often a header is written in each, and how the power is cut.
    fn cases() -> impl Iterator<Item = (u64, u64, u8, u64)> {
        (0..10 * 10 * 2 * 40).map(|case| (case % 10, case / 10 % 10, 1 + (case / 100 % 2) as u8, case / 200))
    }

    /// Folders of the first layout have the same sequence in both copies.
    #[test]
    fn of_equal_copies_the_second_was_written_last() {
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
