//! Following a chain in a folder.

use super::visible::{Newer, Visible};
use super::{Source, new_caches};
use crate::caches::Caches;
use crate::chain::ChainVersion;
use crate::error::StoreError;
use crate::files::{Folder, ReadOnlyFolder};
use crate::rows::{Part, Tables};
use crate::runs::{Run, RunsShared};
use crate::store::Options;
use crate::store::manifest::{self, Listed, Manifest, Meta};
use crate::wal::{LogTail, WalError};
use node_core::backend::RecordValues;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Maximum number of attempts to read a folder whose files change in the meantime, and the time between two attempts.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// Number of log entries after which readers see the newer chain, even if there are more entries.
const STEP: usize = 64;

/// What was read of the folder.
pub(super) struct FolderSource {
    path: PathBuf,
    options: Options,
    folder: Arc<ReadOnlyFolder>,
    runs: Arc<RunsShared>,
    caches: Arc<Caches>,
    manifest: Manifest,
    /// `None` if an entry could not be applied, so that the chain has to be read from the manifest on.
    log: Option<LogTail>,
}

/// What a look at a folder has found.
pub(super) struct Found {
    pub(super) source: FolderSource,
    pub(super) chain: ChainVersion,
    pub(super) records: RecordValues,
}

impl Source for FolderSource {
    fn look(&mut self, visible: &Visible) -> Result<(), StoreError> {
        retry(|| self.look_once(visible))
    }

    fn read_again(&mut self) {
        self.runs.failed.read_again();
    }

    fn runs(&self) -> &Arc<RunsShared> {
        &self.runs
    }

    fn genesis_file(&self) -> Option<Vec<u8>> {
        self.manifest.genesis_file.clone()
    }
}

/// Opens a folder. The chain has the blocks in runs only.
pub(super) fn open(path: &Path, options: Options) -> Result<Found, StoreError> {
    retry(|| open_once(path, options))
}

fn open_once(path: &Path, options: Options) -> Result<Found, StoreError> {
    let folder = Arc::new(ReadOnlyFolder::open(path).map_err(StoreError::File)?);
    let manifest = Manifest::read(&*folder)?.ok_or(StoreError::NoChain)?;
    manifest.meta.check_base(false)?;
    let (runs, caches) = new_caches(&options);
    let log = Some(LogTail::after(manifest.meta.logged));
    let mut source = FolderSource { path: path.to_owned(), options, folder, runs, caches, log, manifest };
    let manifest = source.manifest.clone();
    let Newer { chain, replaced, .. } = source.chain_of(&manifest, None)?;
    Ok(Found { source, chain, records: replaced.unwrap_or_default() })
}

impl FolderSource {
    /// Looks for a newer manifest and for new entries of the log.
    fn look_once(&mut self, visible: &Visible) -> Result<(), StoreError> {
        if !self.folder.is_current().map_err(StoreError::File)? {
            return self.replace(visible);
        }
        if self.newest_manifest()? != Some(self.manifest.number) || self.log.is_none() {
            let manifest = Manifest::read(&*self.folder)?.ok_or(StoreError::NoChain)?;
            if manifest.number < self.manifest.number || manifest.meta.genesis != self.manifest.meta.genesis {
                // An older copy took the place of the files.
                return self.replace(visible);
            }
            let chain = visible.chain();
            if manifest.meta == self.manifest.meta && self.log.is_some() {
                // Runs were merged, so the rows are the same.
                let [numbered, keyed] = self.parts(&manifest, &chain.rows.tables)?;
                let chain = visible.replace_runs(numbered, keyed);
                self.adopt(manifest, &chain);
            } else {
                let newer = self.chain_of(&manifest, Some(&chain.rows.tables))?;
                self.log = Some(LogTail::after(manifest.meta.logged));
                self.adopt(manifest, &newer.chain);
                // Not visible before the entries of the log are applied: until then, it may end before the head.
                return self.read_log(visible, newer);
            }
        }
        self.read_log(visible, Newer::after(&visible.chain()))
    }

    /// Reads a folder that took the place of the one that was read, or older content of it. Another chain is refused:
    /// what was derived from the genesis, such as the rules of the forks, would not fit it.
    fn replace(&mut self, visible: &Visible) -> Result<(), StoreError> {
        let Found { source, chain, records } = open_once(&self.path, self.options)?;
        let (expected, found) = (self.manifest.meta.genesis, source.manifest.meta.genesis);
        if found != expected {
            return Err(StoreError::OtherGenesis { found, expected });
        }
        *self = source;
        self.read_log(visible, Newer { chain, replaced: Some(records), writes: Vec::new() })
    }

    /// Applies the durable entries of the log that are new to `newer`, and makes it visible.
    fn read_log(&mut self, visible: &Visible, mut newer: Newer) -> Result<(), StoreError> {
        // Set again at the end. If this fails, the chain may have rows of blocks that it does not have.
        let mut log = self.log.take().ok_or(StoreError::Closed)?;
        let through = LogTail::durable(&*self.folder)?;
        let (mut count, head) = (0, visible.chain().head.number);
        while let Some(entry) = log.read(&*self.folder, through)? {
            newer.apply(&entry.payload)?;
            count += 1;
            // A chain that was just read from runs can be older than the visible one.
            if count % STEP == 0 && newer.chain.head.number > head {
                newer.publish(visible)?;
            }
        }
        self.log = Some(log);
        newer.publish(visible)
    }

    /// Returns the number of the newest manifest, complete or not.
    fn newest_manifest(&self) -> Result<Option<u64>, StoreError> {
        let names = self.folder.list().map_err(StoreError::File)?;
        Ok(names.iter().filter_map(|name| manifest::number_of(name)).max())
    }

    /// Returns the chain in the runs of `manifest`, and its records. `open` are runs that are open already.
    fn chain_of(&mut self, manifest: &Manifest, open: Option<&Arc<Tables>>) -> Result<Newer, StoreError> {
        let none = Arc::new(Tables::new(Vec::new(), Vec::new()));
        let [numbered, keyed] = self.parts(manifest, open.unwrap_or(&none))?;
        let Meta { head, earliest, .. } = manifest.meta;
        Newer::in_runs(head, earliest, Arc::new(Tables::new(numbered, keyed)), &self.caches)
    }

    /// Opens the runs of `manifest` that are not among `open`.
    fn parts(&self, manifest: &Manifest, open: &Tables) -> Result<[Vec<Part>; 2], StoreError> {
        let part = |listed: &Listed| -> Result<Part, StoreError> {
            let known = open.parts().find(|part| part.run.id() == listed.id);
            let run = match known {
                Some(part) => Arc::clone(&part.run),
                None => {
                    let run = Run::open(&*self.folder, listed.id, Arc::clone(&self.runs));
                    Arc::new(run.map_err(StoreError::File)?)
                }
            };
            Ok(Part { run, limit: listed.limit })
        };
        let parts = |runs: &[Listed]| runs.iter().map(part).collect::<Result<Vec<_>, _>>();
        Ok([parts(&manifest.numbered)?, parts(&manifest.keyed)?])
    }

    /// Continues with a newer manifest, whose runs are those of `chain`.
    fn adopt(&mut self, manifest: Manifest, chain: &ChainVersion) {
        self.runs.keep_only(chain.rows.tables.parts().map(|part| &part.run));
        self.manifest = manifest;
    }
}

/// Repeats `attempt` as long as it fails because files were removed that it was about to read.
fn retry<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if was_removed(&error) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    attempt()
}

fn was_removed(error: &StoreError) -> bool {
    matches!(error, StoreError::Log(WalError::Missing { .. }))
        || error.io().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
