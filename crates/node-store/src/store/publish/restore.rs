//! Making a folder from a shared store.

use super::marker::{Marked, Marker};
use crate::error::StoreError;
use crate::files::{DiskFolder, File, Folder};
use crate::runs::{Run, RunId, RunsShared};
use crate::shared::{
    self, Cancel, Chain, Manifest as SharedManifest, Objects, Position, RetryPolicy, Retrying, RunFault, SharedError,
    SharedRun,
};
use crate::store::Store;
use crate::store::manifest::{Listed, Manifest, Meta};
use crate::wal::{self, Wal, WalOptions};
use node_core::backend::BackendError;
use node_core::block::BlockRef;
use node_core::context::Context;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Number of attempts if the writer replaces what is being read.
const ATTEMPTS: usize = 5;

/// Size in bytes of the parts of a run that are read, and number of parts that are read at the same time.
const PART: u64 = 4 << 20;
const PARTS: usize = 4;

/// How far a folder is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RestoreProgress {
    /// Bytes of runs that the folder has.
    pub bytes: u64,
    /// Bytes of all runs.
    pub of: u64,
}

impl Store {
    /// Makes a folder from the chain in a shared store, with which [`Store::publish`] can then become the writer of that
    /// store. The folder `path` must not exist, be empty, or be what an interrupted call has left: runs that are complete
    /// are not read again. Calls `progress` regularly.
    ///
    /// # Errors
    /// [`StoreError::HasChain`], [`StoreError::NothingPublished`], [`StoreError::Shared`], errors of the folder, and if `context` is cancelled.
    pub fn restore(
        path: impl AsRef<Path>,
        objects: Arc<dyn Objects>,
        context: &Context,
        progress: impl FnMut(RestoreProgress),
    ) -> Result<BlockRef, BackendError> {
        let folder = DiskFolder::open(path.as_ref()).map_err(StoreError::from)?;
        Self::restore_in(&(Arc::new(folder) as Arc<dyn Folder>), objects, context, progress)
    }

    /// Like [`Self::restore`], in any implementation of [`Folder`].
    ///
    /// # Errors
    /// Those of [`Self::restore`].
    pub fn restore_in(
        folder: &Arc<dyn Folder>,
        objects: Arc<dyn Objects>,
        context: &Context,
        mut progress: impl FnMut(RestoreProgress),
    ) -> Result<BlockRef, BackendError> {
        if Manifest::read(&**folder)?.is_some() {
            return Err(StoreError::HasChain.into());
        }
        let objects: Arc<dyn Objects> =
            Arc::new(Retrying::new(objects, RetryPolicy::default(), Arc::new(Cancel::with(context))));
        let mut last = SharedError::Restless { attempts: ATTEMPTS };
        for _ in 0..ATTEMPTS {
            match attempt(folder, &objects, context, &mut progress) {
                Err(Failure::Replaced(error)) => last = error,
                Err(Failure::Final(error)) => return Err(error),
                Ok(head) => return Ok(head),
            }
        }
        Err(StoreError::Shared(last).into())
    }
}

enum Failure {
    /// The writer may have deleted what was to be read, or entries are only in the runs of a newer manifest.
    Replaced(SharedError),
    Final(BackendError),
}

impl<E: Into<StoreError>> From<E> for Failure {
    fn from(error: E) -> Self {
        match error.into() {
            StoreError::Shared(
                error @ (SharedError::Collected(_) | SharedError::Discontinuous(_) | SharedError::Runs(_)),
            ) => Self::Replaced(error),
            error => Self::Final(error.into()),
        }
    }
}

