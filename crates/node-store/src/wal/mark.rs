//! The mark: a file beside the log with the last entry that is known to be durable.
//!
//! It is written after each sync of the log, but not synced itself, which would cost a second sync. It is never ahead
//! of the log. It survives the end of the process at once, and a power failure after a few seconds. It is used to
//! detect damaged or missing entries at the very end of the log, which would otherwise look like a torn write.

use super::format::{checksum, u64_at};
use super::{Sequence, WalError};
use crate::files::{File, Folder};
use std::io;
use std::sync::Arc;

pub(crate) const MARK_NAME: &str = "wal-synced";

/// Offsets of the two slots, which are written alternately. They are in different sectors, so that a torn write
/// damages only one.
const SLOT_OFFSETS: [u64; 2] = [0, 512];

/// A slot: sequence (8), its checksum (8).
const SLOT_SIZE: usize = 16;

#[derive(Debug)]
pub(super) struct Mark {
    file: Arc<dyn File>,
    next_slot: usize,
}

impl Mark {
    /// Opens the mark, or creates it, and returns the highest sequence in it; zero if there is none.
    pub(super) fn open(folder: &dyn Folder) -> Result<(Self, Sequence), WalError> {
        let file = match folder.open(MARK_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create(MARK_NAME),
            result => result,
        };
        let file = file.map_err(WalError::io("open", MARK_NAME))?;
        let [first, second] = read_slots(&*file)?;
        Ok((Self { file, next_slot: usize::from(first > second) }, first.max(second)))
    }

    /// Records that all entries up to `synced` are durable.
    pub(super) fn write(&mut self, synced: Sequence) -> io::Result<()> {
        let mut slot = [0; SLOT_SIZE];
        slot[..8].copy_from_slice(&synced.0.to_be_bytes());
        let sum = checksum(0, &slot[..8]);
        slot[8..].copy_from_slice(&sum.to_be_bytes());
        self.file.write_at(SLOT_OFFSETS[self.next_slot], &slot)?;
        self.next_slot ^= 1;
        Ok(())
    }
}

/// Returns the mark of a log that another process may be writing; zero if there is none.
pub(super) fn read_mark(folder: &dyn Folder) -> Result<Sequence, WalError> {
    let file = match folder.open(MARK_NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Sequence(0)),
        file => file.map_err(WalError::io("open", MARK_NAME))?,
    };
    let [first, second] = read_slots(&*file)?;
    Ok(first.max(second))
}

fn read_slots(file: &dyn File) -> Result<[Sequence; 2], WalError> {
    let mut slots = [Sequence(0); 2];
    for (slot, offset) in slots.iter_mut().zip(SLOT_OFFSETS) {
        *slot = read_slot(file, offset).map_err(WalError::io("read", MARK_NAME))?.unwrap_or_default();
    }
    Ok(slots)
}

/// Decodes a slot. Returns `None` if it was never written or is damaged.
fn read_slot(file: &dyn File, offset: u64) -> io::Result<Option<Sequence>> {
    let mut slot = [0; SLOT_SIZE];
    match file.read_at(offset, &mut slot) {
        Ok(()) => Ok((u64_at(&slot, 8) == checksum(0, &slot[..8])).then(|| Sequence(u64_at(&slot, 0)))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;

    #[test]
    fn a_torn_write_leaves_the_previous_mark() {
        let disk = FaultyDisk::new();
        let (_, nothing) = Mark::open(&*disk.folder()).unwrap();
        assert_eq!(nothing, Sequence(0));
        let (mut mark, _) = Mark::open(&*disk.folder()).unwrap();
        for synced in 1..=9 {
            if synced % 3 == 0 {
                // After opening, writing continues in the older slot.
                (mark, _) = Mark::open(&*disk.folder()).unwrap();
            }
            mark.write(Sequence(synced)).unwrap();
            let intact = disk.content(MARK_NAME).unwrap();
            let written = SLOT_OFFSETS[(synced as usize + 1) % 2] as usize * 8;
            for bit in written..written + SLOT_SIZE * 8 {
                disk.flip_bit(MARK_NAME, bit);
                let (_, found) = Mark::open(&*disk.folder()).unwrap();
                assert_eq!(found, Sequence(synced - 1), "mark {synced}, bit {bit}");
                disk.put(MARK_NAME, intact.clone());
            }
        }
    }
}
