//! The marker: a file with the position in a shared store up to which a folder has the same entries, and with the runs
//! that are in both.
//!
//! It has two slots, which are written and synced in turn, so that one of them is intact at any time. Entries of the log
//! after its position are kept.

use crate::codec::{Malformed, Reader, put_varint};
use crate::error::StoreError;
use crate::files::{File, Folder, naming};
use crate::runs::RunId;
use crate::shared::{Epoch, LogNumber, Position, RunName};
use crate::wal::Sequence;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use twox_hash::XxHash3_64;

pub(in crate::store) const MARKER_NAME: &str = "published";

/// Maximum size of a slot in bytes. If there are more runs, the others are uploaded again after the next start.
const SLOT: usize = 64 << 10;

/// What a slot has before its content: a counter (8 bytes), the length of the content (4), the checksum of the counter
/// and the content (8).
const HEADER: usize = 20;

/// The content of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Marked {
    pub(in crate::store) position: Position,
    /// If changes were refused because another server took over: the entry after which the log has them. They were never
    /// acknowledged, are not in the store, and are removed at the next start.
    pub(in crate::store) refused_after: Option<Sequence>,
    /// The runs of the folder that were uploaded from it or restored to it, each with the epoch of its name.
    pub(super) runs: BTreeMap<RunId, Epoch>,
}

impl Marked {
    fn encode(&self) -> Vec<u8> {
        let Position { number, sum, epoch, writer, last } = self.position;
        let numbers = [number.0, sum, epoch.0, writer, last.0];
        let mut content = Vec::from_iter(numbers.into_iter().flat_map(u64::to_be_bytes));
        content.push(self.refused_after.is_some().into());
        self.refused_after.iter().for_each(|last| content.extend_from_slice(&last.0.to_be_bytes()));
        for (id, epoch) in &self.runs {
            put_varint(&mut content, id.0);
            put_varint(&mut content, epoch.0);
            // Room for the longest run.
            if content.len() > SLOT - HEADER - 20 {
                break;
            }
        }
        content
    }

    fn decode(content: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content, "the marker of a published folder");
        let mut number = || reader.array().map(u64::from_be_bytes);
        let (at, sum) = (LogNumber(number()?), number()?);
        let position =
            Position { number: at, sum, epoch: Epoch(number()?), writer: number()?, last: Sequence(number()?) };
        let refused_after = match reader.byte()? {
            0 => None,
            1 => Some(Sequence(reader.array().map(u64::from_be_bytes)?)),
            _ => return Err(reader.malformed()),
        };
        let mut runs = BTreeMap::new();
        while !reader.is_empty() {
            runs.insert(RunId(reader.varint()?), Epoch(reader.varint()?));
        }
        Ok(Self { position, refused_after, runs })
    }

    /// Returns the name of a run of the folder, or `None` if it is not known to be in the store.
    pub(super) fn name(&self, id: RunId) -> Option<RunName> {
        self.runs.get(&id).map(|epoch| RunName { epoch: *epoch, id: id.0 })
    }
}

/// The marker of a folder, for writing.
pub(in crate::store) struct Marker {
    file: Arc<dyn File>,
    counter: u64,
    marked: Option<Marked>,
}

impl Marker {
    /// Reads the marker of a folder. Returns `None` if it has none.
    pub(in crate::store) fn read(folder: &dyn Folder) -> Result<Option<Marked>, StoreError> {
        let file = match folder.open(MARKER_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|error| naming(MARKER_NAME, &error))?,
        };
        Ok(newest(&*file)?.map(|(_, marked)| marked))
    }

    /// Opens the marker of a folder, or creates one.
    pub(in crate::store) fn open(folder: &dyn Folder) -> Result<Self, StoreError> {
        let file = match folder.open(MARKER_NAME) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => folder.create(MARKER_NAME)?,
            file => file.map_err(|error| naming(MARKER_NAME, &error))?,
        };
        // An earlier process may have failed to do that.
        folder.sync()?;
        let (counter, marked) = newest(&*file)?.unzip();
        let marker = Self { file, counter: counter.unwrap_or(0), marked };
        if let Some(marked) = &marker.marked {
            // An earlier process may have failed to sync it. The other slot, which is durable, is overwritten next.
            marker.put(marker.counter, marked)?;
        }
        Ok(marker)
    }

    /// Replaces the position durably, with the same runs.
    pub(super) fn advance(&mut self, position: Position) -> Result<(), StoreError> {
        match self.marked.clone() {
            Some(marked) => self.write(Marked { position, ..marked }),
            None => Ok(()),
        }
    }

    /// Replaces the position and the runs durably.
    pub(super) fn update(&mut self, position: Position, runs: BTreeMap<RunId, Epoch>) -> Result<(), StoreError> {
        // Another thread may have noticed in the meantime that this server was replaced.
        let refused_after = self.marked.as_ref().and_then(|marked| marked.refused_after);
        self.write(Marked { position, refused_after, runs })
    }

    /// Records durably that the entries after `last` were refused, or that there are no such entries.
    pub(in crate::store) fn refuse_after(&mut self, last: Option<Sequence>) -> Result<(), StoreError> {
        match self.marked.clone() {
            Some(marked) => self.write(Marked { refused_after: last, ..marked }),
            None => Ok(()),
        }
    }

    /// Replaces the content durably.
    pub(in crate::store) fn write(&mut self, marked: Marked) -> Result<(), StoreError> {
        let counter = self.counter + 1;
        self.put(counter, &marked)?;
        self.counter = counter;
        self.marked = Some(marked);
        Ok(())
    }

    fn put(&self, counter: u64, marked: &Marked) -> Result<(), StoreError> {
        let content = marked.encode();
        let mut slot = counter.to_be_bytes().to_vec();
        slot.extend_from_slice(&(content.len() as u32).to_be_bytes());
        slot.extend_from_slice(&sum(counter, &content).to_be_bytes());
        slot.extend_from_slice(&content);
        self.file.write_at(offset(counter), &slot)?;
        Ok(self.file.sync_data()?)
    }
}

