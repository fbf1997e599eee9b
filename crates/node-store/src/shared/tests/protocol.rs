//! Single cases of the protocol.

use super::media::file;
use crate::files::{MemoryFolder, Object};
use crate::runs::{Run, RunId, RunWriter, RunsShared};
use crate::shared::fence::place_fence;
use crate::shared::reader::find_end;
use crate::shared::*;
use crate::wal::{Entry, Sequence};
use node_core::clock::ManualClock;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(1_000_000))
}

fn entries(range: Range<u64>) -> Vec<Entry> {
    range.map(|number| Entry { sequence: Sequence(number), payload: number.to_string().into_bytes() }).collect()
}

fn acquire(objects: &Arc<dyn Objects>) -> Writer {
    Claim::acquire(Arc::clone(objects), clock()).unwrap().into_writer().unwrap()
}

/// Publishes a manifest whose runs have the entries up to `logged`: one run, with the id `id`.
fn publish(objects: &dyn Objects, writer: &mut Writer, logged: u64, id: u64) -> RunName {
    let name = RunName { epoch: writer.epoch(), id };
    objects.upload(&name.object(), &*file(b"rows")).unwrap();
    let run = SharedRun { name, size: 4, limit: 0, ending: [][..].into() };
    let content = Content { logged: Sequence(logged), keyed: vec![run], ..Content::default() };
    let uploaded = writer.draft(content).unwrap().upload(objects).unwrap();
    writer.announce(uploaded).unwrap();
    name
}

fn collect(objects: &dyn Objects, writer: &mut Writer, keep_for: Duration) {
    let collection = writer.collection(keep_for);
    collection.run(objects).unwrap();
    writer.collected(&collection);
    assert!(writer.collection(keep_for).is_empty());
}

/// Returns all entries that a reader can see in the log.
fn visible(reader: &mut Reader) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(step) = reader.poll().unwrap() {
        sequences.extend(step.object.entries.iter().map(|entry| entry.sequence.0));
    }
    sequences
}

#[test]
fn readers_follow_a_writer_and_find_its_manifests() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    assert!(Reader::open(Arc::clone(&objects)).unwrap().is_none());
    let mut writer = acquire(&objects);
    assert_eq!((writer.epoch(), writer.last()), (Epoch(1), Sequence(0)));
    let (mut reader, manifest) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!(manifest.content, Content::default());
    assert!(visible(&mut reader).is_empty());

    writer.commit(&entries(1..4)).unwrap();
    writer.commit(&[]).unwrap();
    writer.commit(&entries(4..5)).unwrap();
    assert_eq!(visible(&mut reader), [1, 2, 3, 4]);
    let run = publish(&*objects, &mut writer, 2, 7);
    let step = reader.poll().unwrap().unwrap();
    let manifest = reader.manifest(step.announced.unwrap()).unwrap();
    assert_eq!(manifest.content.runs().collect::<Vec<_>>(), [run]);
    // The object with entries 1 to 3 is not completely in the runs.
    let (mut second, manifest) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!((manifest.content.logged, second.position()), (Sequence(2), LogNumber(3)));
    assert_eq!(visible(&mut second), [3, 4]);

    // Many objects are found without reading each of them, and read several at a time.
    for number in 5..200 {
        writer.commit(&entries(number..number + 1)).unwrap();
    }
    assert_eq!(visible(&mut reader), (5..200).collect::<Vec<_>>());
    let (mut third, _) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!(visible(&mut third), (3..200).collect::<Vec<_>>());
}

#[test]
fn a_new_writer_gets_all_entries_and_fences_the_old_one_for_good() {
    check_failover(Arc::new(MemoryObjects::default()));
    let temporary = tempfile::tempdir().unwrap();
    check_failover(Arc::new(FolderObjects::new(temporary.path())));
}

