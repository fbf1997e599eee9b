//! Writers and readers.

use super::world::Medium;
use crate::shared::tests::media::file;
use crate::shared::{Cancel, RetryPolicy, Retrying};
use crate::shared::{Claim, Content, Manifest, Objects, Reader, RunName, SharedError, SharedRun, Step, Writer};
use crate::wal::{Entry, Sequence};
use std::sync::Arc;
use std::time::Duration;

/// Encodes a run, which consists of payloads.
fn encode_run(entries: &[Vec<u8>]) -> Vec<u8> {
    entries.iter().flat_map(|entry| [&[entry.len() as u8], &entry[..]].concat()).collect()
}

pub(super) fn decode_run(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (entry, rest) = rest.split_at(usize::from(*length));
        entries.push(entry.to_vec());
        bytes = rest;
    }
    entries
}

/// Reads the entries in the runs of a manifest. `None` if a run was deleted.
fn read_runs(objects: &dyn Objects, manifest: &Manifest) -> Result<Option<Vec<Vec<u8>>>, SharedError> {
    let mut entries = Vec::new();
    for run in manifest.content.keyed.iter().chain(&manifest.content.numbered) {
        let Some(bytes) = objects.read_range(&run.name.object(), 0..run.size)? else { return Ok(None) };
        entries.extend(decode_run(&bytes));
    }
    Ok(Some(entries))
}

/// Returns the objects of an actor. Some processes repeat operations that failed, and some report each failure.
fn objects(medium: &Arc<Medium>) -> Arc<dyn Objects> {
    let deadline = if medium.below(2) == 0 { Duration::ZERO } else { Duration::from_secs(600) };
    let policy = RetryPolicy { first: Duration::ZERO, longest: Duration::ZERO, deadline };
    Arc::new(Retrying::new(Arc::clone(medium) as Arc<dyn Objects>, policy, Arc::new(Cancel::default())))
}

/// A writer with what it knows of the log.
struct Process {
    objects: Arc<dyn Objects>,
    writer: Writer,
    entries: Vec<Vec<u8>>,
    /// The runs in the newest manifest, with the number of entries in each.
    runs: Vec<(SharedRun, usize)>,
    next_run: u64,
}

/// Is a writer again and again.
pub(super) fn write(medium: &Arc<Medium>) {
    let mut number = 0;
    while !medium.is_ending() {
        // Errors are those of the medium, or that another writer was faster.
        let Ok(Some(mut process)) = begin(medium) else { continue };
        while !medium.is_ending() && process.act(medium, &mut number).is_ok() {}
    }
}

fn begin(medium: &Arc<Medium>) -> Result<Option<Process>, SharedError> {
    let objects = objects(medium);
    let mut claim = Claim::acquire(Arc::clone(&objects), Arc::clone(medium) as _)?;
    let mut entries = Vec::new();
    let mut runs = Vec::new();
    if let Some(manifest) = claim.manifest() {
        for run in &manifest.content.keyed {
            let Some(bytes) = objects.read_range(&run.name.object(), 0..run.size)? else { return Ok(None) };
            let read = decode_run(&bytes);
            runs.push((run.clone(), read.len()));
            entries.extend(read);
        }
    }
    while let Some(step) = claim.poll()? {
        if step.skips {
            let Some(name) = step.announced else { return Ok(None) };
            medium.check(|_, _| Err(format!("{} skips entries after its start", name.object())));
        }
        entries.extend(step.object.entries.into_iter().map(|entry| entry.payload));
    }
    medium.check(|oracle, _| oracle.is_prefix(&entries));
    let writer = claim.into_writer()?;
    Ok(Some(Process { objects, writer, entries, runs, next_run: 1 }))
}

impl Process {
    /// Does one of the things that a writer does. Fails if the process ends.
    fn act(&mut self, medium: &Medium, number: &mut u64) -> Result<(), SharedError> {
        match medium.below(40) {
            0..18 => {
                for _ in 0..medium.below(4) {
                    self.entries.push(format!("{}-{number}", medium.actor).into_bytes());
                    *number += 1;
                }
                self.commit(medium)
            }
            18..28 => self.publish(medium, number),
            28..37 => {
                let collection = self.writer.collection(Duration::from_millis(medium.keep()));
                // An interrupted collection is run again.
                collection.run(&*self.objects)?;
                medium.delete_fences(collection.log.clone());
                self.writer.collected(&collection);
                Ok(())
            }
            37 => self.writer.sweep().run(&*self.objects).map(drop),
            38 if self.writer.is_claimed()? => self.writer.refuse_claim(),
            38 => Ok(()),
            // The process is killed.
            _ => Err(SharedError::Fenced { by: None }),
        }
    }

    fn entries(&self, from: Sequence, through: usize) -> Vec<Entry> {
        let from = from.0 as usize;
        let numbered = (from..through).map(|index| (index, &self.entries[index]));
        numbered
            .map(|(index, payload)| Entry { sequence: Sequence(index as u64 + 1), payload: payload.clone() })
            .collect()
    }

