//! What every medium must do.

use crate::files::{Folder, MemoryFolder, Object};
use crate::shared::{Cancel, Creation, Fault, FolderObjects, MemoryObjects, Objects, PAGE, RetryPolicy, Retrying};
use crate::shared::{faults::FaultyObjects, faults::Rates};
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Returns a file with these bytes.
pub(super) fn file(bytes: &[u8]) -> Arc<dyn Object> {
    let file = MemoryFolder::default().create("file").unwrap();
    file.write_at(0, bytes).unwrap();
    file
}

/// Checks the contract of [`Objects`] on an empty medium.
pub(crate) fn check(objects: &dyn Objects) {
    assert_eq!(objects.get("log/1").unwrap(), None);
    assert_eq!(objects.size("log/1").unwrap(), None);
    assert_eq!(objects.read_range("log/1", 0..1).unwrap(), None);
    assert!(objects.list("log", None).unwrap().is_empty());
    objects.delete("log/1").unwrap();

    assert_eq!(objects.create("log/1", b"0123456789").unwrap(), Creation::Created);
    assert_eq!(objects.create("log/1", b"other").unwrap(), Creation::Exists);
    assert_eq!(objects.create("log/3", b"").unwrap(), Creation::Created);
    assert_eq!(objects.create("other/2", b"x").unwrap(), Creation::Created);
    assert_eq!(objects.get("log/1").unwrap().unwrap(), b"0123456789");
    assert_eq!(objects.get("log/3").unwrap().unwrap(), b"");
    assert_eq!(objects.size("log/1").unwrap(), Some(10));
    let parts = objects.read("log/1", &[0..2, 5..10, 1..3]).unwrap().unwrap();
    assert_eq!(parts, [&b"01"[..], b"56789", b"12"]);
    objects.read("log/1", &[0..2, 5..11]).unwrap_err();
    let many = objects.get_many(&["log/3", "log/2", "log/1"].map(str::to_owned)).unwrap();
    assert_eq!(many, [Some(vec![]), None, Some(b"0123456789".to_vec())]);

    // Larger than a part of an upload in parts.
    let content: Vec<_> = (0..17 << 20).map(|index: u32| (index / 7) as u8).collect();
    objects.upload("runs/a", &*file(&content)).unwrap();
    objects.upload("runs/a", &*file(&content)).unwrap();
    objects.upload("runs/empty", &*file(b"")).unwrap();
    assert_eq!(objects.size("runs/a").unwrap(), Some(content.len() as u64));
    let (start, end) = (9 << 20, (9 << 20) + 100);
    let part = objects.read_range("runs/a", start..end).unwrap().unwrap();
    assert_eq!(part, content[start as usize..end as usize]);

    assert_eq!(objects.list("log", None).unwrap(), ["log/1", "log/3"]);
    assert_eq!(objects.list("log", Some("log/1")).unwrap(), ["log/3"]);
    assert_eq!(objects.list("log", Some("log/2")).unwrap(), ["log/3"]);
    assert!(objects.list("log", Some("log/3")).unwrap().is_empty());
    objects.delete("log/1").unwrap();
    assert_eq!(objects.get("log/1").unwrap(), None);
    assert_eq!(objects.list("log", None).unwrap(), ["log/3"]);
    assert_eq!(objects.create("log/1", b"again").unwrap(), Creation::Created);

    for name in (0..PAGE + 5).map(|index| format!("many/{index:05}")) {
        objects.create(&name, b"").unwrap();
    }
    let first = objects.list("many", None).unwrap();
    assert!(first.len() == PAGE && first.is_sorted());
    let rest = objects.list("many", first.last().map(|name| &**name)).unwrap();
    assert_eq!(rest, (PAGE..PAGE + 5).map(|index| format!("many/{index:05}")).collect::<Vec<_>>());
}

