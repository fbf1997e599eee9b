//! The runs of a store, and the manifest that lists them.

use super::manifest::{self, Listed, Manifest, Meta};
use crate::error::StoreError;
use crate::files::{Folder, damage};
use crate::keys::{Key, Table, number_of};
use crate::rows::{Part, Pruned, Rules, Scan, Tables, choose, compact};
use crate::runs::{Run, RunId, RunWriter, RunsShared};
use node_types::BlockNumber;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::io;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
mod tests;

/// Number of keyed runs at which some are merged before another is added. A lookup may have to read a filter of each
/// run.
const MAX_KEYED: usize = 32;

/// All runs of a store. Threads share it: one writes new runs, another merges them.
pub(super) struct Archive {
    folder: Arc<dyn Folder>,
    shared: Arc<RunsShared>,
    state: Mutex<State>,
    /// Held while runs are merged or pruned.
    merging: Mutex<()>,
    merged_bytes: AtomicU64,
}

struct State {
    /// The newest durable manifest. `None` if there is no chain yet.
    manifest: Option<Manifest>,
    /// The runs in it. If there is no manifest, the runs with parts of the genesis state.
    tables: Arc<Tables>,
    next_run: u64,
    /// Runs that are not listed, but must not be removed: they are being written.
    unlisted: BTreeSet<RunId>,
    /// Unlisted runs that are in a manifest that could not be written but may be durable nevertheless.
    doubtful: Vec<RunId>,
    /// Number of the next manifest. A number is never reused, even if the manifest could not be written.
    next_manifest: u64,
}

node_types::listed_enum! {
    /// One of the two lists of runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Family {
        Numbered,
        Keyed,
    }
}

impl Family {
    /// Returns the number of runs of about the same size that are merged. Of numbered runs there may be more, because
    /// a row is found in a single one of them.
    fn fan_in(self) -> usize {
        match self {
            Self::Numbered => 16,
            Self::Keyed => 8,
        }
    }
}

impl Manifest {
    fn runs(&mut self, family: Family) -> &mut Vec<Listed> {
        match family {
            Family::Numbered => &mut self.numbered,
            Family::Keyed => &mut self.keyed,
        }
    }
}

/// The runs of one merge, and the family to which they belong.
pub(super) struct Plan {
    family: Family,
    runs: Vec<Listed>,
    is_bottom: bool,
}

impl Plan {
    /// Returns the size of its runs.
    pub(super) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.size).sum()
    }
}

/// Rows of new blocks, ascending by their keys.
pub(super) struct NewRows<'a> {
    /// The blocks that wrote them; empty if no row belongs to a block.
    pub(super) blocks: RangeInclusive<BlockNumber>,
    pub(super) numbered: &'a mut dyn Iterator<Item = (&'a [u8], &'a [u8])>,
    pub(super) keyed: &'a mut dyn Iterator<Item = (&'a [u8], &'a [u8])>,
}