/// A failover on an empty medium, with deletions.
pub(crate) fn check_failover(objects: Arc<dyn Objects>) {
    let mut old = acquire(&objects);
    old.commit(&entries(1..3)).unwrap();
    publish(&*objects, &mut old, 1, 1);
    old.commit(&entries(3..4)).unwrap();

    let mut claim = Claim::acquire(Arc::clone(&objects), clock()).unwrap();
    let mut tail = Vec::new();
    while let Some(step) = claim.poll().unwrap() {
        tail.extend(step.object.entries.iter().map(|entry| entry.sequence.0));
    }
    assert_eq!(tail, [2, 3]);
    let mut new = claim.into_writer().unwrap();
    assert_eq!((new.epoch(), new.last()), (Epoch(2), Sequence(3)));
    new.commit(&entries(4..6)).unwrap();
    for _ in 0..2 {
        let refused = old.commit(&entries(4..5)).unwrap_err();
        assert!(matches!(refused, SharedError::Fenced { by: Some(Epoch(2)) }), "{refused}");
    }
    assert!(matches!(old.draft(Content::default()), Err(SharedError::Fenced { .. })));
    let (mut reader, _) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!(visible(&mut reader), (2..6).collect::<Vec<_>>());
    publish(&*objects, &mut new, 5, 2);
    collect(&*objects, &mut new, Duration::ZERO);
    new.sweep().run(&*objects).unwrap();
    assert_eq!(objects.list("runs", None).unwrap().len(), 1);
    let (mut reader, manifest) = Reader::open(objects).unwrap().unwrap();
    assert_eq!((manifest.content.logged, visible(&mut reader).len()), (Sequence(5), 0));
}

/// The object that the old writer would create next remains, although all others like it are deleted.
#[test]
fn a_writer_that_was_stalled_is_fenced_although_the_log_was_deleted() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut old = acquire(&objects);
    old.commit(&entries(1..3)).unwrap();
    let mut new = acquire(&objects);
    for id in 1..4 {
        let next = new.last().0 + 1;
        new.commit(&entries(next..next + 3)).unwrap();
        publish(&*objects, &mut new, next + 2, id);
    }
    collect(&*objects, &mut new, Duration::ZERO);
    assert_eq!(objects.list("manifests", None).unwrap().len(), 1);
    assert_eq!(objects.list("runs", None).unwrap().len(), 1);
    // The first two objects and the fence of the second epoch.
    let log = objects.list("log", None).unwrap();
    assert_eq!(log[..3], [1, 2, 4].map(|number| LogNumber(number).object()));
    assert!(matches!(old.commit(&entries(3..4)), Err(SharedError::Fenced { by: Some(Epoch(2)) })));
    assert_eq!(objects.list("log", None).unwrap(), log);
}

type OnCreation<'a> = Box<dyn FnMut(&str) + Send + 'a>;

/// Calls a function before each object is created or read, as if that took some time; the first one with the name.
struct Before<'a> {
    objects: Arc<dyn Objects>,
    create: Mutex<OnCreation<'a>>,
    read: Mutex<Box<dyn FnMut() + Send + 'a>>,
}

impl fmt::Debug for Before<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("before")
    }
}

impl Objects for Before<'_> {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        (self.create.lock())(name);
        self.objects.create(name, bytes)
    }
    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        self.objects.upload(name, content)
    }
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        (self.read.lock())();
        self.objects.get(name)
    }
    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        (self.read.lock())();
        self.objects.read(name, ranges)
    }
    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.objects.size(name)
    }
    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        self.objects.list(folder, after)
    }
    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        self.objects.delete(name)
    }
}