fn offset(counter: u64) -> u64 {
    counter % 2 * SLOT as u64
}

fn sum(counter: u64, content: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(counter, content)
}

/// Returns the newer of the two slots with its counter, or `None` if nothing was ever written.
fn newest(file: &dyn File) -> Result<Option<(u64, Marked)>, StoreError> {
    let slots = [slot(file, 0)?, slot(file, SLOT as u64)?];
    let newest = slots.into_iter().flatten().max_by_key(|(counter, _)| *counter);
    // Neither is intact if the first write was interrupted. If both are damaged, the folder is refused by the store.
    newest.map(|(counter, content)| Ok((counter, Marked::decode(&content)?))).transpose()
}

fn slot(file: &dyn File, offset: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let size = file.size()?;
    if offset + HEADER as u64 > size {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(size - offset).unwrap_or(SLOT).min(SLOT)];
    file.read_at(offset, &mut bytes)?;
    let (header, rest) = bytes.split_at(HEADER);
    let number = |range: std::ops::Range<usize>| header[range].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let (counter, length, expected) = (number(0..8), number(8..12), number(12..20));
    let content = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    Ok(content.filter(|content| sum(counter, content) == expected).map(|content| (counter, content.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::faults::FaultyDisk;

    fn marked(last: u64) -> Marked {
        let position = Position {
            number: LogNumber(7),
            sum: 0x1112_1314_1516_1718,
            epoch: Epoch(2),
            writer: 0x0102_0304_0506_0708,
            last: Sequence(last),
        };
        Marked { position, refused_after: None, runs: BTreeMap::from([(RunId(5), Epoch(1))]) }
    }

    #[test]
    fn the_layout_is_fixed() {
        let disk = FaultyDisk::new();
        Marker::open(&*disk.folder()).unwrap().write(marked(300)).unwrap();
        let content = disk.content(MARKER_NAME).unwrap().split_off(SLOT);
        let mut expected = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 43];
        expected.extend_from_slice(&content[12..20]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 7, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
        expected.extend_from_slice(&[0, 0, 0, 0, 0, 0, 1, 44, 0, 5, 1]);
        assert_eq!(content, expected);
        assert_eq!(Marker::read(&*disk.folder()).unwrap(), Some(marked(300)));
        let refused = Marked { refused_after: Some(Sequence(299)), ..marked(300) };
        assert_eq!(refused.encode()[40..], [1, 0, 0, 0, 0, 0, 0, 1, 43, 5, 1]);
        assert_eq!(Marked::decode(&refused.encode()).unwrap(), refused);
        assert_eq!(marked(1).name(RunId(5)), Some(RunName { epoch: Epoch(1), id: 5 }));
    }

    #[test]
    fn a_torn_write_leaves_the_previous_content() {
        let disk = FaultyDisk::new();
        assert_eq!(Marker::read(&*disk.folder()).unwrap(), None);
        for last in 1..6 {
            // After it is opened, writing continues in the older slot.
            Marker::open(&*disk.folder()).unwrap().write(marked(last)).unwrap();
            let intact = disk.content(MARKER_NAME).unwrap();
            let written = offset(last) as usize;
            for byte in written..written + HEADER + 43 {
                disk.flip_bit(MARKER_NAME, 8 * byte + last as usize);
                let found = Marker::read(&*disk.folder()).unwrap().map_or(0, |marked| marked.position.last.0);
                assert_eq!(found, last - 1, "content {last}, byte {byte}");
                disk.put(MARKER_NAME, intact.clone());
            }
        }
        // Neither slot is intact.
        for slot in [0, SLOT] {
            disk.flip_bit(MARKER_NAME, 8 * (slot + HEADER));
        }
        assert_eq!(Marker::read(&*disk.folder()).unwrap(), None);
    }

    #[test]
    fn it_survives_power_cuts() {
        for seed in 0..200 {
            let disk = FaultyDisk::new();
            disk.fail_operation(seed % 9);
            let mut durable = 0;
            for last in 1..5 {
                let written = Marker::open(&*disk.folder()).and_then(|mut marker| marker.write(marked(last)));
                durable = if written.is_ok() { last } else { durable };
            }
            disk.crash(seed);
            let found = Marker::read(&*disk.folder()).unwrap().map_or(0, |marked| marked.position.last.0);
            assert!((durable..5).contains(&found), "{found} after {durable}");
        }
    }

    #[test]
    fn runs_that_do_not_fit_are_left_out() {
        let disk = FaultyDisk::new();
        let runs = (0..40_000).map(|id| (RunId(id), Epoch(1))).collect();
        let many = Marked { runs, ..marked(1) };
        Marker::open(&*disk.folder()).unwrap().write(many.clone()).unwrap();
        Marker::open(&*disk.folder()).unwrap().write(many).unwrap();
        let found = Marker::read(&*disk.folder()).unwrap().unwrap();
        assert_eq!(found.position, marked(1).position);
        assert!(found.runs.len() > 10_000 && found.runs.len() < 40_000);
    }
}
