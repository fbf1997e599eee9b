//! The uploader: copies the runs of new manifests to the shared store, announces them, and deletes what is no longer
//! needed.

use super::{End, Publication, UPLOADER};
use crate::error::StoreError;
use crate::files::Object;
use crate::rows::Tables;
use crate::runs::{Run, RunId};
use crate::shared::{self, Chain, Content, Objects, RunName, SharedRun};
use crate::store::Shared;
use crate::store::manifest::{Listed, Manifest};
use crate::wal::Sequence;
use node_core::sources::Sources;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Number of objects of the log after which all changes are moved to runs, because a reader that opens the store reads
/// all objects that are not in runs.
const LONG_LOG: u64 = 512;

/// Bytes of runs after which an upload is recorded in the store, so that it need not be repeated if it is interrupted.
const RECORDED: u64 = 256 << 20;

/// Number of times that an upload is continued with the runs that were written in the meantime, before the first
/// manifest is announced.
const ROUNDS: usize = 4;

/// Maximum time between two searches for what earlier writers have left.
const SWEEP: Duration = Duration::from_secs(3_600);

/// Time after which the uploader looks for new runs or tries again.
const LOOK: Duration = Duration::from_millis(250);

/// What the uploader knows about the shared store.
pub(super) struct Uploads {
    /// The runs of the folder that are in the store.
    known: BTreeMap<RunId, RunName>,
    endings: BTreeMap<RunId, Arc<[u8]>>,
    /// The number of the manifest of the folder that was announced last.
    announced: Option<u64>,
    /// When it was announced.
    at: Option<Instant>,
    /// When the store was searched last.
    swept: Option<Instant>,
}

impl Uploads {
    pub(super) fn new(known: BTreeMap<RunId, RunName>) -> Self {
        Self { known, endings: BTreeMap::new(), announced: None, at: None, swept: None }
    }
}

impl Shared {
    /// Publishes new manifests until publishing ends.
    pub(super) fn run_uploader(&self, publication: &Publication, mut uploads: Uploads) {
        let mut was_wanted = false;
        while let Some(is_wanted) = publication.next_upload(was_wanted) {
            was_wanted = is_wanted;
            let done = self.publish_runs(publication, &mut uploads, is_wanted);
            let done = done.and_then(|()| self.collect(publication, &mut uploads));
            match done {
                Ok(()) => publication.note(UPLOADER, None),
                // Ends at the next check.
                Err(_) if publication.stopped.load(Ordering::SeqCst) => {}
                Err(error) => match End::of(&error) {
                    Some(end) => return self.end_publishing(publication, end),
                    None => publication.note(UPLOADER, Some(Sources(&error).to_string())),
                },
            }
        }
    }

    /// Announces the newest manifest of the folder if it is time to do so. `is_wanted` is whether someone waits for it.
    fn publish_runs(
        &self,
        publication: &Publication,
        uploads: &mut Uploads,
        is_wanted: bool,
    ) -> Result<(), StoreError> {
        let is_early = uploads.at.is_some_and(|at| at.elapsed() < publication.options.manifest_interval);
        let needs_runs = publication.state.lock().needs_runs;
        if is_early && !is_wanted && !needs_runs {
            return Ok(());
        }
        let is_long = publication.log_length() >= LONG_LOG;
        let stored = publication.writer.lock().manifest().map_or(Sequence(0), |manifest| manifest.content.logged);
        // The runs of another writer may have entries that are only in the log of this folder since it caught up.
        let is_behind = self.archive.meta().is_some_and(|meta| meta.logged < stored);
        if is_long || is_behind {
            self.flush()?;
        }
        let (mut manifest, mut tables) = self.archive.listed().ok_or(StoreError::NoChain)?;
        if uploads.announced == Some(manifest.number) && !is_long {
            publication.runs_announced(is_wanted);
            return Ok(());
        }
        if !needs_runs && publication.state.lock().published < manifest.meta.logged {
            // Its entries come first.
            return Ok(());
        }
        for _ in 0..ROUNDS {
            self.upload(publication, uploads, &tables)?;
            let newest = self.archive.listed().ok_or(StoreError::NoChain)?;
            if !needs_runs || newest.0.number == manifest.number {
                break;
            }
            (manifest, tables) = newest;
        }
        uploads.known.retain(|id, _| tables.parts().any(|part| part.run.id() == *id));
        uploads.endings.retain(|id, _| uploads.known.contains_key(id));
        let content = content(uploads, &manifest, &tables)?;
        let marked = publication.announce(uploads, content)?;
        uploads.announced = Some(manifest.number);
        uploads.at = Some(Instant::now());
        if needs_runs {
            let published = publication.writer.lock().last();
            let mut state = publication.state.lock();
            state.published = state.published.max(published);
            state.needs_runs = false;
            publication.entries.notify_one();
        }
        publication.runs_announced(is_wanted);
        // What is in runs and published is no longer needed.
        *self.kept_after.lock() = marked;
        let logged = self.archive.meta().map_or(manifest.meta.logged, |meta| meta.logged);
        self.drop_log(logged).inspect_err(|error| self.note_failure(error))
    }