#[test]
fn a_writer_without_pauses_makes_one_for_its_successor() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let running = Mutex::new((acquire(&objects), 0, false));
    // For each request of the successor, the writer makes one as well, and looks now and then whether it should stop.
    let write = || {
        let (writer, requests, pauses) = &mut *running.lock();
        *requests += 1;
        *pauses |= *requests % 100 == 0 && writer.is_claimed().unwrap();
        if !*pauses {
            let next = writer.last().0 + 1;
            writer.commit(&entries(next..next + 1)).unwrap();
        }
    };
    let busy = Before {
        objects: Arc::clone(&objects),
        create: Mutex::new(Box::new(|_| write())),
        read: Mutex::new(Box::new(write)),
    };
    let last = find_end(&busy).unwrap().map(|end| end.header);
    let fence = place_fence(&busy, last, 7, 0).unwrap().unwrap();
    drop(busy);
    let (mut old, requests, _) = running.into_inner();
    assert_eq!((fence.epoch, fence.number), (Epoch(2), old.position().number.next()));
    assert!(requests < 150, "{requests}");
    assert!(matches!(old.commit(&[]), Err(SharedError::Fenced { by: Some(Epoch(2)) })));
    assert!(objects.list("claims", None).unwrap().is_empty());

    // One that gave up is forgotten.
    let new = acquire(&objects);
    assert!(!new.is_claimed().unwrap());
    objects.create(&new.epoch().claim(), &[]).unwrap();
    assert!(new.is_claimed().unwrap());
    new.refuse_claim().unwrap();
    assert!(!new.is_claimed().unwrap());
}

/// It finds the end of the log, and creates its fence there only after that number was used and deleted.
#[test]
fn whoever_is_stalled_while_becoming_the_writer_begins_again() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut running = acquire(&objects);
    running.commit(&entries(1..2)).unwrap();
    let memory = Arc::clone(&objects);
    let mut call = Some(move || {
        for id in 1..4 {
            let next = running.last().0 + 1;
            running.commit(&entries(next..next + 1)).unwrap();
            publish(&*memory, &mut running, next, id);
        }
        collect(&*memory, &mut running, Duration::ZERO);
        assert_eq!(memory.get(&LogNumber(4).object()).unwrap(), None);
    });
    let mut create = move |name: &str| {
        if name == LogNumber(4).object()
            && let Some(mut call) = call.take()
        {
            call();
        }
    };
    let late = Before {
        objects: Arc::clone(&objects),
        create: Mutex::new(Box::new(move |name| create(name))),
        read: Mutex::new(Box::new(|| ())),
    };
    let mut writer = acquire(&(Arc::new(late) as Arc<dyn Objects>));
    assert_eq!((writer.epoch(), writer.last()), (Epoch(2), Sequence(4)));
    writer.commit(&entries(5..6)).unwrap();
    let (mut reader, _) = Reader::open(objects).unwrap().unwrap();
    assert_eq!(visible(&mut reader), [5]);
}

#[test]
fn a_commit_whose_answer_was_lost_is_finished_by_the_next_one() {
    let memory = Arc::new(MemoryObjects::default());
    for seed in 0..40 {
        let rates = faults::Rates { failed: 20, lost: 40, ..faults::Rates::default() };
        let faulty = Arc::new(faults::FaultyObjects::new(Arc::clone(&memory) as _, seed, faults::Rates::default()));
        let mut writer = acquire(&(Arc::clone(&faulty) as Arc<dyn Objects>));
        let first = writer.last().0 + 1;
        faulty.set_rates(rates);
        // Some of the calls fail. What they did not add, later ones do.
        for count in 1..10 {
            let _ = writer.commit(&entries(first..first + count));
        }
        faulty.set_rates(faults::Rates::default());
        writer.commit(&entries(first..first + 10)).unwrap();
        assert_eq!(writer.last(), Sequence(first + 9));
    }
    let (mut reader, _) = Reader::open(memory).unwrap().unwrap();
    assert_eq!(visible(&mut reader), (1..401).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_is_far_behind_notices_it() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..2)).unwrap();
    let (mut reader, _) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!(visible(&mut reader), [1]);
    reader.confirm().unwrap();
    for id in 1..3 {
        let next = writer.last().0 + 1;
        writer.commit(&entries(next..next + 1)).unwrap();
        publish(&*objects, &mut writer, next, id);
    }
    collect(&*objects, &mut writer, Duration::ZERO);
    let position = reader.position();
    assert!(matches!(reader.confirm(), Err(SharedError::Collected(number)) if number == position));
    let polled = (0..16).map(|_| reader.poll()).find_map(Result::err);
    assert!(matches!(polled, Some(SharedError::Collected(number)) if number == position));
}

