//! Following a store.

use super::error::{FormatError, SharedError};
use super::log::{LogHeader, LogObject, Position};
use super::manifest::Manifest;
use super::names::{Epoch, LOG, LogNumber, MANIFESTS, ManifestName};
use super::objects::{Objects, ObjectsError};
use super::place::fetch;
use crate::wal::Sequence;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of attempts to find the end of a log whose older objects are deleted in the meantime.
pub(super) const ATTEMPTS: usize = 20;

/// Maximum number of objects of the log that are read at the same time.
const AHEAD: usize = 32;

/// Number of polls without a new object after which the reader checks that the object is not merely deleted.
const CONFIRM_EVERY: u32 = 16;

/// Number of polls without a new object after which the reader lists what follows, because the object may be missing in the
/// middle of the log: first soon after the writer should have shown that it is alive, then rarely.
const SEARCH_FIRST: u32 = 128;
const SEARCH_EVERY: u32 = 1024;

/// Follows the log of a store from its newest manifest. Needs no write permission, and lists only when it is opened, and
/// rarely while there is nothing new.
///
/// The caller applies the entries of each object in order. When an object announces a manifest, the caller may replace
/// the entries up to [`Content::logged`](super::Content::logged) by its runs; runs that it no longer lists are deleted
/// some time later.
#[derive(Debug)]
pub struct Reader {
    objects: Arc<dyn Objects>,
    next: LogNumber,
    /// The checksum of the object before `next`.
    previous: u64,
    /// The first object that the manifest needs with which the reader was opened. Those before it may be deleted.
    start: LogNumber,
    /// The last object that is known to have existed.
    end: LogNumber,
    /// The epoch of the object before `next`, and the sequence after it. `None` if it was not read.
    read: Option<(Epoch, Sequence)>,
    /// Entries up to this one are in the runs of the manifest with which the reader was opened.
    logged: Sequence,
    /// The newest manifest that is known. It is deleted before any object of the log from `next` on.
    witness: Option<ManifestName>,
    /// The newest manifest before the object `next`. `None` also if it is not known.
    manifest: Option<ManifestName>,
    fetched: VecDeque<Vec<u8>>,
    /// Number of objects to fetch next.
    ahead: usize,
    /// Number of polls without a new object.
    idle: u32,
}

/// An object of the log, with what it means to a reader.
#[derive(Clone, Debug)]
pub struct Step {
    /// The object, without entries that are in the runs of the manifest with which the reader was opened.
    pub object: LogObject,
    /// The manifest that the object announces.
    pub announced: Option<ManifestName>,
    /// Whether entries between this object and the one before it exist only in the runs of the announced manifest.
    pub skips: bool,
}

impl Reader {
    /// Opens the store at its newest manifest, which is returned. Returns `None` if it has none yet.
    ///
    /// # Errors
    /// If objects are missing, damaged or of another layout, and [`SharedError::Restless`].
    pub fn open(objects: Arc<dyn Objects>) -> Result<Option<(Self, Manifest)>, SharedError> {
        let Some(End { manifest: Some(manifest), newest, .. }) = find_end(&*objects)? else { return Ok(None) };
        Ok(Some((Self::after(objects, Some(&manifest), newest), manifest)))
    }

    /// Returns a reader of the entries that are not in the runs of `manifest`; from the beginning if there is none. The log
    /// is known to have had the object `end`.
    pub(super) fn after(objects: Arc<dyn Objects>, manifest: Option<&Manifest>, end: LogNumber) -> Self {
        let start = manifest.map_or(LogNumber(1), |manifest| manifest.start);
        Self {
            objects,
            next: start,
            start,
            end,
            previous: manifest.map_or(0, |manifest| manifest.before),
            read: None,
            logged: manifest.map_or(Sequence(0), |manifest| manifest.content.logged),
            witness: manifest.map(|manifest| manifest.name),
            manifest: manifest.map(|manifest| manifest.name),
            fetched: VecDeque::new(),
            ahead: 1,
            idle: 0,
        }
    }

    /// Continues after `position`, which may be before the objects that the manifest needs. Nothing may have been read.
    /// [`poll`](Self::poll) fails with [`SharedError::Discontinuous`] if the log does not continue this position. The manifest
    /// that the first object announces may also have been announced before.
    pub fn move_to(&mut self, position: Position) {
        self.next = position.number.next();
        self.previous = position.sum;
        self.read = None;
        self.logged = position.last;
        self.manifest = None;
        self.fetched.clear();
    }

    /// Returns the number of the object that is read next.
    pub fn position(&self) -> LogNumber {
        self.next
    }

    /// Returns whether everything was read that was in the log when the store was opened. A writer may add to it faster
    /// than it can be read.
    pub fn has_caught_up(&self) -> bool {
        self.next > self.end
    }

