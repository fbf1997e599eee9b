//! Snapshots of a shared store.

use super::manifest::{Listed, Manifest, Meta};
use super::snapshot::SnapshotFolder;
use super::{Options, Store};
use crate::error::StoreError;
use crate::files::{File, MemoryFolder, Object};
use crate::runs::RunId;
use crate::shared::{
    self, CacheFolder, Cancel, Content, Objects, Reader, RetryPolicy, Retrying, RunObject, RunReads, SharedError,
    SharedRun,
};
use crate::wal::{Entry, Wal};
use node_core::backend::BackendError;
use node_core::context::Context;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Number of attempts to read a store from which the writer deletes in the meantime what this reader needs.
const ATTEMPTS: usize = 5;

/// Size in bytes of the parts of runs that are read at once, and of the memory for them. Commands read most rows in order.
const CHUNK: u64 = 256 << 10;
const CHUNKS: u64 = 128 << 20;

impl Store {
    /// Opens a snapshot of the chain that is published in the shared store `objects`. Nothing is written there. Changes
    /// are kept in memory and lost when the store is dropped. Failed operations are repeated, for a minute and until `context`
    /// is cancelled.
    ///
    /// # Errors
    /// [`StoreError::NoChain`] if no chain is published. Also fails if the layout is not supported, and if objects are
    /// damaged or cannot be read.
    pub fn open_shared_snapshot(
        objects: Arc<dyn Objects>,
        options: Options,
        context: &Context,
    ) -> Result<Self, BackendError> {
        let objects = Retrying::new(objects, RetryPolicy::default(), Arc::new(Cancel::with(context)));
        let folder = folder(&(Arc::new(objects) as _), &options)?;
        // Merged runs would be kept in memory.
        Self::open_or_begin(Arc::new(folder), None, None, Options { merge: false, ..options })
    }
}

impl Store {
    /// Checks that the shared store `objects` has all runs that its newest manifest lists, with the right lengths. Does not
    /// read them. Fails if `context` is cancelled.
    ///
    /// # Errors
    /// [`SharedError::Runs`], which names all that are missing, and errors of finding the manifest.
    pub fn check_shared_runs(objects: Arc<dyn Objects>, context: &Context) -> Result<(), BackendError> {
        let objects = Retrying::new(objects, RetryPolicy::default(), Arc::new(Cancel::with(context)));
        Ok(shared::check_runs(&(Arc::new(objects) as _)).map_err(StoreError::from)?)
    }
}

/// Returns a folder with the runs of the newest manifest, which are read in the store, and the later entries of the log.
fn folder(objects: &Arc<dyn Objects>, options: &Options) -> Result<SnapshotFolder, StoreError> {
    let (content, entries) = content(objects)?;
    let memory = Arc::new(MemoryFolder::default());
    let log = Wal::open(Arc::clone(&memory) as _, content.logged, options.log)?;
    entries.iter().try_for_each(|entry| log.append(&entry.payload).map(drop))?;
    log.sync()?;
    let listed = |run: &SharedRun| Listed { id: RunId(run.name.id), size: run.size, limit: run.limit };
    let chain = content.chain.as_ref().ok_or(StoreError::NoChain)?;
    let meta =
        Meta { genesis: chain.genesis, base: None, head: chain.head, earliest: chain.earliest, logged: content.logged };
    let manifest = Manifest {
        number: 1,
        next_run: 1 + content.runs().map(|run| run.id).max().unwrap_or_default(),
        meta,
        genesis_file: chain.genesis_file.as_ref().map(|file| file.to_vec()),
        numbered: content.numbered.iter().map(listed).collect(),
        keyed: content.keyed.iter().map(listed).collect(),
    };
    manifest.write(&*memory).map_err(StoreError::File)?;
    let cache = CacheFolder { folder: Arc::new(MemoryFolder::default()), bytes: CHUNKS, chunk: CHUNK };
    let reads = Arc::new(RunReads::new(Arc::clone(objects), Some(&cache))?);
    let file = |run: &SharedRun| -> (String, Arc<dyn File>) {
        (RunId(run.name.id).file_name(), Arc::new(ReadOnly(RunObject::of(&reads, run))))
    };
    let runs: BTreeMap<_, _> = content.numbered.iter().chain(&content.keyed).map(file).collect();
    Ok(SnapshotFolder::of(runs, memory))
}

/// Reads the newest manifest, and the entries of the log after those in its runs.
fn content(objects: &Arc<dyn Objects>) -> Result<(Content, Vec<Entry>), StoreError> {
    let mut last = SharedError::Restless { attempts: ATTEMPTS };
    for _ in 0..ATTEMPTS {
        match attempt(objects) {
            Err(error @ (SharedError::Collected(_) | SharedError::Discontinuous(_))) => last = error,
            Err(error) => return Err(error.into()),
            Ok(found) => return found.ok_or(StoreError::NoChain),
        }
    }
    Err(last.into())
}

fn attempt(objects: &Arc<dyn Objects>) -> Result<Option<(Content, Vec<Entry>)>, SharedError> {
    let Some((mut reader, shared::Manifest { mut content, .. })) = Reader::open(Arc::clone(objects))? else {
        return Ok(None);
    };
    let mut entries = Vec::new();
    while !reader.has_caught_up() {
        let step = reader.poll()?.ok_or(SharedError::Collected(reader.position()))?;
        if let (true, Some(name)) = (step.skips, step.announced) {
            content = reader.manifest(name)?.content;
            entries.clear();
        }
        entries.extend(step.object.entries);
    }
    Ok(Some((content, entries)))
}

/// A run as a file.
#[derive(Debug)]
struct ReadOnly(RunObject);

impl Object for ReadOnly {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Vec<u8>>> {
        self.0.read_many(ranges)
    }

    fn is_near(&self, range: &Range<u64>) -> bool {
        self.0.is_near(range)
    }

    fn is_remote(&self) -> bool {
        self.0.is_remote()
    }

    fn forget(&self, offset: u64, length: usize) -> bool {
        self.0.forget(offset, length)
    }
}

impl File for ReadOnly {
    fn write_at(&self, _offset: u64, _data: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _size: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