/// Reads the log of a store to its end, as all who open it do. Returns the missing object and the one that proves it.
fn missing(objects: &Arc<dyn Objects>) -> (String, String) {
    let read = || -> Result<(), SharedError> {
        let mut reader = Reader::open(Arc::clone(objects))?.unwrap().0;
        while reader.poll()?.is_some() {}
        Ok(())
    };
    let (read, log) = (read(), objects.list("log", None).unwrap());
    let claimed = Claim::acquire(Arc::clone(objects), clock()).and_then(Claim::into_writer).map(drop);
    for name in objects.list("log", None).unwrap().iter().filter(|name| !log.contains(name)) {
        // If the gap was not where the end was searched, the fence is at the end.
        assert!(Some(name) > log.last());
        objects.delete(name).unwrap();
    }
    match (read, claimed) {
        (Err(SharedError::Missing { object, found }), Err(SharedError::Missing { object: of_writer, .. })) => {
            assert_eq!(object, of_writer);
            (object, found)
        }
        (read, claimed) => panic!("{read:?}, {claimed:?}"),
    }
}

#[test]
fn an_object_that_is_missing_in_the_middle_of_the_log_is_not_its_end() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..2)).unwrap();
    publish(&*objects, &mut writer, 1, 1);
    for number in 2..40 {
        writer.commit(&entries(number..number + 1)).unwrap();
    }
    let manifest = writer.manifest().unwrap();
    let (start, last) = (manifest.start.0, writer.position().number.0);
    assert!(last - start > 30);
    let log = objects.list("log", None).unwrap();
    for number in start..last {
        let name = LogNumber(number).object();
        let bytes = objects.get(&name).unwrap().unwrap();
        objects.delete(&name).unwrap();
        assert_eq!(missing(&objects).0, name);
        objects.create(&name, &bytes).unwrap();
    }
    // The object that announces the manifest, and all before it.
    for number in 1..=manifest.name.position.next().0 {
        objects.delete(&LogNumber(number).object()).unwrap();
    }
    let found = LogNumber(last).object();
    assert_eq!(missing(&objects), (LogNumber(1).object(), found));
    for name in &log {
        objects.delete(name).unwrap();
    }
    assert_eq!(missing(&objects), (LogNumber(1).object(), manifest.name.object()));
}

#[test]
fn a_manifest_that_is_missing_is_named() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..2)).unwrap();
    publish(&*objects, &mut writer, 1, 1);
    let (manifest, last) = (writer.manifest().unwrap().name.object(), writer.position().number.object());
    objects.delete(&manifest).unwrap();
    let opened = Reader::open(Arc::clone(&objects)).map(drop).unwrap_err();
    assert!(
        matches!(&opened, SharedError::Missing { object, found } if *object == manifest && *found == last),
        "{opened}"
    );
}

/// It cannot know without a listing, which it makes rarely.
#[test]
fn a_reader_that_follows_the_log_notices_a_missing_object_after_a_while() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    let counted = Arc::new(Counted::new(Arc::clone(&objects)));
    let (mut reader, _) = Reader::open(Arc::clone(&counted) as _).unwrap().unwrap();
    assert!(visible(&mut reader).is_empty());
    let lost = writer.commit(&entries(1..2)).unwrap();
    let next = writer.commit(&entries(2..3)).unwrap();
    let bytes = objects.get(&lost.object()).unwrap().unwrap();
    objects.delete(&lost.object()).unwrap();
    let before = counted.counts().reads;
    let polled = (1..200).find_map(|polls| Some((polls, reader.poll().err()?)));
    let (polls, error) = polled.unwrap();
    assert!(polls > 16 && counted.counts().reads - before < polls + 20, "{polls}");
    assert!(
        matches!(&error, SharedError::Missing { object, found } if *object == lost.object() && *found == next.object()),
        "{error}"
    );
    objects.create(&lost.object(), &bytes).unwrap();
    assert_eq!(visible(&mut reader), [1, 2]);
}

