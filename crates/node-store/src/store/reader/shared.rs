//! Following a chain in a shared store.

use super::visible::{Newer, Visible};
use super::warmer::Warmer;
use super::{Source, new_caches};
use crate::caches::Caches;
use crate::error::StoreError;
use crate::files::Folder;
use crate::keys::Table;
use crate::rows::{Part, Tables};
use crate::runs::{Run, RunId, RunsShared};
use crate::shared::{
    CacheFolder, Cancel, Counted, Epoch, LogNumber, Manifest, ManifestName, Objects, Reader, RetryPolicy, Retrying,
    RunObject, RunReads, SharedError, SharedRun,
};
use crate::store::Options;
use crate::wal::Entry;
use node_core::backend::{CacheUse, RequestUse};
use node_core::clock::{Clock, SystemClock};
use node_core::context::Context;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of objects of the log that are read before their entries become visible.
const OBJECTS: usize = 64;

/// Length in bytes of the parts of runs that are read at once into the cache on a disk. A frame of rows has a sixth of it,
/// an index with its filter two thirds.
const CHUNK: u64 = 32 << 10;

/// Time between two repetitions of failed reads.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Time after which failures of all requests count as an outage.
const MOMENT: Duration = Duration::from_secs(2);

/// How failed requests are repeated by default.
const RETRIES: RetryPolicy =
    RetryPolicy { first: Duration::from_millis(50), longest: Duration::from_secs(1), deadline: Duration::from_secs(5) };

/// How a shared store is read.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// Memory for all caches, in bytes.
    pub cache_bytes: usize,
    /// A folder for copies of parts of the runs, and its size in bytes. It may keep those of an earlier reader of the same
    /// store.
    pub disk: Option<(Arc<dyn Folder>, u64)>,
    /// Age of the newest object of the log above which the reader does not count as healthy. Writers write one every few
    /// seconds.
    pub max_lag: Option<Duration>,
    /// How failed requests are repeated. Whoever waits for them tries again later.
    pub retry: RetryPolicy,
    /// Ends the opening of the store if it is cancelled.
    pub context: Context,
}

impl Default for SharedOptions {
    fn default() -> Self {
        Self {
            cache_bytes: Options::default().cache_bytes,
            disk: None,
            max_lag: None,
            retry: RETRIES,
            context: Context::unbounded(),
        }
    }
}

/// What a reader and its source share: the store, and the state of reading it.
pub(super) struct Remote {
    cancel: Arc<Cancel>,
    retrying: Arc<Retrying>,
    counted: Arc<Counted>,
    reads: Arc<RunReads>,
    /// The writer's time of the newest object whose entries are visible, in milliseconds.
    newest: AtomicU64,
    /// The number of runs that the warmer has yet to read.
    cold: Arc<AtomicU64>,
    max_lag: Option<Duration>,
}

impl Remote {
    /// Makes operations continue when the context of the opening is cancelled.
    pub(super) fn opened(&self) {
        self.cancel.release();
    }

    /// Makes operations fail that would be repeated or wait for a response.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns the time since the writer wrote what is visible.
    pub(super) fn age(&self) -> Duration {
        let now = SystemClock.now_millis();
        Duration::from_millis(now.saturating_sub(self.newest.load(Ordering::Relaxed)))
    }

    /// Returns why the chain is too old, or `None` if it is not.
    pub(super) fn late(&self, lag: Duration) -> Option<String> {
        let max_lag = self.max_lag.filter(|max_lag| lag > *max_lag)?;
        let reason = match self.retrying.outage() {
            Some(outage) => outage.reason,
            None => "the writer has not written since, or faster than this server reads".to_owned(),
        };
        let (lag, max_lag) = (lag.as_secs(), max_lag.as_secs());
        Some(format!("what is visible was written {lag} s ago, and may be {max_lag} s old (`max-lag`): {reason}"))
    }

    /// Returns why the store cannot be read, if that is so for longer than a moment.
    pub(super) fn outage(&self) -> Option<String> {
        let outage = self.retrying.outage().filter(|outage| outage.since.elapsed() > MOMENT)?;
        Some(format!("the shared store cannot be read: {}", outage.reason))
    }