impl Archive {
    /// Opens the runs of a folder. A folder without a chain has no runs.
    pub(super) fn open(folder: Arc<dyn Folder>, cache_bytes: u64) -> Result<Self, StoreError> {
        let shared = RunsShared::new(cache_bytes);
        let manifest = Manifest::read(&*folder)?;
        let part = |listed: &Listed| -> Result<Part, StoreError> {
            let name = listed.id.file_name();
            let run = Run::open(&*folder, listed.id, Arc::clone(&shared)).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => StoreError::File(damage(format_args!("{name} is missing"))),
                _ => StoreError::File(error),
            })?;
            if run.size() != listed.size {
                let (size, expected) = (run.size(), listed.size);
                let error = damage(format_args!("{name} has {size} bytes, but the manifest lists {expected} bytes"));
                return Err(StoreError::File(error));
            }
            Ok(Part { run: Arc::new(run), limit: listed.limit })
        };
        let parts = |runs: &[Listed]| runs.iter().map(part).collect::<Result<Vec<_>, _>>();
        let tables = match &manifest {
            Some(manifest) => Tables::new(parts(&manifest.numbered)?, parts(&manifest.keyed)?),
            None => Tables::new(Vec::new(), Vec::new()),
        };
        let (next_run, next_manifest) = match &manifest {
            // A run left by a killed process may have the next id. It is not listed and will be replaced.
            Some(manifest) => (manifest.next_run, manifest.number + 1),
            None => (1, 1),
        };
        let (unlisted, doubtful) = Default::default();
        let state = State { manifest, tables: Arc::new(tables), next_run, unlisted, doubtful, next_manifest };
        Ok(Self { folder, shared, state: Mutex::new(state), merging: Mutex::new(()), merged_bytes: AtomicU64::new(0) })
    }

    pub(super) fn shared(&self) -> &RunsShared {
        &self.shared
    }

    /// Returns the data about the chain in the manifest, or `None` if there is no chain yet.
    pub(super) fn meta(&self) -> Option<Meta> {
        self.state.lock().manifest.as_ref().map(|manifest| manifest.meta)
    }

    pub(super) fn genesis_file(&self) -> Option<Vec<u8>> {
        self.state.lock().manifest.as_ref()?.genesis_file.clone()
    }

    pub(super) fn tables(&self) -> Arc<Tables> {
        Arc::clone(&self.state.lock().tables)
    }

    /// Returns the newest manifest with its runs.
    pub(super) fn listed(&self) -> Option<(Manifest, Arc<Tables>)> {
        let state = self.state.lock();
        Some((state.manifest.clone()?, Arc::clone(&state.tables)))
    }

    /// Writes the manifest again if there are other ones, which an earlier process did not remove. That process may
    /// have failed to sync it, and a power failure could bring back an older one, which lists other runs and needs
    /// earlier entries of the log.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let names = self.folder.list().map_err(StoreError::File)?;
        let mut state = self.state.lock();
        match state.manifest.clone() {
            Some(manifest) if names.iter().filter(|name| manifest::number_of(name).is_some()).count() > 1 => {
                self.replace(&mut state, manifest, Vec::new(), true)
            }
            _ => Ok(()),
        }
    }

    /// Removes runs that the manifest does not list: those of unfinished merges and flushes, and those that were
    /// merged.
    pub(super) fn remove_unlisted(&self) -> io::Result<()> {
        let state = self.state.lock();
        // Without a manifest, nothing is known about the runs.
        let Some(manifest) = &state.manifest else { return Ok(()) };
        let listed = |id: RunId| {
            manifest.numbered.iter().chain(&manifest.keyed).any(|run| run.id == id) || state.unlisted.contains(&id)
        };
        self.shared.failed.forget(listed);
        let mut unlisted = self.folder.list()?;
        unlisted.retain(|name| RunId::of_file_name(name).is_some_and(|id| !listed(id)));
        if !unlisted.is_empty() {
            self.shared.cache.forget(listed);
        }
        unlisted.iter().try_for_each(|name| self.folder.remove(name))
    }

    /// Merges runs if there are too many because merging is too slow. This bounds the number of runs that a
    /// read searches.
    pub(super) fn keep_up(&self) {
        while self.tables().parts_of(Table::Accounts).len() >= MAX_KEYED {
            let Some(plan) = self.plan() else { return };
            // The merger will fail in the same way and report the error.
            if self.merge(&plan, &mut || Ok(())).is_err() {
                return;
            }
        }
    }

    /// Returns the bytes that merging has written since the folder was opened.
    pub(super) fn merged_bytes(&self) -> u64 {
        self.merged_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether runs are being merged.
    pub(super) fn is_merging(&self) -> bool {
        self.merging.is_locked()
    }

    /// Adds the rows of new blocks, and hides rows of blocks above `limit`, which have left the chain.
    pub(super) fn add(&self, rows: NewRows<'_>, limit: BlockNumber, meta: Meta) -> Result<(), StoreError> {
        let NewRows { blocks, numbered, keyed } = rows;
        let new = [self.write(blocks.clone(), numbered)?, self.write(blocks, keyed)?];
        let mut state = self.state.lock();
        let first_blocks: Vec<_> = state.tables.parts_of(Table::Headers).iter().map(Part::first).collect();
        let mut opened = Vec::new();
        let mut manifest = state.manifest.clone().unwrap_or_else(|| {
            opened.extend(state.tables.parts().map(|part| Arc::clone(&part.run)));
            Manifest {
                number: 0,
                next_run: 0,
                meta,
                genesis_file: None,
                numbered: Vec::new(),
                keyed: opened.iter().map(listed).collect(),
            }
        });
        manifest.meta = meta;
        let mut first = first_blocks.iter();
        manifest.numbered.retain(|_| first.next().is_some_and(|first| *first <= limit));
        for family in Family::ALL {
            manifest.runs(family).iter_mut().for_each(|run| run.limit = run.limit.min(limit));
        }
        for (family, run) in Family::ALL.into_iter().zip(new) {
            let Some(run) = run else { continue };
            let limit = *run.properties().blocks.end();
            manifest.runs(family).push(Listed { id: run.id(), size: run.size(), limit });
            opened.push(run);
        }
        self.replace(&mut state, manifest, opened, false)
    }

    /// Adds rows of the genesis state, ascending by their keys, before there is a chain. They are durable once
    /// [`Self::add`] has added the genesis block. If that does not happen, the next process removes them.
    pub(super) fn add_part_of_genesis<'a>(
        &self,
        rows: &mut dyn Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), StoreError> {
        let Some(run) = self.write(0..=0, rows)? else { return Ok(()) };
        let mut state = self.state.lock();
        let mut keyed = state.tables.parts_of(Table::Accounts).to_vec();
        keyed.push(Part { run, limit: 0 });
        state.tables = Arc::new(Tables::new(Vec::new(), keyed));
        Ok(())
    }

    /// Records the genesis file in the manifest.
    pub(super) fn set_genesis_file(&self, file: &[u8]) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let mut manifest = state.manifest.clone().ok_or(StoreError::NoChain)?;
        manifest.genesis_file = Some(file.to_vec());
        self.replace(&mut state, manifest, Vec::new(), true)
    }

    /// Returns the runs to merge next, or `None` if there are few. Runs up to the newest one with a failed read stay as
    /// they are, so that a damaged run does not prevent later ones from being merged.
    pub(super) fn plan(&self) -> Option<Plan> {
        let mut manifest = self.state.lock().manifest.clone()?;
        Family::ALL.into_iter().find_map(|family| {
            let runs = manifest.runs(family);
            let damaged = runs.iter().rposition(|run| self.shared.failed.is_in(run.id));
            let first = damaged.map_or(0, |index| index + 1);
            let sizes: Vec<_> = runs[first..].iter().map(|run| run.size).collect();
            let range = choose(&sizes, family.fan_in())?;
            let (start, end) = (first + range.start, first + range.end);
            Some(Plan { family, is_bottom: start == 0, runs: runs[start..end].to_vec() })
        })
    }

    /// Merges runs into one. Calls `check` for each row. If this fails, nothing changes.
    pub(super) fn merge(
        &self,
        plan: &Plan,
        check: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _merging = self.merging.lock();
        let Some(parts) = self.parts(plan.family, &plan.runs) else { return Ok(()) };
        let rules = Rules { is_bottom: plan.is_bottom, pruned: None };
        let (run, _) = self.rewrite(&parts, &rules, check)?;
        self.merged_bytes.fetch_add(run.as_ref().map_or(0, |run| run.size()), Ordering::Relaxed);
        let mut state = self.state.lock();
        let Some(mut manifest) = state.manifest.clone() else { return Ok(()) };
        let Some(range) = position(manifest.runs(plan.family), &plan.runs) else {
            // In the meantime blocks have left the chain whose rows are in the new run, so it is discarded.
            if let Some(run) = run {
                state.unlisted.remove(&run.id());
            }
            return Ok(());
        };
        manifest.runs(plan.family).splice(range, run.iter().map(listed));
        self.replace(&mut state, manifest, run.into_iter().collect(), true)
    }

    /// Removes the rows that no state from block `floor` on needs. No blocks may be added in the meantime. Returns
    /// the number of removed rows.
    pub(super) fn prune(&self, floor: BlockNumber) -> Result<u64, StoreError> {
        let _merging = self.merging.lock();
        let Some((mut manifest, tables)) = self.listed() else { return Ok(0) };
        manifest.meta.earliest = floor;
        let rules = Rules { is_bottom: true, pruned: Some(Pruned::new(&tables, floor, manifest.meta.base.is_some())?) };
        let check = &mut || {
            std::thread::yield_now();
            Ok(())
        };
        let (mut opened, mut dropped) = (Vec::new(), 0);
        let mut rewrite_all = || -> Result<(), StoreError> {
            for (index, part) in tables.parts_of(Table::Headers).iter().enumerate() {
                let first = part.run.seek(Key::of_block(Table::Changes, 0).as_slice()).map_err(StoreError::File)?;
                let is_pruned = |key: &[u8]| Table::of_key(key) == Some(Table::Changes) && number_of(key) <= floor;
                if first.is_some_and(|row| is_pruned(row.key())) {
                    let (run, rows) = self.rewrite(std::slice::from_ref(part), &rules, check)?;
                    run.iter().for_each(|run| manifest.numbered[index] = listed(run));
                    opened.extend(run);
                    dropped += rows;
                }
            }
            let (run, rows) = self.rewrite(tables.parts_of(Table::Accounts), &rules, check)?;
            manifest.keyed = run.iter().map(listed).collect();
            opened.extend(run);
            dropped += rows;
            Ok(())
        };
        let rewritten = rewrite_all();
        let mut state = self.state.lock();
        if let Err(error) = rewritten {
            state.unlisted.retain(|id| !opened.iter().any(|run: &Arc<Run>| run.id() == *id));
            return Err(error);
        }
        self.replace(&mut state, manifest, opened, true)?;
        Ok(dropped)
    }

    /// Returns the runs as parts, or `None` if they are no longer the current ones.
    fn parts(&self, family: Family, runs: &[Listed]) -> Option<Vec<Part>> {
        let (mut manifest, tables) = self.listed()?;
        let range = position(manifest.runs(family), runs)?;
        let table = if family == Family::Numbered { Table::Headers } else { Table::Accounts };
        Some(tables.parts_of(table)[range].to_vec())
    }

    /// Writes the rows of `parts` to a new run. Returns the run, or `None` if there are no rows, and the number of
    /// rows that were left out.
    fn rewrite(
        &self,
        parts: &[Part],
        rules: &Rules,
        check: &mut dyn FnMut() -> Result<(), StoreError>,
    ) -> Result<(Option<Arc<Run>>, u64), StoreError> {
        // Runs whose blocks have all left the chain have no visible rows of blocks.
        let first = parts.iter().filter(|part| part.first() <= part.limit).map(Part::first).min();
        let Some(last) = parts.iter().map(|part| part.limit).max() else { return Ok((None, 0)) };
        let blocks = first.unwrap_or(last + 1)..=last;
        let id = self.next_id();
        let write = || {
            let mut writer = RunWriter::create(&*self.folder, id).map_err(StoreError::File)?;
            compact(&mut Scan::new(parts, &[], None)?, rules, &mut writer, check)?;
            let before: u64 = parts.iter().flat_map(|part| &part.run.properties().tables).map(|size| size.rows).sum();
            let dropped = before.saturating_sub(writer.count());
            Ok((self.finish(writer, id, blocks)?, dropped))
        };
        write().or_else(|error| self.give_up(id, error))
    }

    /// Writes rows to a new run. Returns `None` if there are no rows.
    fn write<'a>(
        &self,
        blocks: RangeInclusive<BlockNumber>,
        rows: &mut dyn Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Option<Arc<Run>>, StoreError> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(None);
        }
        let id = self.next_id();
        let write = || {
            let mut writer = RunWriter::create(&*self.folder, id).map_err(StoreError::File)?;
            rows.try_for_each(|(key, value)| writer.add(key, value)).map_err(StoreError::File)?;
            self.finish(writer, id, blocks)
        };
        write().or_else(|error| self.give_up(id, error))
    }

    fn finish(
        &self,
        writer: RunWriter,
        id: RunId,
        blocks: RangeInclusive<BlockNumber>,
    ) -> Result<Option<Arc<Run>>, StoreError> {
        if writer.count() == 0 {
            return Ok(None);
        }
        writer.finish(blocks).map_err(StoreError::File)?;
        let run = Run::open(&*self.folder, id, Arc::clone(&self.shared)).map_err(StoreError::File)?;
        Ok(Some(Arc::new(run)))
    }

    fn next_id(&self) -> RunId {
        let mut state = self.state.lock();
        let id = RunId(state.next_run);
        state.next_run += 1;
        state.unlisted.insert(id);
        id
    }

    /// Removes a run that could not be written, to free the space that it takes.
    fn give_up<T>(&self, id: RunId, error: StoreError) -> Result<T, StoreError> {
        self.state.lock().unlisted.remove(&id);
        // If it cannot be removed now, it is removed with the next one.
        let _ = self.folder.remove(&id.file_name());
        Err(error)
    }

    /// Makes a manifest durable. Its runs are those of the previous one and those in `opened`. `same_rows` is whether
    /// they have the same rows of canonical blocks.
    fn replace(
        &self,
        state: &mut MutexGuard<'_, State>,
        mut manifest: Manifest,
        opened: Vec<Arc<Run>>,
        same_rows: bool,
    ) -> Result<(), StoreError> {
        manifest.number = state.next_manifest;
        manifest.next_run = state.next_run;
        state.next_manifest += 1;
        let ids = opened.iter().map(|run| run.id());
        // The manifest must not become durable before the names of its runs.
        let named = if opened.is_empty() { Ok(()) } else { self.folder.sync() };
        if let Err(error) = named.and_then(|()| manifest.write(&*self.folder)) {
            state.doubtful.extend(ids);
            return Err(StoreError::File(error));
        }
        // From here on, no older manifest is valid.
        let done: Vec<_> = ids.chain(std::mem::take(&mut state.doubtful)).collect();
        state.unlisted.retain(|id| !done.contains(id));
        let known = state.tables.parts().map(|part| &part.run).chain(&opened);
        let known: Vec<Arc<Run>> = known.cloned().collect();
        let part = |listed: &Listed| {
            let run = known.iter().find(|run| run.id() == listed.id)?;
            Some(Part { run: Arc::clone(run), limit: listed.limit })
        };
        let numbered = manifest.numbered.iter().filter_map(part).collect();
        let keyed = manifest.keyed.iter().filter_map(part).collect();
        let tables =
            if same_rows { state.tables.with_same_rows(numbered, keyed) } else { Tables::new(numbered, keyed) };
        state.tables = Arc::new(tables);
        state.manifest = Some(manifest);
        Ok(())
    }
}

fn listed(run: &Arc<Run>) -> Listed {
    Listed { id: run.id(), size: run.size(), limit: *run.properties().blocks.end() }
}

/// Returns the position of `runs` in `all`, or `None` if they are not there.
fn position(all: &[Listed], runs: &[Listed]) -> Option<Range<usize>> {
    let start = all.windows(runs.len().max(1)).position(|window| window == runs)?;
    Some(start..start + runs.len())
}
