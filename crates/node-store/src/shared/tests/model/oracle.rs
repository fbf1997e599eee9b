//! What must be true of a history.

use super::actors::decode_run;
use super::world::KEEP;
use crate::shared::{Epoch, LogNumber, LogObject, Manifest, ManifestName, RunName};
use crate::wal::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

/// By how much the clocks of the actors differ, and some.
const SKEW: u64 = 100;

/// What happened in histories.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: u64,
    pub(super) fenced: u64,
    pub(super) manifests: u64,
    pub(super) deleted_log: u64,
    pub(super) deleted_runs: u64,
    /// Numbers that were created again after they were deleted.
    pub(super) ghosts: u64,
    pub(super) read: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.fenced += other.fenced;
        self.manifests += other.manifests;
        self.deleted_log += other.deleted_log;
        self.deleted_runs += other.deleted_runs;
        self.ghosts += other.ghosts;
        self.read += other.read;
    }
}

struct Effective {
    manifest: Manifest,
    /// When the next one was announced.
    replaced: Option<u64>,
}

impl Effective {
    /// Returns whether a reader may still need it.
    fn is_kept(&self, clock: u64) -> bool {
        self.replaced.is_none_or(|replaced| clock + SKEW < replaced + KEEP)
    }

    fn lists(&self, run: RunName) -> bool {
        self.manifest.content.runs().any(|listed| listed == run)
    }
}

/// Knows the one true log.
#[derive(Default)]
pub(super) struct Oracle {
    /// The first object of each number.
    log: Vec<(LogObject, Vec<u8>)>,
    /// The payloads of all entries.
    entries: Vec<Vec<u8>>,
    effective: Vec<Effective>,
    deleted: BTreeSet<LogNumber>,
    pub(super) counts: Counts,
}

impl Oracle {
    /// Records that an object was created.
    pub(super) fn created(
        &mut self,
        name: &str,
        bytes: &[u8],
        clock: u64,
        objects: &BTreeMap<String, Arc<[u8]>>,
    ) -> Result<(), String> {
        let Some(number) = name.strip_prefix("log/") else { return Ok(()) };
        let number = LogNumber(number.parse().unwrap());
        let object = LogObject::decode(number, bytes).map_err(|error| format!("{name}: {error}"))?;
        let header = object.header;
        let next = self.log.len() as u64 + 1;
        if number.0 < next {
            let (_, first) = &self.log[number.0 as usize - 1];
            self.counts.ghosts += 1;
            // The writer that created it repeats that, or someone who wanted to become the writer was late.
            return if first == bytes || header.is_fence {
                Ok(())
            } else {
                Err(format!("{name} was created again with other entries"))
            };
        }
        if number.0 > next {
            return Err(format!("{name} was created, but there are only {} objects", next - 1));
        }
        let last = self.log.last().map(|(last, _)| last.header);
        if header.previous != last.map_or(0, |last| last.sum()) {
            return Err(format!("{name} does not continue the one before it"));
        }
        let epoch = last.map_or(Epoch(0), |last| last.epoch);
        if if header.is_fence { header.epoch != Epoch(epoch.0 + 1) } else { header.epoch != epoch } {
            return Err(format!("{name} has epoch {} after {epoch}", header.epoch));
        }
        if let Some(manifest) = header.manifest.filter(|_| header.manifest != last.and_then(|last| last.manifest)) {
            self.announced(manifest, clock, objects)?;
        }
        for entry in &object.entries {
            if entry.sequence.0 != self.entries.len() as u64 + 1 {
                return Err(format!("{name} has entry {} after {}", entry.sequence, self.entries.len()));
            }
            self.entries.push(entry.payload.clone());
        }
        self.counts.fenced += u64::from(header.is_fence);
        self.log.push((object, bytes.to_vec()));
        Ok(())
    }

