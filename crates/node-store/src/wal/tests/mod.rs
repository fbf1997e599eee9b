//! The log on a disk that loses power, fails and corrupts data.

mod crashes;
mod cut;
mod damage;
mod failures;

use super::format::{FrameHeader, SegmentHeader};
use super::mark::MARK_NAME;
use super::*;
use crate::files::DiskFolder;
use crate::files::faults::FaultyDisk;
use std::time::Duration;

const SMALL: WalOptions = WalOptions { segment_bytes: 200, buffer_bytes: 300, payload_bytes: MAX_PAYLOAD };

fn open(disk: &FaultyDisk, flushed: u64) -> Result<Wal, WalError> {
    Wal::open(disk.folder(), Sequence(flushed), SMALL)
}

fn entries_after(wal: &Wal, sequence: u64) -> Vec<Vec<u8>> {
    let entries: Result<Vec<Entry>, WalError> = wal.entries_after(Sequence(sequence)).collect();
    let entries = entries.unwrap();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.sequence.0).collect();
    assert_eq!(numbers, (sequence + 1..=sequence + entries.len() as u64).collect::<Vec<_>>());
    entries.into_iter().map(|entry| entry.payload).collect()
}

fn payload(number: u64) -> Vec<u8> {
    vec![number as u8; 40]
}

const PAYLOAD: usize = 40;
const FRAME: usize = FrameHeader::SIZE + PAYLOAD;

/// Creates nine entries, each synced, in segments that begin with 1, 4 and 7, and ends the process.
fn nine_entries() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let wal = open(&disk, 0).unwrap();
    for number in 1..=9 {
        wal.append(&payload(number)).unwrap();
        wal.sync().unwrap();
    }
    assert_eq!(disk.names(), [segment(1), segment(4), segment(7), MARK_NAME.to_owned()]);
    disk.kill();
    disk
}

fn segment(first: u64) -> String {
    format::segment_name(Sequence(first))
}

/// Returns the offset of frame `index` in a segment of [`nine_entries`].
fn frame(index: usize) -> usize {
    SegmentHeader::SIZE + index * FRAME
}

/// The expected result of opening.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// All entries up to this one exist.
    Recovered(u64),
    Corrupt {
        expected: u64,
        offset: usize,
    },
    Missing {
        from: u64,
        through: u64,
    },
    Repeated {
        last: u64,
    },
    UnsupportedLayout(u32),
}

fn outcome(disk: &FaultyDisk, flushed: u64) -> Outcome {
    match open(disk, flushed) {
        Ok(wal) => {
            let expected: Vec<_> = (flushed + 1..=wal.last().0).map(payload).collect();
            assert_eq!(entries_after(&wal, flushed), expected);
            Outcome::Recovered(wal.last().0)
        }
        Err(WalError::Corrupt { expected, offset, .. }) => {
            Outcome::Corrupt { expected: expected.0, offset: offset as usize }
        }
        Err(WalError::Missing { from, through }) => Outcome::Missing { from: from.0, through: through.0 },
        Err(WalError::Repeated { last, .. }) => Outcome::Repeated { last: last.0 },
        Err(WalError::UnsupportedLayout { found, .. }) => Outcome::UnsupportedLayout(found),
        Err(error) => panic!("{error}"),
    }
}
#[test]
fn reads_entries_from_any_position() {
    let disk = nine_entries();
    let wal = open(&disk, 0).unwrap();
    for number in 10..=12 {
        wal.append(&payload(number)).unwrap();
    }
    for after in 0..=12 {
        let expected: Vec<_> = (after + 1..=9).map(payload).collect();
        assert_eq!(entries_after(&wal, after), expected, "after {after}: only durable entries are returned");
    }
    wal.sync().unwrap();
    assert_eq!(entries_after(&wal, 8), (9..=12).map(payload).collect::<Vec<_>>());
}

#[test]
fn drops_segments_without_needed_entries() {
    // (dropped through, the segments that stay)
    let cases: [(u64, &[u64]); 5] =
        [(0, &[1, 4, 7, 10]), (2, &[1, 4, 7, 10]), (3, &[4, 7, 10]), (8, &[7, 10]), (99, &[10])];
    for (through, stay) in cases {
        let disk = nine_entries();
        let wal = open(&disk, 0).unwrap();
        wal.drop_through(Sequence(through)).unwrap();
        let mut names: Vec<String> = stay.iter().map(|first| segment(*first)).collect();
        names.push(MARK_NAME.to_owned());
        assert_eq!(disk.names(), names, "through {through}");
        disk.crash(through);
        assert_eq!(disk.names(), names, "through {through}, after a crash");
        assert_eq!(open(&disk, through.min(9)).unwrap().last(), Sequence(9), "through {through}");
    }
}

