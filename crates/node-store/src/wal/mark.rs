//! The mark: what the log knows to be durable, kept beside it.
//!
//! It is written after each sync and not synced itself. So it is never ahead of the truth, it survives the end of the
//! process at once and a power cut some seconds later, and it costs no sync. With it, entries that are damaged or cut
//! off at the very end of the log are known to be missed, where the log alone ends as after a torn write.

use super::format::{checksum, u64_at};
use super::{Sequence, WalError};
use crate::files::{File, Folder};
use std::io;
use std::sync::Arc;

pub(super) const MARK_NAME: &str = "wal-synced";

/// Two slots, written in turn, in sectors of their own: a torn write spoils one of them.
const SLOT_OFFSETS: [u64; 2] = [0, 512];

/// A slot: sequence (8), its checksum (8).
const SLOT_SIZE: usize = 16;

#[derive(Debug)]
pub(super) struct Mark {
    file: Arc<dyn File>,
    next_slot: usize,
}

impl Mark {
    /// Opens the mark, or makes one, and answers the highest sequence it holds; zero if it holds none.
    pub(super) fn open(folder: &dyn Folder) -> Result<(Self, Sequence), WalError> {
        let file = match folder.open(MARK_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create(MARK_NAME),
            result => result,
        };
        let file = file.map_err(WalError::io("open", MARK_NAME))?;
        let mut slots = [Sequence(0); 2];
        for (slot, offset) in slots.iter_mut().zip(SLOT_OFFSETS) {
            *slot = read_slot(&*file, offset).map_err(WalError::io("read", MARK_NAME))?.unwrap_or_default();
        }
        let [first, second] = slots;
        Ok((Self { file, next_slot: usize::from(first > second) }, first.max(second)))
    }

    /// Notes that all entries up to `synced` are durable.
    pub(super) fn write(&mut self, synced: Sequence) -> Result<(), WalError> {
        let mut slot = [0; SLOT_SIZE];
        slot[..8].copy_from_slice(&synced.0.to_be_bytes());
        let sum = checksum(0, &slot[..8]);
        slot[8..].copy_from_slice(&sum.to_be_bytes());
        self.file.write_at(SLOT_OFFSETS[self.next_slot], &slot).map_err(WalError::io("write", MARK_NAME))?;
        self.next_slot ^= 1;
        Ok(())
    }
}

/// A slot that was never written, or is damaged, holds nothing.
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
    fn a_spoiled_write_leaves_the_mark_before_it() {
        let disk = FaultyDisk::new();
        let (_, nothing) = Mark::open(&*disk.folder()).unwrap();
        assert_eq!(nothing, Sequence(0));
        let (mut mark, _) = Mark::open(&*disk.folder()).unwrap();
        for synced in 1..=9 {
            if synced % 3 == 0 {
                // Whoever opens it again goes on in the older slot.
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