    /// Returns the number of reads of runs that failed because the store was not available.
    pub(super) fn failed(&self) -> u64 {
        self.reads.failed()
    }

    pub(super) fn disk_usage(&self) -> Option<CacheUse> {
        self.reads.disk_usage()
    }

    /// Returns the number of runs whose indexes and filters have yet to be read into the cache.
    pub(super) fn cold_runs(&self) -> u64 {
        self.cold.load(Ordering::Relaxed)
    }

    pub(super) fn requests(&self) -> RequestUse {
        self.counted.usage()
    }
}

/// What was read of the store.
pub(super) struct SharedSource {
    remote: Arc<Remote>,
    objects: Arc<dyn Objects>,
    options: Options,
    runs: Arc<RunsShared>,
    caches: Arc<Caches>,
    /// The epochs in the names of all runs that use `runs`, by their ids.
    epochs: BTreeMap<u64, Epoch>,
    /// `None` if the store must be opened again.
    reader: Option<Reader>,
    manifest: Manifest,
    /// The entries after those in the runs of `manifest` that are visible.
    visible: VecDeque<Entry>,
    /// Entries that were read, but are not visible yet.
    unapplied: VecDeque<Entry>,
    /// The newest manifest that was announced, but is not used yet.
    announced: Option<ManifestName>,
    /// Whether entries after the last one that was read exist only in the runs of that manifest.
    skips: bool,
    /// The writer's time of the last object that was read.
    time: u64,
    warmer: Warmer,
    read_again: Instant,
}

impl SharedSource {
    /// Opens the store at its newest manifest.
    pub(super) fn open(objects: Arc<dyn Objects>, options: SharedOptions) -> Result<(Self, Visible), StoreError> {
        let SharedOptions { cache_bytes, disk, max_lag, retry, context } = options;
        let cancel = Arc::new(Cancel::with(&context));
        let counted = Arc::new(Counted::new(objects));
        let retrying = Arc::new(Retrying::new(Arc::clone(&counted) as _, retry, Arc::clone(&cancel)));
        let objects: Arc<dyn Objects> = Arc::clone(&retrying) as _;
        let (reader, manifest) = Reader::open(Arc::clone(&objects))?.ok_or(StoreError::NoChain)?;
        if manifest.content.chain.is_none() {
            return Err(StoreError::NoChain);
        }
        let cache = disk.map(|(folder, bytes)| CacheFolder { folder, bytes, chunk: CHUNK });
        let reads = Arc::new(RunReads::new(Arc::clone(&objects), cache.as_ref())?);
        let options = Options { cache_bytes, ..Options::default() };
        let (runs, caches) = new_caches(&options);
        let warmer = Warmer::start(&reads)?;
        let remote = Remote {
            cancel,
            retrying,
            counted,
            reads: Arc::clone(&reads),
            newest: AtomicU64::new(0),
            cold: Arc::clone(warmer.cold()),
            max_lag,
        };
        let mut source = Self {
            remote: Arc::new(remote),
            objects,
            options,
            warmer,
            runs,
            caches,
            epochs: BTreeMap::new(),
            reader: Some(reader),
            manifest,
            visible: VecDeque::new(),
            unapplied: VecDeque::new(),
            announced: None,
            skips: false,
            time: 0,
            read_again: Instant::now(),
        };
        let manifest = source.manifest.clone();
        let [numbered, keyed] = source.parts(&manifest, None)?;
        let newer = source.in_runs(&manifest, Arc::new(Tables::new(numbered, keyed)))?;
        source.adopt(manifest, &newer.chain.rows.tables);
        let visible = Visible::new(newer.chain, newer.replaced.unwrap_or_default())?;
        Ok((source, visible))
    }