/// Its position is before what the newest manifest needs, so that the objects after it may have been deleted rightly.
#[test]
fn a_folder_that_is_far_behind_is_not_taken_for_a_damaged_store() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..2)).unwrap();
    let position = writer.position();
    for id in 1..4 {
        let next = writer.last().0 + 1;
        writer.commit(&entries(next..next + 1)).unwrap();
        publish(&*objects, &mut writer, next, id);
    }
    collect(&*objects, &mut writer, Duration::ZERO);
    let (mut reader, _) = Reader::open(objects).unwrap().unwrap();
    reader.move_to(position);
    assert!(matches!(reader.poll(), Err(SharedError::Collected(number)) if number == position.number.next()));
}

/// Nothing shows that it has different entries: it only lacks some.
#[test]
fn a_folder_that_lacks_entries_of_runs_is_not_taken_for_another_one() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..2)).unwrap();
    let at_once = writer.position();
    writer.commit(&entries(2..3)).unwrap();
    let later = writer.position();
    publish(&*objects, &mut writer, 5, 1);
    writer.commit(&entries(6..7)).unwrap();
    publish(&*objects, &mut writer, 6, 2);
    for (position, before) in [(at_once, 1), (later, 0)] {
        // The newest manifest is not the one whose runs have the entries.
        let (mut reader, _) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
        reader.move_to(position);
        for _ in 0..before {
            assert!(!reader.poll().unwrap().unwrap().skips);
        }
        let step = reader.poll().unwrap().unwrap();
        assert!(step.skips && step.object.header.first == Sequence(6));
        assert_eq!(visible(&mut reader), [6]);
    }
}

#[test]
fn what_readers_of_replaced_manifests_need_is_kept_for_a_while() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let time = clock();
    let mut writer = Claim::acquire(Arc::clone(&objects), Arc::clone(&time) as _).unwrap().into_writer().unwrap();
    writer.commit(&entries(1..2)).unwrap();
    let first = publish(&*objects, &mut writer, 1, 1);
    let keep_for = Duration::from_secs(60);
    time.advance(100_000);
    writer.commit(&entries(2..3)).unwrap();
    let second = publish(&*objects, &mut writer, 2, 2);
    time.advance(59_999);
    collect(&*objects, &mut writer, keep_for);
    assert_eq!(objects.list("runs", None).unwrap(), [first.object(), second.object()]);
    time.advance(1);
    collect(&*objects, &mut writer, keep_for);
    assert_eq!(objects.list("runs", None).unwrap(), [second.object()]);
    assert_eq!(objects.list("manifests", None).unwrap(), [writer.manifest().unwrap().name.object()]);
}

#[test]
fn runs_of_earlier_writers_are_listed_again_or_swept() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut old = acquire(&objects);
    let [uploaded, left] = [1, 2].map(|id| RunName { epoch: Epoch(1), id });
    for run in [uploaded, left] {
        objects.upload(&run.object(), &*file(b"rows")).unwrap();
    }
    // An upload that was interrupted after the first run.
    let draft = old.draft(Content { pending: vec![uploaded], ..Content::default() }).unwrap();
    old.announce(draft.upload(&*objects).unwrap()).unwrap();
    let mut new = acquire(&objects);
    let run = |name| SharedRun { name, size: 4, limit: 0, ending: [][..].into() };
    let foreign = Content { keyed: vec![run(left)], ..Content::default() };
    assert!(matches!(new.draft(foreign), Err(SharedError::ForeignRun(run)) if run == left));
    let own = RunName { epoch: Epoch(2), id: 3 };
    objects.upload(&own.object(), &*file(b"rows")).unwrap();
    assert_eq!(new.sweep().run(&*objects).unwrap(), 1);
    assert_eq!(objects.list("runs", None).unwrap(), [uploaded.object(), own.object()]);
    let content = Content { keyed: vec![run(uploaded), run(own)], ..Content::default() };
    let draft = new.draft(content).unwrap();
    new.announce(draft.upload(&*objects).unwrap()).unwrap();
    assert_eq!(new.sweep().run(&*objects).unwrap(), 0);
}

