//! Becoming the writer of a store, and writing to it.

use super::collector::Collection;
use super::error::{FormatError, SharedError};
use super::fence::place_fence;
use super::log::{LogHeader, LogObject, NewObject, Position};
use super::manifest::{Content, Manifest, Past};
use super::names::{Epoch, LogNumber, ManifestName, RunName};
use super::objects::Objects;
use super::place::{Placed, place};
use super::random;
use super::reader::{ATTEMPTS, Reader, Step, find_end, read_manifest};
use super::sweep::Sweep;
use super::witness::Witness;
use crate::wal::{Entry, Sequence};
use node_core::clock::Clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The right to write to a store, before its log was read to the end. Earlier writers can no longer write.
pub struct Claim {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    reader: Reader,
    fence: LogHeader,
    manifest: Option<Manifest>,
    announced: u64,
    recent: VecDeque<Mark>,
    fences: Vec<LogNumber>,
}

/// An object of the log that the runs do not contain completely, or the one before these.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: LogNumber,
    /// The sequence after its last entry.
    end: Sequence,
    sum: u64,
}

impl Mark {
    fn of(header: &LogHeader) -> Self {
        Self { number: header.number, end: header.end(), sum: header.sum() }
    }
}

impl Claim {
    /// Fences all earlier writers by creating the next object of the log with a higher epoch. The clocks of all writers
    /// should show about the same time: differences add to or reduce the time for which objects are kept.
    ///
    /// # Errors
    /// If objects are damaged or of another layout, and [`SharedError::Restless`].
    pub fn acquire(objects: Arc<dyn Objects>, clock: Arc<dyn Clock>) -> Result<Self, SharedError> {
        let writer = random();
        for _ in 0..ATTEMPTS {
            let last = find_end(&*objects)?.map(|end| end.header);
            let Some(fence) = place_fence(&*objects, last, writer, clock.steady_millis())? else { continue };
            let manifest = match fence.manifest {
                Some(name) => {
                    let Some(manifest) = read_manifest(&*objects, name)? else {
                        // The number may have been used before and deleted, so this fence may be in a place that no
                        // one reads. A manifest that needs the number is deleted before it.
                        continue;
                    };
                    Some(manifest)
                }
                // Without a manifest, nothing was ever deleted.
                None => None,
            };
            let before = manifest.as_ref().map(|manifest| Mark {
                number: LogNumber(manifest.start.0.saturating_sub(1)),
                end: Sequence(0),
                sum: manifest.before,
            });
            return Ok(Self {
                reader: Reader::after(Arc::clone(&objects), manifest.as_ref(), fence.number),
                objects,
                // Not before it was announced, and not before any reader opened the one before it.
                announced: clock.steady_millis(),
                clock,
                fence,
                recent: before.into_iter().collect(),
                fences: manifest.as_ref().map_or_else(Vec::new, |manifest| manifest.fences.clone()),
                manifest,
            });
        }
        Err(SharedError::Restless { attempts: ATTEMPTS })
    }

    /// Returns the newest manifest, or `None` if the store was empty.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Returns the epoch of the new writer.
    pub fn epoch(&self) -> Epoch {
        self.fence.epoch
    }

    /// Reads the next object of the log whose entries are not all in the runs of the manifest. Returns `None` after the
    /// last one. The caller must apply all of them before it writes.
    ///
    /// # Errors
    /// [`SharedError::Collected`] if another writer has taken over in the meantime and deleted the object.
    pub fn poll(&mut self) -> Result<Option<Step>, SharedError> {
        if self.reader.position() > self.fence.number {
            return Ok(None);
        }
        let step = self.reader.poll()?.ok_or(SharedError::Collected(self.reader.position()))?;
        let header = step.object.header;
        if self.manifest.as_ref().is_none_or(|manifest| header.number >= manifest.start) {
            self.recent.push_back(Mark::of(&header));
        }
        if header.is_fence && self.fences.last().is_none_or(|last| *last < header.number) {
            self.fences.push(header.number);
        }
        Ok(Some(step))
    }

    /// Like [`Reader::move_to`].
    pub fn move_to(&mut self, position: Position) {
        self.reader.move_to(position);
    }