fn attempt(
    folder: &Arc<dyn Folder>,
    objects: &Arc<dyn Objects>,
    context: &Context,
    progress: &mut dyn FnMut(RestoreProgress),
) -> Result<BlockRef, Failure> {
    let opened = shared::Reader::open(Arc::clone(objects))?;
    let (mut reader, manifest) = opened.ok_or(StoreError::NothingPublished)?;
    let chain = manifest.content.chain.clone().ok_or(StoreError::NothingPublished)?;
    let logged = manifest.content.logged;
    // Before gigabytes are copied.
    let faults = shared::run_faults(&**objects, &manifest.content).map_err(SharedError::from)?;
    if !faults.is_empty() {
        return Err(SharedError::Runs(faults).into());
    }
    let complete = prepare(&**folder, &manifest)?;
    let log = Wal::open(Arc::clone(folder), logged, WalOptions::default())?;
    let mut marker = Marker::open(&**folder)?;
    let position = Position {
        number: shared::LogNumber(manifest.start.0.saturating_sub(1)),
        sum: manifest.before,
        epoch: manifest.name.epoch,
        // No writer's number.
        writer: 0,
        last: logged,
    };
    let mut marked = Marked { position, refused_after: None, runs: complete };
    marker.write(marked.clone())?;
    let runs = || manifest.content.numbered.iter().chain(&manifest.content.keyed);
    let mut done = RestoreProgress { bytes: 0, of: runs().map(|run| run.size).sum() };
    for run in runs() {
        let id = RunId(run.name.id);
        let is_complete = marked.runs.contains_key(&id);
        if !is_complete {
            let mut copied = |bytes| {
                progress(RestoreProgress { bytes: done.bytes + bytes, ..done });
                context.check().map_err(|error| Failure::Final(error.into()))
            };
            copy(run, &**folder, &**objects, &mut copied)?;
            folder.sync()?;
            marked.runs.insert(id, run.name.epoch);
            marker.write(marked.clone())?;
        }
        done.bytes += run.size;
        progress(done);
    }
    // Read after the runs, which takes longer.
    while !reader.has_caught_up() {
        let step = reader.poll()?.ok_or(SharedError::Collected(reader.position()))?;
        if step.skips {
            return Err(Failure::Replaced(SharedError::Restless { attempts: ATTEMPTS }));
        }
        for entry in step.object.entries {
            log.append(&entry.payload)?;
        }
    }
    log.sync()?;
    // The manifest comes last, because it makes the folder a store.
    local_manifest(&manifest, &chain).write(&**folder)?;
    Ok(chain.head)
}

/// Removes what an interrupted attempt left, except runs that are complete and in `manifest`. Returns these.
fn prepare(folder: &dyn Folder, manifest: &SharedManifest) -> Result<BTreeMap<RunId, shared::Epoch>, Failure> {
    let marked = Marker::read(folder)?;
    let listed: Vec<_> = manifest.content.runs().collect();
    let mut complete = marked.map_or_else(BTreeMap::new, |marked| marked.runs);
    let names = folder.list()?;
    complete.retain(|id, epoch| {
        listed.contains(&shared::RunName { epoch: *epoch, id: id.0 }) && names.contains(&id.file_name())
    });
    for name in names {
        let is_kept = match RunId::of_file_name(&name) {
            Some(id) => complete.contains_key(&id),
            None if wal::is_log_file(&name) => false,
            None => true,
        };
        if !is_kept {
            folder.remove(&name)?;
        }
    }
    Ok(complete)
}

/// Copies a run durably, and reads all rows of the copy. Calls `copied` regularly with the number of copied bytes.
fn copy(
    run: &SharedRun,
    folder: &dyn Folder,
    objects: &dyn Objects,
    copied: &mut dyn FnMut(u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let id = RunId(run.name.id);
    let file = folder.create(&id.file_name())?;
    let mut at = 0;
    while at < run.size {
        copied(at)?;
        let starts = (0..PARTS as u64).map(|part| at + part * PART).take_while(|start| *start < run.size);
        let ranges: Vec<Range<u64>> = starts.map(|start| start..run.size.min(start + PART)).collect();
        let parts = objects.read(&run.name.object(), &ranges).map_err(SharedError::from)?;
        let missing = || SharedError::Runs(vec![RunFault { run: run.name, found: None, expected: Some(run.size) }]);
        for (range, part) in ranges.iter().zip(parts.ok_or_else(missing)?) {
            file.write_at(range.start, &part)?;
            at = range.end;
        }
    }
    file.sync_data()?;
    Ok(read_rows(file, id).map_err(|source| SharedError::DamagedRun { run: run.name, source: source.into() })?)
}

/// Reads all rows of a run, whose checksums are checked.
fn read_rows(file: Arc<dyn File>, id: RunId) -> io::Result<()> {
    let run = Arc::new(Run::read(file, id, RunsShared::new(0))?);
    let mut cursor = run.scan(&[])?;
    while let Some(row) = &mut cursor {
        if !row.advance()? {
            break;
        }
    }
    Ok(())
}

/// Returns the manifest of a folder with the runs of `manifest`.
fn local_manifest(manifest: &SharedManifest, chain: &Chain) -> Manifest {
    let content = &manifest.content;
    let listed = |runs: &[SharedRun]| {
        let listed = |run: &SharedRun| Listed { id: RunId(run.name.id), size: run.size, limit: run.limit };
        runs.iter().map(listed).collect()
    };
    let Chain { genesis, head, earliest, .. } = *chain;
    Manifest {
        // Not the first one, which may be incomplete.
        number: 2,
        next_run: content.runs().map(|run| run.id + 1).max().unwrap_or(1),
        meta: Meta { genesis, base: None, head, earliest, logged: content.logged },
        genesis_file: chain.genesis_file.as_deref().map(<[u8]>::to_vec),
        numbered: listed(&content.numbered),
        keyed: listed(&content.keyed),
    }
}
