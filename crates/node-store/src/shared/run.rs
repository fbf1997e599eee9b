//! Reading a run of a store like a file.

use super::manifest::SharedRun;
use super::objects::Objects;
use super::reads::{Place, RunReads};
use crate::files::Object;
use crate::runs::{self, RunId};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Maximum length in bytes of the end of a run that its manifest contains. Longer ones are read from the run.
pub const MAX_ENDING: usize = 128 << 10;

/// Returns the end of a run, with which it is opened: its root, properties and footer. Returns an empty slice if it is
/// longer than [`MAX_ENDING`].
///
/// # Errors
/// If the run cannot be read or is damaged.
pub fn ending(run: &dyn Object, id: u64) -> io::Result<Arc<[u8]>> {
    let size = run.size()?;
    let start = runs::ending(run, RunId(id))?;
    match usize::try_from(size - start) {
        Ok(length) if length <= MAX_ENDING => {
            let mut bytes = vec![0; length];
            run.read_at(start, &mut bytes)?;
            Ok(bytes.into())
        }
        _ => Ok(Arc::default()),
    }
}

/// A run of a store. Its end is in memory.
#[derive(Debug)]
pub struct RunObject {
    reads: Arc<RunReads>,
    place: Place,
    ending: Arc<[u8]>,
}

impl RunObject {
    /// Returns the run, without reading anything.
    pub fn new(objects: Arc<dyn Objects>, run: &SharedRun) -> Self {
        Self::of(&Arc::new(RunReads::direct(objects)), run)
    }

    /// Returns the run, without reading anything. All runs of a store share `reads`.
    pub(crate) fn of(reads: &Arc<RunReads>, run: &SharedRun) -> Self {
        Self { reads: Arc::clone(reads), place: Place::of(run), ending: Arc::clone(&run.ending) }
    }
}

impl RunObject {
    /// Returns the part of `bytes` that is in memory, or `None` if it must be read.
    fn in_memory(&self, bytes: &Range<u64>) -> Option<&[u8]> {
        let skip = bytes.start.checked_sub(self.place.size() - self.ending.len() as u64)? as usize;
        self.ending.get(skip..skip + (bytes.end - bytes.start) as usize)
    }

    fn check(&self, range: &Range<u64>) -> io::Result<()> {
        if range.end <= self.place.size() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Object for RunObject {
    fn size(&self) -> io::Result<u64> {
        Ok(self.place.size())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = offset..end;
        self.check(&range)?;
        match self.in_memory(&range) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => self.reads.read(&self.place, &mut [(offset, buffer)])?,
        }
        Ok(())
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        ranges.iter().try_for_each(|range| self.check(range))?;
        let mut read: Vec<_> = ranges.iter().map(|range| vec![0; (range.end - range.start) as usize]).collect();
        let mut parts: Vec<_> =
            ranges.iter().map(|range| range.start).zip(read.iter_mut().map(|bytes| &mut **bytes)).collect();
        self.reads.read(&self.place, &mut parts)?;
        Ok(read)
    }

    fn is_near(&self, range: &Range<u64>) -> bool {
        self.in_memory(range).is_some() || self.reads.is_near(&self.place, range)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn forget(&self, offset: u64, length: usize) -> bool {
        self.reads.forget(&self.place, offset, length);
        true
    }
}