    /// Returns the writer. Reads what is left of the log. If the store was empty, creates its first manifest, which
    /// lists no runs.
    ///
    /// # Errors
    /// Those of [`poll`](Self::poll), and [`SharedError::Fenced`].
    pub fn into_writer(mut self) -> Result<Writer, SharedError> {
        while self.poll()?.is_some() {}
        let Self { objects, clock, fence, manifest, announced, recent, fences, .. } = self;
        if recent.back().is_none_or(|last| last.sum != fence.sum()) {
            return Err(SharedError::Discontinuous(fence.number));
        }
        let state = |manifest: &Manifest| (manifest.history.clone(), manifest.dropped.clone(), manifest.boundary);
        // In a new store, the objects up to the one that announces the first manifest are never deleted.
        let empty = || (Vec::new(), Vec::new(), fence.number.next().next());
        let (history, dropped, boundary) = manifest.as_ref().map_or_else(empty, state);
        let mut writer = Writer {
            objects,
            clock,
            epoch: fence.epoch,
            writer: fence.writer,
            fence,
            last: fence,
            drafted: LogNumber(0),
            manifest: None,
            announced,
            recent,
            history,
            dropped,
            boundary,
            fences,
            unfinished: None,
            fenced: None,
        };
        writer.fences.retain(|fence| *fence >= boundary);
        match manifest {
            Some(manifest) => writer.manifest = Some(manifest),
            None => {
                let draft = writer.draft(Content::default())?;
                let uploaded = draft.upload(&*writer.objects)?;
                writer.announce(uploaded)?;
            }
        }
        Ok(writer)
    }
}

/// The writer of a store: adds to its log, and replaces its manifest.
pub struct Writer {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    epoch: Epoch,
    writer: u64,
    /// The first object of this epoch.
    fence: LogHeader,
    /// The last object of the log.
    last: LogHeader,
    /// The position of the newest draft. Each draft has a different name.
    drafted: LogNumber,
    /// The newest announced manifest. `None` only until a new store has one.
    manifest: Option<Manifest>,
    /// A time at or after its announcement.
    announced: u64,
    /// The object before its start, and all objects since.
    recent: VecDeque<Mark>,
    history: Vec<Past>,
    dropped: Vec<(RunName, ManifestName)>,
    boundary: LogNumber,
    /// The fences from `boundary` on.
    fences: Vec<LogNumber>,
    /// An object whose creation was begun. Nothing else may be created until its outcome is known.
    unfinished: Option<Unfinished>,
    /// The epoch of the writer that took over.
    fenced: Option<Option<Epoch>>,
}

#[derive(Debug)]
struct Unfinished {
    header: LogHeader,
    bytes: Vec<u8>,
    announces: Option<Manifest>,
}

/// A manifest that is not in the store yet.
#[derive(Clone, Debug)]
pub struct Draft {
    manifest: Manifest,
}

/// A manifest that is in the store, but not announced yet.
#[derive(Clone, Debug)]
pub struct Uploaded {
    manifest: Manifest,
}

impl Draft {
    /// Uploads the manifest. The runs that it lists must have been uploaded. Other threads may write to the log in the
    /// meantime.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn upload(&self, objects: &dyn Objects) -> Result<Uploaded, SharedError> {
        let name = self.manifest.name;
        let is_intact = |bytes: &[u8]| Manifest::decode(name, bytes).is_ok();
        match place(objects, &name.object(), &self.manifest.encode(), is_intact)? {
            Placed::Ours => Ok(Uploaded { manifest: self.manifest.clone() }),
            _ => Err(FormatError::Misplaced { name: name.object() }.into()),
        }
    }
}

impl Writer {
    /// Returns the epoch of this writer, which the names of its runs contain.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns what shows that the store is still there.
    pub fn witness(&self) -> Witness {
        Witness(self.fence)
    }

    /// Returns the last entry in the store.
    pub fn last(&self) -> Sequence {
        self.last.end().previous()
    }

    /// Checks that the last object of the log is still there: if it is not, the store is an older copy of this one.
    ///
    /// # Errors
    /// [`SharedError::Vanished`] if it is not, and if the medium fails.
    pub fn check_last(&self) -> Result<(), SharedError> {
        let number = self.last.number;
        match self.objects.size(&number.object())? {
            Some(_) => Ok(()),
            None => Err(SharedError::Vanished(number)),
        }
    }

    /// Returns the position after the last object of the log.
    pub fn position(&self) -> Position {
        self.last.position()
    }

    /// Returns the newest manifest.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Adds entries to the log in one object. When this returns, they are durable, and no other writer had taken over
    /// before. Entries that are already in the store are skipped, so that a failed call can be repeated. Without
    /// entries, adds an object that shows readers that the writer is alive.
    ///
    /// # Errors
    /// [`SharedError::Fenced`] if another writer has taken over, for this and all later calls. After another error, it
    /// is unknown whether the entries are in the store until a later call succeeds.
    pub fn commit(&mut self, entries: &[Entry]) -> Result<LogNumber, SharedError> {
        self.settle()?;
        let end = self.last.end();
        let new = &entries[entries.partition_point(|entry| entry.sequence < end)..];
        if new.is_empty() && !entries.is_empty() {
            return Ok(self.last.number);
        }
        let mut expected = end;
        for entry in new {
            if entry.sequence != expected {
                return Err(SharedError::Gap { last: expected.previous(), found: entry.sequence });
            }
            expected = expected.next();
        }
        self.add(new, end, None)
    }