/// Of many simultaneous creations of one name, exactly one succeeds.
pub(crate) fn check_races(objects: &dyn Objects) {
    for round in 0..20 {
        let name = format!("race/{round}");
        let created: usize = thread::scope(|scope| {
            let create = |index: u8| {
                let name = &name;
                scope.spawn(move || usize::from(objects.create(name, &[index; 100]).unwrap() == Creation::Created))
            };
            let threads: Vec<_> = (0..4).map(create).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(created, 1);
        let content = objects.get(&name).unwrap().unwrap();
        assert!(content.len() == 100 && content.iter().all(|byte| *byte == content[0]));
    }
}

#[test]
fn memory_keeps_the_contract() {
    check(&MemoryObjects::default());
    check_races(&MemoryObjects::default());
}

#[test]
fn a_folder_keeps_the_contract() {
    let temporary = tempfile::tempdir().unwrap();
    let objects = FolderObjects::new(temporary.path().join("a").join("store"));
    check(&objects);
    let other = tempfile::tempdir().unwrap();
    check_races(&FolderObjects::new(other.path()));
    assert_eq!(fs::read_dir(other.path().join("unfinished")).unwrap().count(), 0);
}

#[test]
fn a_folder_refuses_names_that_lead_elsewhere() {
    let temporary = tempfile::tempdir().unwrap();
    let objects = FolderObjects::new(temporary.path());
    for name in ["../a", "log/../../a", "/a", "log//a", "log/", "", "log/.a", "log/\0"] {
        assert_eq!(objects.create(name, b"").unwrap_err().fault, Fault::Permanent, "{name}");
        assert_eq!(objects.get(name).unwrap_err().fault, Fault::Permanent, "{name}");
    }
}

#[test]
fn files_of_killed_processes_are_removed_after_a_day() {
    let temporary = tempfile::tempdir().unwrap();
    let objects = FolderObjects::new(temporary.path());
    objects.remove_abandoned().unwrap();
    objects.create("log/1", b"").unwrap();
    let [old, new] = ["1-0", "2-0"].map(|name| temporary.path().join("unfinished").join(name));
    for path in [&old, &new] {
        fs::write(path, b"part").unwrap();
    }
    let yesterday = std::time::SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    fs::File::open(&old).unwrap().set_modified(yesterday).unwrap();
    objects.remove_abandoned().unwrap();
    assert!(!old.exists() && new.exists());
}

#[test]
fn operations_are_repeated_until_they_succeed() {
    let memory = Arc::new(MemoryObjects::default());
    let policy = RetryPolicy { first: Duration::ZERO, longest: Duration::ZERO, ..RetryPolicy::default() };
    for seed in 0..50 {
        let faulty =
            Arc::new(FaultyObjects::new(memory.clone(), seed, Rates { failed: 40, lost: 30, torn: 0, stale: 0 }));
        let retrying = Retrying::new(faulty, policy, Arc::default());
        let name = format!("log/{seed}");
        retrying.create(&name, b"content").unwrap();
        assert_eq!(retrying.get(&name).unwrap().unwrap(), b"content");
        retrying.delete(&name).unwrap();
        assert!(retrying.outage().is_none());
    }
}

#[test]
fn repeating_ends_at_the_deadline_and_when_it_is_cancelled() {
    let faulty = || {
        Arc::new(FaultyObjects::new(Arc::new(MemoryObjects::default()), 1, Rates { failed: 100, ..Rates::default() }))
    };
    let short = RetryPolicy { deadline: Duration::from_millis(20), ..RetryPolicy::default() };
    let retrying = Retrying::new(faulty(), short, Arc::default());
    assert_eq!(retrying.get("log/1").unwrap_err().fault, Fault::Transient);
    assert!(retrying.outage().unwrap().reason.contains("cannot read log/1"));

    let cancel = Arc::new(Cancel::default());
    let long = RetryPolicy { first: Duration::from_secs(50), ..RetryPolicy::default() };
    let retrying = Retrying::new(faulty(), long, Arc::clone(&cancel));
    let begun = Instant::now();
    let waiting = thread::spawn(move || retrying.get("log/1").unwrap_err().fault);
    thread::sleep(Duration::from_millis(20));
    cancel.cancel();
    assert_eq!(waiting.join().unwrap(), Fault::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(20));
}
