//! Reading a run of a store like a file.

use super::manifest::SharedRun;
use super::objects::{Fault, Objects, ObjectsError};
use crate::files::Object;
use crate::runs::{self, RunId};
use node_core::{remote, waiting};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Maximum length in bytes of the end of a run that its manifest contains. Longer ones are read from the run.
pub const MAX_ENDING: usize = 128 << 10;

/// Returns the last bytes of a run with which it is opened, its root, properties and footer, or none if they are longer
/// than [`MAX_ENDING`].
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
    objects: Arc<dyn Objects>,
    name: String,
    size: u64,
    ending: Arc<[u8]>,
}

impl RunObject {
    /// Returns the run, without reading anything.
    pub fn new(objects: Arc<dyn Objects>, run: &SharedRun) -> Self {
        Self { objects, name: run.name.object(), size: run.size, ending: Arc::clone(&run.ending) }
    }
}

impl RunObject {
    /// Returns the part of `bytes` that is in memory, or `None` if it must be read.
    fn in_memory(&self, bytes: &Range<u64>) -> Option<&[u8]> {
        let skip = bytes.start.checked_sub(self.size - self.ending.len() as u64)? as usize;
        self.ending.get(skip..skip + (bytes.end - bytes.start) as usize)
    }

    /// Reads from the store.
    fn read(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        if ranges.iter().any(|range| range.end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !waiting::is_allowed() {
            return Err(waiting::refuse());
        }
        remote::record_step(ranges.len() as u64);
        let deleted = || io::Error::new(io::ErrorKind::NotFound, format!("{} was deleted", self.name));
        self.objects.read(&self.name, ranges).map_err(io_error)?.ok_or_else(deleted)
    }
}

impl Object for RunObject {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        let range = offset..end;
        match self.in_memory(&range) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => {
                let bytes = self.read(std::slice::from_ref(&range))?.concat();
                if bytes.len() != buffer.len() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                buffer.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        self.read(ranges)
    }

    fn is_near(&self, range: &Range<u64>) -> bool {
        self.in_memory(range).is_some()
    }
}

fn io_error(error: ObjectsError) -> io::Error {
    let kind = match error.fault {
        Fault::Permission => io::ErrorKind::PermissionDenied,
        Fault::Cancelled => io::ErrorKind::Interrupted,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
