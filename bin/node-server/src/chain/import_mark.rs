//! How far a chain file was imported. This is recorded in the data folder, so that the next start does not read the file
//! again from its beginning.

use node_chain::{MAX_BLOCK_LENGTH, RawBlock};
use node_core::backend::{BackendError, Record, RecordKind, RecordWrite, StateBackend, View};
use node_types::{BlockNumber, H256};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where to continue reading a chain file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// Offset of the first block that was not imported, in bytes.
    pub(crate) offset: u64,
    /// Number of blocks before it.
    pub(crate) blocks: u64,
}

/// The last imported block of a chain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportMark {
    /// Its place in the file, in bytes.
    place: Range<u64>,
    /// Number of blocks up to it.
    blocks: u64,
    hash: H256,
    /// The head after the import. As long as it is canonical, no block of the file before the mark can change the
    /// chain.
    head: H256,
}

impl ImportMark {
    /// Returns where to continue reading the file at `path`: after the last block that was imported from it, or at the
    /// beginning, if nothing was, if the file has other content now, or if the chain has been rolled back since.
    pub(crate) fn resume(backend: &dyn StateBackend, path: &Path) -> Result<Resumed, BackendError> {
        let Some(key) = key_of(path) else { return Ok(Resumed::default()) };
        let Some(mark) = backend.record(RecordKind::ImportedFile, &key)?.as_deref().and_then(Self::decode) else {
            return Ok(Resumed::default());
        };
        let is_same = is_canonical(&*backend.view()?, mark.head)?
            && block_in(path, &mark.place).is_ok_and(|block| block.hash() == Some(mark.hash));
        let resumed = Resumed { offset: mark.place.end, blocks: mark.blocks };
        Ok(if is_same { resumed } else { Resumed::default() })
    }

    /// Records that the `blocks` blocks of the file at `path` up to the one at `place` were imported. Does nothing for
    /// pipes, which cannot be read again, and for compressed files, whose places are others.
    pub(crate) fn record(
        backend: &dyn StateBackend,
        path: &Path,
        place: Range<u64>,
        blocks: u64,
    ) -> Result<(), BackendError> {
        // A pipe must not be opened again: that would wait for another writer.
        let Some(key) = key_of(path) else { return Ok(()) };
        let Some(hash) = block_in(path, &place).ok().and_then(|block| block.hash()) else { return Ok(()) };
        let value = Self { place, blocks, hash, head: backend.view()?.head().hash }.encode();
        backend.write_records(&[RecordWrite::Put(RecordKind::ImportedFile, Record { key, value })])
    }

    fn encode(&self) -> Vec<u8> {
        let Self { place, blocks, hash, head } = self;
        let numbers = [place.start, place.end, *blocks].map(u64::to_be_bytes).concat();
        [&numbers, hash.as_bytes(), head.as_bytes()].concat()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (start, rest) = value.split_first_chunk()?;
        let (end, rest) = rest.split_first_chunk()?;
        let (blocks, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk::<32>()?;
        let head: &[u8; 32] = rest.try_into().ok()?;
        let place = u64::from_be_bytes(*start)..u64::from_be_bytes(*end);
        Some(Self { place, blocks: u64::from_be_bytes(*blocks), hash: H256(*hash), head: H256(*head) })
    }
}

/// Returns the key of a regular file: its path without symbolic links.
fn key_of(path: &Path) -> Option<Vec<u8>> {
    let path = path.canonicalize().ok().filter(|path| path.is_file())?;
    Some(path.as_os_str().as_bytes().to_vec())
}

/// Reads the block at `place` of a file.
fn block_in(path: &Path, place: &Range<u64>) -> io::Result<RawBlock> {
    let length = place.end.checked_sub(place.start).filter(|length| *length <= MAX_BLOCK_LENGTH);
    let mut bytes = vec![0; length.ok_or(io::ErrorKind::InvalidData)? as usize];
    File::open(path)?.read_exact_at(&mut bytes, place.start)?;
    Ok(RawBlock { offset: place.start, bytes })
}

fn is_canonical(view: &dyn View, hash: H256) -> Result<bool, BackendError> {
    let number: Option<BlockNumber> = view.header(hash.into())?.map(|header| header.header.number);
    Ok(number.map(|number| view.canonical_hash(number)).transpose()?.flatten() == Some(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_part_of_the_layout() {
        let mark = ImportMark { place: 5..9, blocks: 2, hash: H256::repeat_byte(1), head: H256::repeat_byte(2) };
        let bytes = mark.encode();
        let numbers = [5u64, 9, 2].map(u64::to_be_bytes).concat();
        assert_eq!(bytes, [&numbers[..], &[1; 32], &[2; 32]].concat());
        assert_eq!(ImportMark::decode(&bytes), Some(mark));
        assert_eq!(ImportMark::decode(&bytes[1..]), None);
    }
}