    fn commit(&mut self, medium: &Medium) -> Result<(), SharedError> {
        let new = self.entries(self.writer.last(), self.entries.len());
        for _ in 0..3 {
            match self.writer.commit(&new) {
                Ok(number) => {
                    medium.acknowledge(self.writer.epoch(), number, &new);
                    return Ok(());
                }
                Err(SharedError::Objects(_)) => {}
                Err(error) => return self.stop(medium, error),
            }
        }
        // It may be in the store or not. The next commit finishes it.
        Ok(())
    }

    fn stop(&self, medium: &Medium, error: SharedError) -> Result<(), SharedError> {
        if !matches!(error, SharedError::Fenced { .. } | SharedError::Objects(_)) {
            medium.check(|_, _| Err(format!("the writer fails: {error}")));
        }
        Err(error)
    }

    /// Moves entries to a run, or merges two runs, and publishes that.
    fn publish(&mut self, medium: &Medium, number: &mut u64) -> Result<(), SharedError> {
        let logged: usize = self.runs.iter().map(|(_, count)| count).sum();
        let last = self.writer.last().0 as usize;
        let mut runs = self.runs.clone();
        if runs.len() > 1 && medium.below(2) == 0 {
            let at = medium.below(runs.len() as u64 - 1) as usize;
            let start: usize = runs[..at].iter().map(|(_, count)| count).sum();
            let count = runs[at].1 + runs[at + 1].1;
            let run = self.upload(start, count)?;
            runs.splice(at..at + 2, [(run, count)]);
        } else if last > logged {
            let count = 1 + medium.below((last - logged) as u64) as usize;
            runs.push((self.upload(logged, count)?, count));
        } else if medium.below(4) == 0 && self.entries.len() == last {
            // Entries that were never in the log, such as those of an import.
            for _ in 0..3 {
                self.entries.push(format!("{}-{number}", medium.actor).into_bytes());
                *number += 1;
            }
            runs.push((self.upload(logged, 3)?, 3));
        }
        let through = runs.iter().map(|(_, count)| *count as u64).sum();
        let keyed = runs.iter().map(|(run, _)| run.clone()).collect();
        let content = Content { logged: Sequence(through), keyed, ..Content::default() };
        let draft = match self.writer.draft(content) {
            Ok(draft) => draft,
            Err(error) => return self.stop(medium, error),
        };
        let uploaded = draft.upload(&*self.objects)?;
        if medium.below(2) == 0 && through <= self.writer.last().0 {
            self.commit(medium)?;
        }
        match self.writer.announce(uploaded) {
            Ok(_) => {
                self.runs = runs;
                Ok(())
            }
            Err(error) => self.stop(medium, error),
        }
    }

    fn upload(&mut self, start: usize, count: usize) -> Result<SharedRun, SharedError> {
        let bytes = encode_run(&self.entries[start..start + count]);
        let name = RunName { epoch: self.writer.epoch(), id: self.next_run };
        self.next_run += 1;
        self.objects.upload(&name.object(), &*file(&bytes))?;
        Ok(SharedRun { name, size: bytes.len() as u64, limit: 0, ending: [][..].into() })
    }
}

/// Is a reader again and again.
pub(super) fn read(medium: &Arc<Medium>) {
    while !medium.is_ending() {
        // Errors are those of the medium, or that the reader was too slow.
        let _ = follow(medium);
    }
}

fn follow(medium: &Arc<Medium>) -> Result<(), SharedError> {
    let objects = objects(medium);
    let Some((mut reader, manifest)) = Reader::open(Arc::clone(&objects))? else { return Ok(()) };
    let Some(mut entries) = read_runs(&*objects, &manifest)? else { return Ok(()) };
    medium.check(|oracle, _| oracle.is_prefix(&entries));
    while !medium.is_ending() && medium.below(100) > 0 {
        let position = reader.position();
        match reader.poll() {
            Ok(None) => {}
            Ok(Some(step)) => {
                if !apply(medium, &*objects, &reader, step, &mut entries)? {
                    return Ok(());
                }
            }
            Err(SharedError::Discontinuous(number)) => {
                medium.check(|oracle, _| {
                    let twice = oracle.is_ghost(number) && number == position;
                    if twice { Ok(()) } else { Err(format!("object {number} does not continue the log")) }
                });
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Applies an object. Returns whether the reader can continue.
fn apply(
    medium: &Medium,
    objects: &dyn Objects,
    reader: &Reader,
    step: Step,
    entries: &mut Vec<Vec<u8>>,
) -> Result<bool, SharedError> {
    entries.extend(step.object.entries.into_iter().map(|entry| entry.payload));
    if let Some(name) = step.announced
        && (step.skips || medium.below(2) == 0)
    {
        let manifest = reader.manifest(name)?;
        let Some(mut runs) = read_runs(objects, &manifest)? else { return Ok(false) };
        if runs.len() < entries.len() {
            runs.extend(entries.split_off(runs.len()));
        }
        *entries = runs;
    }
    medium.check(|oracle, _| oracle.is_prefix(entries));
    Ok(true)
}
