//! The [`Folder`] port for files that are never read.

use super::{File, Folder, Object};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A folder that discards everything written to it, for the log of a store in memory. Also its files.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Folder for Nowhere {
    fn open(&self, _name: &str) -> io::Result<Arc<dyn File>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn create(&self, _name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(Self))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
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

impl Object for Nowhere {
    fn size(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn read_at(&self, _offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if buffer.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl File for Nowhere {
    fn write_at(&self, _offset: u64, _data: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _size: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