    /// Reads the next object of the log. Returns `None` if it does not exist yet.
    ///
    /// # Errors
    /// [`SharedError::Collected`] if it was deleted, which is checked at every 16th poll without an object (and by
    /// [`confirm`](Self::confirm)), [`SharedError::Discontinuous`] if it does not continue the log, and
    /// [`SharedError::Missing`] if it does not exist although later ones do. Objects that appear after the reader was opened
    /// are noticed to be later ones after 128 polls without an object. In all these cases the store must be opened again.
    pub fn poll(&mut self) -> Result<Option<Step>, SharedError> {
        if self.fetched.is_empty() {
            self.fetch()?;
        }
        let Some(bytes) = self.fetched.pop_front() else {
            self.wait()?;
            return Ok(None);
        };
        let step = self.decode(&bytes).and_then(|object| self.accept(object));
        if step.is_err() {
            self.fetched.clear();
        }
        step.map(Some)
    }

    /// Fails if the next object, which does not exist, did exist, or should.
    fn wait(&mut self) -> Result<(), SharedError> {
        if self.next < self.start && self.next <= self.end {
            return Err(SharedError::Collected(self.next));
        }
        if self.next <= self.end {
            self.confirm()?;
            return Err(SharedError::Missing { object: self.next.object(), found: self.end.object() });
        }
        self.idle = self.idle.saturating_add(1);
        if self.idle.is_multiple_of(CONFIRM_EVERY) {
            self.confirm()?;
        }
        if self.idle == SEARCH_FIRST || self.idle.is_multiple_of(SEARCH_EVERY) {
            // If one is found, the next poll fails, unless the object exists by then.
            self.end = self.end.max(last_listed(&*self.objects, self.next)?.unwrap_or_default());
        }
        Ok(())
    }

    /// Checks that the store still has what this reader needs next: if the next object does not exist, it was not
    /// deleted.
    ///
    /// # Errors
    /// [`SharedError::Collected`] if it may have been deleted.
    pub fn confirm(&self) -> Result<(), SharedError> {
        match self.witness {
            Some(witness) if self.objects.size(&witness.object())?.is_none() => Err(SharedError::Collected(self.next)),
            _ => Ok(()),
        }
    }

    /// Reads a manifest that an object announced.
    ///
    /// # Errors
    /// [`SharedError::Collected`] if it was deleted.
    pub fn manifest(&self, name: ManifestName) -> Result<Manifest, SharedError> {
        read_manifest(&*self.objects, name)?.ok_or(SharedError::Collected(self.next))
    }