#[test]
fn opening_removes_segments_that_were_flushed() {
    // (flushed, the segments after opening)
    let cases: [(u64, &[u64]); 6] =
        [(0, &[1, 4, 7, 10]), (3, &[4, 7, 10]), (6, &[7, 10]), (8, &[7, 10]), (9, &[10]), (20, &[21])];
    for (flushed, stay) in cases {
        let disk = nine_entries();
        open(&disk, flushed).unwrap();
        let mut names: Vec<String> = stay.iter().map(|first| segment(*first)).collect();
        names.push(MARK_NAME.to_owned());
        assert_eq!(disk.names(), names, "flushed {flushed}");
    }
}

#[test]
fn payloads_of_every_size() {
    let sizes = [0, 1, 263, 264, 265, 299, 300, 301, 70_000, 200_000];
    let disk = FaultyDisk::new();
    let wal = open(&disk, 0).unwrap();
    let payloads: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0xab; *size]).collect();
    for payload in &payloads {
        wal.append(payload).unwrap();
    }
    wal.sync().unwrap();
    disk.crash(1);
    assert_eq!(entries_after(&open(&disk, 0).unwrap(), 0), payloads);
    let error = open(&disk, 0).unwrap().append(&vec![0; MAX_PAYLOAD + 1]).unwrap_err();
    assert!(matches!(error, WalError::TooLarge { limit: MAX_PAYLOAD, .. }), "{error}");
}

#[test]
fn one_sync_serves_all_waiting_callers() {
    let disk = FaultyDisk::new();
    let wal = Wal::open(disk.folder(), Sequence(0), WalOptions::default()).unwrap();
    disk.set_sync_time(Duration::from_millis(2));
    let before = disk.syncs();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let sequence = wal.append(b"entry").unwrap();
                    wal.sync_through(sequence).unwrap();
                    assert!(wal.synced() >= sequence);
                }
            });
        }
    });
    let syncs = disk.syncs() - before;
    assert!(syncs < 100, "{syncs} syncs for 200 entries of 8 threads");
    disk.crash(3);
    assert_eq!(entries_after(&open(&disk, 0).unwrap(), 0).len(), 200);
}

#[test]
fn the_log_works_on_a_real_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = Arc::new(DiskFolder::open(temporary.path()).unwrap());
    for run in 0..3_u64 {
        let wal = Wal::open(Arc::clone(&folder) as Arc<dyn Folder>, Sequence(0), SMALL).unwrap();
        assert_eq!(entries_after(&wal, 0), (1..=run * 10).map(payload).collect::<Vec<_>>());
        for number in run * 10 + 1..=run * 10 + 10 {
            wal.append(&payload(number)).unwrap();
        }
        wal.sync().unwrap();
    }
}

#[test]
fn flushed_entries_remain_in_the_log_as_long_as_they_are_kept() {
    let disk = FaultyDisk::new();
    let options = WalOptions { segment_bytes: 100, ..WalOptions::default() };
    let log = Wal::open(disk.folder(), Sequence(0), options).unwrap();
    for number in 1..=9u8 {
        log.append(&[number; 60]).unwrap();
        log.sync().unwrap();
    }
    drop(log);
    let read = |log: &Wal, after| {
        log.entries_after(Sequence(after)).map(|entry| entry.unwrap().payload[0]).collect::<Vec<_>>()
    };
    for flushed in [4, 9] {
        let mut log = Wal::open_keeping(disk.folder(), Sequence(flushed), Sequence(2), options).unwrap();
        assert_eq!(read(&log, 2), [3, 4, 5, 6, 7, 8, 9]);
        assert!(log.first() <= Sequence(3));
        log.drop_through(Sequence(2)).unwrap();
        log = Wal::open_keeping(disk.folder(), Sequence(flushed), Sequence(2), options).unwrap();
        assert_eq!(read(&log, 2), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(log.last(), Sequence(9));
    }
    // An entry follows those that are kept, which can be read through it.
    let log = Wal::open_keeping(disk.folder(), Sequence(9), Sequence(2), options).unwrap();
    let bytes = log.synced_bytes();
    assert_eq!(log.append(&[10; 60]).unwrap(), Sequence(10));
    log.sync().unwrap();
    assert_eq!(log.synced_bytes() - bytes, log.entries_after(Sequence(9)).next().unwrap().unwrap().logged_bytes());
    let mut tail = LogTail::after(Sequence(2));
    for number in 3..=10 {
        assert_eq!(tail.read(&*disk.folder(), log.synced()).unwrap().unwrap().payload[0], number);
    }
    drop(log);
    let log = Wal::open(disk.folder(), Sequence(9), options).unwrap();
    assert!(log.first() > Sequence(8) && read(&log, 9) == [10]);
}