#[test]
fn what_does_not_continue_the_store_is_refused() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    writer.commit(&entries(1..3)).unwrap();
    let gap = writer.commit(&entries(4..5)).unwrap_err();
    assert!(matches!(gap, SharedError::Gap { last: Sequence(2), found: Sequence(4) }), "{gap}");
    publish(&*objects, &mut writer, 2, 1);
    let behind = writer.draft(Content { logged: Sequence(1), ..Content::default() }).map(drop).unwrap_err();
    assert!(matches!(behind, SharedError::Behind { stored: Sequence(2), found: Sequence(1) }), "{behind}");

    // Entries that exist only in runs, such as those of an import.
    let jump = writer.draft(Content { logged: Sequence(9), ..Content::default() }).unwrap().upload(&*objects).unwrap();
    writer.commit(&entries(3..4)).unwrap();
    assert!(matches!(writer.announce(jump), Err(SharedError::Gap { .. })));
    let (mut reader, _) = Reader::open(Arc::clone(&objects)).unwrap().unwrap();
    assert_eq!(visible(&mut reader), [3]);
    let jump = writer.draft(Content { logged: Sequence(9), ..Content::default() }).unwrap().upload(&*objects).unwrap();
    writer.announce(jump.clone()).unwrap();
    // Announcing it again does nothing.
    writer.announce(jump).unwrap();
    writer.commit(&entries(10..11)).unwrap();
    assert!(reader.poll().unwrap().unwrap().skips);
    assert_eq!(visible(&mut reader), [10]);
    let mut reopened = Reader::open(objects).unwrap().unwrap().0;
    assert_eq!(visible(&mut reopened), [10]);
}

#[test]
fn an_object_that_is_damaged_or_of_another_layout_is_an_error() {
    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let mut writer = acquire(&objects);
    let number = writer.commit(&entries(1..2)).unwrap();
    let bytes = objects.get(&number.object()).unwrap().unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        objects.delete(&number.object()).unwrap();
        objects.create(&number.object(), &bytes).unwrap();
        let (mut reader, _) = Reader::open(Arc::clone(&objects))?.unwrap();
        while reader.poll()?.is_some() {}
        Ok(())
    };
    let damaged = with(&|bytes| *bytes.last_mut().unwrap() ^= 1).unwrap_err();
    assert!(matches!(damaged, SharedError::Format(FormatError::Damaged { .. })), "{damaged}");
    let newer = with(&|bytes| bytes[11] = 2).unwrap_err();
    assert!(matches!(newer, SharedError::Format(FormatError::UnsupportedLayout { found: 2, .. })), "{newer}");
    with(&|_| ()).unwrap();
}

#[test]
fn a_run_is_opened_without_a_read_and_read_like_a_file() {
    let folder = MemoryFolder::default();
    let mut writer = RunWriter::create(&folder, RunId(5)).unwrap();
    let key = |number: u32| [&[0][..], &number.to_be_bytes()].concat();
    (0..20_000).for_each(|number| writer.add(&key(number), &number.to_le_bytes()).unwrap());
    writer.finish(0..=9).unwrap();
    let local = crate::files::Folder::open(&folder, &RunId(5).file_name()).unwrap();

    let objects: Arc<dyn Objects> = Arc::new(MemoryObjects::default());
    let name = RunName { epoch: Epoch(1), id: 5 };
    let ending = ending(&*local, 5).unwrap();
    assert!(!ending.is_empty() && ending.len() < 2_000);
    let run = SharedRun { name, size: local.size().unwrap(), limit: 9, ending };
    let open = |run: &SharedRun| {
        let object = Arc::new(RunObject::new(Arc::clone(&objects), run));
        Run::read(object, RunId(5), RunsShared::new(1 << 20)).map(Arc::new)
    };
    let opened = open(&run).unwrap();
    assert!(opened.seek(&key(700)).is_err());
    objects.upload(&name.object(), &*local).unwrap();
    assert_eq!(opened.seek(&key(701)).unwrap().unwrap().value(), 701u32.to_le_bytes());
    let without = open(&SharedRun { ending: [][..].into(), ..run }).unwrap();
    assert_eq!(without.seek(&key(702)).unwrap().unwrap().value(), 702u32.to_le_bytes());
    // A thread that serves connections never waits for the store.
    assert!(node_core::waiting::without_waiting(|| opened.seek(&key(19_000)).map(drop)).is_none());
}
