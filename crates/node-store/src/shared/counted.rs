//! Counting requests.

use super::objects::{Creation, Objects, ObjectsError};
use super::retry::Cancel;
use crate::files::Object;
use node_core::backend::RequestUse;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Objects whose operations are counted, because services charge for requests.
#[derive(Debug)]
pub struct Counted {
    objects: Arc<dyn Objects>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    failures: AtomicU64,
}

/// The number of operations and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads of objects or parts of them, of sizes, and of pages of listings.
    pub reads: u64,
    pub read_bytes: u64,
    /// Creations, uploads and deletions.
    pub writes: u64,
    pub written_bytes: u64,
    /// Operations that failed.
    pub failures: u64,
}

impl Counted {
    /// Counts operations on `objects`.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        let [reads, read_bytes, writes, written_bytes, failures] = Default::default();
        Self { objects, reads, read_bytes, writes, written_bytes, failures }
    }

    /// Returns the counts so far, for monitoring.
    pub(crate) fn usage(&self) -> RequestUse {
        let RequestCounts { reads, read_bytes, writes, written_bytes, failures } = self.counts();
        RequestUse { reads, read_bytes, writes, written_bytes, failures }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RequestCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RequestCounts {
            reads: of(&self.reads),
            read_bytes: of(&self.read_bytes),
            writes: of(&self.writes),
            written_bytes: of(&self.written_bytes),
            failures: of(&self.failures),
        }
    }

    fn count<T>(
        &self,
        (requests, bytes): (&AtomicU64, &AtomicU64),
        number: usize,
        result: Result<T, ObjectsError>,
        size: impl FnOnce(&T) -> u64,
    ) -> Result<T, ObjectsError> {
        requests.fetch_add(number as u64, Ordering::Relaxed);
        match &result {
            Ok(done) => bytes.fetch_add(size(done), Ordering::Relaxed),
            Err(_) => self.failures.fetch_add(1, Ordering::Relaxed),
        };
        result
    }

    fn read<T>(
        &self,
        number: usize,
        result: Result<T, ObjectsError>,
        size: impl FnOnce(&T) -> u64,
    ) -> Result<T, ObjectsError> {
        self.count((&self.reads, &self.read_bytes), number, result, size)
    }

    fn write<T>(&self, result: Result<T, ObjectsError>, size: impl FnOnce(&T) -> u64) -> Result<T, ObjectsError> {
        self.count((&self.writes, &self.written_bytes), 1, result, size)
    }
}

fn length(bytes: &Option<Vec<u8>>) -> u64 {
    bytes.as_ref().map_or(0, Vec::len) as u64
}

impl Objects for Counted {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        self.write(self.objects.create(name, bytes), |_| bytes.len() as u64)
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        self.write(self.objects.upload(name, content), |()| content.size().unwrap_or_default())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        self.read(1, self.objects.get(name), length)
    }

    fn get_many(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, ObjectsError> {
        self.read(names.len(), self.objects.get_many(names), |found| found.iter().map(length).sum())
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        let size = |parts: &Option<Vec<Vec<u8>>>| parts.iter().flatten().map(|part| part.len() as u64).sum();
        self.read(ranges.len(), self.objects.read(name, ranges), size)
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.read(1, self.objects.size(name), |_| 0)
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        self.read(1, self.objects.list(folder, after), |_| 0)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        self.write(self.objects.delete(name), |()| 0)
    }

    fn end_with(&self, cancel: &Arc<Cancel>) {
        self.objects.end_with(cancel);
    }
}