    pub(super) fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    /// Reads the log to its end, and applies it.
    fn follow(&mut self, visible: &Visible) -> Result<(), StoreError> {
        loop {
            let more = self.read_objects()?;
            self.apply_entries(visible)?;
            if let Some(name) = self.announced {
                let reader = self.reader.as_ref().ok_or(StoreError::Closed)?;
                let manifest = reader.manifest(name)?;
                self.replace_runs(manifest, visible)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Reads the next objects of the log. Returns whether there may be more.
    fn read_objects(&mut self) -> Result<bool, StoreError> {
        for _ in 0..OBJECTS {
            // The entries after these are not to be applied to them.
            if self.skips {
                break;
            }
            let Some(step) = self.reader.as_mut().ok_or(StoreError::Closed)?.poll()? else { return Ok(false) };
            self.time = step.object.header.time;
            self.unapplied.extend(step.object.entries);
            self.announced = step.announced.or(self.announced);
            self.skips = step.skips;
        }
        Ok(true)
    }

    /// Makes the entries that were read visible.
    fn apply_entries(&mut self, visible: &Visible) -> Result<(), StoreError> {
        let mut newer = Newer::after(&visible.chain());
        let mut count = 0;
        let applied = self.unapplied.iter().try_for_each(|entry| {
            newer.apply(&entry.payload)?;
            count += 1;
            Ok(())
        });
        let published = if count > 0 { newer.publish(visible) } else { Ok(()) };
        if published.is_ok() {
            self.visible.extend(self.unapplied.drain(..count));
        }
        let done = published.and(applied);
        match done {
            Ok(()) => self.remote.newest.store(self.time, Ordering::Relaxed),
            // The rows of an entry that was not applied completely.
            Err(_) => visible.forget_above_head(),
        }
        done
    }

    /// Continues with the runs of a newer manifest.
    fn replace_runs(&mut self, manifest: Manifest, visible: &Visible) -> Result<(), StoreError> {
        let old = &self.manifest.content;
        if old.chain != manifest.content.chain || old.logged != manifest.content.logged {
            return self.rebuild(manifest, visible);
        }
        // Runs were merged, so the rows are the same.
        let [numbered, keyed] = self.parts(&manifest, Some(&visible.chain().rows.tables))?;
        let chain = visible.replace_runs(numbered, keyed);
        self.adopt(manifest, &chain.rows.tables);
        Ok(())
    }

    /// Makes the chain visible that consists of the runs of `manifest` and the entries after them.
    fn rebuild(&mut self, manifest: Manifest, visible: &Visible) -> Result<(), StoreError> {
        let [numbered, keyed] = self.parts(&manifest, Some(&visible.chain().rows.tables))?;
        let mut newer = self.in_runs(&manifest, Arc::new(Tables::new(numbered, keyed)))?;
        let logged = manifest.content.logged;
        let rest = self.visible.iter().chain(&self.unapplied).filter(|entry| entry.sequence > logged);
        rest.clone().try_for_each(|entry| newer.apply(&entry.payload))?;
        newer.publish(visible)?;
        (self.visible, self.unapplied) = (rest.cloned().collect(), VecDeque::new());
        self.remote.newest.store(self.time, Ordering::Relaxed);
        self.adopt(manifest, &newer.chain.rows.tables);
        Ok(())
    }

    /// Opens the store again, because what would be read next was deleted, or the log is another one.
    fn reopen(&mut self, visible: &Visible) -> Result<(), StoreError> {
        let reopened = self.try_reopen(visible);
        if reopened.is_err() {
            self.reader = None;
        }
        reopened
    }

    fn try_reopen(&mut self, visible: &Visible) -> Result<(), StoreError> {
        // The first object is never deleted.
        let vanished = SharedError::Vanished(LogNumber(1));
        let (reader, mut manifest) = Reader::open(Arc::clone(&self.objects))?.ok_or(vanished)?;
        let genesis = |manifest: &Manifest| manifest.content.chain.as_ref().map(|chain| chain.genesis);
        if let (Some(found), Some(expected)) = (genesis(&manifest), genesis(&self.manifest))
            && found != expected
        {
            return Err(StoreError::OtherGenesis { found, expected });
        }
        self.visible.clear();
        self.unapplied.clear();
        (self.announced, self.skips) = (None, false);
        self.reader = Some(reader);
        // Nothing is visible before this end was read: until then, the chain may end before the visible one.
        while self.read_objects()? && !self.reader.as_ref().is_some_and(Reader::has_caught_up) {
            if self.skips
                && let (Some(name), Some(reader)) = (self.announced, &self.reader)
            {
                manifest = reader.manifest(name)?;
                self.skips = false;
            }
        }
        self.rebuild(manifest, visible)
    }

    /// Returns the chain in runs.
    fn in_runs(&self, manifest: &Manifest, tables: Arc<Tables>) -> Result<Newer, StoreError> {
        let chain = manifest.content.chain.as_ref().ok_or(StoreError::NoChain)?;
        // Each run that has such rows is read, one after the other. This reads them into the cache at the same time.
        thread::scope(|scope| {
            for table in [Table::SideBlocks, Table::Records] {
                for part in tables.parts_of(table).iter().filter(|part| part.run.has(table)) {
                    scope.spawn(move || part.run.seek(&[table as u8]).map(drop));
                }
            }
        });
        Newer::in_runs(chain.head, chain.earliest, tables, &self.caches)
    }

    /// Opens the runs of `manifest` that are not among `open`.
    fn parts(&mut self, manifest: &Manifest, open: Option<&Tables>) -> Result<[Vec<Part>; 2], StoreError> {
        let listed = || manifest.content.numbered.iter().chain(&manifest.content.keyed);
        let is_other = |run: &SharedRun| self.epochs.get(&run.name.id).is_some_and(|epoch| *epoch != run.name.epoch);
        if listed().any(is_other) {
            // A writer continued an older state and used an id again. Caches are by ids, so the runs of earlier views keep
            // theirs.
            (self.runs, self.caches) = new_caches(&self.options);
            self.epochs.clear();
        }
        self.epochs.extend(listed().map(|run| (run.name.id, run.name.epoch)));
        let part = |run: &SharedRun| -> Result<Part, StoreError> {
            let id = RunId(run.name.id);
            let is_known = |part: &&Part| part.run.id() == id && part.run.uses(&self.runs);
            let known = open.and_then(|open| open.parts().find(is_known));
            let opened = match known {
                Some(part) => Arc::clone(&part.run),
                None => {
                    let object = Arc::new(RunObject::of(&self.remote.reads, run));
                    Arc::new(Run::read(object, id, Arc::clone(&self.runs)).map_err(StoreError::File)?)
                }
            };
            Ok(Part { run: opened, limit: run.limit })
        };
        let parts = |runs: &[SharedRun]| runs.iter().map(part).collect::<Result<Vec<_>, _>>();
        Ok([parts(&manifest.content.numbered)?, parts(&manifest.content.keyed)?])
    }

    /// Continues with a manifest, whose runs are `tables`.
    fn adopt(&mut self, manifest: Manifest, tables: &Tables) {
        self.runs.keep_only(tables.parts().map(|part| &part.run));
        self.remote.reads.keep_only(manifest.content.numbered.iter().chain(&manifest.content.keyed));
        self.warmer.warm(tables.parts().map(|part| Arc::clone(&part.run)).collect(), &self.runs);
        if self.announced.is_some_and(|announced| announced <= manifest.name) {
            (self.announced, self.skips) = (None, false);
        }
        self.manifest = manifest;
    }
}

impl Source for SharedSource {
    fn look(&mut self, visible: &Visible) -> Result<(), StoreError> {
        if self.reader.is_none() {
            return self.reopen(visible);
        }
        match self.follow(visible) {
            Err(StoreError::Shared(
                SharedError::Collected(_) | SharedError::Discontinuous(_) | SharedError::Missing { .. },
            )) => self.reopen(visible),
            // A run of the manifest was deleted, because a newer one does not list it.
            Err(error) if error.io().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) => {
                self.reopen(visible)
            }
            done => done,
        }
    }

    fn read_again(&mut self) {
        if self.read_again.elapsed() >= READ_AGAIN {
            self.runs.failed.read_again();
            self.read_again = Instant::now();
        }
    }

    fn runs(&self) -> &Arc<RunsShared> {
        &self.runs
    }

    fn genesis_file(&self) -> Option<Vec<u8>> {
        let file = self.manifest.content.chain.as_ref()?.genesis_file.as_ref()?;
        Some(file.to_vec())
    }
}