    /// Checks that a manifest that becomes the newest one has all entries that it should, and records entries that only
    /// its runs have.
    fn announced(
        &mut self,
        name: ManifestName,
        clock: u64,
        objects: &BTreeMap<String, Arc<[u8]>>,
    ) -> Result<(), String> {
        let bytes = objects.get(&name.object()).ok_or_else(|| format!("{} does not exist", name.object()))?;
        let manifest = Manifest::decode(name, bytes).map_err(|error| error.to_string())?;
        let mut entries = Vec::new();
        for run in manifest.content.runs() {
            objects.get(&run.object()).ok_or_else(|| format!("{} does not exist", run.object()))?;
        }
        for run in manifest.content.keyed.iter().chain(&manifest.content.numbered) {
            entries.extend(decode_run(&objects[&run.name.object()]));
        }
        let logged = manifest.content.logged.0 as usize;
        let known = self.entries.len().min(logged);
        if entries.len() != logged || entries[..known] != self.entries[..known] {
            return Err(format!("the runs of {} are not the first {logged} entries", name.object()));
        }
        self.entries.extend(entries.split_off(known));
        if let Some(last) = self.effective.last_mut() {
            last.replaced = Some(clock);
        }
        self.effective.push(Effective { manifest, replaced: None });
        self.counts.manifests += 1;
        Ok(())
    }

    /// Records that an object was deleted.
    pub(super) fn deleted(&mut self, name: &str, clock: u64) -> Result<(), String> {
        let kept: Vec<_> = self.effective.iter().filter(|effective| effective.is_kept(clock)).collect();
        if let Some(number) = name.strip_prefix("log/") {
            let number = LogNumber(number.parse().unwrap());
            if self.log[number.0 as usize - 1].0.header.is_fence {
                return Err(format!("{name} is a fence and was deleted"));
            }
            if let Some(needed) = kept.iter().find(|effective| effective.manifest.start <= number) {
                return Err(format!("{name} was deleted, but {} needs it", needed.manifest.name.object()));
            }
            self.deleted.insert(number);
            self.counts.deleted_log += 1;
        } else if let Some(run) = RunName::of_object(name) {
            if let Some(needed) = kept.iter().find(|effective| effective.lists(run)) {
                return Err(format!("{name} was deleted, but {} lists it", needed.manifest.name.object()));
            }
            self.counts.deleted_runs += 1;
        } else if kept.iter().any(|effective| effective.manifest.name.object() == name) {
            return Err(format!("{name} was deleted, but is kept"));
        }
        Ok(())
    }

    pub(super) fn acknowledge(&mut self, epoch: Epoch, number: LogNumber, entries: &[Entry]) -> Result<(), String> {
        let object = self.log.get(number.0 as usize - 1).ok_or_else(|| format!("object {number} does not exist"))?;
        if object.0.header.epoch != epoch {
            return Err(format!("object {number} was acknowledged in epoch {epoch}, but belongs to another writer"));
        }
        for entry in entries {
            if self.entries.get(entry.sequence.0 as usize - 1) != Some(&entry.payload) {
                return Err(format!(
                    "entry {} was acknowledged in epoch {epoch}, but is not in the log",
                    entry.sequence
                ));
            }
        }
        self.counts.acknowledged += entries.len() as u64;
        Ok(())
    }

    /// Checks that `entries` are the first ones of the log.
    pub(super) fn is_prefix(&mut self, entries: &[Vec<u8>]) -> Result<(), String> {
        self.counts.read += 1;
        if self.entries.len() >= entries.len() && self.entries[..entries.len()] == *entries {
            Ok(())
        } else {
            Err(format!("{} entries that were read are not a prefix of the log", entries.len()))
        }
    }

    /// Checks that whoever does not continue the log follows a number that was used twice.
    pub(super) fn is_ghost(&self, number: LogNumber) -> bool {
        let previous = LogNumber(number.0.saturating_sub(1));
        self.deleted.contains(&number) || self.deleted.contains(&previous)
    }

    /// Checks that the whole log can be read in the end.
    pub(super) fn finish(&self, objects: &BTreeMap<String, Arc<[u8]>>) -> Result<Counts, String> {
        let Some(newest) = self.effective.last() else { return Ok(self.counts) };
        let mut entries = Vec::new();
        for run in newest.manifest.content.keyed.iter().chain(&newest.manifest.content.numbered) {
            let bytes = objects.get(&run.name.object()).ok_or_else(|| format!("{} is lost", run.name.object()))?;
            entries.extend(decode_run(bytes));
        }
        for (object, bytes) in self.log.iter().skip(newest.manifest.start.0 as usize - 1) {
            let name = object.header.number.object();
            if objects.get(&name).map(|found| &**found) != Some(&bytes[..]) {
                return Err(format!("{name} is lost"));
            }
            let new = object.entries.iter().filter(|entry| entry.sequence > newest.manifest.content.logged);
            entries.extend(new.map(|entry| entry.payload.clone()));
        }
        if entries == self.entries { Ok(self.counts) } else { Err("the log has lost entries".to_owned()) }
    }
}
