//! The [`Folder`] port in memory.

use super::{File, Folder, Object};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A folder in memory, for a store that is lost when the process exits.
///
/// As in a folder on disk, a removed file exists until its last handle is dropped.
#[derive(Debug, Default)]
pub struct MemoryFolder {
    files: Mutex<BTreeMap<String, Arc<MemoryFile>>>,
}

impl Folder for MemoryFolder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let files = self.files.lock();
        let file = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::clone(file) as Arc<dyn File>)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = Arc::clone(self.files.lock().entry(name.to_owned()).or_default());
        *file.0.write() = Content::default();
        Ok(file)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        // The content may be freed here, after the lock is released.
        let removed = self.files.lock().remove(name);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    fn is_volatile(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct MemoryFile(RwLock<Content>);

impl Object for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read().read(position(offset)?, buffer)
    }

    fn visit_at(&self, offset: u64, length: usize, visit: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let content = self.0.read();
        let offset = position(offset)?;
        if let Some(bytes) = content.slice(offset, length) {
            visit(bytes);
            return Ok(());
        }
        let mut bytes = vec![0; length];
        content.read(offset, &mut bytes)?;
        visit(&bytes);
        Ok(())
    }
}

impl File for MemoryFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write().write(position(offset)?, data);
        Ok(())
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.0.write().resize(position(size)?);
        Ok(())
    }

    /// Frees unused capacity, because files are seldom written after a sync.
    fn sync_data(&self) -> io::Result<()> {
        self.0.write().shrink();
        Ok(())
    }
}

/// Returns an offset as a number of bytes in memory.
pub(super) fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Length in bytes of all pieces of a file's content except the last one. With pieces, a file grows without copying
/// its content.
const PIECE: usize = 1 << 20;

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pieces: Vec<Vec<u8>>,
}

impl Content {
    /// Returns the length in bytes.
    pub(super) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// Returns all bytes.
    #[cfg(any(test, feature = "test-faults"))]
    pub(super) fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    /// Returns `length` bytes at `offset`, or `None` if they are not all in one piece.
    fn slice(&self, offset: usize, length: usize) -> Option<&[u8]> {
        let start = offset % PIECE;
        self.pieces.get(offset / PIECE)?.get(start..start.checked_add(length)?)
    }

    /// Fills `buffer` with the bytes at `offset`. Fails with [`io::ErrorKind::UnexpectedEof`] if there are fewer.
    pub(super) fn read(&self, offset: usize, buffer: &mut [u8]) -> io::Result<()> {
        if offset.checked_add(buffer.len()).is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (piece, own, part) in parts(offset, buffer.len()) {
            buffer[part].copy_from_slice(&self.pieces[piece][own]);
        }
        Ok(())
    }

    /// Writes all of `data` at `offset`. Bytes between the old end and `offset` become zero.
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        self.resize(self.len().max(offset));
        for (piece, own, part) in parts(offset, data.len()) {
            if piece == self.pieces.len() {
                self.pieces.push(Vec::new());
            }
            let bytes = &mut self.pieces[piece];
            let present = bytes.len().min(own.end).saturating_sub(own.start);
            let (over, new) = data[part].split_at(present);
            bytes[own.start..own.start + present].copy_from_slice(over);
            bytes.extend_from_slice(new);
        }
    }

    /// Truncates the content, or extends it with zeros.
    pub(super) fn resize(&mut self, size: usize) {
        self.pieces.truncate(size.div_ceil(PIECE));
        for (piece, own, _) in parts(0, size) {
            if piece == self.pieces.len() {
                self.pieces.push(Vec::new());
            }
            self.pieces[piece].resize(own.end, 0);
        }
    }

    fn shrink(&mut self) {
        self.pieces.iter_mut().for_each(Vec::shrink_to_fit);
    }
}

/// Returns the pieces with the `length` bytes at `offset`: the index of each, the range in it, and the range in the
/// bytes.
fn parts(offset: usize, length: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = (offset + at) % PIECE;
        let taken = (length - at).min(PIECE - start);
        let part = ((offset + at) / PIECE, start..start + taken, at..at + taken);
        at += taken;
        (taken > 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn behaves_like_a_folder_on_disk() {
        let folder = MemoryFolder::default();
        assert_eq!(folder.open("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = folder.create("a").unwrap();
        file.write_at(3, b"xyz").unwrap();
        file.sync_data().unwrap();
        let mut read = [9; 6];
        folder.open("a").unwrap().read_at(0, &mut read).unwrap();
        assert_eq!(&read, b"\0\0\0xyz");
        assert_eq!(file.read_at(1, &mut read).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        file.set_len(4).unwrap();
        assert_eq!(file.size().unwrap(), 4);
        assert_eq!(folder.list().unwrap(), ["a"]);
        folder.remove("a").unwrap();
        assert_eq!(folder.remove("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(file.size().unwrap(), 4);
        assert_eq!(folder.create("a").unwrap().size().unwrap(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        /// Writes, changes of length and reads, near the borders of pieces.
        #[test]
        fn has_the_bytes_of_a_vector(
            steps in proptest::collection::vec((0..3usize, 0..5usize, 0..3 * PIECE / 2, any::<u8>()), 1..12),
        ) {
            let (file, mut expected) = (MemoryFile::default(), Vec::new());
            for (piece, near, length, byte) in steps {
                let offset = (piece * PIECE + near).saturating_sub(2);
                if byte % 4 == 0 {
                    expected.resize(offset, 0);
                    file.set_len(offset as u64).unwrap();
                } else {
                    expected.resize(expected.len().max(offset + length), 0);
                    expected[offset..offset + length].fill(byte);
                    file.write_at(offset as u64, &vec![byte; length]).unwrap();
                }
                prop_assert_eq!(file.size().unwrap(), expected.len() as u64);
                prop_assert!(file.0.read().to_vec() == expected);
                let wanted = expected.get(offset..offset + length);
                let (mut read, mut visited) = (vec![1; length], None);
                prop_assert_eq!(file.read_at(offset as u64, &mut read).is_ok(), wanted.is_some());
                let done = file.visit_at(offset as u64, length, &mut |bytes| visited = Some(bytes.to_vec()));
                prop_assert_eq!(done.is_ok(), wanted.is_some());
                if let Some(wanted) = wanted {
                    prop_assert!(read == wanted && visited.as_deref() == Some(wanted));
                }
            }
        }
    }
}