    /// Returns whether a server waits for a pause in which it can become the writer. Whoever commits without pauses should
    /// then make one, and [`refuse_claim`](Self::refuse_claim) if it is still the writer afterwards.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn is_claimed(&self) -> Result<bool, SharedError> {
        Ok(self.objects.size(&self.epoch.claim())?.is_some())
    }

    /// Returns whether another server has created the next object of the log.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn was_followed(&self) -> Result<bool, SharedError> {
        Ok(self.objects.size(&self.last.number.next().object())?.is_some())
    }

    /// Forgets that a server wanted to become the writer. It may no longer exist, and otherwise asks again.
    ///
    /// # Errors
    /// If the medium fails.
    pub fn refuse_claim(&self) -> Result<(), SharedError> {
        Ok(self.objects.delete(&self.epoch.claim())?)
    }

    /// Prepares a manifest. The runs in `content` that are not in the newest manifest must have been uploaded by this
    /// writer. If [`Content::logged`] is after the last entry in the store, the entries between are only in runs; then
    /// nothing may be committed before the draft is announced.
    ///
    /// # Errors
    /// [`SharedError::Behind`], [`SharedError::ForeignRun`], and those of [`commit`](Self::commit), which this may call.
    pub fn draft(&mut self, content: Content) -> Result<Draft, SharedError> {
        self.settle()?;
        if self.last.number <= self.drafted {
            self.add(&[], self.last.end(), None)?;
        }
        let stored = self.manifest.as_ref().map_or(Sequence(0), |manifest| manifest.content.logged);
        if content.logged < stored {
            return Err(SharedError::Behind { stored, found: content.logged });
        }
        let listed: Vec<_> = self.manifest.iter().flat_map(|manifest| manifest.content.runs()).collect();
        let is_dropped = |run: &RunName| self.dropped.iter().any(|(dropped, _)| dropped == run);
        let is_own = |run: &RunName| listed.contains(run) || run.epoch == self.epoch && !is_dropped(run);
        if let Some(run) = content.runs().find(|run| !is_own(run)) {
            return Err(SharedError::ForeignRun(run));
        }
        let position = self.last.number;
        let through = self.recent.partition_point(|mark| mark.end <= content.logged.next());
        let (start, before) = match self.recent.get(through.saturating_sub(1)) {
            Some(mark) => (mark.number.next(), mark.sum),
            None => (position.next(), self.last.sum()),
        };
        let (mut history, mut dropped) = (self.history.clone(), self.dropped.clone());
        if let Some(manifest) = &self.manifest {
            history.push(self.past(manifest));
            dropped.extend(dropped_by(manifest, &content));
        }
        self.drafted = position;
        let name = ManifestName { position, epoch: self.epoch };
        let (boundary, fences) = (self.boundary, self.fences.clone());
        Ok(Draft { manifest: Manifest { name, content, start, before, dropped, history, boundary, fences } })
    }

    /// Makes an uploaded manifest the newest one, by adding an object without entries to the log.
    ///
    /// # Errors
    /// [`SharedError::Behind`] if a later one was announced in the meantime, [`SharedError::Gap`] if the draft did not
    /// allow the entries that were committed in the meantime, and those of [`commit`](Self::commit).
    pub fn announce(&mut self, uploaded: Uploaded) -> Result<LogNumber, SharedError> {
        self.settle()?;
        let Uploaded { manifest } = uploaded;
        let newest = self.manifest.as_ref().map(|newest| newest.name);
        if newest == Some(manifest.name) {
            return Ok(self.last.number);
        }
        let logged = manifest.content.logged;
        if newest != manifest.history.last().map(|past| past.name) {
            let stored = self.manifest.as_ref().map_or(Sequence(0), |manifest| manifest.content.logged);
            return Err(SharedError::Behind { stored, found: logged });
        }
        let end = self.last.end();
        let skips = logged >= end;
        if skips && self.last.number != manifest.name.position {
            return Err(SharedError::Gap { last: end.previous(), found: logged });
        }
        let first = if skips { logged.next() } else { end };
        self.add(&[], first, Some(manifest))
    }

    /// Returns what is no longer needed by readers of a manifest that was the newest one within the last `keep_for`.
    pub fn collection(&self, keep_for: Duration) -> Collection {
        let now = self.clock.steady_millis();
        let keep_for = u64::try_from(keep_for.as_millis()).unwrap_or(u64::MAX);
        let replaced = self.history.iter().skip(1).map(|past| past.announced).chain([self.announced]);
        let is_expired = |replaced: u64| now >= replaced.saturating_add(keep_for);
        let expired = replaced.take_while(|replaced| is_expired(*replaced)).count().min(self.history.len());
        let (expired, kept) = self.history.split_at(expired);
        let newest = self.manifest.as_ref().map(|manifest| (manifest.name, manifest.start));
        let kept: Vec<_> = kept.iter().map(|past| (past.name, past.start)).chain(newest).collect();
        let boundary = kept.iter().map(|(_, start)| *start).min().unwrap_or_default().max(self.boundary);
        let oldest = kept.iter().map(|(name, _)| *name).min();
        let is_droppable = |last: ManifestName| oldest.is_some_and(|oldest| last < oldest);
        Collection {
            manifests: expired.iter().map(|past| past.name).collect(),
            log: self.boundary..boundary,
            fences: self.fences.iter().copied().filter(|fence| *fence < boundary).collect(),
            runs: self.dropped.iter().filter(|(_, last)| is_droppable(*last)).map(|(run, _)| *run).collect(),
        }
    }

    /// Records that everything in `collection` was deleted. The next manifest contains it.
    pub fn collected(&mut self, collection: &Collection) {
        self.history.retain(|past| !collection.manifests.contains(&past.name));
        self.dropped.retain(|(run, _)| !collection.runs.contains(run));
        self.boundary = self.boundary.max(collection.log.end);
        self.fences.retain(|fence| *fence >= self.boundary);
    }

    /// Returns how to recognize what earlier writers left without ever listing it.
    pub fn sweep(&self) -> Sweep {
        Sweep {
            epoch: self.epoch,
            newest: self.manifest.as_ref().map(|manifest| manifest.name),
            manifests: self.history.iter().map(|past| past.name).collect(),
            runs: {
                let listed = self.manifest.iter().flat_map(|manifest| manifest.content.runs());
                listed.chain(self.dropped.iter().map(|(run, _)| *run)).collect()
            },
        }
    }

    fn past(&self, manifest: &Manifest) -> Past {
        Past { name: manifest.name, start: manifest.start, announced: self.announced }
    }

    /// Adds an object to the log.
    fn add(
        &mut self,
        entries: &[Entry],
        first: Sequence,
        announces: Option<Manifest>,
    ) -> Result<LogNumber, SharedError> {
        let new = NewObject {
            number: self.last.number.next(),
            epoch: self.epoch,
            writer: self.writer,
            previous: self.last.sum(),
            manifest: announces.as_ref().map_or(self.last.manifest, |manifest| Some(manifest.name)),
            time: self.clock.steady_millis().max(self.last.time),
            first,
            is_fence: false,
        };
        let bytes = new.encode(entries.iter().map(|entry| &*entry.payload));
        let header = LogHeader::decode(new.number, &bytes)?;
        self.unfinished = Some(Unfinished { header, bytes, announces });
        self.settle()?;
        Ok(self.last.number)
    }

    /// Completes the object whose creation was begun.
    fn settle(&mut self) -> Result<(), SharedError> {
        if let Some(by) = self.fenced {
            return Err(SharedError::Fenced { by });
        }
        let Some(Unfinished { header, bytes, .. }) = &self.unfinished else { return Ok(()) };
        let number = header.number;
        let is_intact = |bytes: &[u8]| LogObject::decode(number, bytes).is_ok();
        match place(&*self.objects, &number.object(), bytes, is_intact)? {
            Placed::Ours => {
                self.finish();
                Ok(())
            }
            Placed::Theirs(bytes) => {
                let theirs = LogHeader::decode(number, &bytes)?;
                if theirs.epoch <= self.epoch {
                    return Err(SharedError::Discontinuous(number));
                }
                self.fence(Some(theirs.epoch))
            }
            // Created by an attempt whose answer was lost, and deleted by a later writer since.
            Placed::Gone => self.fence(None),
        }
    }

    fn fence(&mut self, by: Option<Epoch>) -> Result<(), SharedError> {
        self.unfinished = None;
        self.fenced = Some(by);
        Err(SharedError::Fenced { by })
    }

    fn finish(&mut self) {
        let Some(Unfinished { header, announces, .. }) = self.unfinished.take() else { return };
        self.last = header;
        self.recent.push_back(Mark::of(&header));
        let Some(manifest) = announces else { return };
        if let Some(old) = self.manifest.take() {
            self.history.push(self.past(&old));
            self.dropped.extend(dropped_by(&old, &manifest.content));
        }
        while self.recent.get(1).is_some_and(|second| second.number < manifest.start) {
            self.recent.pop_front();
        }
        self.announced = self.clock.steady_millis().max(header.time);
        self.manifest = Some(manifest);
    }
}

/// Returns the runs of `manifest` that `content` does not list.
fn dropped_by(manifest: &Manifest, content: &Content) -> Vec<(RunName, ManifestName)> {
    let kept: Vec<_> = content.runs().collect();
    manifest.content.runs().filter(|run| !kept.contains(run)).map(|run| (run, manifest.name)).collect()
}