    fn fetch(&mut self) -> Result<(), ObjectsError> {
        let names: Vec<_> = (0..self.ahead as u64).map(|index| LogNumber(self.next.0 + index).object()).collect();
        let found = match &names[..] {
            [name] => vec![self.objects.get(name)?],
            names => self.objects.get_many(names)?,
        };
        self.fetched = found.into_iter().map_while(|bytes| bytes).collect();
        // Whoever is at the end reads one object at a time.
        self.ahead = if self.fetched.len() == self.ahead { (2 * self.ahead).min(AHEAD) } else { 1 };
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Result<LogObject, SharedError> {
        let number = self.next;
        match LogObject::decode(number, bytes) {
            // The read may have been torn.
            Err(FormatError::Damaged { .. }) => {
                let again = fetch(&*self.objects, &number.object(), |bytes| LogObject::decode(number, bytes))?;
                again.ok_or(SharedError::Collected(number))
            }
            decoded => Ok(decoded?),
        }
    }

    fn accept(&mut self, mut object: LogObject) -> Result<Step, SharedError> {
        let header = object.header;
        let announced = header.manifest.filter(|name| self.manifest.is_none_or(|known| *name > known));
        let (epoch_continues, expected) = match self.read {
            Some((epoch, end)) if header.is_fence => (header.epoch > epoch, end),
            Some((epoch, end)) => (header.epoch == epoch, end),
            // The first entries may be in the runs of the manifest.
            None => (true, self.logged.next().min(header.first)),
        };
        let skips = announced.is_some() && header.count == 0 && header.first > expected;
        let continues = header.previous == self.previous && epoch_continues && (header.first == expected || skips);
        if !continues {
            return Err(SharedError::Discontinuous(self.next));
        }
        object.entries.retain(|entry| entry.sequence > self.logged);
        self.idle = 0;
        self.next = self.next.next();
        self.previous = header.sum();
        self.read = Some((header.epoch, header.end()));
        self.manifest = self.manifest.max(header.manifest);
        self.witness = self.witness.max(header.manifest);
        Ok(Step { object, announced, skips })
    }
}

/// The end of a log.
pub(super) struct End {
    /// The last object.
    pub(super) header: LogHeader,
    /// The newest manifest. `None` if no writer has written one yet.
    pub(super) manifest: Option<Manifest>,
    /// The last object that is known to exist: that of `header`, or one that was created in the meantime.
    pub(super) newest: LogNumber,
}

/// Finds the end of the log, or `None` if there is no log.
///
/// Listings are only a hint of where to search. The object found is the last one if the next one does not exist and the
/// newest manifest according to it exists afterwards. If a later object is listed nevertheless, the next one is missing: it
/// must have existed, and was not deleted before that manifest.
pub(super) fn find_end(objects: &dyn Objects) -> Result<Option<End>, SharedError> {
    let mut dangling = [None; 2];
    for _ in 0..ATTEMPTS {
        let listed = listed(objects)?;
        let last = last_after(objects, &listed)?;
        let number = last.map_or(LogNumber(0), |last| last.number);
        let newest = last_listed(objects, number)?.unwrap_or(number);
        let next = number.next();
        let check_next = |found| match objects.size(&next.object())? {
            None => Err(SharedError::Missing { object: next.object(), found }),
            Some(_) => Ok(()),
        };
        let Some(header) = last else {
            // The first object is never deleted.
            match listed.last() {
                _ if newest > number => check_next(newest.object())?,
                Some(manifest) => check_next(manifest.object())?,
                None => return Ok(None),
            }
            continue;
        };
        let checked = if newest > next { check_next(newest.object()) } else { Ok(()) };
        let manifest = match header.manifest {
            None => None,
            Some(name) => match read_manifest(objects, name)? {
                Some(manifest) => Some(manifest),
                None => {
                    dangling = [dangling[1], Some((name, number))];
                    continue;
                }
            },
        };
        checked?;
        return Ok(Some(End { header, manifest, newest }));
    }
    match dangling {
        [before, Some((name, number))] if before == dangling[1] => {
            Err(SharedError::Missing { object: name.object(), found: number.object() })
        }
        _ => Err(SharedError::Restless { attempts: ATTEMPTS }),
    }
}

pub(super) fn read_manifest(objects: &dyn Objects, name: ManifestName) -> Result<Option<Manifest>, SharedError> {
    fetch(objects, &name.object(), |bytes| Manifest::decode(name, bytes))
}

/// Returns the listed manifests, the oldest first.
fn listed(objects: &dyn Objects) -> Result<Vec<ManifestName>, ObjectsError> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = objects.list(MANIFESTS, after.as_deref())?;
        names.extend(page.iter().filter_map(|object| ManifestName::of_object(object)));
        let Some(last) = page.into_iter().next_back() else { return Ok(names) };
        after = Some(last);
    }
}

/// Returns the last object on the page of a listing of the log after `number`, or `None` if none is listed.
fn last_listed(objects: &dyn Objects, number: LogNumber) -> Result<Option<LogNumber>, ObjectsError> {
    let page = objects.list(LOG, Some(&number.object()))?;
    Ok(page.iter().rev().find_map(|object| LogNumber::of_object(object)))
}

/// Returns the last object of the log, found from the newest listed manifest after which there is one. The object after
/// the position of a manifest exists once the manifest is announced, and as long as it is kept.
fn last_after(objects: &dyn Objects, manifests: &[ManifestName]) -> Result<Option<LogHeader>, SharedError> {
    for manifest in manifests.iter().rev() {
        if let Some(last) = last_from(objects, manifest.position.next())? {
            return Ok(Some(last));
        }
    }
    last_from(objects, LogNumber(1))
}

/// Returns the last object of the log, at least number `from`, or `None` if that does not exist. The log has no gaps.
pub(super) fn last_from(objects: &dyn Objects, from: LogNumber) -> Result<Option<LogHeader>, SharedError> {
    let Some(mut last) = header(objects, from)? else { return Ok(None) };
    let mut step = 1;
    let mut missing = loop {
        let number = LogNumber(last.number.0.saturating_add(step));
        match header(objects, number)? {
            Some(found) => last = found,
            None => break number,
        }
        step *= 2;
    };
    while missing.0 - last.number.0 > 1 {
        let middle = LogNumber(last.number.0.midpoint(missing.0));
        match header(objects, middle)? {
            Some(found) => last = found,
            None => missing = middle,
        }
    }
    Ok(Some(last))
}

pub(super) fn header(objects: &dyn Objects, number: LogNumber) -> Result<Option<LogHeader>, SharedError> {
    let bytes = objects.read_range(&number.object(), 0..LogHeader::SIZE as u64)?;
    Ok(bytes.map(|bytes| LogHeader::decode(number, &bytes)).transpose()?)
}