    /// Uploads the runs in `tables` that are not in the store yet.
    fn upload(&self, publication: &Publication, uploads: &mut Uploads, tables: &Tables) -> Result<(), StoreError> {
        let new: Vec<_> =
            tables.parts().map(|part| &part.run).filter(|run| !uploads.known.contains_key(&run.id())).collect();
        let mut left: u64 = new.iter().map(|run| run.size()).sum();
        let mut unrecorded = 0;
        for run in new {
            publication.state.lock().uploading = Some(left).filter(|left| *left > RECORDED);
            let name = RunName { epoch: publication.writer.lock().epoch(), id: run.id().0 };
            let file = Uploaded { file: Arc::clone(run.scanned_file()), stopped: &publication.stopped };
            publication.objects.upload(&name.object(), &file).map_err(shared::SharedError::from)?;
            uploads.known.insert(run.id(), name);
            publication.state.lock().uploaded_bytes += run.size();
            left -= run.size();
            unrecorded += run.size();
            if unrecorded >= RECORDED && left > 0 {
                unrecorded = 0;
                let pending = uploads.known.values().copied().collect();
                let newest = publication.writer.lock().manifest().map(|manifest| manifest.content.clone());
                publication.announce(uploads, Content { pending, ..newest.unwrap_or_default() })?;
            }
        }
        publication.state.lock().uploading = None;
        Ok(())
    }

    /// Deletes what no reader needs any longer.
    fn collect(&self, publication: &Publication, uploads: &mut Uploads) -> Result<(), StoreError> {
        let keep_for = publication.options.keep_for;
        let collection = publication.writer.lock().collection(keep_for);
        if !collection.is_empty() {
            collection.run(&*publication.objects)?;
            publication.writer.lock().collected(&collection);
        }
        if uploads.swept.is_none_or(|swept| swept.elapsed() >= keep_for.min(SWEEP)) {
            uploads.swept = Some(Instant::now());
            let sweep = publication.writer.lock().sweep();
            sweep.run(&*publication.objects)?;
        }
        Ok(())
    }
}

/// Returns the content of a manifest of the store with the runs of a manifest of the folder.
fn content(uploads: &mut Uploads, manifest: &Manifest, tables: &Tables) -> Result<Content, StoreError> {
    let mut run = |listed: &Listed| -> Result<SharedRun, StoreError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let run: &Arc<Run> =
            tables.parts().map(|part| &part.run).find(|run| run.id() == listed.id).ok_or_else(missing)?;
        let name = *uploads.known.get(&listed.id).ok_or_else(missing)?;
        let ending = match uploads.endings.get(&listed.id) {
            Some(ending) => Arc::clone(ending),
            None => {
                let ending = shared::ending(&**run.scanned_file(), listed.id.0)?;
                uploads.endings.insert(listed.id, Arc::clone(&ending));
                ending
            }
        };
        Ok(SharedRun { name, size: listed.size, limit: listed.limit, ending })
    };
    let mut runs = |listed: &[Listed]| listed.iter().map(&mut run).collect::<Result<Vec<_>, _>>();
    let (numbered, keyed) = (runs(&manifest.numbered)?, runs(&manifest.keyed)?);
    let meta = manifest.meta;
    let genesis_file = manifest.genesis_file.as_deref().map(Arc::from);
    let chain = Chain { genesis: meta.genesis, head: meta.head, earliest: meta.earliest, genesis_file };
    Ok(Content { chain: Some(chain), logged: meta.logged, numbered, keyed, pending: Vec::new() })
}

impl Publication {
    /// Waits until it is time to look for new runs. Returns whether someone waits for them, and `None` if publishing is
    /// ending. `was_wanted` is whether someone waited the last time.
    fn next_upload(&self, was_wanted: bool) -> Option<bool> {
        let mut state = self.state.lock();
        if state.end.is_none() && !state.closing && (was_wanted || !state.wants_runs) {
            self.uploads.wait_for(&mut state, LOOK);
        }
        (state.end.is_none() && !state.closing).then_some(state.wants_runs)
    }

    /// Returns the number of objects that a reader which opens the store has to read.
    fn log_length(&self) -> u64 {
        let writer = self.writer.lock();
        let start = writer.manifest().map_or(0, |manifest| manifest.start.0);
        writer.position().number.0.saturating_sub(start)
    }

    /// Makes `content` the newest manifest. Records the position before it in the folder, so that the folder is found to
    /// continue the store whatever happens in the meantime. Returns the last entry up to that position.
    fn announce(&self, uploads: &Uploads, content: Content) -> Result<Sequence, StoreError> {
        let draft = self.writer.lock().draft(content)?;
        let uploaded = draft.upload(&*self.objects)?;
        // Whoever empties a bucket may have deleted the runs and left the manifest.
        self.witness.check(&*self.objects)?;
        let position = self.writer.lock().position();
        let runs = uploads.known.iter().map(|(id, name)| (*id, name.epoch)).collect();
        self.marker.lock().update(position, runs)?;
        self.writer.lock().announce(uploaded)?;
        Ok(position.last)
    }

    fn runs_announced(&self, is_wanted: bool) {
        let mut state = self.state.lock();
        state.wants_runs &= !is_wanted;
        self.progress.notify_all();
    }
}

/// A run that is being uploaded, unless that must end.
#[derive(Debug)]
struct Uploaded<'a> {
    file: Arc<dyn Object>,
    stopped: &'a AtomicBool,
}

impl Object for Uploaded<'_> {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.file.read_at(offset, buffer)
    }
}
